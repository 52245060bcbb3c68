//! A catalog: all of its documents, then the lines of each package.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use mu_manifest::reference::Version;
use mu_provider::{Release, Yanked, json_lines};

use super::NAME;
use super::document::{self, DOCUMENT, list, text, texts};
use super::listed::{Beside, Bundle, listed_bundle};
use super::range::{BundleVersions, Channel, Entry, range, upgrades};
use crate::format::{check_name_segment, once};
use crate::node::{Fault, FormatError, Node};
use crate::shape::{self, Unknown, Values, grouped};

/// What names are of, in messages.
const OPERATOR: &str = "an operator";

/// The documents of a catalog, as far as they were read.
#[derive(Debug, Default)]
pub struct CatalogDocuments {
    packages: BTreeMap<String, Package>,
    /// Whether any document was one of a catalog.
    is_one: bool,
    /// The first documents that cannot be read.
    broken: Vec<FormatError>,
    /// The first documents that belong to no package.
    passed: Vec<String>,
    /// How many more documents cannot be read, or belong to none.
    unnamed: usize,
    /// How many values it may still have.
    values: Values,
    /// How many it has of each of [`MOST`].
    counts: [usize; MOST.len()],
}

/// The most that a catalog may have of what it takes memory to know. The catalogs of whole distributions have a tenth of it.
const MOST: [(usize, &str); 4] = [
    (100_000, "packages and bundles"),
    (1_000_000, "entries of channels and bundles that they skip"),
    (1_000_000, "kinds that its bundles provide"),
    (10_000, "documents that cannot be read"),
];

/// The schemas of the documents that are read.
const SCHEMAS: [&str; 4] = ["olm.package", "olm.channel", BUNDLE, "olm.deprecations"];

/// The schema of bundles.
const BUNDLE: &str = "olm.bundle";

/// The places in [`MOST`].
const BUNDLES: usize = 0;
const ENTRIES: usize = 1;
const PROVIDED: usize = 2;
const BROKEN: usize = 3;

/// That a catalog has too much of something, so that mu does not read it: `more than 16,000,000 values`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Excess(String);

/// How many documents that cannot be read are named.
const MOST_NAMED: usize = 20;

/// How many of the notes about a catalog are kept.
const MOST_NOTES: usize = 1_000;

/// What a catalog has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// The lines of each package, each a [`Release`] as JSON, in the order of the catalog. `locator` is the bundle's name.
    pub packages: BTreeMap<String, Vec<u8>>,
    /// The packages that provide each kind (`GROUP/VERSION/KIND`): first those whose newest version does.
    pub kinds: BTreeMap<String, Vec<String>>,
    /// What was left out of it, in words.
    pub notes: Vec<String>,
    /// Which documents cannot be read, in words.
    pub broken: Vec<String>,
}

#[derive(Debug, Default)]
struct Package {
    default_channel: Option<String>,
    channels: Vec<Channel>,
    bundles: Vec<Bundle>,
    /// The texts about the package itself (under an empty name), channels, and bundles, by their schemas.
    deprecated: BTreeMap<(String, String), String>,
    /// The names of bundles that say no version.
    nameless: Vec<String>,
    /// The keys of its documents that no catalog has, except those of bundles.
    unknown: Vec<String>,
    /// Why nothing of it can be used.
    broken: Option<String>,
}

