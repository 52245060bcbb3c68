//! The index file of one package: its lines in order of publication. Changing one line does not touch the
//! others.
//!
//! A line that does not change keeps every byte, even keys that this version does not know.

use bytes::Bytes;
use mu_archive::ArchiveLayout;
use mu_manifest::reference::Version;
use mu_provider::publishable::{self, is_in_archive_name};
use mu_provider::{Dependency, numbered_lines};
use serde_json::{Map, Value};

use crate::HubError;
use crate::names;

/// What is said against a published version. Its content stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// It is withdrawn: nothing new depends on it.
    Yanked,
    /// Nobody looks after it any more: it is chosen last.
    Deprecated,
}

impl Notice {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Yanked, Self::Deprecated];

    /// The key of the index line, and the word for people.
    pub fn key(self) -> &'static str {
        match self {
            Self::Yanked => "yanked",
            Self::Deprecated => "deprecated",
        }
    }
}

/// The key for the name of the token that a version was published with. Only a server knows it.
pub const PUBLISHED_BY: &str = "publishedBy";

/// The longest line, in bytes; readers refuse longer ones.
const LONGEST_LINE: usize = 1 << 20;

/// The lines of an index file.
#[derive(Debug, Default)]
pub struct Lines(Vec<PublishedLine>);

/// One published version.
#[derive(Debug, Clone)]
pub struct PublishedLine {
    text: String,
    map: Map<String, Value>,
}

impl Lines {
    /// Reads an index file. The error says which line is wrong, and why.
    pub(crate) fn parse(bytes: &[u8], name: &str) -> Result<Self, String> {
        let (lines, wrong) = Self::parse_all(bytes, name);
        wrong.into_iter().next().map_or(Ok(lines), Err)
    }

    /// Reads the valid lines of an index file, and describes the problem of each other line.
    pub fn parse_all(bytes: &[u8], name: &str) -> (Self, Vec<String>) {
        let (mut lines, mut wrong) = (Vec::new(), Vec::new());
        for (number, bytes) in numbered_lines(bytes) {
            let line = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned());
            match line.and_then(PublishedLine::parse) {
                Ok(line) if line.name() == name => lines.push(line),
                Ok(_) => wrong.push(format!("line {number}: it is about another package")),
                Err(what) => wrong.push(format!("line {number}: {what}")),
            }
        }
        (Self(lines), wrong)
    }

    /// The whole file.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let lines = self.0.iter().flat_map(|line| [line.text.as_str(), "\n"]);
        lines.collect::<String>().into()
    }

    /// The lines, in the order of the file.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &PublishedLine> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The line of a version, as users write it (`APP-REVISION` where versions are composite).
    pub fn find(&self, version: &str) -> Option<&PublishedLine> {
        let version = without_build(version);
        let is_it = |line: &&PublishedLine| without_build(&line.full_version()) == version;
        self.iter().find(is_it).or_else(|| {
            // 1.28 and 1.28.0 are one version, in either spelling.
            let number = Some(Version::parse_lenient(version).ok()?);
            self.iter().find(|line| line.has_lenient_version() && line.number() == number)
        })
    }

    pub(crate) fn push(&mut self, line: PublishedLine) {
        self.0.push(line);
    }

    /// Changes the lines for which `change` returns `true`. Returns whether there was one. It is an error if
    /// a line would become longer than readers accept.
    pub(crate) fn change(
        &mut self,
        mut change: impl FnMut(&mut Map<String, Value>) -> bool,
    ) -> Result<bool, HubError> {
        let mut changed = false;
        for line in &mut self.0 {
            let mut map = line.map.clone();
            if change(&mut map) {
                *line = PublishedLine::new(map);
                line.check_length()?;
                changed = true;
            }
        }
        Ok(changed)
    }

    /// The line that represents the package: its highest version that is neither withdrawn nor a prerelease,
    /// or else the next best one.
    pub fn latest(&self) -> Option<&PublishedLine> {
        // Of equal ones, the last.
        self.0.iter().max_by_key(|line| line.standing())
    }
}

impl PublishedLine {
    /// Creates a line from `map`.
    pub fn new(map: Map<String, Value>) -> Self {
        let text = serde_json::to_string(&map).expect("a map of JSON values can be printed");
        Self { text, map }
    }

