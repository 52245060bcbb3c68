//! The text after the `#`: one of seven kinds of requirement, recognized by how it is written.

use std::fmt;

use super::error::{Fault, ReferenceError};
use super::{ArtifactDigest, Commit, Pin, Range, Tag, Version};

const NOT_EXCLUDED: &str =
    "a version or a range; `--exclude`, or `exclude` in the settings, leaves versions out";

/// Which versions of a package a reference accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionSpec {
    /// `latest` or `*`: the highest release.
    Latest,
    /// `tip`: the head of Git's default branch, or the newest version of a hub.
    Tip,
    /// Exactly one version.
    Pin(Pin),
    /// Any version that fits.
    Range(Range),
    /// A commit of a Git repository.
    Commit(Commit),
    /// A tag or a branch.
    Tag(Tag),
    /// The digest of an artifact or an archive.
    Digest(ArtifactDigest),
}

impl VersionSpec {
    /// Reads the text after the `#` of a reference.
    ///
    /// # Errors
    ///
    /// When the text is of no kind.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        Self::from_text(text).map_err(|fault| ReferenceError::new("version", text, fault))
    }

    pub(super) fn from_text(text: &str) -> Result<Self, Fault> {
        match text {
            "" => return Err(Fault::new(0, "a version, a range, a commit or a tag")),
            "latest" | "*" => return Ok(Self::Latest),
            "tip" => return Ok(Self::Tip),
            _ => {}
        }
        if let Some(digest) = ArtifactDigest::from_text(text) {
            return digest.map(Self::Digest);
        }
        if let Ok(pin) = Pin::from_text(text) {
            return Ok(Self::Pin(pin));
        }
        if let Some(commit) = Commit::from_text(text) {
            return Ok(Self::Commit(commit));
        }
        if let Some(at) = text.find("!=") {
            return Err(Fault::new(at, NOT_EXCLUDED));
        }
        match Range::from_text(text) {
            Ok(range) => Ok(Self::Range(range)),
            Err(fault) if is_range_like(text) => Err(fault),
            Err(_) => Tag::from_text(text).map(Self::Tag),
        }
    }

    /// The text as it was written; it identifies the specification.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Latest => "latest",
            Self::Tip => "tip",
            Self::Pin(pin) => pin.as_str(),
            Self::Range(range) => range.as_str(),
            Self::Commit(commit) => commit.as_str(),
            Self::Tag(tag) => tag.as_str(),
            Self::Digest(digest) => digest.as_str(),
        }
    }

    /// Whether it always means the same thing: a pin, a commit, a tag or a digest.
    pub fn is_pinned(&self) -> bool {
        matches!(self, Self::Pin(_) | Self::Commit(_) | Self::Tag(_) | Self::Digest(_))
    }

    /// Whether it accepts a version; with `prereleases`, prereleases need not be named.
    ///
    /// Commits, tags and digests accept no version, because they are matched by identity. The one exception is a tag
    /// that spells out a composite version whose app's version is not a full semantic one: `8.11-1.0.0`.
    pub fn accepts(&self, version: &Version, prereleases: bool) -> bool {
        match self {
            Self::Latest => prereleases || !version.is_prerelease(),
            Self::Tip => true,
            Self::Pin(pin) => pin.accepts(version),
            Self::Range(range) => range.matches(version, prereleases),
            Self::Commit(_) | Self::Digest(_) => false,
            Self::Tag(tag) => {
                version.as_composite().is_some() && version.to_string() == tag.as_str()
            }
        }
    }

    /// Whether its lower bound is exactly this version: that of a pin, or of a range.
    pub fn begins_at(&self, version: &Version) -> bool {
        match self {
            Self::Pin(pin) => pin.accepts(version),
            Self::Range(range) => range.begins_at(version),
            Self::Latest | Self::Tip | Self::Commit(_) | Self::Tag(_) | Self::Digest(_) => false,
        }
    }

    /// The tag of exactly this name that may be meant: by a tag, by a short commit, or by a partial version
    /// such as `v1` or `1.28`, which Git repositories use as plain tags. A digest is a name like a tag.
    pub fn as_tag(&self) -> Option<&str> {
        match self {
            Self::Tag(tag) => Some(tag.as_str()),
            Self::Digest(digest) => Some(digest.as_str()),
            Self::Commit(commit) if !commit.is_full() => Some(commit.as_str()),
            Self::Range(range) => Some(range.as_str())
                .filter(|text| text.starts_with(|first: char| first.is_ascii_alphanumeric()))
                .filter(|text| Tag::from_text(text).is_ok()),
            _ => None,
        }
    }
}

/// Whether a text that is not a range was meant as one, so that the range's error is the helpful one.
fn is_range_like(text: &str) -> bool {
    let begins_like_one = text.starts_with(['^', '~', '<', '>', '=', '*', ' ', '\t']);
    let begins_with_number =
        text.strip_prefix('v').unwrap_or(text).starts_with(|first: char| first.is_ascii_digit());
    begins_like_one || (begins_with_number && text.contains([' ', '\t', ',', '|', '*']))
}

impl fmt::Display for VersionSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}
