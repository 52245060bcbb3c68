//! Why there is no selection, as data. `diagnose` finds it, `explain` words it.

use crate::reference::{Base, PackageId};
use crate::select::candidates::Candidates;
use crate::select::filters::Rejection;
use crate::select::fold::Versions;
use crate::select::positions::PositionSet;
use crate::select::request::Override;
use crate::select::statistics::Statistics;
use crate::select::world::World;

/// Requirements that cannot hold together, such that without any one of them they could.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conflict {
    /// What cannot hold together, along the chains from the roots down to the clash.
    pub facts: Vec<Fact>,
    /// How many more facts there are.
    pub untold: usize,
    /// Packages of which no version is left, in the order of the facts.
    pub clashes: Vec<Clash>,
    /// Capabilities of which no provider is left.
    pub capabilities: Vec<CapabilityClash>,
    /// Packages that cannot be replaced as they would have to be.
    pub replacements: Vec<ReplacementClash>,
    /// What the search cost.
    pub statistics: Statistics,
    /// The default base, which messages leave out where all packages are there.
    pub base: Base,
}

impl Conflict {
    /// A conflict of which nothing is told yet, in what was read of a world.
    pub(super) fn within(world: &World<'_>) -> Self {
        let base = world.request().settings.base.clone();
        Self { statistics: world.packages.statistics(), base, ..Self::default() }
    }

    /// Adds the facts that are not there yet.
    pub(super) fn tell(&mut self, facts: impl IntoIterator<Item = Fact>) {
        for fact in facts {
            if !self.facts.contains(&fact) {
                self.facts.push(fact);
            }
        }
    }
}

/// One fact, told in one line.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fact {
    /// Someone requires something of a package.
    Requires {
        /// Who requires it.
        by: Requirer,
        /// The package that is required.
        id: PackageId,
        /// What is asked of it, as it was written; several if many versions of the requirer ask different things.
        asked: Vec<String>,
    },
    /// A package stands for another one, whatever is asked of it, because the settings say so.
    Overridden {
        /// The package.
        id: PackageId,
        /// What is used.
        by: Override,
    },
    /// A revision without a version tag counts only where something that is chosen names it.
    OnlyWhereNamed {
        /// The package.
        id: PackageId,
        /// The revision.
        revision: Versions,
    },
    /// Someone requires a capability.
    RequiresCapability {
        /// Who requires it.
        by: Requirer,
        /// The capability.
        capability: String,
    },
    /// A package provides a capability.
    Provides {
        /// The package; as a root, one of the workspace.
        by: Requirer,
        /// The capability.
        capability: String,
    },
    /// A package replaces another one, and stands in for it wherever it is asked for.
    Replaces {
        /// The package.
        by: Requirer,
        /// What it replaces.
        id: PackageId,
    },
    /// A package may not be chosen beside another one.
    Conflicts {
        /// The package; as a root, one of the workspace.
        by: Requirer,
        /// The other one.
        with: PackageId,
    },
    /// A package may not be chosen beside what provides a capability.
    ConflictsWithProvider {
        /// The package; as a root, one of the workspace.
        by: Requirer,
        /// The capability.
        capability: String,
    },
    /// A package stands in for another one only where something that is chosen asks for itself.
    ReplacesWhereAsked {
        /// The package.
        id: PackageId,
    },
    /// A package that no registry lists as a provider counts only where something that is chosen asks for it.
    OnlyWhereAsked {
        /// The package.
        id: PackageId,
    },
}

/// Why packages cannot be replaced as they would have to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplacementClash {
    /// Several packages replace one.
    Several {
        /// The one.
        id: PackageId,
    },
    /// Packages replace each other.
    Circle {
        /// The packages, by id.
        ids: Vec<PackageId>,
    },
    /// The version that is needed at least of what replaced a package does not replace it any more.
    Ended {
        /// The package.
        id: PackageId,
        /// What replaced it in a lower version.
        by: PackageId,
        /// The version that is needed.
        needed: String,
    },
}

/// A capability of which no provider is left.
#[derive(Debug, Clone, PartialEq)]
pub struct CapabilityClash {
    /// The capability.
    pub capability: String,
    /// Whether anything provides it: then there would have to be several.
    pub is_provided: bool,
    /// If nothing does: versions that would, and why they are no candidates.
    pub rejected: Vec<(PackageId, Rejection, Versions)>,
}

/// Who requires something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirer {
    /// Roots, by their names for people.
    Roots(Vec<String>),
    /// Versions of a package.
    Package(PackageId, Versions),
}

impl Requirer {
    /// The versions at `positions` of a package.
    pub(super) fn versions(package: &Candidates, positions: &PositionSet) -> Self {
        Self::Package(package.id().clone(), Versions::fold(package, positions))
    }
}

/// A package of which no version is left.
#[derive(Debug, Clone, PartialEq)]
pub struct Clash {
    /// The package.
    pub id: PackageId,
    /// What is asked of it: one of each of these lists.
    pub asked: Vec<Vec<String>>,
    /// The version that others need at least, where that alone decides and what is asked does not accept it.
    pub needed: Option<String>,
    /// Where it was looked for, if there is no such package.
    pub tried: Option<Vec<String>>,
    /// Packages with a similar name, if there is no such package.
    pub similar: Vec<PackageId>,
    /// The versions next to what is asked, if only one thing is.
    pub nearest: Vec<String>,
    /// Where its versions were looked for, if whoever tells of it knows.
    pub source: Option<String>,
    /// All of its versions that are candidates.
    pub available: Versions,
    /// Whether all of those are prereleases.
    pub only_prereleases: bool,
    /// Where a channel or an app version is asked for: which there are, and in which versions.
    pub narrowed: Vec<(String, Versions)>,
    /// Versions that would have helped, and why they are no candidates.
    pub rejected: Vec<(Rejection, Versions)>,
    /// More about those, if whoever tells of it knows: sentences.
    pub notes: Vec<String>,
}
