//! Checks that a changed manifest means what was intended.

use super::Section;
use crate::source::{Document, SourceError};
use crate::{Requirement, requirement};

/// The dependencies in a document.
pub(super) fn requirements(
    document: &Document<'_>,
    section: Section,
) -> Result<Vec<Requirement>, SourceError> {
    let root = document.root();
    if root.is_null() {
        return Ok(Vec::new());
    }
    let found = root.entries()?.find(|(key, _)| key.as_str() == section.key());
    match found {
        Some((_, value)) if !value.is_null() => requirement::read(value, &mut Vec::new()),
        _ => Ok(Vec::new()),
    }
}

/// Whether two entries require the same, regardless of their lines.
pub(super) fn says_the_same(left: &Requirement, right: &Requirement) -> bool {
    let without_version = |entry: &Requirement| {
        let reference = entry.reference.with_version(None);
        Requirement { reference, line: 0, ..entry.clone() }
    };
    without_version(left) == without_version(right)
        && left.reference.spec() == right.reference.spec()
}

/// Whether a section contains what is expected.
pub(super) fn are_the_same(found: &[Requirement], expected: &[Requirement]) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| says_the_same(found, expected))
}
