//! A registry's answer about one package, as read from the cache, and its lines: some in memory, the others in the cache file until they
//! are needed. Much is known of a line without parsing it.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use mu_provider::Location;
use mu_provider::threads::lock;
use rustc_hash::FxHashMap;

use super::layout::{LineTable, WrittenRecord};
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
pub(in crate::index) struct ListingLines {
    pub(super) near: Arc<Vec<u8>>,
    pub(super) far: Far,
}

/// Where far lines are.
#[derive(Debug, Clone)]
pub(super) enum Far {
    /// In memory: they were fetched in this run.
    Bytes(Arc<Vec<u8>>),
    /// In the cache file, or aside: the offset, and the number of bytes.
    File(Arc<FarFile>, u64, u32),
}

/// A file with far lines, some of which were read before they are needed.
#[derive(Debug)]
pub(super) struct FarFile {
    pub(super) file: File,
    /// Where each of those begins, ascending, and its bytes until somebody needs them.
    ahead: Mutex<Vec<(u64, Vec<u8>)>>,
}

impl Far {
    /// In bytes.
    pub(super) fn count_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(.., length) => u64::from(*length),
        }
    }
}

/// Lines with more than this between them are not read together, …
const WIDEST_GAP: u64 = 4 << 10;
/// … nor are more bytes than this.
const LONGEST_PART: u64 = 256 << 10;

impl FarFile {
    pub(super) fn new(file: File) -> Self {
        Self { file, ahead: Mutex::default() }
    }

    fn read(&self, start: u64, length: usize) -> io::Result<Vec<u8>> {
        if let Some(known) = self.take_known(start, length) {
            return Ok(known);
        }
        let mut bytes = vec![0; length];
        fs::read_at(&self.file, start, &mut bytes)?;
        Ok(bytes)
    }

    /// A line that was read ahead. Whoever needs it again reads it again: what a line says is kept elsewhere.
    fn take_known(&self, start: u64, length: usize) -> Option<Vec<u8>> {
        let mut ahead = lock(&self.ahead);
        let at = ahead.binary_search_by_key(&start, |(begin, _)| *begin).ok()?;
        let (_, bytes) = ahead.get_mut(at)?;
        (bytes.len() == length).then(|| std::mem::take(bytes))
    }

    /// Keeps these lines of the file instead of those before, and returns how many reads that took.
    fn read_ahead(&self, mut lines: Vec<Range<u64>>) -> usize {
        lines.sort_unstable_by_key(|line| line.start);
        let mut ahead = Vec::with_capacity(lines.len());
        let (mut rest, mut reads) = (lines.as_slice(), 0);
        while let Some(first) = rest.first() {
            let is_close = |(before, line): &(&Range<u64>, &Range<u64>)| {
                line.start <= before.end + WIDEST_GAP && line.end <= first.start + LONGEST_PART
            };
            let close = rest.iter().zip(rest.iter().skip(1)).take_while(is_close).count();
            let (part, after) = rest.split_at(1 + close);
            reads += 1;
            // Whoever needs a line reports that it cannot be read.
            if let Some(bytes) = self.read_part(part) {
                // What lies between the lines is not kept.
                let own = |line: &Range<u64>| {
                    let at = |place: u64| usize::try_from(place - first.start).ok();
                    Some((line.start, bytes.get(at(line.start)?..at(line.end)?)?.to_vec()))
                };
                ahead.extend(part.iter().filter_map(own));
            }
            rest = after;
        }
        *lock(&self.ahead) = ahead;
        reads
    }

    /// The bytes of these lines, from the beginning of the first. In a file that is damaged, one line may lie within another.
    fn read_part(&self, lines: &[Range<u64>]) -> Option<Vec<u8>> {
        let start = lines.first()?.start;
        let end = lines.iter().map(|line| line.end).max()?;
        let mut bytes = vec![0; usize::try_from(end - start).ok()?];
        fs::read_at(&self.file, start, &mut bytes).ok()?;
        Some(bytes)
    }
}

/// Reads lines before they are needed, those that are close to each other at once; returns how many reads that took.
pub(in crate::index) fn read_ahead<'lines>(
    wanted: impl Iterator<Item = (&'lines ListingLines, LineSpan)>,
) -> usize {
    let mut files: FxHashMap<*const FarFile, (&FarFile, Vec<Range<u64>>)> = FxHashMap::default();
    for (lines, line) in wanted {
        let Far::File(file, offset, length) = &lines.far else { continue };
        let Range { start, end } = line.byte_range();
        if line.is_far && end <= *length as usize {
            let (_, ranges) = files.entry(Arc::as_ptr(file)).or_insert((file, Vec::new()));
            ranges.push(offset + start as u64..offset + end as u64);
        }
    }
    files.into_values().map(|(file, ranges)| file.read_ahead(ranges)).sum()
}

