//! The data of a package's index that selection needs: its versions in ascending order, and their needs.
//!
//! Compact, because a workspace may read tens of thousands of versions and choose a few hundred. Rare data is
//! behind one shared pointer; requirements are requested one version at a time, through
//! [`crate::Universe`]. Nothing here reads a file or sends a request.

// Data of registries never leads to an index out of bounds.
#![deny(clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::sync::Arc;

use mu_manifest::reference::{
    Aliases, AppVersioning, ArtifactDigest, PackageId, Version, VersionSpec,
};

/// The place of a version among its package's versions, in ascending order.
pub type Position = u32;

/// The published versions of one package.
#[derive(Debug, Clone, PartialEq)]
pub struct Releases {
    id: PackageId,
    source: Source,
    versions: SortedVersions,
    /// When each was published, up to the last for which that is known.
    published: Vec<Option<i64>>,
    /// The commit of each, up to the last that has one.
    commits: Vec<Option<Arc<str>>>,
    /// The details of versions that have some, ascending.
    details: Vec<(Position, Arc<Details>)>,
    /// Whether no version is a prerelease or a composite one.
    pub(crate) is_plain: bool,
    /// Whether the listing has everything relevant of every version, so that no manifest has more.
    pub is_complete: bool,
    /// Whether no rule about age applies: they are on this machine, and nobody publishes them.
    pub is_ageless: bool,
    /// Whether they are what is in a folder now, which has one version.
    pub is_folder: bool,
    /// Whether prereleases are chosen as releases are, because no version of a package of another ecosystem is a release, or none in
    /// its default channel.
    pub counts_prereleases: bool,
    /// Whether releases come before prereleases, although requirements accept both.
    pub puts_releases_first: bool,
    has_revisions: bool,
}

/// Versions, ascending.
#[derive(Debug, Clone, PartialEq)]
enum SortedVersions {
    /// Versions that are only three numbers.
    Plain(Vec<[u32; 3]>),
    Any(Vec<Version>),
}

impl SortedVersions {
    fn len(&self) -> usize {
        match self {
            Self::Plain(numbers) => numbers.len(),
            Self::Any(versions) => versions.len(),
        }
    }

    #[expect(clippy::indexing_slicing, reason = "whoever has a position has it of this package")]
    fn get(&self, at: usize) -> Version {
        match self {
            Self::Plain(numbers) => {
                let [major, minor, patch] = numbers[at].map(u64::from);
                semver::Version::new(major, minor, patch).into()
            }
            Self::Any(versions) => versions[at].clone(),
        }
    }
}

/// The kind of place that the releases come from, as far as selection depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Absent { tried: Vec<String> },
    Registry,
    Repository,
}

/// One published version.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The version.
    pub version: Version,
    /// When it was published, in seconds since 1970.
    pub published: Option<i64>,
    /// The commit of its tag, 40 hex digits (Git), or the digest of an archive by URL.
    pub commit: Option<Arc<str>>,
    /// The details that only some versions have; equal ones should be shared.
    pub details: Option<Arc<Details>>,
}

impl From<Version> for Entry {
    fn from(version: Version) -> Self {
        Self { version, published: None, commit: None, details: None }
    }
}

/// Calls a macro with the facts that selection reads of each chosen version, and that a lock keeps for it: the key in an index line
/// and in a lock, and the field of [`ChosenFacts`] and its type. They stand in the order in which a lock has them.
///
/// A fact that is added here is read from index lines, kept by selection, written into locks and read from them again.
#[macro_export]
macro_rules! chosen_facts {
    ($callback:ident! { $($before:tt)* }) => {
        $callback! {
            $($before)*
            /// Capabilities that it provides.
            "provides" provides: Vec<String>,
            /// Capabilities that it requires.
            "requires" requires: Vec<String>,
            /// Packages and capabilities that must not be used together with it.
            "conflicts" conflicts: Vec<String>,
            /// What it needs of the runtime: `FACT RANGE`.
            "constraints" constraints: BTreeMap<String, String>,
            /// The range of mu versions that can use it.
            "muVersion" mu_version: Option<String>,
            /// Ids of the packages that it replaces, wherever they are required.
            "replaces" replaces: Vec<PackageId>,
        }
    };
}

