//! Commits of a Git repository, with all digits or only the first ones.

use std::sync::Arc;

use super::Range;

const SHORTEST: usize = 7;
const FULL: usize = 40;

/// 7 to 40 hexadecimal digits.
///
/// A short one may turn out to be a tag with exactly that name, and one of decimal digits alone may be a
/// version in a place that has no commits. The code that looks them up decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit(Arc<str>);

impl Commit {
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let has_length = (SHORTEST..=FULL).contains(&text.len());
        let is_commit = has_length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_commit.then(|| Self(text.into()))
    }

    /// The digits as they were written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether all 40 digits are there, so that it can only be a commit.
    pub fn is_full(&self) -> bool {
        self.0.len() == FULL
    }

    /// Whether the commit with these 40 digits matches the digits that are written.
    pub fn matches(&self, full: &str) -> bool {
        full.get(..self.0.len()).is_some_and(|start| start.eq_ignore_ascii_case(&self.0))
    }

    /// The meaning of decimal digits if there are no commits: any version that starts with them.
    pub fn as_range(&self) -> Option<Range> {
        if self.is_full() { None } else { Range::from_text(&self.0).ok() }
    }
}
