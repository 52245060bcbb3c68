//! Whether a release was withdrawn, or is no longer maintained, and why: in index lines and in catalogs.

use serde::{Deserialize, Serialize};

/// Whether a release was withdrawn: `false`, `true`, or the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Yanked {
    /// It was not.
    #[default]
    #[serde(skip)]
    No,
    /// `true` or `false`, without a reason.
    Flag(bool),
    /// It was, and this is why.
    Reason(String),
}

/// The longest reason that a version was withdrawn for, in characters.
pub const LONGEST_REASON: usize = 512;

/// The reason of a version that was withdrawn without one: an index has a text for every version that was.
pub const NO_REASON: &str = "no reason was given";

impl Yanked {
    /// The reason, in one line of at most [`LONGEST_REASON`] characters; empty without a reason, and `None`
    /// if it was not withdrawn.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::No | Self::Flag(false) => None,
            Self::Flag(true) => Some(String::new()),
            Self::Reason(reason) => {
                let words: Vec<&str> = reason.split_whitespace().collect();
                Some(words.join(" ").chars().take(LONGEST_REASON).collect())
            }
        }
    }

    /// Whether the release was not withdrawn.
    pub fn is_no(&self) -> bool {
        matches!(self, Self::No | Self::Flag(false))
    }
}
