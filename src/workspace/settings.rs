//! The settings of a workspace, as the rest of mu sees them.
//!
//! [`Settings`] is plain data with queries; `read.rs` fills it from the two files. Settings also state facts of the runtime, and
//! what packages do not say of themselves. [`Cutoff`] says how new is too new: an age such as `3 days`, or a date. The caller
//! gives the current time; this file has no clock.
//!
//! Of advisories, they say where they come from, and which of them do not count for a while (`advisories` and `audit`). What the
//! two files say of these is joined. Whose file says it is kept, because a workspace's ignores are no reason to use what a feed
//! of the user's calls malicious. Feeds are read elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};
use mu_provider::http::TokenHosts;
use mu_provider::{InnerPath, NamedBy, SafeUrl};

use super::ConfiguredRegistry;
use super::registry::{OfUser, TrustedBuilds};
use super::schema::{AuditTable, File, LicensesTable, PackageTable};
use super::trust::{TrustFile, TrustSettings};
use crate::manifest::source::{SourceError, Table, Text, TextProblem, Value};
use crate::manifest::{Capability, choice, unversioned};
use crate::reference::{Alias, Aliases, Base, Defaults, Name, PackageId, Reference, VersionSpec};
use crate::select::{Bundled, Majors, Resolution};

/// For how many seconds the answer of a registry that does not say so itself is used without asking again, by default.
pub(super) const FRESH_FOR: u32 = 600;

/// How old a version must be, and which file says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseAge {
    /// The latest allowed time of publication.
    pub cutoff: Cutoff,
    /// Whose file says so.
    pub named_by: NamedBy,
}

/// Which licences packages may have.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LicenseRules {
    /// The allowed licences.
    pub allow: Vec<spdx::Licensee>,
    /// Packages that are allowed all the same, and why.
    pub except: BTreeMap<PackageId, String>,
}

/// The settings of `.mu/workspace.yaml`, else of `~/.mu/config.yaml`, else the defaults.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// The base of references without one.
    pub base: Base,
    /// How versions are chosen.
    pub resolution: Resolution,
    /// Where bases really are; the longest prefix first.
    pub registries: Vec<ConfiguredRegistry>,
    /// Which hosts registries may name for their tokens; from the user's own file alone.
    pub token_hosts: TokenHosts,
    /// Facts that packages' constraints are checked against.
    pub runtime: BTreeMap<String, String>,
    /// Capabilities that the runtime has.
    pub runtime_provides: Vec<String>,
    /// Capabilities that packages provide, although they do not declare it.
    pub provided: BTreeMap<PackageId, Vec<String>>,
    /// Packages that others replace, although they do not declare it: new to old.
    pub stated_replaces: BTreeMap<PackageId, BTreeSet<PackageId>>,
    /// What to use instead of a package, everywhere. Relative folders are relative to the root.
    pub overrides: BTreeMap<PackageId, Reference>,
    /// Which ids mean others.
    pub aliases: Aliases,
    /// Which licences packages may have, if anything says so.
    pub licenses: Option<LicenseRules>,
    /// Where advisories come from, and which do not count.
    pub advisories: AdvisorySettings,
    /// Versions that are never chosen.
    pub exclude: Vec<ExclusionSetting>,
    /// What is changed in packages before they are installed.
    pub patches: Vec<PatchFile>,
    /// Charts that use the copies of their dependencies that they carry inside.
    pub bundled: Vec<Bundled>,
    /// The formats of other ecosystems whose packages below the root are the workspace's own.
    pub formats: Vec<&'static str>,
    /// Whether a package may be chosen once per major version.
    pub majors: Majors,
    /// How old a version must be to be chosen: as old as each of these says.
    pub release_ages: Vec<ReleaseAge>,
    /// For how many seconds the answer of a registry that does not say so itself is used without asking again.
    pub fresh_for: u32,
    /// Which packages may replace which (old to new), whoever owns them.
    pub allow_replaces: BTreeMap<PackageId, PackageId>,
    /// How packs are created from the store.
    pub link: Link,
    /// Patterns of packages whose `build` may be run.
    pub trusted_builds: TrustedBuilds,
    /// Folders outside of workspaces that packages may come from; from the user's own file alone.
    pub trusted_folders: Vec<String>,
    /// What the user's own file says of places.
    pub of_user: OfUser,
    /// The packages instead of which the workspace uses others.
    pub overridden_here: BTreeSet<PackageId>,
    /// All packages that the workspace's own file overrides.
    pub overrides_here: BTreeSet<PackageId>,
    /// The aliases of the workspace alone.
    pub aliases_here: Vec<Alias>,
    /// Programs of provider plugins, by the plugin's name; from the user's own file alone.
    pub plugins: BTreeMap<String, PathBuf>,
    /// Who may vouch for packages.
    pub trust: TrustSettings,
}

