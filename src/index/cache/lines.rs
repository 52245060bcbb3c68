//! The lines of a listing: some in memory, the others in the cache file until they are needed.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::fs;

/// Where a line is: near lines are read with the heads, far ones when they are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) struct LineSpan {
    pub(super) start: u32,
    pub(super) length: u32,
    pub(super) is_far: bool,
}

/// The lines of a listing, and whatever else is near.
#[derive(Debug, Clone)]
pub(in crate::index) struct Lines {
    pub(super) near: Arc<Vec<u8>>,
    pub(super) far: Far,
}

/// Where far lines are.
#[derive(Debug, Clone)]
pub(super) enum Far {
    /// In memory: they were fetched in this run.
    Bytes(Arc<Vec<u8>>),
    /// In the cache file: the offset, and the number of bytes.
    File(Arc<File>, u64, u32),
}

impl LineSpan {
    /// A line in bytes that were just fetched.
    pub(in crate::index) fn fetched(range: Range<usize>) -> Self {
        let number = |number| u32::try_from(number).expect("a listing is under 4 GiB");
        Self { start: number(range.start), length: number(range.len()), is_far: true }
    }

    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.length as usize
    }
}

impl Lines {
    /// Reads a line.
    ///
    /// # Errors
    ///
    /// When the cache file can no longer be read.
    pub(in crate::index) fn read(&self, line: LineSpan) -> io::Result<Cow<'_, [u8]>> {
        let missing = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let bytes = match &self.far {
            Far::File(file, offset, length) if line.is_far => {
                if line.range().end > *length as usize {
                    return Err(missing());
                }
                let mut bytes = vec![0; line.length as usize];
                fs::read_at(file, offset + u64::from(line.start), &mut bytes)?;
                return Ok(Cow::Owned(bytes));
            }
            Far::Bytes(bytes) if line.is_far => bytes,
            _ => &self.near,
        };
        bytes.get(line.range()).map(Cow::Borrowed).ok_or_else(missing)
    }
}
