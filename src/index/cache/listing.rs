//! What a registry said about one package, as it goes into the cache and comes out of it.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use mu_provider::Location;

use super::layout::{Reader, Table};
use crate::fs;

/// What a registry said about one package.
#[derive(Debug, Clone)]
pub(in crate::index) struct Record {
    /// When it was asked, in seconds since 1970.
    pub(in crate::index) checked: i64,
    /// For how many seconds it need not be asked again.
    pub(in crate::index) max_age: u32,
    /// What to send to ask whether anything changed.
    pub(in crate::index) validator: Option<String>,
    /// The package's releases; `None` if it has no such package.
    pub(in crate::index) listing: Option<Listing>,
    /// Where it was looked for, if it has no such package.
    pub(in crate::index) tried: Vec<String>,
}

/// A package's releases.
#[derive(Debug, Clone)]
pub(in crate::index) struct Listing {
    /// Where the package really is.
    pub(in crate::index) location: Location,
    /// One for each line.
    pub(in crate::index) heads: Heads,
    /// What the heads' lines are in.
    pub(in crate::index) lines: Lines,
}

/// What is known of a listing's lines without reading them.
#[derive(Debug, Clone)]
pub(in crate::index) enum Heads {
    /// Ascending by version; lines that are no version come last.
    Each(Vec<Head>),
    /// Of plain versions alone.
    Table(Table),
}

/// What is known of a line without reading it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::index) struct Head {
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
    pub(in crate::index) line: Line,
    /// What it depends on.
    pub(in crate::index) needs: Needs,
}

/// A version as a head has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::index) enum Label {
    /// Three numbers, and nothing else.
    Plain([u32; 3]),
    /// Any other text; empty for a tag or branch that is no version.
    Text(Box<str>),
}

/// Where a line is: near lines are read with the heads, far ones when somebody wants them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) struct Line {
    pub(super) start: u32,
    pub(super) length: u32,
    pub(super) is_far: bool,
}

/// What a version depends on, as far as that is told without its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::index) enum Needs {
    /// Only the line can tell, or the manifest.
    Unread,
    /// References, which are to be written into the cache.
    References(Vec<String>),
    /// The same in the cache: for [`Lines::needs`].
    At(Range<u32>),
}

/// The lines of a listing, and the texts of its dependencies.
#[derive(Debug, Clone)]
pub(in crate::index) struct Lines {
    pub(super) near: Arc<Vec<u8>>,
    /// Where texts are in `near`.
    pub(super) texts: Range<usize>,
    pub(super) far: Far,
}

/// Where far lines are.
#[derive(Debug, Clone)]
pub(super) enum Far {
    /// In memory: they were fetched in this run.
    Bytes(Arc<Vec<u8>>),
    /// In the cache file: from an offset on, so many bytes.
    File(Arc<File>, u64, u32),
}

impl Heads {
    /// Each by itself.
    pub(in crate::index) fn each(&self, lines: &Lines) -> Cow<'_, [Head]> {
        match self {
            Self::Each(heads) => Cow::Borrowed(heads),
            Self::Table(table) => {
                let positions = 0..table.count;
                Cow::Owned(positions.filter_map(|position| table.head(lines, position)).collect())
            }
        }
    }
}

impl Label {
    /// The three numbers, if it is nothing else.
    pub(super) fn plain(&self) -> Option<[u32; 3]> {
        match self {
            Self::Plain(numbers) => Some(*numbers),
            Self::Text(_) => None,
        }
    }

    /// Whether it is no version.
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

impl Line {
    /// A line in bytes that were just fetched.
    pub(in crate::index) fn fetched(range: Range<usize>) -> Self {
        let number = |number| u32::try_from(number).expect("a listing is under 4 GiB");
        Self { start: number(range.start), length: number(range.len()), is_far: true }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.length as usize
    }
}

impl Lines {
    /// Lines that were just fetched.
    pub(in crate::index) fn fetched(bytes: Vec<u8>) -> Self {
        Self { near: Arc::default(), texts: 0..0, far: Far::Bytes(Arc::new(bytes)) }
    }

    /// Reads a line.
    ///
    /// # Errors
    ///
    /// When the cache file cannot be read any more.
    pub(in crate::index) fn read(&self, line: Line) -> io::Result<Cow<'_, [u8]>> {
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

    /// The references of a version's dependencies, each split where its version begins; `None` if the cache is
    /// damaged there.
    pub(in crate::index) fn needs(&self, at: &Range<u32>) -> Option<Vec<(&str, Option<&str>)>> {
        let texts = self.near.get(self.texts.clone())?;
        let mut reader = Reader::new(self.near.get(at.start as usize..at.end as usize)?);
        let mut needs = Vec::new();
        while !reader.is_at_end() {
            needs.push((reader.text(texts)?, reader.optional_text(texts)?));
        }
        Some(needs)
    }
}