impl Settings {
    /// Whether the settings say that a package replaces another one.
    pub fn lets_replace(&self, by: &PackageId, id: &PackageId) -> bool {
        self.stated_replaces.get(by).is_some_and(|old| old.contains(id))
    }

    /// The registry that serves a package, if one is configured: the one with the longest prefix.
    pub fn registry(&self, id: &PackageId) -> Option<&ConfiguredRegistry> {
        self.registries.iter().find(|registry| registry.rest_of(id).is_some())
    }

    /// The strictest rule about the age of versions, if it is now `now`.
    pub fn release_age(&self, now: i64) -> Option<ReleaseAge> {
        self.release_ages.iter().min_by_key(|age| age.cutoff.cutoff_time(now)).copied()
    }

    /// Replaces the registry with the same prefix, or adds it.
    pub fn put_registry(&mut self, registry: ConfiguredRegistry) {
        self.registries.retain(|other| other.prefix != registry.prefix);
        let longer = |other: &ConfiguredRegistry| other.prefix.len() > registry.prefix.len();
        let place = self.registries.iter().take_while(|other| longer(other)).count();
        self.registries.insert(place, registry);
    }

    /// The packages in whose place the workspace uses `source` where `id` is required: a rule of the user's about them holds for
    /// it, too. What the user's own file leads elsewhere is not among them.
    pub fn stood_for(&self, id: &PackageId, source: &PackageId) -> Vec<PackageId> {
        let mut all = Vec::new();
        if id != source && self.overridden_here.contains(id) {
            all.push(id.clone());
        }
        let named = all.clone().into_iter().chain([source.clone()]);
        let others = named.flat_map(|id| {
            let other = |alias: &Alias| {
                let rest = id.as_str().strip_prefix(&*alias.to)?;
                PackageId::parse(&[&*alias.from, rest].concat()).ok()
            };
            self.aliases_here.iter().filter_map(other).collect::<Vec<_>>()
        });
        let others: Vec<PackageId> = others.collect();
        all.extend(others);
        all
    }

    /// What the workspace's own references leave out.
    pub fn defaults(&self) -> Defaults {
        Defaults { base: self.base.clone(), namespace: None, aliases: self.aliases.clone() }
    }

    /// What references in the manifest of a package leave out: its base, and for a name of one segment its
    /// namespace.
    pub fn defaults_in(&self, id: &PackageId) -> Defaults {
        let (base, namespace) = (id.base(), id.name().namespace());
        Defaults { base, namespace, aliases: self.aliases.clone() }
    }
}

choice! {
    /// How packs are created from the store.
    #[derive(Default)]
    pub enum Link {
        /// By the cheapest way that the file system has.
        #[default]
        Auto = "auto",
        /// Copy on write.
        Clone = "clone",
        /// Hard links.
        Hardlink = "hardlink",
        /// Copies.
        Copy = "copy",
        /// One symbolic link to the store for a whole pack.
        Symlink = "symlink",
    }
}

/// Versions that are never picked.
#[derive(Debug, Clone, PartialEq)]
pub struct ExclusionSetting {
    /// The package.
    pub id: PackageId,
    /// The versions; `None` for all of them.
    pub versions: Option<VersionSpec>,
}

/// What is changed in the versions of a package before they are installed.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchFile {
    /// The key, as it is written.
    pub key: String,
    /// The package.
    pub id: PackageId,
    /// The versions: a pin, a range or a commit; `None` for all of them.
    pub versions: Option<VersionSpec>,
    /// The file with the patch, relative to the workspace's root.
    pub file: InnerPath,
}

