//! The text after the `#`: one of seven kinds of requirement, recognized by how it is written.
//!
//! Four of the kinds are here as types of their own: pins, which are exactly one version; digests of artifacts and archives, as
//! references pin packages to them; commits of a Git repository, with all digits or only the first ones; and tags and branches,
//! which are any word that Git, a hub or an OCI registry may use to name a version.

use std::fmt;
use std::sync::Arc;

use super::error::{Fault, ReferenceError, is_harmful};
use super::version::Composite;
use super::{Range, Version, version};

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
    Commit(CommitDigits),
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
        if let Some(commit) = CommitDigits::from_text(text) {
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
    /// Commits, tags and digests accept no version, because they are matched by identity. The one exception is a tag that is the
    /// text of a version which is not written as a full semantic one: `8.11-1.0.0`, `2024.01.02`.
    pub fn accepts(&self, version: &Version, prereleases: bool) -> bool {
        match self {
            Self::Latest => prereleases || !version.is_prerelease(),
            Self::Tip => true,
            Self::Pin(pin) => pin.accepts(version),
            Self::Range(range) => range.matches(version, prereleases),
            Self::Commit(_) | Self::Digest(_) => false,
            Self::Tag(tag) => version.is_published_as(tag.as_str()),
        }
    }

    /// Whether its lower bound is exactly this version: that of a pin, or of a range.
    pub fn has_lower_bound_at(&self, version: &Version) -> bool {
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
    pub fn is_artifact_digest(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The beginning of a digest, for people: `sha256:2cf24dba5fb0`.
    pub fn shortened(text: &str) -> &str {
        text.get(..SCHEME.len() + 12).unwrap_or(text)
    }
}

const SHORTEST: usize = 7;
const FULL: usize = 40;

/// 7 to 40 hexadecimal digits.
///
/// A short one may turn out to be a tag with exactly that name, and one of decimal digits alone may be a
/// version in a place that has no commits. The code that looks them up decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitDigits(Arc<str>);

impl CommitDigits {
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

    /// Whether something at this commit is meant, or something that was chosen by these very digits: in Git, those of a tag's own object lead to
    /// a commit with other digits.
    pub fn names(&self, commit: Option<&str>, chosen_by: Option<&str>) -> bool {
        commit.is_some_and(|full| self.matches(full)) || chosen_by == Some(self.as_str())
    }

    /// The meaning of decimal digits if there are no commits: any version that starts with them.
    pub fn as_range(&self) -> Option<Range> {
        if self.is_full() { None } else { Range::from_text(&self.0).ok() }
    }
}

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

/// Exactly one version, written `1.0.6`, `v1.0.6` or `=1.0.6`.
///
/// Two pins are equal if they are written alike.
#[derive(Debug, Clone)]
pub struct Pin {
    text: Arc<str>,
    version: semver::Version,
    /// What few pins have; kept aside, because there are very many pins.
    rare: Option<Arc<Rare>>,
}

/// What few pins have.
#[derive(Debug, Clone)]
struct Rare {
    /// The text that its version was published with, if that leaves numbers out: written so, it would be a range.
    published: Option<String>,
    /// What `2.3.0-1.0.0` means if the package is composite, which only the package knows.
    composite: Option<Composite>,
}

impl Pin {
    pub(super) fn from_text(text: &str) -> Result<Self, Fault> {
        let number = text.trim_start_matches(['=', ' ', '\t']).trim_end_matches([' ', '\t']);
        let version = version::read_strict(number)?;
        let composite = if version.pre.is_empty() { None } else { Composite::parse(number) };
        let rare = composite.map(|composite| Rare { published: None, composite: Some(composite) });
        Ok(Self { text: text.into(), version, rare: rare.map(Arc::new) })
    }

    /// The pin to a version; `None` for a composite version whose app's version leaves numbers out.
    pub(super) fn of(version: &Version) -> Option<Self> {
        let pin = Self::from_text(&version.in_full().to_string()).ok()?;
        Some(if version.is_spelt() { pin.published_as(version.to_string()) } else { pin })
    }

    /// The pin to another version that is written in the same way: `=1.0.6`, `v1.0.6`.
    pub(super) fn moved_to(&self, version: &Version) -> Option<Self> {
        let pin = Self::of(version)?;
        let number = self.text.find(|character: char| character.is_ascii_digit())?;
        let text = format!("{}{pin}", &self.text[..number]);
        let moved = Self::from_text(&text).ok()?;
        let published = pin.rare.and_then(|rare| rare.published.clone());
        Some(match published {
            Some(published) => moved.published_as(published),
            None => moved,
        })
    }

    /// This pin, to a version that was published with this text.
    fn published_as(self, text: String) -> Self {
        let composite = self.rare.as_ref().and_then(|rare| rare.composite.clone());
        let rare = Rare { published: Some(text), composite };
        Self { rare: Some(Arc::new(rare)), ..self }
    }

    /// The version in the text that it was published with, as far as that is known; without a `=` or `v` before it.
    pub fn published(&self) -> &str {
        let written = || self.text.trim_start_matches(['=', ' ', '\t', 'v']);
        let published = self.rare.as_ref().and_then(|rare| rare.published.as_deref());
        published.unwrap_or_else(written)
    }

    /// The pin as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The version, read as a semantic one.
    pub fn version(&self) -> &semver::Version {
        &self.version
    }

    /// Whether a version is the pinned one.
    ///
    /// A pin without build metadata accepts any build. For a composite version, a pin can name app and
    /// revision, or only the app, which accepts any revision of it.
    pub fn accepts(&self, version: &Version) -> bool {
        let Some(found) = version.as_composite() else {
            return version.leading().is_some_and(|found| is_same(&self.version, found));
        };
        let Some(app) = &found.app else { return false };
        let composite = self.rare.as_ref().and_then(|rare| rare.composite.as_ref());
        let names_both = composite.is_some_and(|wanted| {
            wanted.app.as_ref().is_some_and(|wanted| is_same(wanted, app))
                && is_same(&wanted.revision, &found.revision)
        });
        names_both || is_same(&self.version, app)
    }
}

impl PartialEq for Pin {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pin {}

fn is_same(wanted: &semver::Version, found: &semver::Version) -> bool {
    wanted.cmp_precedence(found).is_eq() && (wanted.build.is_empty() || wanted.build == found.build)
}

impl fmt::Display for Pin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}
