//! Tags and branches: any word that Git, a hub or an OCI registry may use to name a version.

use std::sync::Arc;

use super::Version;
use super::error::{Fault, is_harmful};

const TAG: &str = "a version, a range or a tag";
const TAG_REST: &str = "a character that a tag may contain";
const MAX_LENGTH: usize = 255;

/// A tag, or a branch: `beta1`, `release/2024`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(Arc<str>);

impl Tag {
    /// Reads what Git would take for a tag or a branch.
    pub(super) fn from_text(text: &str) -> Result<Self, Fault> {
        if text.is_empty() || text == "@" || text.starts_with(['-', '/', '.']) {
            return Err(Fault::new(0, TAG));
        }
        if text.len() > MAX_LENGTH {
            let at = text.floor_char_boundary(MAX_LENGTH);
            return Err(Fault::new(at, "a tag of at most 255 bytes"));
        }
        if let Some(at) = text.find(|character| !may_hold(character)) {
            return Err(Fault::new(at, TAG_REST));
        }
        let forbidden = ["..", "//", "/.", "@{", ".lock/"];
        if let Some(at) = forbidden.iter().filter_map(|part| text.find(part)).min() {
            return Err(Fault::new(at + 1, TAG_REST));
        }
        for end in ["/", ".", ".lock"] {
            if let Some(start) = text.strip_suffix(end) {
                return Err(Fault::new(start.len(), TAG_REST));
            }
        }
        Ok(Self(text.into()))
    }

    /// The version of a package whose app's version is not a full semantic one. No reference can name it if Git would not take its
    /// text: then it is not written, because it cannot be read again.
    pub(super) fn of(version: &Version) -> Self {
        Self(version.to_string().into())
    }

    /// The tag as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn may_hold(character: char) -> bool {
    let is_special = matches!(character, '~' | '^' | ':' | '?' | '*' | '[' | '\\' | '|' | ',');
    !is_special && !character.is_whitespace() && !is_harmful(character)
}
