//! What a package keeps of its listing: where each line is, and where it is told what it depends on.
//!
//! What the versions are is with the releases; nothing here reads a line.

use std::ops::Range;

use crate::index::cache::{Head, Line, Lines, Needs, Table};
use crate::index::releases::Position;

/// What the listing has of the releases, and of tags or branches that are none, which come last.
#[derive(Debug)]
pub(super) enum Held {
    Each(Vec<One>),
    Table(Table),
}

/// What the listing has of one of them.
#[derive(Debug)]
pub(super) struct One {
    line: Line,
    /// Where its dependencies are, if they are told without the line.
    needs: Option<Range<u32>>,
}

impl From<Head> for One {
    fn from(head: Head) -> Self {
        let needs = match head.needs {
            Needs::At(at) => Some(at),
            Needs::Unread | Needs::References(_) => None,
        };
        Self { line: head.line, needs }
    }
}

impl Held {
    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Each(each) => each.len(),
            Self::Table(table) => table.count,
        }
    }

    /// Where a line is; nothing of a position that there is not.
    pub(super) fn line(&self, lines: &Lines, position: Position) -> Option<Line> {
        match self {
            Self::Each(each) => Some(each.get(position as usize)?.line),
            Self::Table(table) => table.line(lines, position as usize),
        }
    }

    /// Where it is told what a version depends on, if not in its line alone.
    pub(super) fn needs(&self, lines: &Lines, position: Position) -> Option<Range<u32>> {
        match self {
            Self::Each(each) => each.get(position as usize)?.needs.clone(),
            Self::Table(table) => table.needs(lines, position as usize),
        }
    }
}