impl LineSpan {
    /// A line in bytes that were just fetched.
    pub(in crate::index) fn fetched(range: Range<usize>) -> Self {
        let number = |number| u32::try_from(number).expect("a listing is under 4 GiB");
        Self { start: number(range.start), length: number(range.len()), is_far: true }
    }

    pub(super) fn byte_range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.length as usize
    }
}

impl ListingLines {
    /// Reads a line.
    pub(in crate::index) fn read(&self, line: LineSpan) -> io::Result<Cow<'_, [u8]>> {
        let missing = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let bytes = match &self.far {
            Far::File(file, offset, length) if line.is_far => {
                if line.byte_range().end > *length as usize {
                    return Err(missing());
                }
                let bytes = file.read(offset + u64::from(line.start), line.length as usize)?;
                return Ok(Cow::Owned(bytes));
            }
            Far::Bytes(bytes) if line.is_far => bytes,
            _ => &self.near,
        };
        bytes.get(line.byte_range()).map(Cow::Borrowed).ok_or_else(missing)
    }
}

/// What is known of a line without parsing it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::index) struct LineHead {
    /// The version.
    pub(in crate::index) version: Label,
    /// Whether the version is composite.
    pub(in crate::index) composite: bool,
    /// Whether the line holds more than a version, its time and its dependencies.
    pub(in crate::index) detailed: bool,
    /// When it was published, in seconds since 1970.
    pub(in crate::index) published: Option<i64>,
    /// The commit.
    pub(in crate::index) commit: Option<Box<str>>,
    /// Where the line is.
    pub(in crate::index) line: LineSpan,
}

/// A version in the form of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::index) enum Label {
    /// Three numbers, and nothing else.
    Plain([u32; 3]),
    /// Any other text; empty for a tag or branch that is not a version.
    Text(Box<str>),
}

impl Label {
    /// Whether it is not a version.
    pub(in crate::index) fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain([major, minor, patch]) => write!(formatter, "{major}.{minor}.{patch}"),
            Self::Text(text) => formatter.write_str(text),
        }
    }
}

/// A registry's answer about one package.
#[derive(Debug, Clone)]
pub(in crate::index) struct Record {
    /// When it was requested, in seconds since 1970.
    pub(in crate::index) checked: i64,
    /// For how many seconds it is fresh, if the registry said so.
    pub(in crate::index) max_age: Option<u32>,
    /// The validator for the next request.
    pub(in crate::index) validator: Option<String>,
    /// The package's releases; `None` if it has no such package.
    pub(in crate::index) listing: Option<Listing>,
    /// The places that were searched, if it has no such package.
    pub(in crate::index) tried: Vec<String>,
}

impl Record {
    /// When it was requested, and for how long it is fresh.
    pub(in crate::index) fn times(&self) -> (i64, Option<u32>) {
        (self.checked, self.max_age)
    }
}

/// A package's releases.
#[derive(Debug, Clone)]
pub(in crate::index) struct Listing {
    /// Where the package really is.
    pub(in crate::index) location: Location,
    /// What is known of each line: ascending by version, followed by those that are not versions.
    pub(in crate::index) table: LineTable,
    /// The lines of the table.
    pub(in crate::index) lines: ListingLines,
}

/// A new answer of a registry: in the form that is read from the cache, and in the form for it.
#[derive(Debug)]
pub(in crate::index) struct Learned {
    pub(in crate::index) record: Record,
    /// `None` if only times and validator of the record are new.
    pub(super) written: Option<WrittenRecord>,
}

impl Learned {
    /// Says that a registry has nothing new, and when it was asked.
    pub(in crate::index) fn unchanged(record: Record) -> Self {
        Self { record, written: None }
    }

    /// Whether there is more than times and validator.
    pub(in crate::index) fn is_new(&self) -> bool {
        self.written.is_some()
    }
}

/// A line that was just fetched.
#[derive(Debug, Clone)]
pub(in crate::index) struct Fetched {
    pub(in crate::index) head: LineHead,
    /// The references that it depends on; `None` if it depends on anything else, or only the manifest can
    /// tell.
    pub(in crate::index) needs: Option<Vec<String>>,
}

impl Listing {
    /// What is known of each line.
    pub(in crate::index) fn heads(&self) -> impl Iterator<Item = LineHead> {
        (0..self.table.len()).filter_map(|position| self.table.head(&self.lines, position))
    }
}
