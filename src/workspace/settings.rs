//! The settings of a workspace, as the rest of mu sees them.
//!
//! Plain data with queries; `read.rs` fills it from the two files.
//!
//! Settings also state facts of the runtime, and what packages do not say of themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use mu_provider::http::TokenHosts;
use mu_provider::{InnerPath, NamedBy};

use super::elsewhere::{OfUser, TrustedBuilds};
use super::schema::{File, PackageTable};
use super::{ConfiguredRegistry, Cutoff};
use crate::manifest::source::{SourceError, Table, Text, Value};
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
    /// The aliases of the workspace alone.
    pub aliases_here: Vec<Alias>,
    /// Programs of provider plugins, by the plugin's name; from the user's own file alone.
    pub plugins: BTreeMap<String, PathBuf>,
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
