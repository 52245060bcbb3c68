//! The input of selection: requirements, the lock, and the rules. Plain data, filled by the caller.

use std::collections::{BTreeMap, BTreeSet};

use mu_manifest::choice;
use mu_manifest::reference::{Base, PackageId, Version, VersionSpec};

use crate::universe::Requirement;

/// A request to a [`crate::Strategy`].
#[derive(Debug, Clone, Default)]
pub struct SelectionRequest {
    /// The roots and their requirements.
    pub roots: Vec<RootRequirer>,
    /// How many of the roots, the last ones, only list indirect dependencies: the minimal strategy rebuilds
    /// these lists whenever it moves something.
    pub indirect: usize,
    /// What the lock holds.
    pub locked: Vec<CandidateOfLock>,
    /// Which locked packages may move although nothing forces them.
    pub update: Update,
    /// What is installed, if that differs from the lock: upgrades start there.
    pub installed: BTreeMap<PackageId, InstalledVersion>,
    /// The workspace's own packages. They always win; what they require must be among the roots.
    pub local: BTreeMap<PackageId, Local>,
    /// The capabilities that the workspace's own packages provide and require.
    pub own: OwnCapabilities,
    /// Packages that one of the workspace's own replaces: that one is used wherever they are required.
    pub replaced: BTreeMap<PackageId, (PackageId, Local)>,
    /// The rules.
    pub settings: Settings,
}

impl SelectionRequest {
    /// The workspace's own package that is used for `id`: itself, or one that replaces it.
    pub fn own_package(&self, id: &PackageId) -> Option<(&PackageId, &Local)> {
        self.local.get_key_value(id).or_else(|| {
            let (by, local) = self.replaced.get(id)?;
            Some((by, self.local.get(by).unwrap_or(local)))
        })
    }

    /// Whether a root lists this only because others need it.
    pub fn lists(&self, by: &str, requirement: &Requirement) -> bool {
        let asks = |root: &RootRequirer| root.by == by && root.requirements.contains(requirement);
        // The lists are the last roots. A root of the same name among the first means that the manifest asks for the
        // package itself, too.
        let (own, lists) = self.roots.split_at(self.roots.len().saturating_sub(self.indirect));
        lists.iter().any(asks) && !own.iter().any(asks)
    }

    /// Whether `id` is resolved to a package of the workspace itself.
    pub fn is_own(&self, id: &PackageId) -> bool {
        self.local.contains_key(id) || self.replaced.contains_key(id)
    }
}

/// Capabilities of the workspace's own packages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnCapabilities {
    /// The workspace's own packages that are there whether something requires them or not.
    pub packages: BTreeSet<PackageId>,
    /// Capability → the packages that provide it.
    pub provides: BTreeMap<String, BTreeSet<PackageId>>,
    /// The versions of the packages that provide something.
    pub versions: BTreeMap<PackageId, Version>,
    /// Capability → what requires it: the display name, and the id.
    pub requires: BTreeMap<String, BTreeMap<String, PackageId>>,
    /// Capability or package id → the packages that conflict with it.
    pub conflicts: BTreeMap<String, BTreeSet<PackageId>>,
}

/// One requirer outside the graph: a manifest of the workspace, or the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootRequirer {
    /// Its display name: the name of a package or a file.
    pub by: String,
    /// What it requires.
    pub requirements: Vec<Requirement>,
}

/// One package of the lock.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateOfLock {
    /// The package.
    pub id: PackageId,
    /// The version, if it has one.
    pub version: Option<Version>,
    /// The commit (Git).
    pub commit: Option<String>,
    /// The tag or branch that was required, if one was.
    pub reference: Option<String>,
    /// The packages it depends on.
    pub dependencies: Vec<PackageId>,
    /// What it is required as; only needed where the lock has several majors of the package, to know which of them met what.
    pub requested: Vec<Requirement>,
}

/// The installed version of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledVersion {
    /// The version.
    pub version: Version,
    /// The channel that it was chosen from, if the user says so.
    pub channel: Option<String>,
    /// Whether the best version one upgrade away comes before those that are further, as for a question that names
    /// no version.
    pub is_next_wanted: bool,
}