/// The part of names that the workspace's own folders leave out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// The only base that it applies to, if one was written.
    pub base: Option<Base>,
    /// The leading segments.
    pub name: Name,
}

impl Namespace {
    /// The place of a package in a folder named without its base, and without the namespace of the workspace.
    pub fn unprefixed<'i>(own: Option<&Self>, id: &'i PackageId) -> &'i str {
        let name = id.name_str();
        let applies = |own: &&Self| own.base.as_ref().is_none_or(|base| *base == id.base());
        let rest = own.filter(applies).and_then(|own| name.strip_prefix(own.name.as_str()));
        match rest {
            Some("") => "",
            Some(rest) => rest.strip_prefix('/').unwrap_or(name),
            None => name,
        }
    }
}

/// The key of the runtime that has capabilities, not a fact.
const PROVIDES: &str = "provides";

/// What a file states of a package.
#[derive(Debug)]
pub(super) struct StatedPackage {
    package: Reference,
    provides: Option<Vec<String>>,
    replaces: Option<Vec<Reference>>,
}

/// What all packages provide and replace, as files state it; of two files that name a package, the later counts.
pub(super) fn joined(
    files: [(Vec<StatedPackage>, &Defaults); 2],
) -> (BTreeMap<PackageId, Vec<String>>, BTreeMap<PackageId, BTreeSet<PackageId>>) {
    let (mut provided, mut replaced) = (BTreeMap::new(), BTreeMap::new());
    for (all, defaults) in files {
        for StatedPackage { package, provides, replaces } in all {
            let id = package.id(defaults);
            provided.extend(provides.map(|provides| (id.clone(), provides)));
            let ids = |old: Vec<Reference>| old.iter().map(|old| old.id(defaults)).collect();
            replaced.extend(replaces.map(|old| (id, ids(old))));
        }
    }
    (provided, replaced)
}

/// Reads what is stated of packages.
pub(super) fn packages(table: Table<'_>) -> Result<Vec<StatedPackage>, SourceError> {
    table.entries(File::packages, |(key, value)| {
        let package = key.parse(unversioned)?;
        let table = value.table(PackageTable::KEYS)?;
        let provides = table.get(PackageTable::provides).map(capabilities).transpose()?;
        let replaces = table.get(PackageTable::replaces).map(names).transpose()?;
        Ok(StatedPackage { package, provides, replaces })
    })
}

/// The rules about licences in one file: the allowed ones, and packages that are allowed all the same.
pub(super) type StatedLicenses = (Vec<spdx::Licensee>, Vec<(Reference, String)>);

/// The packages that the rules about licences allow all the same.
pub(super) fn licenses_except(value: Value<'_>) -> Result<Option<Value<'_>>, SourceError> {
    Ok(value.table(LicensesTable::KEYS)?.get(LicensesTable::except))
}

/// Reads the rules about licences.
pub(super) fn licenses(value: Value<'_>) -> Result<StatedLicenses, SourceError> {
    let table = value.table(LicensesTable::KEYS)?;
    let allow = table.get(LicensesTable::allow).map(Value::list).transpose()?;
    let allow = allow.into_iter().flatten().map(|one| one.text()?.parse(license));
    let allow = allow.collect::<Result<_, _>>()?;
    let except = table.entries(LicensesTable::except, |(key, value)| {
        Ok((key.parse(unversioned)?, value.text()?.as_str().to_owned()))
    })?;
    Ok((allow, except))
}

/// A licence as SPDX names it.
fn license(text: &str) -> Result<spdx::Licensee, TextProblem> {
    spdx::Licensee::parse(text).map_err(|_| {
        let near = spdx::imprecise_license_id(text).filter(|(_, length)| *length == text.len());
        let near = near.map(|(id, _)| format!(": is `{}` meant?", id.name)).unwrap_or_default();
        TextProblem::new(format!("`{text}` is not the name of a licence of SPDX{near}"))
    })
}

fn names(value: Value<'_>) -> Result<Vec<Reference>, SourceError> {
    value.list()?.map(|one| one.text()?.parse(unversioned)).collect()
}

fn capabilities(value: Value<'_>) -> Result<Vec<String>, SourceError> {
    let read = |one: Value<'_>| Ok(one.text()?.parse(Capability::parse)?.to_string());
    value.list()?.map(read).collect()
}

/// Reads the facts of the runtime.
pub(super) fn runtime(table: Table<'_>) -> Result<BTreeMap<String, String>, SourceError> {
    let fact = |(key, value): (Text<'_>, Value<'_>)| {
        let word = match key.as_str() {
            PROVIDES => None,
            _ => Some(value.word()?.as_str().to_owned()),
        };
        Ok(word.map(|word| (key.as_str().to_owned(), word)))
    };
    let facts: Vec<_> = table.entries(File::runtime, fact)?;
    Ok(facts.into_iter().flatten().collect())
}

/// Reads the capabilities that the runtime has, if the file says so.
pub(super) fn runtime_provides(table: Table<'_>) -> Result<Option<Vec<String>>, SourceError> {
    let read = |(key, value): (Text<'_>, Value<'_>)| match key.as_str() {
        PROVIDES => capabilities(value).map(Some),
        _ => Ok(None),
    };
    let all: Vec<_> = table.entries(File::runtime, read)?;
    Ok(all.into_iter().flatten().next())
}

/// The latest allowed time of publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cutoff {
    /// This many seconds ago.
    Age(i64),
    /// At a moment, in seconds since 1970.
    Moment(i64),
}

