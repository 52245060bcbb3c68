//! Why there is no selection, and what a user can do about it, as data. `diagnose` finds the reason, `ways_out` what helps, and
//! `explain` puts both into words; the command or edit for a way out is chosen elsewhere.

use std::collections::BTreeSet;

use mu_manifest::reference::{Base, PackageId};

use crate::candidates::Candidates;
use crate::clash::FoldedVersions;
use crate::effort::Statistics;
use crate::filters::Rejection;
use crate::positions::PositionSet;
use crate::request::Override;
use crate::universe::Requirement;
use crate::world::World;

/// Requirements that cannot hold together, but could without any one of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conflict {
    /// The facts that cannot hold together, along the chains from the roots to the clash.
    pub facts: Vec<Fact>,
    /// The number of facts that were left out.
    pub untold: usize,
    /// Packages of which no version is left, in the order of the facts.
    pub clashes: Vec<Clash>,
    /// Capabilities of which no provider is left.
    pub capabilities: Vec<CapabilityClash>,
    /// Packages that cannot be replaced as they would have to be.
    pub replacements: Vec<ReplacementClash>,
    /// What the search cost.
    pub statistics: Statistics,
    /// The default base, which messages leave out if all packages have it.
    pub base: Base,
}

impl Conflict {
    /// An empty conflict, about what was read of a world.
    pub(super) fn within(world: &World<'_>) -> Self {
        let base = world.request().settings.base.clone();
        Self { statistics: world.packages.statistics(), base, ..Self::default() }
    }

    /// Adds the facts that it does not have yet.
    pub(super) fn add_facts(&mut self, facts: impl IntoIterator<Item = Fact>) {
        for fact in facts {
            if !self.facts.contains(&fact) {
                self.facts.push(fact);
            }
        }
    }

    /// The first package of which several packages or roots need different versions.
    pub(super) fn pulled_apart(&self) -> Option<&Clash> {
        // A command's requirement is meant to replace the one in the manifest, so the two do not count as two.
        // Whether two who cannot agree are to blame: then it helps to choose the package once for each major. One root
        // that contradicts itself would be told to change the settings where a typing error is all.
        let is_of_several = |id: &PackageId| {
            let mut roots: BTreeSet<&String> = BTreeSet::new();
            self.facts.iter().any(|fact| match fact {
                Fact::Requires { by: Requirer::Package(..), id: of, .. } => of == id,
                Fact::Requires { by: Requirer::Roots(names), id: of, .. } if of == id => {
                    // No package has a space in its name.
                    roots.extend(names.iter().filter(|name| !name.contains(' ')));
                    roots.len() > 1
                }
                _ => false,
            })
        };
        self.clashes.iter().find(|clash| {
            let is_apart = clash.asked.len() > 1 || clash.needed.is_some();
            is_apart && clash.tried.is_none() && is_of_several(&clash.id)
        })
    }
}

/// One fact, explained in one line.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fact {
    /// Someone requires something of a package.
    Requires {
        /// Who requires it.
        by: Requirer,
        /// The package that is required.
        id: PackageId,
        /// What is required of it, as it was written; several if many versions of the requirer require
        /// different things.
        asked: Vec<String>,
    },
    /// The settings replace a package with another one, whatever is required of it.
    Overridden {
        /// The package.
        id: PackageId,
        /// What is used.
        by: Override,
    },
    /// A revision without a version tag counts only if a chosen package names it.
    OnlyWhereNamed {
        /// The package.
        id: PackageId,
        /// The revision.
        revision: FoldedVersions,
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
    /// A package replaces another one wherever that one is required.
    Replaces {
        /// The package.
        by: Requirer,
        /// What it replaces.
        id: PackageId,
    },
    /// A package conflicts with another one.
    Conflicts {
        /// The package; as a root, one of the workspace.
        by: Requirer,
        /// The package that it conflicts with.
        with: PackageId,
    },
    /// A package conflicts with every provider of a capability.
    ConflictsWithProvider {
        /// The package; as a root, one of the workspace.
        by: Requirer,
        /// The capability.
        capability: String,
    },
    /// A package replaces another one only if a chosen package requires the replacement itself.
    ReplacesWhereAsked {
        /// The package.
        id: PackageId,
    },
    /// A package that no registry lists as a provider counts only if a chosen package requires it.
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
    /// The lowest allowed version of a package's replacement does not replace it any more.
    Ended {
        /// The package.
        id: PackageId,
        /// What replaced it in a lower version.
        by: PackageId,
        /// The lowest version that is allowed.
        needed: String,
    },
}

