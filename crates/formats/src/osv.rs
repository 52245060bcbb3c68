//! Advisories in the format of OSV 1.7 (<https://ossf.github.io/osv-schema/>): which versions of which packages they are about.
//!
//! An advisory speaks of a package by its purl, by the ecosystem `mu` with the id as name, or by its Git repository. No ecosystem of
//! OSV has charts, modules or operators, so entries about other ecosystems are left out. A range of commits can only be compared by the
//! commits that it states, as nothing here has a repository; where that decides nothing, [`Matched::Undecided`] says so.

use std::borrow::Cow;

use mu_manifest::reference::Version;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use crate::node::{Fault, FormatError, Node};
use crate::reader;
use crate::shape::Shape::{self, List, Map, Text, Unused};
use crate::shape::{SHOWN, TEXTS, Values};

/// How the ids of advisories about malicious packages begin.
pub const MALICIOUS: &str = "MAL-";

/// The ecosystem of packages that have their ids as names.
const ECOSYSTEM: &str = "mu";

/// The longest id, in bytes.
const LONGEST_ID: usize = 200;

/// What is read of an advisory.
pub(crate) static OSV_KEYS: Shape = Map(&[
    ("schema_version", Unused),
    ("id", Text),
    ("modified", Unused),
    ("published", Unused),
    ("withdrawn", Text),
    ("aliases", TEXTS),
    ("upstream", Unused),
    ("related", Unused),
    ("summary", SHOWN),
    ("details", SHOWN),
    ("severity", Unused),
    (
        "affected",
        List(&Map(&[
            ("package", Map(&[("ecosystem", Text), ("name", Text), ("purl", Text)])),
            ("severity", Unused),
            (
                "ranges",
                List(&Map(&[
                    ("type", Text),
                    ("repo", Text),
                    (
                        "events",
                        List(&Map(&[
                            ("introduced", Text),
                            ("fixed", Text),
                            ("last_affected", Text),
                            ("limit", Text),
                        ])),
                    ),
                    ("database_specific", Unused),
                ])),
            ),
            ("versions", TEXTS),
            ("ecosystem_specific", Unused),
            ("database_specific", Unused),
        ])),
    ),
    ("references", Unused),
    ("credits", Unused),
    ("database_specific", Unused),
]);

/// An advisory, with what it says of packages that mu may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advisory {
    /// Its id.
    pub id: String,
    /// Its ids in other databases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// What it is about, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    affected: Vec<Affected>,
}

/// What an advisory says of one package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Affected {
    /// What the package is called, as [`AdvisedPackage`] has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    /// The folder of its repository, if only what is there is affected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ranges: Vec<AffectedRange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    versions: Vec<String>,
}

/// From where to where versions, or the commits of a repository, are affected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AffectedRange {
    /// The name of its repository, if it is about commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repository: Option<String>,
    events: Vec<(Event, String)>,
}

/// What happens at a version or a commit. At one version, it begins before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Event {
    /// It is the first one that is affected; `0` stands for the very first.
    Introduced,
    /// It is the last one that is affected.
    Last,
    /// It is not affected any more.
    Fixed,
    /// Nothing from here on is spoken of.
    Limit,
}

/// A version of a package, as advisories may speak of it.
#[derive(Debug, Clone, Default)]
pub struct AdvisedPackage {
    /// What the package is called: a line for each way to name it.
    names: Vec<String>,
    folder: Option<String>,
    /// The name of its Git repository.
    repository: Option<String>,
    version: Option<Version>,
    /// Its version and its tag, as they are written.
    written: Vec<String>,
    commit: Option<String>,
}

impl AdvisedPackage {
    /// A package with this id and purl.
    pub fn new(id: &str, purl: &str) -> Self {
        let mut package = Self::default();
        package.add_name(id, purl);
        package
    }

    /// Adds another id and purl of it, such as those of what is used in its place.
    pub fn add_name(&mut self, id: &str, purl: &str) {
        self.names.push(name_in_ecosystem(id));
        if let Some((name, folder)) = name_of_purl(purl) {
            self.names.push(name);
            self.folder = self.folder.take().or(folder);
        }
    }