    /// Reads one line.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST_LINE {
            return Err(format!("it is longer than {LONGEST_LINE} bytes"));
        }
        let map = serde_json::from_str(text)
            .map_err(|error| format!("it is not an index line: {error}"))?;
        let line = Self { text: text.trim_end().to_owned(), map };
        match (line.name(), line.version()) {
            ("", _) => Err("it has no name".to_owned()),
            (_, "") => Err("it has no version".to_owned()),
            _ => Ok(line),
        }
    }

    /// The keys and values of the line.
    pub fn map(&self) -> &Map<String, Value> {
        &self.map
    }

    /// The text under a key; `None` if it has none.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.map.get(key)?.as_str()
    }

    /// The texts of a list; none if there is no such list.
    pub fn texts(&self, key: &str) -> impl Iterator<Item = &str> {
        self.values(key).filter_map(Value::as_str)
    }

    fn values(&self, key: &str) -> impl Iterator<Item = &Value> {
        self.map.get(key).and_then(Value::as_array).into_iter().flatten()
    }

    /// The references of its valid dependencies, as they were written.
    pub fn references(&self) -> impl Iterator<Item = String> {
        self.values("dependencies").filter_map(|value| {
            let dependency: Dependency = serde_json::from_value(value.clone()).ok()?;
            Some(dependency.reference().to_owned())
        })
    }

    /// The name of the package.
    pub fn name(&self) -> &str {
        self.text("name").unwrap_or_default()
    }

    /// The key `version` alone: for composite versions, the revision.
    pub fn version(&self) -> &str {
        self.text("version").unwrap_or_default()
    }

    /// Whether the version may leave numbers out.
    pub fn has_lenient_version(&self) -> bool {
        self.text("versions") == Some("lenient") && self.composite_app().is_none()
    }

    /// The version as versions compare; of a composite one the revision.
    fn number(&self) -> Option<Version> {
        match self.has_lenient_version() {
            true => Version::parse_lenient(self.version()).ok(),
            false => Version::parse(self.version()).ok(),
        }
    }

    /// The app version, if it is a part of the version.
    pub fn composite_app(&self) -> Option<&str> {
        self.text("appVersion").filter(|_| self.text("versioning") == Some("composite"))
    }

    /// The version as users write it.
    pub fn full_version(&self) -> String {
        match self.composite_app() {
            Some(app) => format!("{app}-{}", self.version()),
            None => self.version().to_owned(),
        }
    }

    /// How its archive is laid out.
    pub fn archive_layout(&self) -> ArchiveLayout {
        ArchiveLayout::for_locator(self.text("locator"))
    }

    /// `NAME VERSION`, for messages.
    pub fn describe(&self) -> String {
        format!("{} {}", names::printable(self.name()), names::printable(&self.full_version()))
    }

    /// Whether it was withdrawn.
    pub fn is_yanked(&self) -> bool {
        !matches!(self.map.get("yanked"), None | Some(Value::Null | Value::Bool(false)))
    }

    /// The path of the archive below the packs folder, if the line does not give one.
    pub fn usual_archive(&self) -> String {
        let app = self.text("appVersion").filter(|app| is_in_archive_name(app));
        match app.filter(|_| self.composite_app().is_none()) {
            Some(app) => self.archive_called(&format!("{app}-{}", self.version())),
            None => self.archive_by_version(),
        }
    }

    /// The path of the archive in hubs that include the app version only if it is part of the version.
    pub fn archive_by_version(&self) -> String {
        self.archive_called(&self.full_version())
    }

    fn archive_called(&self, version: &str) -> String {
        let leaf = self.name().rsplit('/').next().unwrap_or_default();
        format!("{}/{leaf}-{version}.tgz", self.name())
    }

    /// Whether the line breaks a rule for publishing, or exceeds the limits of a new version.
    pub fn check_new(&self) -> Result<(), HubError> {
        self.check()?;
        publishable::check_line(&self.map)
            .map_err(|exceeded| names::refused(&self.describe(), &exceeded.to_string()))
    }

    /// Whether the line breaks a rule that holds for every version, no matter when it was published.
    pub(crate) fn check(&self) -> Result<(), HubError> {
        names::check_name(self.name())?;
        names::check_version(self.version(), self.has_lenient_version())?;
        if let Some(app) = self.composite_app() {
            names::check_app_version(app)?;
        }
        self.texts("tags").try_for_each(names::check_tag)?;
        for notice in Notice::ALL {
            self.text(notice.key()).map_or(Ok(()), names::check_reason)?;
        }
        self.text("movedTo").map_or(Ok(()), |to| names::check_moved_to(self.name(), to))?;
        for dependency in self.values("dependencies") {
            let reference =
                dependency.get("ref").unwrap_or(dependency).as_str().unwrap_or_default();
            names::check_dependency(reference)?;
        }
        for capability in self.texts("provides") {
            if names::capability_path(capability).is_none() {
                let what = format!("the capability `{}`", names::printable(capability));
                return Err(names::refused(&what, "expected GROUP/VERSION/KIND"));
            }
        }
        self.check_length()
    }

    fn check_length(&self) -> Result<(), HubError> {
        if self.text.len() > LONGEST_LINE {
            return Err(names::refused(&self.describe(), "its index line is longer than 1 MiB"));
        }
        Ok(())
    }

    /// The values that decide which line represents the package.
    pub fn standing(&self) -> Standing {
        let revision = || self.number();
        let composite = self.composite_app().map(|app| Version::composite(app, self.version()));
        let number = composite.and_then(Result::ok).or_else(revision);
        let is_release = number.as_ref().is_some_and(|version| !version.is_prerelease());
        Standing { stands: !self.is_yanked(), is_release, number }
    }
}

