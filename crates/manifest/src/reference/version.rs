//! Versions: semantic ones, those with another spelling, and composite ones of an app and a revision; and app versions, of which
//! the requested one is compared with those of packages.
//!
//! A plain version allocates no memory and compares as three numbers. An app version is free text. Only if all app versions of a
//! package can be read as versions, a part of one means all versions that start with it. [`Cursor`] reads numbers, prereleases
//! and build metadata, also those in ranges, and knows where a version ends in a text. `range` and `spec` decide what a
//! requirement accepts.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use semver::{BuildMetadata, Prerelease};

use super::error::{Fault, ReferenceError, is_harmful};

/// A version of a package: `1.2.3-rc.1+b5`, or `2.3.0-1.0.0` of an app and a revision.
///
/// Composite versions order by app, then by revision. Apps whose versions are other text (`Bookworm`) come before all others,
/// in the order of their texts. If two versions have the same precedence (because only build metadata or, for composite ones,
/// spelling differs), their order is still fixed. A version that leaves numbers out (`1.28`) equals the full one, and prints as
/// it was written.
#[derive(Debug, Clone)]
pub struct Version(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Semantic(semver::Version),
    // Both kinds are behind one pointer, so that a version is no larger than a semantic one.
    Other(Arc<Other>),
}

#[derive(Debug)]
enum Other {
    Spelt(Spelt),
    Composite(Composite),
}

/// A version, without the pointer.
enum Seen<'version> {
    Semantic(&'version semver::Version),
    Spelt(&'version Spelt),
    Composite(&'version Composite),
}

/// A semantic version, and how it was written.
#[derive(Debug)]
struct Spelt {
    version: semver::Version,
    text: Box<str>,
}

/// An app version and the revision that packages it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Composite {
    /// `None` if the app's version is other text than a version.
    pub(super) app: Option<semver::Version>,
    pub(super) revision: semver::Version,
    text: Box<str>,
    app_length: usize,
}

impl Version {
    /// Reads a semantic version, strictly except for a leading `v`.
    ///
    /// # Errors
    ///
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        read_strict(text)
            .map(Self::from)
            .map_err(|fault| ReferenceError::new("version", text, fault))
    }

    /// Reads a version whose minor and patch numbers may be missing and whose numbers may begin
    /// with zeros: `v1`, `1.28`, `2024.01`.
    ///
    /// # Errors
    ///
    /// When the text is none even so.
    pub fn parse_lenient(text: &str) -> Result<Self, ReferenceError> {
        let version = read_lenient(text);
        let version = version.map_err(|fault| ReferenceError::new("version", text, fault))?;
        let written = text.strip_prefix('v').unwrap_or(text);
        let is_plain = version.to_string() == written;
        Ok(match is_plain {
            true => Self::from(version),
            false => Self::other(Other::Spelt(Spelt { version, text: written.into() })),
        })
    }

    fn other(other: Other) -> Self {
        Self(Kind::Other(Arc::new(other)))
    }

    fn seen(&self) -> Seen<'_> {
        match &self.0 {
            Kind::Semantic(version) => Seen::Semantic(version),
            Kind::Other(other) => match &**other {
                Other::Spelt(spelt) => Seen::Spelt(spelt),
                Other::Composite(composite) => Seen::Composite(composite),
            },
        }
    }

    /// This version with all numbers. What is written takes [`VersionSpec::exactly`](super::VersionSpec::exactly) and its like,
    /// which know where the published text belongs.
    pub(super) fn in_full(&self) -> Self {
        match self.seen() {
            Seen::Spelt(spelt) => Self::from(spelt.version.clone()),
            Seen::Semantic(_) | Seen::Composite(_) => self.clone(),
        }
    }

    /// Whether it has an unusual spelling: `1.28`.
    pub fn is_spelt(&self) -> bool {
        matches!(self.seen(), Seen::Spelt(_))
    }

    /// Whether it was published with this text, which is no semantic version.
    pub(super) fn is_published_as(&self, text: &str) -> bool {
        match self.seen() {
            Seen::Semantic(_) => false,
            Seen::Spelt(spelt) => *spelt.text == *text.strip_prefix('v').unwrap_or(text),
            Seen::Composite(composite) => *composite.text == *text,
        }
    }

    /// The version of a package of `app` in its `revision`. The app's version may be lenient, or other text that a file can be called.
    ///
    /// # Errors
    ///
    /// When the revision is not a version, no file can be called by that text, or the two cannot be told apart once they are joined.
    pub fn composite(app: &str, revision: &str) -> Result<Self, ReferenceError> {
        Composite::joined(app, revision)
            .map(|composite| Self::other(Other::Composite(composite)))
            .map_err(|fault| {
                ReferenceError::new("composite version", &format!("{app}-{revision}"), fault)
            })
    }

    /// Reads a composite version as it prints, `2.3.0-1.0.0`.
    ///
    /// # Errors
    ///
    /// When the text is not an app version, `-` and revision.
    pub fn parse_composite(text: &str) -> Result<Self, ReferenceError> {
        Composite::parse(text).map(|composite| Self::other(Other::Composite(composite))).ok_or_else(
            || {
                let expected = "an app version, `-` and a revision, such as `2.3.0-1.0.0`";
                ReferenceError::new("composite version", text, Fault::new(0, expected))
            },
        )
    }

    /// Whether it comes before a release. For a composite version, this is so if its app or its revision is a
    /// prerelease.
    pub fn is_prerelease(&self) -> bool {
        let is_revision = |composite: &Composite| !composite.revision.pre.is_empty();
        self.leading().is_some_and(|leading| !leading.pre.is_empty())
            || self.as_composite().is_some_and(is_revision)
    }

    /// The semantic version, unless it is a composite one.
    pub fn as_semver(&self) -> Option<&semver::Version> {
        self.leading().filter(|_| self.as_composite().is_none())
    }

    /// The app's version in a composite one, as it was written.
    pub fn app(&self) -> Option<&str> {
        self.as_composite().map(|composite| &composite.text[..composite.app_length])
    }

    /// The revision in a composite version, as it was written.
    pub fn revision(&self) -> Option<&str> {
        self.as_composite().map(|composite| &composite.text[composite.app_length + 1..])
    }

    /// The first number: of a composite version, its app's; 0 if that is other text.
    pub fn major(&self) -> u64 {
        self.leading().map_or(0, |leading| leading.major)
    }

    /// Whether it is a composite version whose app's version is other text than a version.
    pub fn is_of_text(&self) -> bool {
        self.leading().is_none()
    }

    pub(super) fn as_composite(&self) -> Option<&Composite> {
        match self.seen() {
            Seen::Semantic(_) | Seen::Spelt(_) => None,
            Seen::Composite(composite) => Some(composite),
        }
    }

    /// The part that ranges look at: the version, or the app's part of it, if that is a version.
    pub(super) fn leading(&self) -> Option<&semver::Version> {
        match self.seen() {
            Seen::Semantic(version) => Some(version),
            Seen::Spelt(spelt) => Some(&spelt.version),
            Seen::Composite(composite) => composite.app.as_ref(),
        }
    }
}

