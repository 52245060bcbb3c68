//! The format of scenarios, and the worlds that they describe.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use mu_manifest::reference::{Defaults, VersionSpec};
use mu_provider::Dependency;
use serde::Deserialize;

use super::world::{Memory, Package, composite, id, reference, version};
use crate::releases::{ChosenFacts, Details, Entry, Upgrade};
use crate::universe::{Requirement, Untagged};
use crate::{
    CandidateOfLock, Exclusion, InstalledVersion, Local, Majors, Override, OwnCapabilities,
    RootRequirer, SelectionRequest, Settings, Update,
};

/// One case.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) case: String,
    #[serde(default)]
    packages: BTreeMap<String, BTreeMap<String, Release>>,
    #[serde(default)]
    repositories: BTreeMap<String, Repository>,
    roots: BTreeMap<String, Vec<Dependency>>,
    #[serde(default)]
    indirect: BTreeMap<String, Vec<Dependency>>,
    #[serde(default)]
    lock: Vec<Lock>,
    #[serde(default)]
    update: Vec<String>,
    #[serde(default)]
    installed: BTreeMap<String, String>,
    #[serde(default)]
    local: BTreeMap<String, String>,
    #[serde(default)]
    capabilities: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    own: Own,
    #[serde(default)]
    replaced: BTreeMap<String, String>,
    #[serde(default)]
    settings: Rules,
    #[serde(default)]
    highest: Option<Vec<String>>,
    #[serde(default)]
    conflict: Option<String>,
    #[serde(default)]
    minimal: Option<Vec<String>>,
    #[serde(default)]
    minimal_conflict: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    minimal_warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Release {
    Needs(Vec<Dependency>),
    Full(Box<FullRelease>),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct FullRelease {
    needs: Vec<Dependency>,
    published: Option<i64>,
    yanked: Option<String>,
    commit: Option<String>,
    app_version: Option<String>,
    api_version: Option<String>,
    mu_version: Option<String>,
    channels: Vec<String>,
    default_channel: Option<String>,
    deprecated: bool,
    tags: Vec<String>,
    constraints: BTreeMap<String, String>,
    composite: bool,
    provides: Vec<String>,
    requires: Vec<String>,
    replaces: Vec<String>,
    conflicts: Vec<String>,
    moved_to: Option<String>,
    upgrade: Upgrades,
}

/// One way to upgrade, or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Upgrades {
    One(Box<UpgradeFrom>),
    More(Vec<UpgradeFrom>),
}

impl Default for Upgrades {
    fn default() -> Self {
        Self::More(Vec::new())
    }
}

