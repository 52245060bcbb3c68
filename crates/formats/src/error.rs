//! Why mu cannot use a foreign manifest, and where in the file the problem is.

use std::ops::Range;
use std::path::Path;

use mu_manifest::source::{SourceError, line_at_offset, printable};
use mu_provider::brief;

/// A foreign manifest that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {reason}")]
pub struct FormatError {
    /// The name of the file inside the package.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The character in that line, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub reason: String,
    /// The bytes of the file that it is about.
    pub span: Range<usize>,
    /// Whether it has too much of something, of whatever kind it is.
    pub is_excess: bool,
}

impl FormatError {
    pub(crate) fn new(file: &str, text: &str, fault: Fault) -> Self {
        let start = text.floor_char_boundary(fault.span.start);
        let span = start..text.ceil_char_boundary(fault.span.end.max(start));
        let before = text.get(..span.start).unwrap_or_default();
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let column = 1 + before.get(begin..).unwrap_or_default().chars().count();
        Self {
            file: file.to_owned(),
            line: line_at_offset(text, span.start),
            column,
            reason: fault.reason,
            span,
            is_excess: fault.is_excess,
        }
    }

    /// This error, pointing into `text`, which was read from `path`.
    pub fn in_text(&self, path: &Path, text: &str) -> SourceError {
        SourceError::new(path, text, self.span.clone(), self.reason.clone())
    }
}

/// A mistake, before it is known which file it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) reason: String,
    pub(crate) is_excess: bool,
}

impl Fault {
    pub(crate) fn new(span: Range<usize>, reason: impl AsRef<str>) -> Self {
        let reason = printable(&brief(reason.as_ref())).into_owned();
        Self { span, reason, is_excess: false }
    }

    /// That there is too much of something.
    pub(crate) fn excess(span: Range<usize>, reason: impl AsRef<str>) -> Self {
        Self { is_excess: true, ..Self::new(span, reason) }
    }
}