impl CatalogDocuments {
    /// Reads `text`, the content of `file`, which is a part of the catalog. `beside` reads the files that it refers to, as seen
    /// from its folder.
    ///
    /// A document that cannot be read takes its package out, and no other one.
    ///
    /// # Errors
    ///
    /// When the catalog has too much of something.
    pub fn add(&mut self, file: &str, text: &str, beside: &mut Beside<'_>) -> Result<(), Excess> {
        // The first of each package; none of a hostile catalog's many is kept.
        let mut broken: BTreeMap<Option<String>, Fault> = BTreeMap::new();
        let mut packages = BTreeSet::new();
        let mut values = self.values.clone();
        let mut take = |value: Node<'_>, unknown: Unknown| {
            packages.extend(self.document(&value, unknown, file, beside));
        };
        let mut count = 0;
        document::each(text, &DOCUMENT, &mut values, &mut take, &mut |document, fault| {
            count += 1;
            if count > MOST[BROKEN].0 {
                return;
            }
            let name =
                document::named(document).filter(|name| check_name_segment(name, OPERATOR).is_ok());
            broken.entry(name.map(str::to_owned)).or_insert(fault);
        });
        self.unnamed += count;
        self.counts[BROKEN] += count;
        self.values = values;
        if let Some(excess) = self.excess() {
            return Err(excess);
        }
        // Usually, a file is about one package.
        let only = packages.pop_first().filter(|_| packages.is_empty());
        for (package, fault) in broken {
            let mut reason = format!("`{file}`: {}", fault.reason);
            if self.broken.len() < MOST_NAMED {
                self.unnamed -= 1;
                let error = FormatError::new(file, text, fault);
                reason = in_words(&error);
                self.broken.push(error);
            }
            if let Some(package) = package.or_else(|| only.clone()) {
                self.package(&package).broken.get_or_insert(reason);
            }
        }
        Ok(())
    }

    /// What there is too much of.
    fn excess(&self) -> Option<Excess> {
        let mut counted = self.counts.iter().zip(MOST);
        let over = counted.find(|(count, (most, _))| **count > *most);
        let over = over.map(|(_, (most, what))| format!("more than {} {what}", grouped(most)));
        self.values.exceeded_limit().or(over).map(Excess)
    }

    /// The first document that cannot be read.
    pub fn first_broken(&self) -> Option<&FormatError> {
        self.broken.first()
    }

    /// Whether anything that was read is of a catalog.
    pub fn has_catalog_documents(&self) -> bool {
        self.is_one
    }

    /// Adds a document; returns the package that it is about.
    fn document(
        &mut self,
        value: &Node<'_>,
        unknown: Unknown,
        file: &str,
        beside: &mut Beside<'_>,
    ) -> Option<String> {
        if self.excess().is_some() {
            return None;
        }
        let schema = text(value, "schema")?;
        let is_own = schema.starts_with("olm.");
        self.is_one |= is_own;
        let key = if schema == "olm.package" { "name" } else { "package" };
        let written = text(value, key);
        // Tools have schemas of their own, which say nothing here.
        if !SCHEMAS.contains(&schema.as_str()) {
            let what = || format!("a document of the schema `{schema}`, which it does not know");
            let of = written.filter(|name| check_name_segment(name, OPERATOR).is_ok());
            match of.filter(|_| is_own) {
                Some(name) => self.note(&name, schema.clone()),
                None if is_own => self.pass_over(file, what()),
                None => {}
            }
            return None;
        }
        let wrong = match &written {
            None => Some(format!("a document of the schema `{schema}` without `{key}`")),
            Some(name) => check_name_segment(name, OPERATOR).err(),
        };
        if let Some(reason) = wrong {
            self.pass_over(file, reason);
            return None;
        }
        let name = written?;
        // A key that is wrong takes out its bundle; in all other documents, the package.
        if schema == BUNDLE {
            self.counts[BUNDLES] += 1;
            match listed_bundle(value, unknown, &name, beside) {
                Some(bundle) => {
                    self.counts[PROVIDED] += bundle.release.provides.len();
                    self.package(&name).bundles.push(bundle);
                }
                None => {
                    let bundle = text(value, "name").unwrap_or_default();
                    self.package(&name).nameless.push(bundle);
                }
            }
            return Some(name);
        }
        let package = self.package(&name);
        match unknown.check(false) {
            Ok(unknown) => {
                package.unknown.extend(unknown);
                shape::told_once(&mut package.unknown);
            }
            Err(fault) => {
                package.broken.get_or_insert(format!("`{file}`: {}", fault.reason));
            }
        }
        match schema.as_str() {
            "olm.package" => self.package(&name).default_channel = text(value, "defaultChannel"),
            "olm.channel" => match text(value, "name") {
                Some(channel) => {
                    let listed = list(value, "entries");
                    let entries: Vec<Entry> = listed.iter().filter_map(entry).collect();
                    if entries.len() < listed.len() {
                        self.note(
                            &name,
                            format!("an entry of the channel `{channel}` without `name`"),
                        );
                    }
                    self.counts[ENTRIES] += 1 + entries.len();
                    self.counts[ENTRIES] +=
                        entries.iter().map(|one| one.skips.len()).sum::<usize>();
                    self.package(&name).channels.push(Channel { name: channel, entries });
                }
                None => self.note(&name, "a channel without `name`".to_owned()),
            },
            "olm.deprecations" => {
                let entries = list(value, "entries");
                self.counts[ENTRIES] += entries.len();
                let found: Vec<_> = entries.iter().filter_map(deprecation).collect();
                if found.len() < entries.len() {
                    self.note(&name, "an entry of `olm.deprecations` about nothing".to_owned());
                }
                self.package(&name).deprecated.extend(found);
            }
            _ => {}
        }
        Some(name)
    }

    /// Notes a part of a package that is not read.
    fn note(&mut self, package: &str, part: String) {
        let unknown = &mut self.package(package).unknown;
        unknown.push(part);
        shape::told_once(unknown);
    }

    /// Notes a document that belongs to no package, and that is not read.
    fn pass_over(&mut self, file: &str, reason: String) {
        match self.passed.len() < MOST_NAMED {
            true => self.passed.push(format!("`{file}`: {reason}")),
            false => self.unnamed += 1,
        }
    }

    fn package(&mut self, name: &str) -> &mut Package {
        if !self.packages.contains_key(name) {
            self.counts[BUNDLES] += 1;
        }
        self.packages.entry(name.to_owned()).or_default()
    }

    /// The lines of all packages.
    pub fn finish(self) -> Index {
        let mut index = Index::default();
        index.broken.extend(self.broken.iter().map(in_words).chain(self.passed));
        if self.unnamed > 0 {
            index.broken.push(format!("{} more documents", self.unnamed));
        }
        // By kind: the packages whose newest version provides it, and those that only did so.
        let mut kinds: BTreeMap<String, [BTreeSet<String>; 2]> = BTreeMap::new();
        for (name, package) in self.packages {
            let left = MOST_NOTES.saturating_sub(index.notes.len());
            index.notes.extend(package.unread_ranges().take(left));
            let releases = package.releases(&name);
            if releases.is_empty() {
                continue;
            }
            let newest = releases.iter().filter(|release| release.unusable.is_none());
            let newest = newest.max_by_key(|release| order(release));
            let newest: HashSet<&String> =
                newest.iter().flat_map(|release| &release.provides).collect();
            for kind in releases.iter().flat_map(|release| &release.provides) {
                let [now, before] = kinds.entry(kind.clone()).or_default();
                let is_now = newest.contains(kind);
                if is_now { now } else { before }.insert(name.clone());
            }
            let lines = index.packages.entry(name).or_default();
            lines.extend(json_lines(releases));
        }
        let ranked = kinds.into_iter().map(|(kind, [now, before])| {
            let all = now.iter().chain(before.difference(&now)).cloned().collect();
            (kind, all)
        });
        index.kinds = ranked.collect();
        index
    }
}