impl Cutoff {
    /// Reads an age (`3 days`, `2 weeks`, `12h`) or a date (`2026-11-01`, `2026-11-01T12:00:00Z`; a
    /// date alone is its beginning in UTC).
    pub fn parse(text: &str) -> Result<Self, TextProblem> {
        let help = "write an age such as `3 days`, or a date such as `2026-11-01`";
        let text = text.trim();
        if text == "0" {
            return Ok(Self::Age(0));
        }
        if let Ok(moment) = text.parse::<Timestamp>() {
            return Ok(Self::Moment(moment.as_second()));
        }
        if let Ok(date) = text.parse::<Date>() {
            let start = date.to_zoned(TimeZone::UTC);
            let start = start.map_err(|_| TextProblem::new(format!("`{text}` is out of range")))?;
            return Ok(Self::Moment(start.timestamp().as_second()));
        }
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
        if is_number {
            return Err(TextProblem::new(format!("`{text}` has no unit"))
                .help(format!("write `{text} days`")));
        }
        let span: Span = text.parse().map_err(|_| {
            TextProblem::new(format!("`{text}` is neither an age nor a date")).help(help)
        })?;
        let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| {
            TextProblem::new("months and years differ in length").help("write it in days")
        })?;
        if duration.is_negative() {
            return Err(TextProblem::new("an age cannot be negative").help(help));
        }
        Ok(Self::Age(duration.as_secs()))
    }

    /// Reads an age alone, such as `10 minutes` or `0`, in seconds.
    pub fn parse_age(text: &str) -> Result<i64, TextProblem> {
        let help = "write an age such as `10 minutes`";
        match Self::parse(text) {
            Ok(Self::Age(seconds)) => Ok(seconds),
            Ok(Self::Moment(_)) => {
                Err(TextProblem::new(format!("`{text}` is a date, not an age")).help(help))
            }
            Err(_) => Err(TextProblem::new(format!("`{text}` is not an age")).help(help)),
        }
    }

    /// The time, in seconds since 1970, if it is now `now`.
    pub fn cutoff_time(self, now: i64) -> i64 {
        match self {
            Self::Age(seconds) => now.saturating_sub(seconds),
            Self::Moment(moment) => moment,
        }
    }
}

/// Prints an age in its largest whole units, and a moment as RFC 3339.
impl fmt::Display for Cutoff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Moment(moment) => match Timestamp::from_second(moment) {
                Ok(moment) => fmt::Display::fmt(&moment, formatter),
                Err(_) => write!(formatter, "{moment}"),
            },
            Self::Age(seconds) => {
                let units = [("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)];
                let (unit, length) = units
                    .into_iter()
                    .find(|(_, length)| seconds % length == 0 && seconds >= *length)
                    .unwrap_or(("second", 1));
                let count = seconds / length;
                write!(formatter, "{count} {unit}{}", if count == 1 { "" } else { "s" })
            }
        }
    }
}