    /// In a Git repository, at a commit.
    #[must_use]
    pub fn in_repository(mut self, url: &str, commit: Option<&str>) -> Self {
        let name = name_of_repository(url);
        self.names.push(name.clone());
        self.repository = Some(name);
        self.commit = commit.map(str::to_owned);
        self
    }

    /// In this version, which is also written like these.
    #[must_use]
    pub fn in_version(mut self, version: Option<Version>, written: &[&str]) -> Self {
        self.version = version;
        self.written = written.iter().map(|&text| text.to_owned()).collect();
        self
    }

    /// The names under which advisories about it are found.
    pub fn all_package_names(&self) -> &[String] {
        &self.names
    }
}

/// What an advisory says of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    /// It is affected.
    Affected {
        /// The least version above it that is not, if the advisory names one.
        fixed: Option<String>,
    },
    /// It speaks of the package, and what it says cannot be compared with the version, for this reason.
    Undecided(String),
}

/// Whether something is affected, if that can be said.
type Verdict = Result<bool, String>;

impl Advisory {
    /// Reads an advisory; `None` if it was withdrawn.
    ///
    /// # Errors
    ///
    /// When the text is none.
    pub fn read(file: &str, text: &str) -> Result<Option<Self>, FormatError> {
        Self::of_text(text).map_err(|fault| FormatError::new(file, text, fault))
    }

    fn of_text(text: &str) -> Result<Option<Self>, Fault> {
        let read = reader::read_json(text, &OSV_KEYS, &mut Values::default())?;
        let behind = text.get(read.length..).unwrap_or_default();
        if !behind.trim().is_empty() {
            return Err(Fault::new(read.length..text.len(), "something follows the advisory"));
        }
        let node = &read.node;
        if !node.is_map() {
            return Err(node.fault("this is not an advisory of OSV, but a list or a text"));
        }
        let Some((id, _)) = node.text("id")? else {
            return Err(node.fault("this is not an advisory of OSV: it has no `id`"));
        };
        if id.len() > LONGEST_ID || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(node.fault("the `id` of an advisory has letters, digits and dashes"));
        }
        if node.get("withdrawn")?.is_some() {
            return Ok(None);
        }
        let summary = node.text_for_people("summary").or_else(|| node.text_for_people("details"));
        let affected = node.list("affected")?.iter().map(Affected::of_node);
        let affected = affected.collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Self {
            id: id.to_owned(),
            aliases: node.words("aliases"),
            summary: summary.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")),
            affected: affected.into_iter().filter(|one| one.all_names().next().is_some()).collect(),
        }))
    }

    /// Whether it is about a malicious package.
    pub fn is_malicious(&self) -> bool {
        self.id.starts_with(MALICIOUS)
    }

    /// Whether it goes by an id, here or in another database.
    pub fn is_called(&self, id: &str) -> bool {
        self.id == id || self.aliases.iter().any(|alias| alias == id)
    }

    /// The names of the packages that it speaks of; none, if mu can have none of them.
    pub fn names_of_packages(&self) -> impl Iterator<Item = &str> {
        self.affected.iter().flat_map(Affected::all_names)
    }

    /// What it says of a version of a package; `None` if the version is not affected.
    pub fn about(&self, package: &AdvisedPackage) -> Option<Matched> {
        match self.verdict(package)? {
            Ok(false) => None,
            Err(why) => Some(Matched::Undecided(why)),
            Ok(true) => Some(Matched::Affected { fixed: self.fixed(package) }),
        }
    }

    /// Whether a version is affected; `None` if it does not speak of the package.
    fn verdict(&self, package: &AdvisedPackage) -> Option<Verdict> {
        let verdicts = self.affected.iter().filter_map(|one| one.verdict(package));
        // One that is sure outweighs all others; one that is not sure outweighs those that exclude it.
        verdicts.reduce(|one, other| match (one, other) {
            (Ok(true), _) | (_, Ok(true)) => Ok(true),
            (Err(why), _) | (_, Err(why)) => Err(why),
            (Ok(false), Ok(false)) => Ok(false),
        })
    }

    /// The least version above that of a package that is fixed, and not affected otherwise.
    fn fixed(&self, package: &AdvisedPackage) -> Option<String> {
        let own = package.version.as_ref()?;
        let entries = self.affected.iter().filter(|one| one.is_named(package));
        let events = entries.flat_map(|one| &one.ranges).filter(|range| range.repository.is_none());
        let fixed =
            events.flat_map(|range| &range.events).filter(|(event, _)| *event == Event::Fixed);
        let fixed = fixed.filter_map(|(_, text)| Some((comparable(own, text)?, text)));
        let mut fixed: Vec<(Version, &String)> =
            fixed.filter(|(version, _)| version > own).collect();
        fixed.sort();
        let is_fine = |version: &Version, text: &str| {
            let there = AdvisedPackage { commit: None, ..package.clone() };
            self.verdict(&there.in_version(Some(version.clone()), &[text])) != Some(Ok(true))
        };
        let found = fixed.into_iter().find(|(version, text)| is_fine(version, text));
        found.map(|(_, text)| text.clone())
    }
}

