//! A registry's answer about one package, as read from the cache.

use mu_provider::Location;

use super::head::Head;
use super::layout::{Table, Written};
use super::lines::Lines;

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
    pub(in crate::index) table: Table,
    /// The lines of the table.
    pub(in crate::index) lines: Lines,
}

/// A new answer of a registry: in the form that is read from the cache, and in the form for it.
#[derive(Debug)]
pub(in crate::index) struct Learned {
    pub(in crate::index) record: Record,
    /// `None` if only times and validator of the record are new.
    pub(super) written: Option<Written>,
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
    pub(in crate::index) head: Head,
    /// The references that it depends on; `None` if it depends on anything else, or only the manifest can
    /// tell.
    pub(in crate::index) needs: Option<Vec<String>>,
}

impl Listing {
    /// What is known of each line.
    pub(in crate::index) fn heads(&self) -> impl Iterator<Item = Head> {
        (0..self.table.len()).filter_map(|position| self.table.head(&self.lines, position))
    }
}
