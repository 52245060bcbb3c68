//! What each key of an index line is to mu: the one declaration of a package's facts; and the way from a manifest to the line
//! that a hub's index has for it.
//!
//! A locked package is chosen again without its index line. So what selection reads of a chosen version has to be in the lock;
//! what it reads only to choose among several versions is asked of the registry whenever there is a choice. How the lock writes a
//! fact is not here.

use std::collections::BTreeMap;

use mu_provider::{Dependency, Maintainer, Release, Upgrade, Yanked};
use serde_json::{Map, Value};

use super::{Constraint, Manifest, Person, Requirement, Versioning, Versions};

/// What a key of an index line is to mu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// Selection reads it of each version that is chosen; the lock has it under this key.
    Chosen(&'static str),
    /// Selection reads it only to choose among versions. A locked version stays without it, and whoever lets it move asks.
    Among,
    /// It says which content a version has, and where; the lock has it under this key.
    Content(&'static str),
    /// Selection does not read it.
    Told,
}

impl Fact {
    /// Whether selection reads it.
    fn is_read(self) -> bool {
        matches!(self, Self::Chosen(_) | Self::Among)
    }
}

/// Whether a fact of a published version can change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    Fixed,
    Changeable,
}

/// What a line says under a key that manifests have as well.
pub(crate) enum Statement<'line> {
    Text(Option<&'line str>),
    Texts(&'line [String]),
    Named(&'line BTreeMap<String, String>),
    Dependencies(&'line [Dependency]),
    Upgrades(&'line [Upgrade]),
}

impl<'line> From<&'line Option<String>> for Statement<'line> {
    fn from(text: &'line Option<String>) -> Self {
        Self::Text(text.as_deref())
    }
}

impl<'line> From<&'line Vec<String>> for Statement<'line> {
    fn from(texts: &'line Vec<String>) -> Self {
        Self::Texts(texts)
    }
}

impl<'line> From<&'line BTreeMap<String, String>> for Statement<'line> {
    fn from(named: &'line BTreeMap<String, String>) -> Self {
        Self::Named(named)
    }
}

impl<'line> From<&'line Option<Vec<Dependency>>> for Statement<'line> {
    fn from(dependencies: &'line Option<Vec<Dependency>>) -> Self {
        Self::Dependencies(dependencies.as_deref().unwrap_or_default())
    }
}

impl<'line> From<&'line Vec<Upgrade>> for Statement<'line> {
    fn from(upgrades: &'line Vec<Upgrade>) -> Self {
        Self::Upgrades(upgrades)
    }
}

macro_rules! facts {
    (
        agreed: $($agreed_key:literal $agreed:ident: $agreed_fact:expr, $agreed_time:ident;)*
        own: $($own:ident: $own_fact:expr, $own_time:ident;)*
    ) => {
        /// Every key of an index line, by the name of its field, with what it is to mu.
        pub const FACTS: &[(&str, Fact)] = {
            use Fact::{Among, Chosen, Content, Told};
            &[
                $((stringify!($agreed), $agreed_fact),)*
                $((stringify!($own), $own_fact),)*
            ]
        };

        /// A line with only the facts that are wanted.
        fn only(line: &Release, is_wanted: impl Fn(Fact, Time) -> bool) -> Release {
            use Fact::{Among, Chosen, Content, Told};
            // Without `..`, so that a key that is not declared does not compile.
            let Release { $($agreed,)* $($own,)* } = line;
            let mut wanted = Release::default();
            $(if is_wanted($agreed_fact, Time::$agreed_time) {
                wanted.$agreed.clone_from($agreed);
            })*
            $(if is_wanted($own_fact, Time::$own_time) {
                wanted.$own.clone_from($own);
            })*
            wanted
        }

        /// Whether a line and what a manifest makes one say the same, as text, in all that both say.
        pub(crate) fn are_alike(line: &Release, own: &Release) -> bool {
            $(line.$agreed == own.$agreed)&&*
        }

        /// All that a line says and manifests say as well, by key, in the same order for every line.
        pub(crate) fn statements(line: &Release) -> Vec<(&'static str, Statement<'_>)> {
            vec![$(($agreed_key, Statement::from(&line.$agreed))),*]
        }
    };
}