/// The values that decide between two versions of a package: first whether they are usable, then their
/// numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    stands: bool,
    /// Whether it is not a prerelease.
    pub is_release: bool,
    /// Its place among the others; none if it is not a version.
    pub number: Option<Version>,
}

/// A version without build metadata, which does not distinguish versions.
fn without_build(version: &str) -> &str {
    version.split('+').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Lines {
        Lines::parse(text.as_bytes(), "a").expect("are lines")
    }

    #[test]
    fn what_is_not_changed_keeps_its_bytes_and_its_place() {
        let text = "{ \"name\":\"a\", \"version\":\"1.0.0\",\"x\":1.50 }\n{\"name\":\"a\",\"version\":\"1.1.0\",\"y\":[]}\n";
        let mut lines = lines(text);
        assert_eq!(lines.to_bytes(), text.as_bytes());
        let changed = lines.change(|map| {
            map["version"] == "1.1.0" && map.insert("yanked".to_owned(), "bad".into()).is_none()
        });
        assert!(changed.expect("is short"));
        let expected = text.replace("\"y\":[]}", "\"y\":[],\"yanked\":\"bad\"}");
        assert_eq!(lines.to_bytes(), expected.as_bytes());
    }

    #[test]
    fn no_line_grows_longer_than_readers_take() {
        let long = "a".repeat(LONGEST_LINE - 100);
        let text = format!("{{\"name\":\"a\",\"version\":\"1.0.0\",\"x\":\"{long}\"}}\n");
        let mut lines = lines(&text);
        let yank = |map: &mut Map<String, Value>| {
            map.insert("yanked".to_owned(), "b".repeat(100).into()).is_none()
        };
        assert!(lines.change(yank).is_err());
    }

    #[test]
    fn the_latest_is_the_highest_that_stands() {
        for (text, expected) in [
            ("1.0.0 1.10.0 1.9.0", "1.10.0"),
            ("1.0.0 2.0.0-rc.1", "1.0.0"),
            ("1.0.0-a 1.0.0-b", "1.0.0-b"),
            ("1.0.0 1.1.0!", "1.0.0"),
            ("1.0.0! 1.1.0!", "1.1.0"),
        ] {
            let lines: String = text
                .split(' ')
                .map(|version| {
                    let yanked = version.ends_with('!');
                    let version = version.trim_end_matches('!');
                    format!("{{\"name\":\"a\",\"version\":\"{version}\",\"yanked\":{yanked}}}\n")
                })
                .collect();
            let lines = self::lines(&lines);
            assert_eq!(
                lines.latest().map(PublishedLine::full_version).as_deref(),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn composite_versions_are_of_their_app_first() {
        let line = |app: &str, version: &str| {
            format!(
                "{{\"name\":\"a\",\"versioning\":\"composite\",\"appVersion\":\"{app}\",\"version\":\"{version}\"}}\n"
            )
        };
        let lines = lines(
            &[line("2.3.0", "1.0.0"), line("2.4.0", "1.0.0"), line("2.3.0", "1.1.0")].concat(),
        );
        let short = self::lines(&[line("1.10", "1.0.0"), line("1.9", "1.1.0")].concat());
        assert_eq!(short.latest().map(PublishedLine::full_version).as_deref(), Some("1.10-1.0.0"));
        assert_eq!(lines.latest().map(PublishedLine::full_version).as_deref(), Some("2.4.0-1.0.0"));
        assert!(lines.find("2.3.0-1.1.0").is_some());
        assert!(lines.find("1.1.0").is_none());
        assert_eq!(
            lines.find("2.3.0-1.1.0").map(PublishedLine::usual_archive).as_deref(),
            Some("a/a-2.3.0-1.1.0.tgz")
        );
    }

    #[test]
    fn a_broken_line_is_named() {
        for (text, expected) in [
            ("{\"name\":\"a\",\"version\":\"1\"}\n<html>", "line 2: it is not an index line"),
            ("{\"name\":\"b\",\"version\":\"1\"}", "line 1: it is about another package"),
            ("{\"name\":\"a\"}", "line 1: it has no version"),
        ] {
            let error = Lines::parse(text.as_bytes(), "a").expect_err("is broken");
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