impl Composite {
    /// Splits at the first `-` that has a lenient version before it and a strict one after it; if there is none, at the first one
    /// with a strict version after it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let numbers = |app: &str| read_lenient(app).map(Some);
        let words = |app: &str| check_words(app).map(|()| None);
        Self::split(text, numbers).or_else(|| Self::split(text, words))
    }

    fn split(
        text: &str,
        read: impl Fn(&str) -> Result<Option<semver::Version>, Fault>,
    ) -> Option<Self> {
        let parts = text.match_indices('-').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let mut read = parts.map(|(app, revision)| Self::new(app, read(app)?, revision));
        read.find_map(Result::ok)
    }

    fn joined(app: &str, revision: &str) -> Result<Self, Fault> {
        let numbers = read_lenient(app).ok();
        if numbers.is_none() {
            check_words(app)?;
        }
        let joined = Self::new(app, numbers, revision)?;
        match Self::parse(&joined.text) {
            Some(parted) if parted == joined => Ok(joined),
            _ => {
                Err(Fault::new(0, "an app version that does not look like a part of the revision"))
            }
        }
    }

    fn new(app: &str, parsed: Option<semver::Version>, revision: &str) -> Result<Self, Fault> {
        let parsed_revision =
            read_strict(revision).map_err(|fault| fault.shifted(app.len() + 1))?;
        Ok(Self {
            app: parsed,
            revision: parsed_revision,
            text: format!("{app}-{revision}").into(),
            app_length: app.len(),
        })
    }

    /// What orders it among others.
    fn rank(&self) -> (Option<&semver::Version>, &str, &semver::Version, &str) {
        let words = if self.app.is_none() { &self.text[..self.app_length] } else { "" };
        (self.app.as_ref(), words, &self.revision, &self.text)
    }
}

