//! Checks whether a change has lost anything: comments, or the content of other keys.

use std::path::Path;

use super::{Collection, New, Patch, Style};
use crate::source::node::{Entry, Kind};
use crate::source::{Document, SourceError};

impl<'d> Patch<'d> {
    /// The text with all changes; `None` if it is no longer well formed, has other content under a key other
    /// than `key`, or lacks a comment that no change was about.
    fn apply(&self, key: &str) -> Option<String> {
        let changed = self.changed_text();
        let after = Document::read(self.document.path, &changed).ok()?;
        let mut left: Vec<&str> = after.comments().collect();
        for comment in self.untouched_comments() {
            let place = left.iter().position(|other| *other == comment)?;
            left.swap_remove(place);
        }
        self.document.differs_only_in(key, &after).then_some(changed)
    }

    /// The comments that none of the changes touches.
    fn untouched_comments(&self) -> Vec<&'d str> {
        let document = self.document;
        let spans = document.comments.iter().map(|comment| comment.span.clone());
        let untouched = spans.filter(|span| {
            let meets =
                |range: &std::ops::Range<usize>| range.start < span.end && span.start < range.end;
            !self.splices.iter().any(|(range, _)| meets(range))
        });
        untouched.map(|span| document.text[span].trim_end()).collect()
    }
}

impl Document<'_> {
    /// Whether another text of the same file has the same content under every outermost key but one.
    fn differs_only_in(&self, key: &str, other: &Document<'_>) -> bool {
        let (left, right) = (self.others(key), other.others(key));
        let same = |(left, right): (&&Entry<'_>, &&Entry<'_>)| {
            left.key == right.key && left.value.means(&right.value)
        };
        left.len() == right.len() && left.iter().zip(&right).all(same)
    }

    fn others(&self, key: &str) -> Vec<&Entry<'_>> {
        match &self.root.kind {
            Kind::Table { entries, .. } => {
                entries.iter().filter(|entry| entry.key != key).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The text of the file at `path` after a change under `key`.
///
/// # Errors
///
/// When the change itself fails. It is `Ok(None)` if the result would have lost something.
pub fn change(
    path: &Path,
    text: &str,
    key: &str,
    change: impl for<'d> FnOnce(&mut Patch<'d>, Option<Collection<'d>>) -> Result<(), SourceError>,
) -> Result<Option<String>, SourceError> {
    let document = Document::read(path, text)?;
    let mut patch = Patch::new(&document);
    change(&mut patch, Collection::find(&document, key))?;
    Ok(patch.apply(key))
}

/// The text of the file at `path` with `value` under `key` of the outermost map: it replaces a text there, or
/// becomes a new entry.
///
/// # Errors
///
/// As [`change`].
pub fn set(path: &Path, text: &str, key: &str, value: &str) -> Result<Option<String>, SourceError> {
    let document = Document::read(path, text)?;
    let mut patch = Patch::new(&document);
    let value = New::Text(value.to_owned());
    if document.node().is_null() {
        let rendered = value.render(patch.manner(false, Style::Plain));
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        patch.insert(text.len(), format!("{end}{key}: {rendered}\n"));
    } else {
        patch.set(Collection::outermost(&document), key, value)?;
    }
    Ok(patch.apply(key))
}