impl Affected {
    fn of_node(node: &Node<'_>) -> Result<Self, Fault> {
        let (mut names, mut folder) = (Vec::new(), None);
        if let Some(package) = node.get("package")? {
            let said = |key| Ok::<_, Fault>(package.text(key)?.map(|(text, _)| text.to_owned()));
            if let (Some(ECOSYSTEM), Some(name)) = (said("ecosystem")?.as_deref(), said("name")?) {
                names.push(name_in_ecosystem(&name));
            }
            if let Some((name, inside)) = said("purl")?.as_deref().and_then(name_of_purl) {
                names.push(name);
                folder = inside;
            }
        }
        let ranges = node.list("ranges")?.iter().map(AffectedRange::of_node);
        let versions = node.list("versions")?.iter().filter_map(Node::scalar);
        Ok(Self {
            names,
            folder,
            ranges: ranges.collect::<Result<_, _>>()?,
            versions: versions.map(str::to_owned).collect(),
        })
    }

    /// The names of its package, and of the repositories with the commits that it is about.
    fn all_names(&self) -> impl Iterator<Item = &str> {
        let repositories = self.ranges.iter().filter_map(|range| range.repository.as_deref());
        self.names.iter().map(String::as_str).chain(repositories)
    }

    /// Whether it names the package itself.
    fn is_named(&self, package: &AdvisedPackage) -> bool {
        let is_in = self.folder.is_none() || self.folder == package.folder;
        is_in && self.names.iter().any(|name| package.names.contains(name))
    }

    /// Whether a version is affected; `None` if this is about something else.
    fn verdict(&self, package: &AdvisedPackage) -> Option<Verdict> {
        let of_repository = |range: &&AffectedRange| {
            range.repository.is_some() && range.repository == package.repository
        };
        let is_named = self.is_named(package);
        if !is_named && !self.ranges.iter().any(|range| of_repository(&range)) {
            return None;
        }
        let is_listed = |text: &String| {
            let same = |own: &Version| comparable(own, text).is_some_and(|other| other == *own);
            package.written.contains(text) || package.version.as_ref().is_some_and(same)
        };
        if self.versions.iter().any(is_listed) {
            return Some(Ok(true));
        }
        // What a package of this name has is in its versions; commits say more than that only of its own repository.
        let (of_commits, of_versions): (Vec<_>, Vec<_>) =
            self.ranges.iter().partition(|range| range.repository.is_some());
        let mut verdict = match (self.versions.is_empty(), &package.version) {
            (false, Some(_)) => Some(Ok(false)),
            (false, None) => Some(Err("it lists versions, and this has none".to_owned())),
            (true, _) => None,
        };
        for range in of_versions.into_iter().filter(|_| is_named) {
            match (range.contains(package.version.as_ref()), &verdict) {
                (Ok(true), _) => return Some(Ok(true)),
                (Ok(false), None | Some(Ok(_))) => verdict = Some(Ok(false)),
                (Ok(false), Some(Err(_))) => {}
                (Err(why), _) => verdict = Some(Err(why)),
            }
        }
        for range in of_commits.into_iter().filter(of_repository) {
            match (range.states(package.commit.as_deref()), &verdict) {
                (Some(true), _) => return Some(Ok(true)),
                (Some(false), _) => verdict = Some(Ok(false)),
                // Versions decide it where there are any.
                (None, Some(_)) => {}
                (None, None) => {
                    let why = "it names a range of commits, and this commit is none of those that it states";
                    verdict = Some(Err(why.to_owned()));
                }
            }
        }
        let nothing = || Err("it does not say which versions it is about".to_owned());
        Some(verdict.unwrap_or_else(nothing))
    }
}