/// The feeds and the ignores of both files, the user's first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdvisorySettings {
    /// Where advisories come from.
    pub feeds: Vec<Feed>,
    /// Which of them do not count.
    pub ignores: Vec<Ignore>,
}

/// Where advisories come from.
#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
    /// The place.
    pub place: FeedPlace,
    /// Whose file names it.
    pub named_by: NamedBy,
}

/// The place of advisories.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedPlace {
    /// The hub of each package.
    Hub,
    /// A folder with files of OSV.
    Folder(TrustFile),
    /// A file on a web server.
    Url(SafeUrl),
}

/// An advisory that does not count until a day is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Ignore {
    /// The id of the finding.
    pub id: String,
    /// The last day.
    pub until: Date,
    /// Why.
    pub why: String,
    /// Whose file says so.
    pub named_by: NamedBy,
}

impl Ignore {
    /// Whether its last day is over, in UTC, if it is now `now`.
    pub fn is_over(&self, now: i64) -> bool {
        let now = Timestamp::from_second(now).unwrap_or(Timestamp::MAX);
        now.to_zoned(TimeZone::UTC).date() > self.until
    }
}

impl AdvisorySettings {
    /// Whether a feed is named that may have advisories.
    pub fn has_any(&self) -> bool {
        self.feeds.iter().any(|feed| feed.place != FeedPlace::Hub)
    }

    /// Both files joined: this one, the workspace's, and the user's.
    pub(super) fn over(self, below: Self) -> Self {
        let mut joined = below;
        for feed in self.feeds {
            // What both name is the user's.
            if !joined.feeds.iter().any(|known| known.place == feed.place) {
                joined.feeds.push(feed);
            }
        }
        joined.ignores.extend(self.ignores);
        joined
    }
}

/// Reads what one file says, whose paths are relative to `folder`.
pub(super) fn read(
    table: Table<'_>,
    named_by: NamedBy,
    folder: &Path,
) -> Result<AdvisorySettings, SourceError> {
    let mut feeds = Vec::new();
    if let Some(list) = table.get(File::advisories) {
        for value in list.list()? {
            feeds.push(Feed { place: place(&value.text()?, named_by, folder)?, named_by });
        }
    }
    let mut ignores = Vec::new();
    if let Some(audit) = table.get(File::audit) {
        ignores = audit.table(AuditTable::KEYS)?.entries(AuditTable::ignore, |(id, value)| {
            let (until, why) = value.text()?.parse(until)?;
            Ok(Ignore { id: id.as_str().to_owned(), until, why, named_by })
        })?;
    }
    Ok(AdvisorySettings { feeds, ignores })
}

fn place(text: &Text<'_>, named_by: NamedBy, folder: &Path) -> Result<FeedPlace, SourceError> {
    let written = text.as_str();
    if written == "hub" {
        return Ok(FeedPlace::Hub);
    }
    if written.contains("://") {
        return text.parse(web_place).map(FeedPlace::Url);
    }
    if named_by == NamedBy::User {
        let path = crate::env::absolute(folder, Path::new(written));
        return Ok(FeedPlace::Folder(TrustFile::OfUser(path)));
    }
    let path = written.strip_prefix("./").unwrap_or(written).trim_end_matches('/');
    let inner = InnerPath::parse(path).map_err(|error| {
        let message = format!("this is not a folder below the workspace's root: {error}");
        text.error(message).help("write `hub`, a folder such as `./advisories`, or a URL")
    })?;
    Ok(FeedPlace::Folder(TrustFile::InWorkspace(inner)))
}

/// A file on a web server, of a kind that can be read.
fn web_place(text: &str) -> Result<SafeUrl, TextProblem> {
    let help = "feeds are at https://, and end with `.jsonl`, `.jsonl.gz` or `.zip`";
    let problem = |message: &str| TextProblem::new(message).help(help);
    let url = SafeUrl::parse(text).map_err(|error| problem(&error.to_string()))?;
    match url.scheme() {
        "https" => {}
        "http" if url.is_loopback() => {}
        _ => return Err(problem("advisories come by https")),
    }
    let path = url.as_url().path();
    match [".jsonl", ".jsonl.gz", ".zip"].iter().any(|ending| path.ends_with(ending)) {
        true => Ok(url),
        false => Err(problem("the ending of this URL does not say how its advisories are written")),
    }
}

