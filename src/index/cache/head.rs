//! What is known of a line of a listing without parsing it.

use std::fmt;

use super::lines::LineSpan;

/// What is known of a line without parsing it.
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
