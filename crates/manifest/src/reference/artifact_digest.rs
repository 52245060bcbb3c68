//! Digests of artifacts and archives, as references pin packages to them.

use std::sync::Arc;

use super::error::Fault;

/// What comes before the digits.
const SCHEME: &str = "sha256:";

const DIGITS: usize = 64;

const OTHER: &str = "`sha256:` and 64 hexadecimal digits, the only digest that pins a package";
const LETTERS: &str = "64 lower-case hexadecimal digits after `sha256:`";
const SHORT: &str = "64 hexadecimal digits after `sha256:`";
const LONG: &str = "the end after 64 hexadecimal digits";

/// `sha256:` and 64 hexadecimal digits: the digest of a manifest in an OCI registry, or of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactDigest(Arc<str>);

impl ArtifactDigest {
    /// Reads a digest; `None` for a text that is not meant as one.
    pub(super) fn from_text(text: &str) -> Option<Result<Self, Fault>> {
        let (algorithm, _) = text.split_once(':')?;
        let known = ["sha256", "sha512", "sha384", "sha1", "md5", "blake3", "h1"];
        if !known.iter().any(|one| algorithm.eq_ignore_ascii_case(one)) {
            return None;
        }
        Some(Self::checked(text))
    }

    fn checked(text: &str) -> Result<Self, Fault> {
        let Some(digits) = text.strip_prefix(SCHEME) else { return Err(Fault::new(0, OTHER)) };
        let fits = |character: char| matches!(character, '0'..='9' | 'a'..='f');
        if let Some(at) = digits.find(|character| !fits(character)) {
            let expected = if at < DIGITS { LETTERS } else { LONG };
            return Err(Fault::new(SCHEME.len() + at.min(DIGITS), expected));
        }
        match digits.len() {
            DIGITS => Ok(Self(text.into())),
            length if length < DIGITS => Err(Fault::new(text.len(), SHORT)),
            _ => Err(Fault::new(SCHEME.len() + DIGITS, LONG)),
        }
    }

    /// The digest with its `sha256:`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a text is the digest of an artifact, which no commit is.
    pub fn is_one(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The beginning of a digest, for people: `sha256:2cf24dba5fb0`.
    pub fn shortened(text: &str) -> &str {
        text.get(..SCHEME.len() + 12).unwrap_or(text)
    }
}