impl From<semver::Version> for Version {
    fn from(version: semver::Version) -> Self {
        Self(Kind::Semantic(version))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.seen(), other.seen()) {
            (Seen::Semantic(one), Seen::Semantic(two)) => one.cmp(two),
            (Seen::Composite(one), Seen::Composite(two)) => one.rank().cmp(&two.rank()),
            // If a package became composite midway, the plain version is the older one.
            (_, Seen::Composite(_)) => self.leading().cmp(&other.leading()).then(Ordering::Less),
            (Seen::Composite(_), _) => self.leading().cmp(&other.leading()).then(Ordering::Greater),
            _ => self.leading().cmp(&other.leading()),
        }
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        match (self.seen(), other.seen()) {
            (Seen::Composite(one), Seen::Composite(two)) => one == two,
            (Seen::Composite(_), _) | (_, Seen::Composite(_)) => false,
            _ => self.leading() == other.leading(),
        }
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Version {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.seen() {
            Seen::Semantic(_) | Seen::Spelt(_) => self.leading().hash(state),
            Seen::Composite(composite) => composite.text.hash(state),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seen() {
            Seen::Semantic(version) => fmt::Display::fmt(version, formatter),
            Seen::Spelt(spelt) => formatter.pad(&spelt.text),
            Seen::Composite(composite) => formatter.pad(&composite.text),
        }
    }
}

/// How the app versions of one package are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppVersioning {
    /// All of them parse as versions: a filter of `2.3` accepts `2.3.1`.
    Semver,
    /// At least one is other text: they are compared for equality.
    FreeForm,
}

impl AppVersioning {
    /// How these app versions are compared with each other.
    pub fn of<'text>(app_versions: impl IntoIterator<Item = &'text str>) -> Self {
        let mut texts = app_versions.into_iter();
        if texts.all(|text| read_lenient(text).is_ok()) { Self::Semver } else { Self::FreeForm }
    }

    /// Whether `wanted` accepts the app version `actual`: the same version, or one that starts with its
    /// components.
    ///
    /// Components are whole, so `2.3` does not accept `2.30`. A release does not accept its prereleases.
    pub fn accepts(self, wanted: &str, actual: &str) -> bool {
        if self == Self::FreeForm {
            return wanted == actual;
        }
        let without_v = |text: &str| text.strip_prefix('v').unwrap_or(text).to_owned();
        let (wanted, actual) = (without_v(wanted), without_v(actual));
        actual
            .strip_prefix(&wanted)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+']))
    }
}

/// Longer versions are somebody's mistake or attack.
const MAX_LENGTH: usize = 256;

const NUMBER: &str = "a number";
const NO_LEADING_ZERO: &str = "a number without leading zeros";
const SMALLER_NUMBER: &str = "a number below 18446744073709551615";
const THREE_NUMBERS: &str = "`.`, because a version has three numbers";
const VERSION_END: &str = "the end, `-` and a prerelease, or `+` and build metadata";
const TOO_LONG: &str = "a version of at most 256 characters";
const IDENTIFIER: &str = "letters, digits or `-`";
const WORDS: &str =
    "a version, or words without `/`, `\\\\` and other characters that a file name cannot have";

/// The current position in a text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    pub(super) fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Skips spaces and tabs, and returns whether there were any.
    pub(super) fn blanks(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.at > start
    }

    pub(super) fn fault_at_cursor(&self, expected: &'static str) -> Fault {
        Fault::new(self.at, expected)
    }

    pub(super) fn number(&mut self) -> Result<u64, Fault> {
        let start = self.at;
        let number = self.number_with_zeros()?;
        if self.text.as_bytes().get(start) == Some(&b'0') && self.at > start + 1 {
            return Err(Fault::new(start, NO_LEADING_ZERO));
        }
        Ok(number)
    }

    fn number_with_zeros(&mut self) -> Result<u64, Fault> {
        let start = self.at;
        let mut number = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number
                .checked_mul(10)
                .and_then(|number| number.checked_add(u64::from(digit - b'0')))
                // The largest number has no successor, which the upper bound of a range may need.
                .filter(|number| *number < u64::MAX)
                .ok_or(Fault::new(start, SMALLER_NUMBER))?;
            self.at += 1;
        }
        if self.at == start { Err(self.fault_at_cursor(NUMBER)) } else { Ok(number) }
    }

    /// `-rc.1`, if it is there.
    pub(super) fn prerelease(&mut self) -> Result<Prerelease, Fault> {
        if !self.eat("-") {
            return Ok(Prerelease::EMPTY);
        }
        let start = self.at;
        self.identifiers(true)?;
        Prerelease::new(&self.text[start..self.at]).map_err(|_| Fault::new(start, IDENTIFIER))
    }

    /// `+b5`, if it is there.
    pub(super) fn build(&mut self) -> Result<BuildMetadata, Fault> {
        if !self.eat("+") {
            return Ok(BuildMetadata::EMPTY);
        }
        let start = self.at;
        self.identifiers(false)?;
        BuildMetadata::new(&self.text[start..self.at]).map_err(|_| Fault::new(start, IDENTIFIER))
    }

    fn identifiers(&mut self, numbers_are_plain: bool) -> Result<(), Fault> {
        loop {
            let start = self.at;
            while matches!(self.peek(), Some(b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-')) {
                self.at += 1;
            }
            let identifier = &self.text[start..self.at];
            if identifier.is_empty() {
                return Err(self.fault_at_cursor(IDENTIFIER));
            }
            let is_number = identifier.bytes().all(|byte| byte.is_ascii_digit());
            if numbers_are_plain && is_number && identifier.len() > 1 && identifier.starts_with('0')
            {
                return Err(Fault::new(start, NO_LEADING_ZERO));
            }
            if !self.eat(".") {
                return Ok(());
            }
        }
    }
}

