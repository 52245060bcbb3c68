//! Whether a changed manifest means what was intended.

use std::path::Path;

use super::Section;
use crate::source::{Document, SourceError};
use crate::{Requirement, requirement};

/// The dependencies that a document says.
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

/// Whether two entries ask for the same, on whatever lines they stand.
pub(super) fn says_the_same(left: &Requirement, right: &Requirement) -> bool {
    let place = |requirement: &Requirement| requirement.reference.with_version(None);
    place(left) == place(right)
        && left.reference.spec() == right.reference.spec()
        && left.alias == right.alias
        && left.channel == right.channel
        && left.app_version == right.app_version
        && left.prerelease == right.prerelease
        && left.indirect == right.indirect
}

/// Whether the section says what is expected.
pub(super) fn is_intended(
    path: &Path,
    text: &str,
    section: Section,
    expected: &[Requirement],
) -> bool {
    let Ok(document) = Document::read(path, text) else { return false };
    let Ok(found) = requirements(&document, section) else { return false };
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| says_the_same(found, expected))
}