impl AffectedRange {
    fn of_node(node: &Node<'_>) -> Result<Self, Fault> {
        let kind = node.text("type")?.map(|(kind, _)| kind);
        let repository = match (kind, node.text("repo")?) {
            (Some("GIT"), Some((url, _))) => Some(name_of_repository(url)),
            (Some("GIT"), None) => return Err(node.fault("a range of type GIT has a `repo`")),
            (Some("SEMVER" | "ECOSYSTEM"), _) => None,
            _ => return Err(node.fault("the `type` of a range is GIT, SEMVER or ECOSYSTEM")),
        };
        let mut events = Vec::new();
        for event in node.list("events")? {
            let kinds = [
                ("introduced", Event::Introduced),
                ("last_affected", Event::Last),
                ("fixed", Event::Fixed),
                ("limit", Event::Limit),
            ];
            for (key, kind) in kinds {
                events.extend(event.text(key)?.map(|(text, _)| (kind, text.to_owned())));
            }
        }
        Ok(Self { repository, events })
    }

    /// Whether a version is in a range of versions.
    ///
    /// Its events are taken in the order of their versions; the last one that the version has reached decides, and it must be below one of
    /// the limits, if there are any. So one range can be left and entered again.
    fn contains(&self, version: Option<&Version>) -> Verdict {
        let Some(version) = version else {
            return Err("it names a range of versions, and this has none".to_owned());
        };
        let (mut is_affected, mut is_limited, mut is_below) = (false, false, false);
        let mut events = Vec::new();
        for (event, text) in &self.events {
            match (event, text.as_str()) {
                (Event::Introduced, "0") => is_affected = true,
                (Event::Limit, "*") => is_below = true,
                (event, text) => {
                    let at = comparable(version, text).ok_or_else(|| {
                        format!("it names `{}`, which is not a version", mu_provider::brief(text))
                    })?;
                    events.push((at, *event));
                }
            }
            is_limited |= *event == Event::Limit;
        }
        events.sort();
        for (at, event) in &events {
            match event {
                Event::Introduced if version >= at => is_affected = true,
                Event::Last if version > at => is_affected = false,
                Event::Fixed if version >= at => is_affected = false,
                Event::Limit if version < at => is_below = true,
                _ => {}
            }
        }
        Ok(is_affected && (is_below || !is_limited))
    }

    /// What a range of commits says of one, by the commits that it states.
    fn states(&self, commit: Option<&str>) -> Option<bool> {
        let is_it = |text: &str| commit.is_some_and(|commit| commit.eq_ignore_ascii_case(text));
        let stated = self.events.iter().filter(|(_, text)| is_it(text)).map(|(event, _)| *event);
        match stated.max() {
            Some(Event::Introduced | Event::Last) => Some(true),
            Some(Event::Fixed | Event::Limit) => Some(false),
            None => {
                // From the first commit on, without an end.
                let is_all =
                    |(event, text): &(Event, String)| *event == Event::Introduced && text == "0";
                (!self.events.is_empty() && self.events.iter().all(is_all)).then_some(true)
            }
        }
    }
}

/// A version of an advisory, in the form in which it can be compared with `own`.
fn comparable(own: &Version, text: &str) -> Option<Version> {
    match own.app() {
        Some(_) => Version::parse_composite(text).ok(),
        None => Version::parse_lenient(text).ok(),
    }
}