/// Which locked packages may move although nothing forces them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Update {
    /// No package.
    #[default]
    Nothing,
    /// These packages, to the newest version that fits; others only as far as these force them.
    Packages(BTreeSet<PackageId>),
    /// All packages.
    Everything,
}

impl Update {
    /// Whether a package may move although nothing forces it.
    pub fn moves(&self, id: &PackageId) -> bool {
        match self {
            Self::Nothing => false,
            Self::Packages(packages) => packages.contains(id),
            Self::Everything => true,
        }
    }
}

/// A package of the workspace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Local {
    /// The version in its manifest.
    pub version: Option<Version>,
}

/// The rules of a selection.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Versions never to pick.
    pub exclude: Vec<Exclusion>,
    /// The packages to use instead of others, everywhere.
    pub overrides: BTreeMap<PackageId, Override>,
    /// Packages that use the copies of their dependencies that they carry inside.
    pub bundled: BTreeSet<Bundled>,
    /// Which package may replace another one; a package that is not named here may be replaced by any.
    pub replacements: BTreeMap<PackageId, PackageId>,
    /// What packages replace in each of their versions, besides what they declare.
    pub stated_replaces: BTreeMap<PackageId, BTreeSet<PackageId>>,
    /// How many versions of one package there may be.
    pub majors: Majors,
    /// Packages of which several versions may be chosen, whatever their majors: a manifest requires them more than once, each
    /// time as something else.
    pub side_by_side: BTreeSet<PackageId>,
    /// The latest time of publication, in seconds since 1970; newer versions are excluded.
    pub published_before: Option<i64>,
    /// Whether every range accepts prereleases.
    pub prereleases: bool,
    /// The packages of which the user wants prereleases, where releases would come first.
    pub wanted_prereleases: BTreeSet<PackageId>,
    /// Facts of the runtime that `constraints` are checked against.
    pub runtime: BTreeMap<String, String>,
    /// Capabilities that the settings say there are.
    pub capabilities: StatedCapabilities,
    /// The version of this program; `None` accepts every `muVersion`.
    pub mu_version: Option<Version>,
    /// How many steps a search may take; `None` means [`STEPS`](crate::STEPS).
    pub patience: Option<usize>,
    /// The default base, which messages leave out.
    pub base: Base,
}

impl Settings {
    /// What a package replaces, besides what it declares.
    pub fn stated_replaces(&self, id: &PackageId) -> impl Iterator<Item = &PackageId> {
        self.stated_replaces.get(id).into_iter().flatten()
    }
}

/// Capabilities that the settings say there are, whatever packages say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatedCapabilities {
    /// What packages provide, in each of their versions, besides what they declare.
    pub packages: BTreeMap<PackageId, Vec<String>>,
    /// What the runtime has, so that no package needs to provide it.
    pub runtime: BTreeSet<String>,
}

impl StatedCapabilities {
    /// What a package provides, besides what it declares.
    pub fn stated_capabilities(&self, id: &PackageId) -> &[String] {
        self.packages.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The packages that are said to provide a capability.
    pub fn providers<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s PackageId> {
        let packages = self.packages.iter();
        packages.filter(move |(_, names)| names.iter().any(|one| one == name)).map(|(id, _)| id)
    }
}

choice! {
    /// Whether a package may be chosen more than once.
    #[derive(Default)]
    pub enum Majors {
        /// Once.
        #[default]
        One = "one",
        /// Once for each major version.
        Many = "many",
    }
}

/// A chart that uses copies that it carries inside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bundled {
    /// The chart.
    pub by: PackageId,
    /// What it carries inside; `None` for all that it depends on.
    pub id: Option<PackageId>,
}

impl Bundled {
    /// Whether a package uses its own copy of another one.
    pub fn holds(all: &BTreeSet<Self>, by: &PackageId, id: &PackageId) -> bool {
        all.iter().any(|one| one.by == *by && one.id.as_ref().is_none_or(|only| only == id))
    }
}

/// Versions of a package never to pick.
#[derive(Debug, Clone, PartialEq)]
pub struct Exclusion {
    /// The package.
    pub id: PackageId,
    /// The versions; `None` is all of them.
    pub spec: Option<VersionSpec>,
}

/// What to use instead of a package.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// Where to look.
    pub id: PackageId,
    /// The versions to use, whatever was required.
    pub spec: VersionSpec,
}