macro_rules! define_chosen_facts {
    ($($(#[$about:meta])* $key:literal $field:ident: $kind:ty,)*) => {
        /// What selection reads of each chosen version besides its needs. The lock has it, so that a locked version is chosen again
        /// without its index line.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct ChosenFacts {
            $($(#[$about])* pub $field: $kind,)*
        }
    };
}

chosen_facts! { define_chosen_facts! {} }

/// The details that only some versions have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Why it was withdrawn; empty if no reason was given.
    pub yanked: Option<String>,
    /// Why it can never be used, such as an invalid index line.
    pub broken: Option<String>,
    /// The version of the software that the package contains.
    pub app_version: Option<String>,
    /// The manifest format it needs.
    pub api_version: Option<String>,
    /// What its authors say, if they no longer look after it; may be empty.
    pub deprecated: Option<String>,
    /// The channels it is in, the best first.
    pub channels: Vec<String>,
    /// The channel to use if none is requested.
    pub default_channel: Option<String>,
    /// Names that point to it (hub and OCI).
    pub tags: Vec<String>,
    /// What a lock keeps of it.
    pub facts: ChosenFacts,
    /// The name in its archive, if it is a copy of a package with another name.
    pub origin: Option<String>,
    /// The package that took its place.
    pub moved_to: Option<PackageId>,
    /// The versions from which it can be reached by an upgrade.
    pub upgrade: Vec<Upgrade>,
}

/// The versions from which a release can be reached by an upgrade, in addition to itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Upgrade {
    /// The channel of the upgrade; without one, it is possible in every channel.
    pub channel: Option<String>,
    /// The version right before it.
    pub replaces: Option<Version>,
    /// Versions that it can also follow.
    pub skips: Vec<Version>,
    /// A range of versions that it can also follow.
    pub skip_range: Option<VersionSpec>,
}

impl From<ChosenFacts> for Details {
    fn from(facts: ChosenFacts) -> Self {
        Self { facts, ..Self::default() }
    }
}

impl Details {
    /// These details, with the ids that count where an alias of the settings covers those that are named.
    #[must_use]
    pub fn counted(mut self, aliases: &Aliases) -> Self {
        for id in self.facts.replaces.iter_mut().chain(&mut self.moved_to) {
            *id = aliases.counted(id.clone());
        }
        for conflict in &mut self.facts.conflicts {
            // A capability has no host, so no alias covers it.
            if let Ok(id) = PackageId::parse(conflict) {
                *conflict = aliases.counted(id).to_string();
            }
        }
        self
    }

    /// Whether other packages are named.
    fn names_packages(&self) -> bool {
        let ChosenFacts { replaces, conflicts, .. } = &self.facts;
        !replaces.is_empty() || !conflicts.is_empty() || self.moved_to.is_some()
    }
}

impl Releases {
    /// The versions of a package in a hub, an OCI registry or a folder, in any order.
    pub fn registry(id: PackageId, entries: Vec<Entry>) -> Self {
        Self::sorted(id, Source::Registry, entries)
    }

    /// The versions of a package in a Git repository, which also has commits and branches.
    pub fn repository(id: PackageId, entries: Vec<Entry>) -> Self {
        Self::sorted(id, Source::Repository, entries)
    }

    /// Says that there is no such package, and which places were searched (URLs or paths).
    pub fn absent(id: PackageId, tried: Vec<String>) -> Self {
        Self::empty(id, Source::Absent { tried })
    }

    /// The versions of a package in a hub, each three numbers, in ascending order; with the known times of
    /// publication and the rare details, both by position and ascending. `is_complete` says that the listing also
    /// has the dependencies of each.
    pub fn plain(
        id: PackageId,
        versions: Vec<[u32; 3]>,
        published: impl Iterator<Item = (Position, i64)>,
        details: Vec<(Position, Arc<Details>)>,
        is_complete: bool,
    ) -> Self {
        let versions = SortedVersions::Plain(versions);
        let mut releases =
            Self { versions, details, is_complete, ..Self::empty(id, Source::Registry) };
        for (at, published) in published {
            put(&mut releases.published, at as usize, published);
        }
        releases
    }

    fn empty(id: PackageId, source: Source) -> Self {
        Self {
            id,
            source,
            versions: SortedVersions::Any(Vec::new()),
            published: Vec::new(),
            commits: Vec::new(),
            details: Vec::new(),
            is_plain: true,
            is_complete: false,
            is_ageless: false,
            is_folder: false,
            counts_prereleases: false,
            puts_releases_first: false,
            has_revisions: false,
        }
    }

    /// These versions, whose details name packages by the ids that count.
    #[must_use]
    pub fn counted(mut self, aliases: &Aliases) -> Self {
        for (_, details) in self.details.iter_mut().filter(|(_, details)| details.names_packages())
        {
            *details = Arc::new(Details::clone(details).counted(aliases));
        }
        self
    }

    /// These versions, in a registry that also has commits, branches and a tip.
    #[must_use]
    pub fn with_revisions(self) -> Self {
        Self { has_revisions: true, ..self }
    }

    /// These versions, of which one that has a time of publication has this one, in seconds since 1970.
    #[must_use]
    pub fn published_at(mut self, position: Position, time: i64) -> Self {
        if let Some(known) = self.published.get_mut(position as usize) {
            *known = known.map(|_| time);
        }
        self
    }

    /// These versions, of which one cannot be used; `why` says so.
    #[must_use]
    pub fn refusing(mut self, position: Position, why: &str) -> Self {
        let known = self.details(position).cloned().unwrap_or_default();
        let details = Arc::new(Details { broken: Some(why.to_owned()), ..known });
        match self.details.iter_mut().find(|(at, _)| *at == position) {
            Some((_, known)) => *known = details,
            None => {
                let place = self.details.partition_point(|(at, _)| *at < position);
                self.details.insert(place, (position, details));
            }
        }
        self
    }

    /// Whether there are versions, and all of them are prereleases.
    pub fn has_only_prereleases(&self) -> bool {
        !self.is_plain && self.versions().all(|version| version.is_prerelease())
    }

    /// Whether there are versions, and all that come first are prereleases: those in the default channel, or all without one.
    pub fn offers_only_prereleases(&self) -> bool {
        let Some(first) = self.default_channel() else { return self.has_only_prereleases() };
        let is_in = |details: &Details| details.channels.iter().any(|channel| channel == first);
        let mut offered = self.all_details().filter(|(_, details)| is_in(details)).peekable();
        match offered.peek() {
            Some(_) => offered.all(|(position, _)| self.version(position).is_prerelease()),
            None => self.has_only_prereleases(),
        }
    }

    /// Sorts the entries; of two with one version the first stays.
    fn sorted(id: PackageId, source: Source, mut entries: Vec<Entry>) -> Self {
        if !entries.is_sorted_by(|one, two| one.version < two.version) {
            entries.sort_by(|one, two| one.version.cmp(&two.version));
            entries.dedup_by(|later, first| later.version == first.version);
        }
        let mut releases = Self::empty(id, source);
        let mut versions = Vec::with_capacity(entries.len());
        for (at, entry) in entries.into_iter().enumerate() {
            if let Some(published) = entry.published {
                put(&mut releases.published, at, published);
            }
            if let Some(commit) = entry.commit {
                put(&mut releases.commits, at, commit);
            }
            if let Some(details) = entry.details {
                releases.details.push((at as Position, details));
            }
            let semver = entry.version.as_semver();
            releases.is_plain &= semver.is_some_and(|version| version.pre.is_empty());
            versions.push(entry.version);
        }
        releases.versions = SortedVersions::Any(versions);
        releases
    }

    /// The package.
    pub fn id(&self) -> &PackageId {
        &self.id
    }

    /// The places that were searched, if the package does not exist.
    pub fn tried(&self) -> Option<&[String]> {
        match &self.source {
            Source::Absent { tried } => Some(tried),
            Source::Registry | Source::Repository => None,
        }
    }

    /// Whether commits, branches and a default branch can be required.
    pub fn has_commits(&self) -> bool {
        self.source == Source::Repository
    }

    /// Whether commits, branches and a tip may be there beside versions.
    pub fn has_revisions(&self) -> bool {
        self.has_revisions || self.has_commits()
    }

    /// The number of versions.
    pub fn len(&self) -> Position {
        Position::try_from(self.versions.len())
            .expect("no package has four thousand million versions")
    }

    /// Whether there are no versions.
    pub fn is_empty(&self) -> bool {
        self.versions.len() == 0
    }

    /// The version at `position`.
    pub fn version(&self, position: Position) -> Version {
        self.versions.get(position as usize)
    }

    /// The versions, ascending.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = Version> {
        (0..self.versions.len()).map(|at| self.versions.get(at))
    }

    /// The position of `version`.
    pub fn position_of_version(&self, version: &Version) -> Option<Position> {
        let found = match &self.versions {
            SortedVersions::Any(versions) => versions.binary_search(version),
            SortedVersions::Plain(numbers) => numbers.binary_search(&plain(version)?),
        };
        found.ok().map(|found| found as Position)
    }

    /// When the version at `position` was published, in seconds since 1970.
    pub fn published(&self, position: Position) -> Option<i64> {
        self.published.get(position as usize).copied().flatten()
    }

    /// The commit of the version at `position`.
    pub fn commit(&self, position: Position) -> Option<&Arc<str>> {
        self.commits.get(position as usize)?.as_ref()
    }

    /// Whether its place has one content, a folder or an archive, which is meant whatever its version is.
    pub fn has_one_content(&self) -> bool {
        let is_archive = |commit: &Arc<str>| ArtifactDigest::is_artifact_digest(commit);
        self.is_folder || self.len() == 1 && self.commit(0).is_some_and(is_archive)
    }

    /// The highest version whose tag is at `commit`.
    pub fn at_commit(&self, commit: &str) -> Option<Position> {
        (0..self.len()).rev().find(|&at| self.commit(at).is_some_and(|known| **known == *commit))
    }

    /// The default channel: the one in the newest version that names one, or else the first channel of the
    /// newest version.
    pub fn default_channel(&self) -> Option<&str> {
        let mut named = self.details.iter().rev().map(|(_, details)| &details.default_channel);
        let named = named.find_map(Option::as_deref);
        named.or_else(|| {
            let newest = self.details(self.len().checked_sub(1)?)?;
            newest.channels.first().map(String::as_str)
        })
    }

    /// Whether the version at `position` is chosen where nobody asks for prereleases.
    pub fn is_offered(&self, position: Position) -> bool {
        self.counts_prereleases || !self.version(position).is_prerelease()
    }

    /// How much selection prefers the version at `position` where nothing is required but the package, the most important first: that
    /// it is chosen without asking for prereleases, that it is in the channel that comes first, not deprecated, and a release.
    pub fn preference(&self, position: Position, first: Option<&str>) -> [bool; 4] {
        let details = self.details(position);
        let is_in = |channel: &str| {
            details.is_some_and(|details| details.channels.iter().any(|one| one == channel))
        };
        let is_deprecated = details.is_some_and(|details| details.deprecated.is_some());
        let is_release = !self.version(position).is_prerelease();
        [self.is_offered(position), first.is_some_and(is_in), !is_deprecated, is_release]
    }

    /// The details that only some versions have.
    pub fn details(&self, position: Position) -> Option<&Details> {
        let found = self.details.binary_search_by_key(&position, |(at, _)| *at).ok()?;
        self.details.get(found).map(|(_, details)| &**details)
    }

    /// The details of the versions that have some, ascending.
    pub fn all_details(&self) -> impl Iterator<Item = (Position, &Details)> {
        self.details.iter().map(|(position, details)| (*position, &**details))
    }

    /// The app version at `position`; for a composite version, its first part.
    pub fn app_version(&self, position: Position) -> Option<&str> {
        let composite = match &self.versions {
            SortedVersions::Any(versions) => versions.get(position as usize).and_then(Version::app),
            SortedVersions::Plain(_) => None,
        };
        composite.or_else(|| self.details(position)?.app_version.as_deref())
    }

    /// How the app versions of the package are compared.
    pub fn app_versioning(&self) -> AppVersioning {
        AppVersioning::of((0..self.len()).filter_map(|position| self.app_version(position)))
    }
}