/// A capability of which no provider is left.
#[derive(Debug, Clone, PartialEq)]
pub struct CapabilityClash {
    /// The capability.
    pub capability: String,
    /// Whether anything provides it. If so, the clash is that several would have to.
    pub is_provided: bool,
    /// If nothing does: versions that would, and why they are not candidates.
    pub rejected: Vec<(PackageId, Rejection, FoldedVersions)>,
}

/// Who requires something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirer {
    /// Roots, by their display names.
    Roots(Vec<String>),
    /// Versions of a package.
    Package(PackageId, FoldedVersions),
}

impl Requirer {
    /// The name of the command that wants a version, in facts; the caller puts the real name there.
    pub const COMMAND: &'static str = "this command";

    /// The versions at `positions` of a package.
    pub(super) fn versions(package: &Candidates, positions: &PositionSet) -> Self {
        Self::Package(package.id.clone(), FoldedVersions::fold_candidates(package, positions))
    }
}

/// A package of which no version is left.
#[derive(Debug, Clone, PartialEq)]
pub struct Clash {
    /// The package.
    pub id: PackageId,
    /// What is required of it: one entry of each of these lists.
    pub asked: Vec<Vec<String>>,
    /// The lowest version that others need, if that alone decides and the requirement does not accept it.
    pub needed: Option<String>,
    /// The places that were searched, if there is no such package.
    pub tried: Option<Vec<String>>,
    /// Packages with a similar name, if there is no such package.
    pub similar: Vec<PackageId>,
    /// The versions next to the required one, if only one is required.
    pub nearest: Vec<String>,
    /// The places where its versions were searched, if known.
    pub source: Option<String>,
    /// All of its versions that are candidates.
    pub available: FoldedVersions,
    /// Whether all available versions are prereleases.
    pub only_prereleases: bool,
    /// The channels or app versions that exist, if one is required, and in which versions.
    pub narrowed: Vec<(String, FoldedVersions)>,
    /// Versions that would have helped, and why they are not candidates.
    pub rejected: Vec<(Rejection, FoldedVersions)>,
    /// Whether these are what was asked for, so that it is there, and only not a candidate.
    pub is_there: bool,
    /// More about the rejected versions, as sentences, if known.
    pub notes: Vec<String>,
}

/// Something that the user can do about a conflict.
#[derive(Debug, Clone, PartialEq)]
pub enum WayOut {
    /// Require something else; several of these together if one is not enough.
    Ask(Vec<Ask>),
    /// Pin a withdrawn version.
    Withdrawn(Vec<Ask>),
    /// Change a fact of the runtime: the fact, and its new value.
    Runtime(String, String),
    /// Drop the requirement of a package.
    GiveUp(PackageId),
    /// Stop excluding versions of a package in the settings.
    Include(PackageId),
    /// Allow versions of any age.
    AnyAge,
    /// Let a package use the copy that it carries inside of another one: the second.
    Bundle(PackageId, PackageId),
    /// Use a package itself, not what the settings override it by.
    NoOverride(PackageId),
    /// Let only this package replace that one: the second replaces the first, or, if both are the same,
    /// nothing does.
    Replace(PackageId, PackageId),
    /// Say in the settings that a package replaces another one: the first replaces the second.
    TakePlace(PackageId, PackageId),
    /// Let packages be chosen once for each major version; of this one, two majors clash.
    ManyMajors(PackageId),
    /// Use one version of a package, whatever is required of it.
    Override(PackageId, String),
    /// Forget which version is installed, so that upgrades need not follow each other from there.
    Forget(PackageId, String),
    /// Choose with the other strategy: highest.
    Highest,
    /// Choose with the other strategy: minimal.
    Minimal,
    /// Do all of these, because none is enough alone.
    Together(Vec<WayOut>),
}

/// What a root should require.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The root, by its name for people.
    pub by: String,
    /// What it requires now; `None` if it does not require the package.
    pub from: Option<Requirement>,
    /// What to require instead.
    pub to: Requirement,
    /// The version that is chosen then.
    pub version: String,
}