impl Package {
    /// The versions of the package `name`, in the order of the catalog.
    fn releases(&self, name: &str) -> Vec<Release> {
        let versions: BundleVersions = (self.bundles.iter())
            .map(|bundle| (bundle.name.clone(), bundle.release.full_version()))
            .collect();
        let mut channels: Vec<&Channel> = self.channels.iter().collect();
        // The default one first, the others in the order of the catalog.
        channels.sort_by_key(|channel| Some(&channel.name) != self.default_channel.as_ref());
        let mut entries: BTreeMap<&str, Vec<(&str, &Entry)>> = BTreeMap::new();
        for channel in &channels {
            for entry in &channel.entries {
                entries.entry(&entry.name).or_default().push((&channel.name, entry));
            }
        }
        let mut by_version: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (name, version) in &versions {
            by_version.entry(version.clone()).or_default().push(name);
        }
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut releases = Vec::new();
        for bundle in &self.bundles {
            let version = bundle.release.full_version();
            if !seen.insert(version.clone()) {
                continue;
            }
            let mut release = bundle.release.clone();
            let entries = entries.get(bundle.name.as_str()).map(Vec::as_slice).unwrap_or_default();
            release.channels = entries.iter().map(|(channel, _)| (*channel).to_owned()).collect();
            once(&mut release.channels, String::as_str);
            release.upgrade = upgrades(entries, &versions);
            if let Some(text) = self.deprecation(bundle, &release.channels) {
                release.deprecated = Yanked::Reason(text);
            }
            let same = by_version.get(&version).map(Vec::as_slice).unwrap_or_default();
            if release.unusable.is_none() && same.len() > 1 {
                let names = same.join("` and `");
                release.unusable = Some(format!("the catalog has it twice: as `{names}`"));
            }
            if release.unusable.is_none() && release.channels.is_empty() {
                release.unusable = Some(format!("no channel of the catalog has `{}`", bundle.name));
            }
            release.unknown.extend_from_slice(&self.unknown);
            shape::told_once(&mut release.unknown);
            if let Some(reason) = &self.broken {
                release.unusable = Some(format!("a document about it cannot be read: {reason}"));
            }
            releases.push(release);
        }
        let nameless = self.nameless.iter().map(|bundle| match bundle.as_str() {
            "" => "a bundle of it has no `name`".to_owned(),
            bundle => format!("nothing says the version of `{bundle}`"),
        });
        // If nothing else is there of it, this is why.
        let broken = self.broken.iter().filter(|_| self.bundles.is_empty());
        let broken = broken.map(|reason| format!("a document about it cannot be read: {reason}"));
        releases.extend(nameless.chain(broken).map(|reason| Release {
            name: name.to_owned(),
            format: Some(NAME.to_owned()),
            unusable: Some(reason),
            ..Release::default()
        }));
        let newest = (0..releases.len()).max_by_key(|at| releases.get(*at).map(order));
        if let Some(newest) = newest.and_then(|at| releases.get_mut(at)) {
            newest.default_channel.clone_from(&self.default_channel);
        }
        releases
    }