fn name_in_ecosystem(id: &str) -> String {
    format!("{ECOSYSTEM} {id}")
}

/// The name of a Git repository: its place, without the way there.
fn name_of_repository(url: &str) -> String {
    let url = url.strip_prefix("git+").unwrap_or(url);
    let place = match url.split_once("://") {
        Some((_, place)) => Cow::Borrowed(place),
        // `git@host:path`
        None => Cow::Owned(url.replacen(':', "/", 1)),
    };
    let (host, path) = place.split_once('/').unwrap_or((&place, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    match host.as_str() {
        // Letters have no case there.
        "github.com" => format!("git {host}/{}", path.to_ascii_lowercase()),
        _ => format!("git {host}/{path}"),
    }
}

/// The name that a purl means, without its version, and its folder; `None` of a type that packages of mu do not have.
fn name_of_purl(purl: &str) -> Option<(String, Option<String>)> {
    let rest = purl.strip_prefix("pkg:")?.trim_start_matches('/');
    let (rest, folder) = rest.split_once('#').map_or((rest, None), |(rest, at)| (rest, Some(at)));
    let (rest, qualifiers) = rest.split_once('?').unwrap_or((rest, ""));
    let (kind, path) = rest.split_once('/')?;
    // The version begins at the last `@`, if that is in the name.
    let name = path.rfind('/').map_or(0, |at| at + 1);
    let end = path.get(name..)?.rfind('@').map_or(path.len(), |at| name + at);
    let path = decoded(path.get(..end)?);
    let qualifier = |key: &str| {
        let mut pairs = qualifiers.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| decoded(value))
    };
    let folder = folder.map(|folder| decoded(folder).trim_matches('/').to_owned());
    let kind = kind.to_ascii_lowercase();
    let name = match kind.as_str() {
        "github" => format!("{kind} {}", path.to_lowercase()),
        "oci" | "generic" => {
            let path = if kind == "oci" { path.to_lowercase() } else { path };
            match (qualifier("repository_url"), qualifier("vcs_url")) {
                (Some(place), _) => {
                    let place = place.split_once("://").map_or(&*place, |(_, place)| place);
                    format!("{kind} {path} {}", place.trim_end_matches('/'))
                }
                // The commit is part of the URL there.
                (None, Some(url)) => {
                    let last = url.rfind('/').unwrap_or_default();
                    let at = url.get(last..)?.rfind('@').map_or(url.len(), |at| last + at);
                    format!("{kind} {path} {}", name_of_repository(url.get(..at)?))
                }
                (None, None) => format!("{kind} {path}"),
            }
        }
        _ => return None,
    };
    Some((name, folder.filter(|folder| !folder.is_empty())))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PURL: &str = "pkg:generic/ec2@1.0.0?repository_url=hub.mu.com%2Faws%2Fec2";

    fn package(version: &str) -> AdvisedPackage {
        let parsed = Version::parse(version).expect("is a version");
        AdvisedPackage::new("hub.mu.com/aws/ec2", PURL).in_version(Some(parsed), &[version])
    }

    fn advisory(affected: &Value) -> Advisory {
        let text = json!({ "id": "OSV-1", "affected": affected }).to_string();
        Advisory::read("a.json", &text).expect("is one").expect("was not withdrawn")
    }

    fn ranged(kind: &str, events: &Value) -> Advisory {
        advisory(&json!([{
            "package": { "ecosystem": "mu", "name": "hub.mu.com/aws/ec2" },
            "ranges": [{ "type": kind, "events": events }],
        }]))
    }

    fn fixed(text: &str) -> Option<Matched> {
        Some(Matched::Affected { fixed: Some(text.to_owned()) })
    }

    #[test]
    fn ranges_of_versions_are_compared_by_their_order() {
        let unfixed = Some(Matched::Affected { fixed: None });
        let twice = json!([
            { "introduced": "1.2.0" }, { "fixed": "1.4.1" },
            { "introduced": "2.0.0" }, { "fixed": "2.3.0" },
        ]);
        let once = json!([{ "introduced": "0" }, { "last_affected": "1.4.0" }]);
        let limited = json!([{ "introduced": "1.0.0" }, { "limit": "1.5.0" }]);
        let free = json!([{ "introduced": "1.0.0" }, { "limit": "1.5.0" }, { "limit": "*" }]);
        let later = json!([{ "introduced": "10.0.0" }, { "fixed": "v10.1" }]);
        for kind in ["SEMVER", "ECOSYSTEM"] {
            for (events, version, expected) in [
                (&twice, "1.1.9", None),
                (&twice, "1.2.0", fixed("1.4.1")),
                (&twice, "1.4.0", fixed("1.4.1")),
                (&twice, "1.4.1", None),
                (&twice, "2.0.0-rc.1", None),
                (&twice, "2.1.0", fixed("2.3.0")),
                (&twice, "2.3.0", None),
                (&once, "0.0.1", unfixed.clone()),
                (&once, "1.4.0", unfixed.clone()),
                (&once, "1.4.1", None),
                (&limited, "1.4.9", unfixed.clone()),
                (&limited, "1.5.0", None),
                (&free, "9.0.0", unfixed.clone()),
                (&later, "9.0.0", None),
                (&later, "10.0.5", fixed("v10.1")),
            ] {
                let found = ranged(kind, events).about(&package(version));
                assert_eq!(found, expected, "{kind} {events} {version}");
            }
        }
    }

    #[test]
    fn a_fixed_version_that_another_range_has_mends_nothing() {
        let advisory = advisory(&json!([
            { "package": { "purl": PURL }, "ranges": [
                { "type": "SEMVER", "events": [{ "introduced": "1.0.0" }, { "fixed": "1.1.0" }] },
                { "type": "SEMVER", "events": [{ "introduced": "1.1.0" }, { "fixed": "1.2.0" }] },
            ] },
            { "package": { "purl": PURL }, "versions": ["1.2.0"], "ranges": [
                { "type": "SEMVER", "events": [{ "introduced": "1.2.0" }, { "fixed": "1.2.1" }] },
            ] },
        ]));
        assert_eq!(advisory.about(&package("1.0.0")), fixed("1.2.1"));
    }

    #[test]
    fn what_cannot_be_compared_is_told() {
        let undecided =
            |advisory: &Advisory, package: &AdvisedPackage| match advisory.about(package) {
                Some(Matched::Undecided(why)) => why,
                other => panic!("{other:?}"),
            };
        let odd = ranged("ECOSYSTEM", &json!([{ "introduced": "noble" }]));
        assert!(undecided(&odd, &package("1.0.0")).contains("`noble`, which is not a version"));
        let silent = advisory(&json!([{ "package": { "purl": PURL } }]));
        assert!(undecided(&silent, &package("1.0.0")).contains("does not say which versions"));
        let unversioned = AdvisedPackage::new("hub.mu.com/aws/ec2", PURL);
        let all = ranged("SEMVER", &json!([{ "introduced": "0" }]));
        assert!(undecided(&all, &unversioned).contains("this has none"));
    }

    #[test]
    fn repositories_are_compared_by_versions_and_stated_commits() {
        let url = "https://github.com/Acme/infra.git";
        let at = |commit: &str, version: Option<&str>| {
            let parsed = version.and_then(|version| Version::parse(version).ok());
            AdvisedPackage::new("github.com/acme/infra", "pkg:github/acme/infra@1234")
                .in_repository(url, Some(commit))
                .in_version(parsed, &[])
        };
        let git = |events: Value, versions: Value| {
            advisory(&json!([{ "versions": versions, "ranges": [
                { "type": "GIT", "repo": "git@github.com:acme/Infra", "events": events },
            ] }]))
        };
        let events = || json!([{ "introduced": "aa" }, { "fixed": "bb" }]);
        let affected = Some(Matched::Affected { fixed: None });
        let stated = git(events(), json!([]));
        assert_eq!(stated.about(&at("AA", None)), affected);
        assert_eq!(stated.about(&at("bb", None)), None);
        assert!(matches!(stated.about(&at("cc", None)), Some(Matched::Undecided(_))));
        let listed = git(events(), json!(["v1.2.0"]));
        assert_eq!(listed.about(&at("cc", Some("1.2.0"))), affected);
        assert_eq!(listed.about(&at("cc", Some("1.3.0"))), None);
        assert_eq!(git(json!([{ "introduced": "0" }]), json!([])).about(&at("cc", None)), affected);
        let other = "https://gitlab.com/acme/infra";
        let elsewhere = at("aa", None).in_repository(other, Some("aa"));
        assert_eq!(elsewhere.repository.as_deref(), Some("git gitlab.com/acme/infra"));
        assert_eq!(stated.about(&elsewhere), None);
    }

    #[test]
    fn a_purl_names_a_package_in_each_way_to_write_it() {
        let same = |one: &str, other: &str| {
            assert_eq!(name_of_purl(one), name_of_purl(other), "{one} {other}");
            assert!(name_of_purl(one).is_some(), "{one}");
        };
        same(PURL, "pkg:generic/ec2?repository_url=https://hub.mu.com/aws/ec2/");
        same(
            "pkg:oci/web@sha256%3A12?repository_url=ghcr.io%2Facme%2Fweb&tag=1.4.0",
            "pkg:OCI/Web?tag=9&repository_url=ghcr.io/acme/web",
        );
        same("pkg:github/acme/infra@1895753#modules/vpc", "pkg:github/Acme/Infra#modules%2Fvpc/");
        same(
            "pkg:generic/x@1.0.0?vcs_url=git%2Bhttps%3A%2F%2Fgit.acme.co%2Fx.git%40aa",
            "pkg:generic/x?vcs_url=git+ssh://git@git.acme.co/x",
        );
        for other in ["pkg:npm/left-pad@1.0.0", "pkg:generic", "npm/left-pad", ""] {
            assert_eq!(name_of_purl(other), None, "{other}");
        }
        assert_ne!(name_of_purl(PURL), name_of_purl(&PURL.replace("aws", "acme")));
    }

    #[test]
    fn a_folder_is_affected_with_its_repository_and_not_beside_its_neighbour() {
        let about = |purl: &str| {
            advisory(&json!([{ "package": { "purl": purl }, "ranges": [
                { "type": "SEMVER", "events": [{ "introduced": "0" }] },
            ] }]))
        };
        let vpc = AdvisedPackage::new("github.com/acme/infra/vpc", "pkg:github/acme/infra@1#vpc")
            .in_version(Version::parse("1.0.0").ok(), &[]);
        assert!(about("pkg:github/acme/infra").about(&vpc).is_some());
        assert!(about("pkg:github/acme/infra#vpc").about(&vpc).is_some());
        assert!(about("pkg:github/acme/infra#elb").about(&vpc).is_none());
    }

    #[test]
    fn what_is_no_advisory_is_an_error_and_a_withdrawn_one_is_left_out() {
        for (text, part) in [
            ("", "not JSON"),
            ("[]", "not an advisory of OSV"),
            ("{}", "has no `id`"),
            ("{\"id\": \"a b\"}", "letters, digits and dashes"),
            ("{\"id\": \"A\", \"affected\": 1}", "`affected` must be a list"),
            ("{\"id\": \"A\"} {", "something follows"),
            ("{\"id\":\"A\",\"affected\":[{\"ranges\":[{\"type\":\"DATE\"}]}]}", "GIT, SEMVER or"),
            ("{\"id\":\"A\",\"affected\":[{\"ranges\":[{\"type\":\"GIT\"}]}]}", "has a `repo`"),
        ] {
            let error = Advisory::read("a.json", text).expect_err(text);
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
        let withdrawn = "{\"id\": \"A\", \"withdrawn\": \"2026-01-01T00:00:00Z\"}";
        assert_eq!(Advisory::read("a.json", withdrawn), Ok(None));
        let foreign = advisory(
            &json!([{ "package": { "ecosystem": "npm", "name": "x", "purl": "pkg:npm/x" } }]),
        );
        assert_eq!(foreign.names_of_packages().count(), 0);
    }
}
