//! What content is named by: digests (of a package's content, of an archive, of one file), and the name of a commit.
//!
//! There is a type for each, which only its check makes, so that nobody can compare one with another by accident. [`crate::Tree`]
//! computes the content digest of a tree; this file only parses, prints and compares.
//!
//! Locks, edits, index lines and plugins name commits, and the name reaches the arguments of `git`. A text with exactly these
//! digits cannot be an option, a range or a path. This file does not say whether there is such a commit, and does not read the
//! shortened ones that people write.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A text that is not a digest of the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a digest: expected {expected}", shown(text))]
pub struct DigestError {
    text: String,
    expected: &'static str,
}

/// A text that is no digest or commit, in one line of bounded length.
fn shown(text: &str) -> String {
    const LONGEST: usize = 80;
    let shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_none() { shown } else { format!("{shown}…") }
}

/// The content digest of a package: `h1:` and the unpadded base64url of a SHA-256.
///
/// The same tree has the same digest, wherever it comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// The SHA-256 of an archive's bytes, written `sha256:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchiveDigest([u8; 32]);

/// The SHA-256 of one file's content (of the target, for a symbolic link), written as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileDigest([u8; 32]);

macro_rules! raw_bytes {
    ($name:ident) => {
        impl $name {
            /// Wraps the 32 bytes of a SHA-256.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The 32 bytes of the SHA-256.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        }
    };
}

raw_bytes!(Digest);
raw_bytes!(ArchiveDigest);
raw_bytes!(FileDigest);

impl Digest {
    /// The digest of a tree with these lines, see [`crate::Tree::lines`].
    pub fn of_lines(lines: &str) -> Self {
        Self(Sha256::digest(lines).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "h1:{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        text.strip_prefix("h1:")
            .and_then(|encoded| URL_SAFE_NO_PAD.decode(encoded).ok())
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| DigestError {
                text: text.to_owned(),
                expected: "`h1:` and 43 characters of base64url",
            })
    }
}

impl fmt::Display for ArchiveDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("sha256:")?;
        write_hex(&self.0, formatter)
    }
}

impl FromStr for ArchiveDigest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        text.strip_prefix("sha256:").and_then(parse_hex).map(Self).ok_or_else(|| DigestError {
            text: text.to_owned(),
            expected: "`sha256:` and 64 hex digits",
        })
    }
}

impl fmt::Display for FileDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, formatter)
    }
}

impl FromStr for FileDigest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        parse_hex(text)
            .map(Self)
            .ok_or_else(|| DigestError { text: text.to_owned(), expected: "64 hex digits" })
    }
}

impl FileDigest {
    /// Appends its 64 hex digits to `text`, which is faster than formatting.
    pub fn push_to(&self, text: &mut String) {
        text.push_str(std::str::from_utf8(&hex(&self.0)).expect("hex digits are ASCII"));
    }
}

fn write_hex(bytes: &[u8; 32], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    formatter.write_str(std::str::from_utf8(&hex(bytes)).expect("hex digits are ASCII"))
}

fn hex(bytes: &[u8; 32]) -> [u8; 64] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0_u8; 64];
    for (index, byte) in bytes.iter().enumerate() {
        text[index * 2] = DIGITS[usize::from(byte >> 4)];
        text[index * 2 + 1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0_u8; 32];
    // What is no digit is seen at the end, so that nothing branches on each.
    let mut wrong = 0;
    for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
        let [high, low] = pair.map(hex_value);
        wrong |= high | low;
        *byte = high << 4 | low & 15;
    }
    (wrong < 16).then_some(bytes)
}

/// The value of a hex digit, in either case; 16 or more for any other byte.
const fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 16,
    }
}

/// How many digits are shown to people.
const SHORT: usize = 7;

/// A whole commit: 40 (SHA-1) or 64 (SHA-256) hexadecimal digits in lower case, as Git prints them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Commit(Arc<str>);

/// A text that is not the name of a commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a commit: expected 40 or 64 hexadecimal digits in lower case", shown(.0))]
pub struct CommitError(String);

impl Commit {
    /// All its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its first seven digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(..SHORT).unwrap_or(&self.0)
    }
}

impl FromStr for Commit {
    type Err = CommitError;

    fn from_str(text: &str) -> Result<Self, CommitError> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match matches!(text.len(), 40 | 64) && text.bytes().all(is_digit) {
            true => Ok(Self(text.into())),
            false => Err(CommitError(text.to_owned())),
        }
    }
}

impl Deref for Commit {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Commit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for Commit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Commit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_parses() {
        let content = "h1:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
        assert_eq!(
            content.parse::<Digest>().map(|digest| digest.to_string()).as_deref(),
            Ok(content)
        );
        let archive = format!("sha256:{}", "0f".repeat(32));
        assert_eq!(
            archive.parse::<ArchiveDigest>().map(|digest| digest.to_string()),
            Ok(archive.clone())
        );
        assert!(archive.parse::<Digest>().is_err());
        assert!(content.parse::<ArchiveDigest>().is_err());
        assert!("sha256:éé".parse::<ArchiveDigest>().is_err());
    }

    #[test]
    fn only_whole_commits_in_lower_case_are_commits() {
        for length in [40, 64] {
            let text = "0a".repeat(length / 2);
            let commit: Commit = text.parse().expect("is a commit");
            assert_eq!((commit.as_str(), commit.short()), (&*text, "0a0a0a0"));
            assert_eq!(serde_json::to_value(&commit).expect("prints"), *text);
        }
        let (digits, mut others) = ("0a".repeat(20), Vec::new());
        for length in [0, 7, 39, 41, 63, 65] {
            others.push("a".repeat(length));
        }
        others.extend([
            digits.to_uppercase(),
            format!("-{}", &digits[1..]),
            digits.replace('a', "g"),
        ]);
        others.extend(["--upload-pack=touch x; false".to_owned(), format!("{}\n", &digits[1..])]);
        for text in others {
            let error = text.parse::<Commit>().expect_err("is none").to_string();
            assert!(
                error.ends_with("expected 40 or 64 hexadecimal digits in lower case"),
                "{error}"
            );
            let json = serde_json::to_string(&text).expect("prints");
            assert!(serde_json::from_str::<Commit>(&json).is_err(), "{text}");
        }
    }
}