/// What packages of the workspace provide and require: capability → names.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Own {
    provides: BTreeMap<String, Vec<String>>,
    requires: BTreeMap<String, Vec<String>>,
    conflicts: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct UpgradeFrom {
    channel: Option<String>,
    replaces: Option<String>,
    skips: Vec<String>,
    skip_range: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Repository {
    versions: BTreeMap<String, Release>,
    commits: BTreeMap<String, Commit>,
    names: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Commit {
    version: Option<String>,
    needs: Vec<Dependency>,
    provides: Vec<String>,
    requires: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    id: String,
    version: Option<String>,
    commit: Option<String>,
    #[serde(rename = "ref")]
    reference: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Rules {
    exclude: Vec<String>,
    overrides: BTreeMap<String, String>,
    replacements: BTreeMap<String, String>,
    many_majors: bool,
    published_before: Option<i64>,
    prereleases: bool,
    runtime: BTreeMap<String, String>,
    mu_version: Option<String>,
}

/// The expected result of a case, or the actual one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) chosen: Option<Vec<String>>,
    pub(super) warnings: Vec<String>,
    pub(super) conflict: Option<String>,
}

impl Expected {
    fn new(chosen: Option<&Vec<String>>, conflict: Option<&String>, warnings: &[String]) -> Self {
        Self {
            chosen: chosen.cloned(),
            warnings: warnings.to_vec(),
            conflict: conflict.map(|text| text.trim_end().to_owned()),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chosen = self.chosen.iter().flatten();
        let warnings = self.warnings.iter();
        let conflict = self.conflict.iter();
        chosen.chain(warnings).chain(conflict).try_for_each(|line| writeln!(formatter, "{line}"))
    }
}

impl Scenario {
    /// What `highest` must answer.
    pub(super) fn highest(&self) -> Expected {
        Expected::new(self.highest.as_ref(), self.conflict.as_ref(), &self.warnings)
    }

    /// What `minimal` must answer.
    pub(super) fn minimal(&self) -> Expected {
        Expected::new(self.minimal.as_ref(), self.minimal_conflict.as_ref(), &self.minimal_warnings)
    }

    pub(super) fn world(&self) -> (Memory, SelectionRequest) {
        let mut memory = Memory::default();
        for (name, versions) in &self.packages {
            memory.add(id(name), Package { versions: releases(versions), ..Package::default() });
        }
        for (name, repository) in &self.repositories {
            let revisions = repository.commits.iter().map(|(commit, revision)| {
                (commit.clone(), (revision.untagged(commit), needs(&revision.needs)))
            });
            let package = Package {
                versions: releases(&repository.versions),
                revisions: revisions.collect(),
                names: repository.names.clone(),
                is_repository: true,
            };
            memory.add(id(name), package);
        }
        for (capability, listed) in &self.capabilities {
            memory.list(capability, listed.iter().map(|name| id(name)).collect());
        }
        let request = SelectionRequest {
            indirect: self.indirect.len(),
            roots: self
                .roots
                .iter()
                .chain(&self.indirect)
                .map(|(by, wanted)| RootRequirer { by: by.clone(), requirements: needs(wanted) })
                .collect(),
            locked: self.lock.iter().map(Lock::locked).collect(),
            update: match self.update.as_slice() {
                [] => Update::Nothing,
                [one] if one == "*" => Update::Everything,
                several => Update::Packages(several.iter().map(|name| id(name)).collect()),
            },
            installed: self
                .installed
                .iter()
                .map(|(name, text)| {
                    let (number, channel) = match text.split_once('@') {
                        Some((number, channel)) => (number, Some(channel.to_owned())),
                        None => (text.as_str(), None),
                    };
                    let version = version(number);
                    (id(name), InstalledVersion { version, channel, is_next_wanted: false })
                })
                .collect(),
            local: self
                .local
                .iter()
                .map(|(name, own)| (id(name), Local { version: Some(version(own)) }))
                .collect(),
            own: self.own.capabilities(),
            replaced: self
                .replaced
                .iter()
                .map(|(name, by)| {
                    let own = self.local.get(by).map(|own| version(own));
                    (id(name), (id(by), Local { version: own }))
                })
                .collect(),
            settings: self.settings.settings(),
        };
        (memory, request)
    }
}

impl Commit {
    fn untagged(&self, commit: &str) -> Untagged {
        let details = Details::from(ChosenFacts {
            provides: self.provides.clone(),
            requires: self.requires.clone(),
            ..ChosenFacts::default()
        });
        Untagged {
            commit: commit.into(),
            version: self.version.as_deref().map(version),
            details: (details != Details::default()).then(|| details.into()),
        }
    }
}

impl Own {
    fn capabilities(&self) -> OwnCapabilities {
        let provides = self
            .provides
            .iter()
            .map(|(capability, by)| (capability.clone(), by.iter().map(|name| id(name)).collect()));
        let requires = self.requires.iter().map(|(capability, by)| {
            (capability.clone(), by.iter().map(|name| (name.clone(), id(name))).collect())
        });
        let conflicts = self
            .conflicts
            .iter()
            .map(|(with, by)| (opponent(with), by.iter().map(|name| id(name)).collect()));
        OwnCapabilities {
            provides: provides.collect(),
            requires: requires.collect(),
            conflicts: conflicts.collect(),
            ..OwnCapabilities::default()
        }
    }
}

/// A package without its base, or a capability.
fn opponent(text: &str) -> String {
    if text.contains("/v1/") { text.to_owned() } else { id(text).to_string() }
}

impl UpgradeFrom {
    fn upgrade(&self) -> Upgrade {
        let range = self.skip_range.as_ref();
        Upgrade {
            channel: self.channel.clone(),
            replaces: self.replaces.as_deref().map(version),
            skips: self.skips.iter().map(|text| version(text)).collect(),
            skip_range: range.map(|range| VersionSpec::parse(range).expect("is a range")),
        }
    }
}

impl Lock {
    fn locked(&self) -> CandidateOfLock {
        CandidateOfLock {
            id: id(&self.id),
            version: self.version.as_deref().map(version),
            commit: self.commit.clone(),
            reference: self.reference.clone(),
            dependencies: self.dependencies.iter().map(|name| id(name)).collect(),
            requested: Vec::new(),
        }
    }
}

impl Rules {
    fn settings(&self) -> Settings {
        let overrides = self.overrides.iter().map(|(from, to)| {
            let to = reference(to);
            (id(from), Override { id: to.id(&Defaults::default()), spec: to.spec() })
        });
        let exclude = self.exclude.iter().map(|text| {
            let reference = reference(text);
            let spec: Option<VersionSpec> = reference.version().cloned();
            Exclusion { id: reference.id(&Defaults::default()), spec }
        });
        Settings {
            exclude: exclude.collect(),
            bundled: Default::default(),
            side_by_side: Default::default(),
            overrides: overrides.collect(),
            stated_replaces: Default::default(),
            replacements: self.replacements.iter().map(|(one, by)| (id(one), id(by))).collect(),
            majors: if self.many_majors { Majors::Many } else { Majors::One },
            published_before: self.published_before,
            prereleases: self.prereleases,
            wanted_prereleases: Default::default(),
            runtime: self.runtime.clone(),
            capabilities: Default::default(),
            mu_version: self.mu_version.as_deref().map(version),
            patience: None,
            base: Defaults::default().base,
        }
    }
}

fn needs(dependencies: &[Dependency]) -> Vec<Requirement> {
    let requirement = |dependency: &Dependency| {
        let reference = reference(dependency.reference());
        let id = reference.id(&Defaults::default());
        let plain = Requirement::new(id, reference.spec());
        match dependency {
            Dependency::Reference(_) => plain,
            Dependency::Detailed(detailed) => Requirement {
                prerelease: detailed.prerelease,
                channel: detailed.channel.clone(),
                app_version: detailed.app_version.clone(),
                ..plain
            },
        }
    };
    dependencies.iter().map(requirement).collect()
}

fn releases(versions: &BTreeMap<String, Release>) -> Vec<(Entry, Vec<Requirement>)> {
    let release = |(number, release): (&String, &Release)| {
        let full = match release {
            Release::Needs(needs) => FullRelease { needs: needs.clone(), ..FullRelease::default() },
            Release::Full(full) => (**full).clone(),
        };
        let details = Details {
            yanked: full.yanked,
            app_version: full.app_version,
            api_version: full.api_version,
            channels: full.channels,
            tags: full.tags,
            facts: ChosenFacts {
                mu_version: full.mu_version,
                constraints: full.constraints,
                provides: full.provides,
                requires: full.requires,
                conflicts: full.conflicts.iter().map(|name| opponent(name)).collect(),
                replaces: full.replaces.iter().map(|name| id(name)).collect(),
            },
            moved_to: full.moved_to.as_deref().map(id),
            default_channel: full.default_channel,
            deprecated: full.deprecated.then(String::new),
            upgrade: match full.upgrade {
                Upgrades::One(one) => vec![one.upgrade()],
                Upgrades::More(all) => all.iter().map(UpgradeFrom::upgrade).collect(),
            },
            ..Details::default()
        };
        let entry = Entry {
            published: full.published,
            commit: full.commit.as_deref().map(Arc::from),
            details: (details != Details::default()).then(|| Arc::new(details)),
            ..Entry::from(if full.composite { composite(number) } else { version(number) })
        };
        (entry, needs(&full.needs))
    };
    versions.iter().map(release).collect()
}

/// A text with names as scenarios have them: all without the default base, even those of one segment.
pub(super) fn without_base(text: &str) -> String {
    const BASE: &str = "hub.mu.com/";
    let mut parts = text.split(BASE);
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // It stays in URLs.
        let base = if short.ends_with("://") { BASE } else { "" };
        short.extend([base, part]);
    }
    short
}