    /// Says which ranges of its channels are left out, because they cannot be read.
    fn unread_ranges(&self) -> impl Iterator<Item = String> {
        let entries = self
            .channels
            .iter()
            .flat_map(|channel| channel.entries.iter().map(move |entry| (&channel.name, entry)));
        entries.filter_map(|(channel, entry)| {
            let text = entry.skip_range.as_ref()?;
            let reason = range(text).err()?;
            let name = &entry.name;
            Some(format!(
                "the `skipRange` of `{name}` in the channel `{channel}` is left out: the range `{text}` {reason}"
            ))
        })
    }

    /// Why a bundle is deprecated: what is said of itself, of all of its channels, and of the package.
    fn deprecation(&self, bundle: &Bundle, channels: &[String]) -> Option<String> {
        let of = |schema: &str, name: &str| {
            let text = self.deprecated.get(&(schema.to_owned(), name.to_owned()));
            text.map(String::as_str)
        };
        let of_channels = channels.iter().map(|channel| of("olm.channel", channel));
        let of_channels: Option<Vec<&str>> = of_channels.collect();
        let own = of("olm.bundle", &bundle.name);
        let said = own.into_iter().chain(of_channels.into_iter().flatten());
        let mut said: Vec<&str> = said.chain(of("olm.package", "")).collect();
        once(&mut said, |text| text);
        (!said.is_empty()).then(|| said.join("; "))
    }
}

/// The release to choose if nothing else is required, by these in turn: in the default channel, not deprecated, released, the newest.
pub fn best_release(releases: &[Release]) -> Option<&Release> {
    let default = releases.iter().find_map(|release| release.default_channel.as_ref());
    let usable = releases.iter().filter(|release| release.unusable.is_none());
    usable.max_by_key(|release| {
        let is_default = default.is_none_or(|default| release.channels.contains(default));
        let version = order(release);
        let is_released = version.as_ref().is_some_and(|version| !version.is_prerelease());
        (is_default, release.deprecated.is_no(), is_released, version)
    })
}

/// The place of a release among others; what has no version comes first.
fn order(release: &Release) -> Option<Version> {
    match (release.versioning.as_deref(), &release.app_version) {
        (Some(_), Some(app)) => Version::composite(app, &release.version).ok(),
        _ => Version::parse(&release.version).ok(),
    }
}

fn in_words(error: &FormatError) -> String {
    let FormatError { file, line, column, reason, .. } = error;
    format!("`{file}`, line {line}, column {column}: {reason}")
}

fn entry(value: &Node<'_>) -> Option<Entry> {
    Some(Entry {
        name: text(value, "name")?,
        replaces: text(value, "replaces"),
        skips: texts(value, "skips"),
        skip_range: text(value, "skipRange"),
    })
}

fn deprecation(value: &Node<'_>) -> Option<((String, String), String)> {
    let reference = value.last("reference");
    let schema = text(reference, "schema")?;
    let is_package = schema == "olm.package";
    let name = if is_package { String::new() } else { text(reference, "name")? };
    Some(((schema, name), text(value, "message").unwrap_or_default()))
}
