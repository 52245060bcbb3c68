//! Paths that others wrote, for places below a folder. Only a check makes one, and [`Folder`](super::Folder) opens it without
//! following links.
//!
//! What a package may contain is checked in the same way, by [`TreeWriter`](super::TreeWriter).

use std::fmt;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Limits, path};
use crate::TreeError;

/// A path below some folder, with slashes: it is relative, has no `..`, no empty part and no control character, and nothing that one
/// system takes for another path. No part of it is `.git` or `.mu`, unless mu itself put that there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct InnerPath(String);

impl InnerPath {
    /// Checks a path that somebody wrote.
    ///
    /// # Errors
    ///
    /// When a package could not have a file with this path.
    pub fn parse(text: &str) -> Result<Self, TreeError> {
        // A slash at the end says the same.
        let checked = path::check(text.as_bytes(), &Limits::default())?;
        Ok(Self(checked.to_owned()))
    }

    /// Checks the name of one file or folder.
    ///
    /// # Errors
    ///
    /// When a package could not have a file with this name, or it is a path of several parts.
    pub fn name(text: &str) -> Result<Self, TreeError> {
        let name = Self::parse(text)?;
        if text.contains('/') {
            let reason = "it is a path, and not a name";
            return Err(TreeError::Path { path: path::escape(text), reason });
        }
        Ok(name)
    }

    /// A path of mu's own, which nobody else has written: it is in the program's text.
    pub const fn own(text: &'static str) -> OwnPath {
        OwnPath(text)
    }

    /// The path of something in the folder with this path.
    pub fn join(&self, inside: &Self) -> Self {
        Self(format!("{}/{}", self.0, inside.0))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of what it leads to.
    pub fn leaf(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The folder around it; `None` for what is directly in the folder that the path is for.
    pub fn parent(&self) -> Option<Self> {
        path::parent(&self.0).map(|parent| Self(parent.to_owned()))
    }

    /// The path of what is called `name` beside it.
    ///
    /// # Errors
    ///
    /// As [`InnerPath::name`].
    pub fn beside(&self, name: &str) -> Result<Self, TreeError> {
        let name = Self::name(name)?;
        Ok(self.parent().map_or_else(|| name.clone(), |parent| parent.join(&name)))
    }

    /// Whether a package may have a link at this path with this target: it leads to something inside.
    pub fn may_lead_to(&self, target: &str) -> bool {
        path::check_target(&self.0, target.as_bytes(), &Limits::default()).is_ok()
    }

    /// Whether it is the other path, or leads to something below that.
    pub fn is_in(&self, other: &Self) -> bool {
        let rest = self.0.strip_prefix(&other.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// A path that is written in mu's own text, such as `.mu/edit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnPath(&'static str);

impl OwnPath {
    /// The path as text.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// The path of something in the folder with this path.
    pub fn join(self, inside: &InnerPath) -> InnerPath {
        InnerPath(format!("{}/{}", self.0, inside.0))
    }
}

impl From<OwnPath> for InnerPath {
    fn from(path: OwnPath) -> Self {
        Self(path.0.to_owned())
    }
}

impl fmt::Display for InnerPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl AsRef<Path> for InnerPath {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl PartialEq<str> for InnerPath {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl<'de> Deserialize<'de> for InnerPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::InnerPath;

    #[test]
    fn only_paths_that_stay_below_a_folder_are_made() {
        for text in ["a", "a/b", "a b/c+d@1.0.0", "charts/x-1.0.0.tgz", ".github/x", "a/", "ä"] {
            let path = InnerPath::parse(text).expect(text);
            assert_eq!(path.as_str(), text.trim_end_matches('/'));
        }
        for text in [
            "",
            "/",
            "/a",
            ".",
            "..",
            "./a",
            "a/.",
            "a/..",
            "../a",
            "a/../b",
            "a//b",
            "a\\b",
            "\\a",
            "C:/a",
            "a\0b",
            "a\nb",
            "a\u{1b}[31m",
            ".git",
            "a/.git/config",
            ".mu",
            ".mu/packs",
            ".GIT/x",
            "a\u{202e}b",
        ] {
            assert!(InnerPath::parse(text).is_err(), "{text:?}");
        }
        assert!(InnerPath::name("a").is_ok());
        for text in ["a/b", "a/", "/a", "", ".."] {
            assert!(InnerPath::name(text).is_err(), "{text:?}");
        }
        assert!(serde_json::from_str::<InnerPath>("\"../a\"").is_err());
    }

    #[test]
    fn paths_are_put_together_and_taken_apart() {
        let path = InnerPath::parse("a/b/c").expect("is one");
        assert_eq!(path.parent().expect("has one").as_str(), "a/b");
        assert_eq!((path.leaf(), InnerPath::parse("a").expect("is one").parent()), ("c", None));
        assert_eq!(path.beside(".mu-c").expect("is a name").as_str(), "a/b/.mu-c");
        assert!(path.beside("..").is_err() && path.beside("x/y").is_err());
        let edits = InnerPath::own(".mu/edit");
        assert_eq!(edits.join(&path).as_str(), ".mu/edit/a/b/c");
        assert!(path.is_in(&InnerPath::parse("a/b").expect("is one")) && path.is_in(&path));
        assert!(!path.is_in(&InnerPath::parse("a/b/c/d").expect("is one")));
        assert!(
            !path.is_in(&InnerPath::parse("a/b/").expect("is one").beside("bb").expect("is one"))
        );
    }
}
