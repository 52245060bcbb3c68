//! Whether a changed manifest means what was intended, and has lost nothing.

use std::path::Path;

use super::Section;
use crate::manifest::source::layout::Patch;
use crate::manifest::source::{Document, Entry, Kind, SourceError};
use crate::manifest::{Requirement, requirement};

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

/// Whether the text after a change is well formed and has every comment that the change left alone.
pub(super) fn keeps_comments(path: &Path, patch: &Patch<'_>, after: &str) -> bool {
    let Ok(after) = Document::read(path, after) else { return false };
    let mut left: Vec<&str> = after.comments().collect();
    patch.untouched_comments().into_iter().all(|comment| {
        let place = left.iter().position(|other| *other == comment);
        place.map(|index| left.swap_remove(index)).is_some()
    })
}

/// Whether the section now says what is expected, and every other key what it said before.
pub(super) fn is_intended(
    path: &Path,
    before: &str,
    after: &str,
    section: Section,
    expected: &[Requirement],
) -> Result<bool, SourceError> {
    let before = Document::read(path, before)?;
    let Ok(after) = Document::read(path, after) else { return Ok(false) };
    let Ok(found) = requirements(&after, section) else { return Ok(false) };
    let says_it = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| says_the_same(found, expected));
    let (before, after) = (others(&before, section), others(&after, section));
    let same = |(left, right): (&&Entry<'_>, &&Entry<'_>)| {
        left.key == right.key && left.value.means(&right.value)
    };
    Ok(says_it && before.len() == after.len() && before.iter().zip(&after).all(same))
}

fn others<'d>(document: &'d Document<'_>, section: Section) -> Vec<&'d Entry<'d>> {
    match &document.node().kind {
        Kind::Table { entries, .. } => {
            entries.iter().filter(|entry| entry.key != section.key()).collect()
        }
        _ => Vec::new(),
    }
}