/// The three numbers of a version without further parts, if they are small enough to be stored so.
pub fn plain(version: &Version) -> Option<[u32; 3]> {
    let semver = version.as_semver().filter(|_| !version.is_spelt())?;
    if !semver.pre.is_empty() || !semver.build.is_empty() {
        return None;
    }
    let number = |number| u32::try_from(number).ok();
    Some([number(semver.major)?, number(semver.minor)?, number(semver.patch)?])
}

fn put<T: Clone>(column: &mut Vec<Option<T>>, at: usize, value: T) {
    column.resize(at, None);
    column.push(Some(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).expect("is a version")
    }

    #[test]
    fn versions_are_ascending_and_each_is_there_once() {
        let id = PackageId::parse("hub.mu.com/aws/ec2").expect("is an id");
        let entries = ["1.10.0", "1.2.0", "1.2.0"].map(|text| Entry::from(version(text)));
        let releases = Releases::registry(id, entries.to_vec());
        let versions: Vec<String> =
            releases.versions().map(|version| version.to_string()).collect();
        assert_eq!(versions, ["1.2.0", "1.10.0"]);
        assert_eq!(releases.position_of_version(&version("1.10.0")), Some(1));
        assert_eq!(releases.position_of_version(&version("1.3.0")), None);
    }

    #[test]
    fn a_commit_leads_to_the_highest_version_that_was_tagged_there() {
        let id = PackageId::parse("github.com/a/b").expect("is an id");
        let tagged =
            |text| Entry { commit: Some(Arc::from("c0ffee")), ..Entry::from(version(text)) };
        let releases = Releases::repository(id, vec![tagged("1.0.0"), tagged("1.0.1")]);
        assert_eq!(releases.at_commit("c0ffee"), Some(1));
        assert_eq!(releases.at_commit("decade"), None);
    }
}