/// The last day of an ignore, and its reason: `until 2026-12-31, we do not use that part`.
fn until(text: &str) -> Result<(Date, String), TextProblem> {
    let help = "write a day and a reason, such as `until 2026-12-31, we do not use that part`";
    let problem = |message: &str| TextProblem::new(message).help(help);
    let rest = text.trim().strip_prefix("until ");
    let rest = rest.ok_or_else(|| problem("this does not say until when it counts"))?;
    let (day, why) = rest.split_once(',').unwrap_or((rest, ""));
    let day = day.trim();
    let date = day.parse().map_err(|_| problem(&format!("`{day}` is not a day")))?;
    match why.trim() {
        "" => Err(problem("this gives no reason")),
        why => Ok((date, why.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<Cutoff, &str>) {
        let parsed = Cutoff::parse(text).map_err(|problem| problem.message);
        assert_eq!(
            parsed.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|e| *e),
            "{text}"
        );
    }

    #[test]
    fn ages_and_dates_are_read() {
        check("0", Ok(Cutoff::Age(0)));
        check("3 days", Ok(Cutoff::Age(259_200)));
        check("1 day", Ok(Cutoff::Age(86_400)));
        check("2 weeks", Ok(Cutoff::Age(1_209_600)));
        check("36h", Ok(Cutoff::Age(129_600)));
        check("1d 12h", Ok(Cutoff::Age(129_600)));
        check("90 minutes", Ok(Cutoff::Age(5_400)));
        check("P3D", Ok(Cutoff::Age(259_200)));
        check("2026-11-01", Ok(Cutoff::Moment(1_793_491_200)));
        check("2026-11-01T00:00:01Z", Ok(Cutoff::Moment(1_793_491_201)));
        check("2026-11-01T02:00:00+02:00", Ok(Cutoff::Moment(1_793_491_200)));
        check("3", Err("`3` has no unit"));
        check("soon", Err("`soon` is neither an age nor a date"));
        check("", Err("`` is neither an age nor a date"));
        check("1 month", Err("months and years differ in length"));
        check("-3 days", Err("an age cannot be negative"));
    }

    #[test]
    fn moments_are_measured_from_now() {
        assert_eq!(Cutoff::Age(60).cutoff_time(100), 40);
        assert_eq!(Cutoff::Moment(60).cutoff_time(100), 60);
        assert_eq!(Cutoff::Age(259_200).to_string(), "3 days");
        assert_eq!(Cutoff::Age(5_400).to_string(), "90 minutes");
        assert_eq!(Cutoff::Moment(0).to_string(), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn an_ignore_has_a_last_day_and_a_reason() {
        let read = |text: &str| until(text).map_err(|problem| problem.message);
        let day: Date = "2026-12-31".parse().expect("is a day");
        assert_eq!(
            read("until 2026-12-31, not used, here"),
            Ok((day, "not used, here".to_owned()))
        );
        for (text, message) in [
            ("2026-12-31, not used", "this does not say until when it counts"),
            ("until soon, not used", "`soon` is not a day"),
            ("until 2026-12-31", "this gives no reason"),
            ("until 2026-12-31, ", "this gives no reason"),
        ] {
            assert_eq!(read(text), Err(message.to_owned()), "{text}");
        }
        let ignore =
            |named_by| Ignore { id: "A".to_owned(), until: day, why: String::new(), named_by };
        let ignore = ignore(NamedBy::User);
        let last: Timestamp = "2026-12-31T23:59:59Z".parse().expect("is a time");
        assert!(!ignore.is_over(last.as_second()) && ignore.is_over(last.as_second() + 1));
    }

    #[test]
    fn feeds_on_web_servers_come_by_https_and_say_what_they_are() {
        for url in [
            "https://a.example/x/all.zip",
            "https://a.example/x.jsonl.gz?v=1",
            "http://127.0.0.1:80/x.jsonl",
        ] {
            assert!(web_place(url).is_ok(), "{url}");
        }
        for url in
            ["http://a.example/all.zip", "file:///srv/all.zip", "https://a.example/", "https://"]
        {
            assert!(web_place(url).is_err(), "{url}");
        }
    }
}