/// A version with all its numbers, with or without a `v`.
pub(super) fn read_strict(text: &str) -> Result<semver::Version, Fault> {
    let mut cursor = start(text)?;
    let major = cursor.number()?;
    let minor = cursor.next_number()?;
    let patch = cursor.next_number()?;
    finish(cursor, [major, minor, patch])
}

/// A version whose last numbers may be missing; they are 0 then.
fn read_lenient(text: &str) -> Result<semver::Version, Fault> {
    let mut cursor = start(text)?;
    let mut numbers = [cursor.number_with_zeros()?, 0, 0];
    for number in &mut numbers[1..] {
        if cursor.eat(".") {
            *number = cursor.number_with_zeros()?;
        }
    }
    finish(cursor, numbers)
}

/// Text in place of a version, as apps have it: `Bookworm 12`. It can be a part of a file's name.
fn check_words(text: &str) -> Result<(), Fault> {
    let is_unfit = |character: char| {
        character.is_control() || is_harmful(character) || r#"/\<>:"|?*#"#.contains(character)
    };
    if text.len() > MAX_LENGTH {
        return Err(Fault::new(text.floor_char_boundary(MAX_LENGTH), TOO_LONG));
    }
    match text.find(is_unfit) {
        Some(at) => Err(Fault::new(at, WORDS)),
        None if text.is_empty() || text.starts_with('.') || text.trim() != text => {
            Err(Fault::new(0, WORDS))
        }
        None => Ok(()),
    }
}

fn start(text: &str) -> Result<Cursor<'_>, Fault> {
    if text.len() > MAX_LENGTH {
        return Err(Fault::new(text.floor_char_boundary(MAX_LENGTH), TOO_LONG));
    }
    let mut cursor = Cursor::new(text);
    cursor.eat("v");
    Ok(cursor)
}

fn finish(
    mut cursor: Cursor<'_>,
    [major, minor, patch]: [u64; 3],
) -> Result<semver::Version, Fault> {
    let pre = cursor.prerelease()?;
    let build = cursor.build()?;
    if cursor.is_at_end() {
        return Ok(semver::Version { major, minor, patch, pre, build });
    }
    Err(cursor.fault_at_cursor(VERSION_END))
}

impl Cursor<'_> {
    fn next_number(&mut self) -> Result<u64, Fault> {
        if !self.eat(".") {
            return Err(self.fault_at_cursor(THREE_NUMBERS));
        }
        self.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_whole() {
        let app_versions = AppVersioning::of(["2.3", "2.30.1", "v3.0.0-rc.1+b5"]);
        assert_eq!(app_versions, AppVersioning::Semver);
        for (wanted, actual, expected) in [
            ("2.3", "2.3", true),
            ("2.3", "2.3.1", true),
            ("v2.3", "2.3.1", true),
            ("2", "v2.3.1", true),
            ("2.3", "2.30", false),
            ("2.3.0", "2.3", false),
            ("3", "3.0.0-rc.1", true),
            ("3.0.0", "3.0.0-rc.1", false),
            ("3.0.0-rc", "3.0.0-rc.1", true),
            ("3.0.0", "3.0.0+b5", true),
            ("", "2.3", false),
        ] {
            assert_eq!(app_versions.accepts(wanted, actual), expected, "{wanted} {actual}");
        }
    }

    #[test]
    fn one_free_form_makes_all_of_them_words() {
        let app_versions = AppVersioning::of(["2.3.0", "Bookworm 12"]);
        assert_eq!(app_versions, AppVersioning::FreeForm);
        assert!(app_versions.accepts("Bookworm 12", "Bookworm 12"));
        assert!(!app_versions.accepts("Bookworm", "Bookworm 12"));
        assert!(!app_versions.accepts("2.3", "2.3.0"));
    }
}
