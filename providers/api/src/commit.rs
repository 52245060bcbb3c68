//! The name of a commit: a type that only its check makes.
//!
//! Locks, edits, index lines and plugins name commits, and the name reaches the arguments of `git`. A text with
//! exactly these digits cannot be an option, a range or a path. This file does not say whether there is such a
//! commit, and does not read the shortened ones that people write.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many digits are shown to people.
const SHORT: usize = 7;

/// A whole commit: 40 (SHA-1) or 64 (SHA-256) hexadecimal digits in lower case, as Git prints them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Commit(Arc<str>);

/// A text that is not the name of a commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a commit: expected 40 or 64 hexadecimal digits in lower case", shown(.0))]
pub struct CommitError(String);

/// A text in one line of bounded length.
fn shown(text: &str) -> String {
    const LONGEST: usize = 80;
    let shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_none() { shown } else { format!("{shown}…") }
}

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
