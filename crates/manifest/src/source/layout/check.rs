//! Checks whether a change has lost anything: comments, or the content of other keys.

use std::path::{Path, PathBuf};

use super::{Collection, New, Patch, ScalarNotation};
use crate::source::node::{Entry, Kind};
use crate::source::{Document, SourceError, TextProblem};

/// Why a manifest could not be changed; its text is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The manifest is wrong, or has a layout that mu does not understand.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The manifest cannot have the change, whatever is written in it.
    #[error("cannot change `{}`: {message}", .path.display())]
    Refused {
        /// The manifest.
        path: PathBuf,
        /// Why.
        message: String,
        /// What the user can do.
        help: Option<String>,
    },
    /// The changed text would not have meant what was intended.
    #[error("cannot change {}`{}` without changing other parts of it; the file was not changed", in_line(.line), .path.display())]
    Unsafe {
        /// The manifest.
        path: PathBuf,
        /// The line of what was to be changed, counted from 1, if it is known.
        line: Option<usize>,
    },
}

impl EditError {
    /// A change that the manifest at `path` cannot have.
    pub fn refused(path: &Path, problem: TextProblem) -> Self {
        let TextProblem { message, help, .. } = problem;
        Self::Refused { path: path.to_owned(), message, help }
    }

    /// A change after which the file at `path` would not mean what was intended.
    pub fn unsafe_at(path: &Path) -> Self {
        Self::Unsafe { path: path.to_owned(), line: None }
    }

    /// This error, about the entry in a line; 0 is none.
    #[must_use]
    pub(crate) fn in_line(self, number: usize) -> Self {
        match self {
            Self::Unsafe { path, line } => {
                Self::Unsafe { path, line: line.or((number > 0).then_some(number)) }
            }
            other => other,
        }
    }
}

fn in_line(line: &Option<usize>) -> String {
    line.map(|line| format!("line {line} of ")).unwrap_or_default()
}

impl<'d> Patch<'d> {
    /// The text with all changes. It is an error if it is no longer well formed, has other content under a key
    /// other than `key`, or lacks a comment that no change was about.
    fn apply(&self, key: &str) -> Result<String, EditError> {
        self.checked(key).ok_or_else(|| EditError::unsafe_at(self.document.path))
    }

    fn checked(&self, key: &str) -> Option<String> {
        let changed = self.changed_text();
        let after = Document::laid_out(self.document.path, &changed).ok()?;
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
        let untouched = document.comments.iter().filter(|span| {
            let meets =
                |range: &std::ops::Range<usize>| range.start < span.end && span.start < range.end;
            !self.splices.iter().any(|(range, _)| meets(range))
        });
        untouched.map(|span| document.text[span.clone()].trim_end()).collect()
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
/// When the change itself fails, or would have lost something.
pub fn change(
    path: &Path,
    text: &str,
    key: &str,
    change: impl for<'d> FnOnce(&mut Patch<'d>, Option<Collection<'d>>) -> Result<(), SourceError>,
) -> Result<String, EditError> {
    let document = Document::laid_out(path, text)?;
    let mut patch = Patch::new(&document);
    change(&mut patch, Collection::find(&document, key))?;
    patch.apply(key)
}

/// The text of the file at `path` with `value` under `key` of the outermost map: it replaces what is there, or
/// becomes a new entry.
///
/// # Errors
///
/// As [`change`].
pub fn set(path: &Path, text: &str, key: &str, value: New) -> Result<String, EditError> {
    let document = Document::laid_out(path, text)?;
    let mut patch = Patch::new(&document);
    if document.node().is_null_node() {
        let rendered = value.render(patch.manner(false, ScalarNotation::Plain));
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        patch.insert(text.len(), format!("{end}{key}: {rendered}\n"));
    } else {
        patch.set(Collection::outermost(&document), key, value)?;
    }
    patch.apply(key)
}