facts! {
    // The manifest in the archive says it as well, and has to agree. Differences are told in this order.
    agreed:
    "dependencies" dependencies: Chosen("dependencies"), Fixed;
    "provides" provides: Chosen("provides"), Fixed;
    "requires" requires: Chosen("requires"), Fixed;
    "replaces" replaces: Chosen("replaces"), Fixed;
    "conflicts" conflicts: Chosen("conflicts"), Fixed;
    "constraints" constraints: Chosen("constraints"), Fixed;
    // The lock has the one that it was chosen from; a requirement of another one is asked about.
    "channels" channels: Chosen("channel"), Fixed;
    "defaultChannel" default_channel: Among, Fixed;
    // Steps lead to a version that something moves to.
    "upgrade" upgrade: Among, Fixed;
    // What this mu cannot read is never chosen, and refused when it is installed.
    "apiVersion" api_version: Among, Fixed;
    "muVersion" mu_version: Chosen("muVersion"), Fixed;
    "appVersion" app_version: Chosen("appVersion"), Fixed;
    "versioning" versioning: Chosen("versioning"), Changeable;
    // Only the line says it.
    own:
    name: Chosen("id"), Changeable;
    // The name in the archive is compared when that is fetched.
    origin: Among, Fixed;
    version: Chosen("version"), Changeable;
    // The lock reads every version leniently.
    versions: Among, Changeable;
    digest: Content("digest"), Fixed;
    archive: Content("archive"), Fixed;
    manifest: Content("manifest"), Changeable;
    size: Told, Changeable;
    // A line is asked for in full before it gets into the lock.
    short: Told, Changeable;
    urls: Content("url"), Changeable;
    // A name that the lock does not have is asked about.
    tags: Among, Changeable;
    // A locked version stays although it is withdrawn.
    yanked: Among, Changeable;
    deprecated: Among, Changeable;
    // What can never be used is never locked.
    unusable: Among, Changeable;
    format: Among, Changeable;
    // The copies inside of a locked package are looked up when they matter.
    bundled: Among, Changeable;
    moved_to: Among, Changeable;
    // A locked version is old enough.
    published: Among, Changeable;
    published_by: Told, Changeable;
    unknown: Told, Changeable;
    description: Told, Changeable;
    keywords: Told, Changeable;
    license: Told, Changeable;
    maintainers: Told, Changeable;
    website: Told, Changeable;
    repository: Told, Changeable;
    // A manifest that requires the package may have to say it.
    kind: Told, Changeable;
    dependency_kinds: Told, Changeable;
    // A warning says it when the version is chosen.
    called: Told, Changeable;
    commit: Content("commit"), Changeable;
    artifact: Content("artifact"), Changeable;
    reference: Told, Changeable;
    locator: Content("locator"), Changeable;
    tip: Among, Changeable;
}

/// The part of a line that must never change, because selection and installing depend on it.
pub fn fixed_part(line: &Release) -> Release {
    only(line, |_, time| time == Time::Fixed)
}

/// A line without what selection does not read.
pub fn read_by_selection(line: &Release) -> Release {
    only(line, |fact, _| fact.is_read())
}

impl Manifest {
    /// The package's index line, as far as the manifest alone knows it. The publisher adds digests, size and
    /// time.
    pub fn to_release(&self) -> Release {
        let versioning =
            (self.versioning != Versioning::Semver).then(|| self.versioning.as_str().to_owned());
        let texts = |items: &[super::Capability]| -> Vec<String> {
            items.iter().map(ToString::to_string).collect()
        };
        Release {
            name: self.name.name().to_string(),
            version: self.written_version.clone().unwrap_or_default(),
            app_version: self.app_version.clone(),
            versioning,
            versions: (self.versions != Versions::Strict)
                .then(|| self.versions.as_str().to_owned()),
            api_version: self.api_version.clone(),
            mu_version: self.mu_version.as_ref().map(ToString::to_string),
            dependencies: Some(self.dependencies.iter().map(Requirement::to_wire).collect()),
            provides: texts(&self.provides),
            requires: texts(&self.requires),
            replaces: self.replaces.iter().map(ToString::to_string).collect(),
            constraints: self
                .constraints
                .iter()
                .map(|(fact, constraint)| (fact.clone(), Constraint::to_string(constraint)))
                .collect(),
            conflicts: self.conflicts.iter().map(ToString::to_string).collect(),
            channels: self.channels.clone(),
            default_channel: self.default_channel.clone(),
            upgrade: self.upgrade.iter().map(to_wire).collect(),
            deprecated: self.deprecated.clone().map_or(Yanked::No, Yanked::Reason),
            description: self.description.clone(),
            keywords: self.keywords.clone(),
            license: self.license.clone(),
            maintainers: self.maintainers.iter().map(maintainer).collect(),
            website: self.website.clone(),
            repository: self.repository.clone(),
            ..Release::default()
        }
    }

    /// The index line as it is written; keys that are empty are left out.
    pub fn index_line(&self) -> Map<String, Value> {
        let value = serde_json::to_value(self.to_release()).unwrap_or_default();
        let Value::Object(mut line) = value else { return Map::new() };
        line.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
        line
    }
}

fn to_wire(upgrade: &super::Upgrade) -> Upgrade {
    Upgrade {
        channel: upgrade.channel.clone(),
        replaces: upgrade.replaces.as_ref().map(ToString::to_string),
        skips: upgrade.skips.iter().map(ToString::to_string).collect(),
        skip_range: upgrade.skip_range.as_ref().map(ToString::to_string),
    }
}

fn maintainer(person: &Person) -> Maintainer {
    Maintainer::Person { name: person.name.clone(), email: person.email.clone() }
}
