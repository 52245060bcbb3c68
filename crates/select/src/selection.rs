//! The output of selection. Plain data: nothing here is worded, sorted for display, or shortened.

use std::sync::Arc;

use mu_manifest::reference::{PackageId, Version};

use crate::releases::{ChosenFacts, Position};
use crate::universe::{Candidate, Requirement, Unavailable, Untagged};
use crate::{Conflict, Statistics, Unfinished};

/// The versions that were chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// The packages, by id, then by version.
    pub packages: Vec<Chosen>,
    /// The replaced packages, by id.
    pub replaced: Vec<Replaced>,
    /// Warnings for the user.
    pub warnings: Vec<SelectionWarning>,
    /// What the search cost.
    pub statistics: Statistics,
}

impl Selection {
    /// The version that was chosen of a package, the highest if there are several.
    pub fn find(&self, id: &PackageId) -> Option<&Chosen> {
        // Sorted by id and then version, so the last one with the id is the highest.
        let after = self.packages.partition_point(|chosen| chosen.id <= *id);
        self.packages[..after].last().filter(|chosen| chosen.id == *id)
    }

    /// What a chosen package depends on.
    pub fn dependencies<'a>(&'a self, chosen: &'a Chosen) -> impl Iterator<Item = &'a Chosen> {
        chosen.dependencies.iter().map(|&index| &self.packages[index])
    }
}

/// One package of a selection.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The package.
    pub id: PackageId,
    /// The package whose releases were used, if an override names another.
    pub instead: Option<PackageId>,
    /// Which of its candidates it is.
    pub origin: Origin,
    /// Its version; `None` for a revision that has none.
    pub version: Option<Version>,
    /// Its commit (Git).
    pub commit: Option<Arc<str>>,
    /// The channel to show: a requested one, or else the one that comes first, or else the first that it is
    /// in.
    pub channel: Option<String>,
    /// The name of the package that it is a copy of, if it is one.
    pub copy_of: Option<String>,
    /// The versions to install in between, if its versions say that they follow each other step by step.
    pub way: Vec<Version>,
    /// What it says of itself, as a lock keeps it; nothing for the workspace's own.
    pub facts: ChosenFacts,
    /// Whether a root requires it.
    pub direct: bool,
    /// What requires it, and how; roots first, then packages by id.
    pub requested: Vec<Demand>,
    /// What it depends on: places in [`Selection::packages`], ascending. Empty for the workspace's own.
    pub dependencies: Vec<usize>,
}

impl Chosen {
    /// A package without further details.
    pub(super) fn new(id: PackageId, origin: Origin) -> Self {
        Self {
            id,
            instead: None,
            origin,
            version: None,
            commit: None,
            channel: None,
            copy_of: None,
            way: Vec::new(),
            facts: ChosenFacts::default(),
            direct: false,
            requested: Vec::new(),
            dependencies: Vec::new(),
        }
    }

    /// Whether it is the workspace's own.
    pub fn is_local(&self) -> bool {
        self.origin == Origin::Local
    }

    /// What to ask the universe about it, under the id [`Self::source`]; `None` if it is the workspace's own.
    pub fn as_candidate(&self) -> Option<Candidate<'_>> {
        match &self.origin {
            Origin::Local => None,
            Origin::Release(position) => Some(Candidate::Release(*position)),
            Origin::Revision(revision) => Some(Candidate::Revision(revision)),
        }
    }

    /// The package whose releases were used.
    pub fn source(&self) -> &PackageId {
        self.instead.as_ref().unwrap_or(&self.id)
    }
}

/// A package that another one replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The package.
    pub id: PackageId,
    /// What is used for it.
    pub by: PackageId,
    /// Who requires it, and how.
    pub requested: Vec<Demand>,
}

/// Where a chosen package comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// The workspace itself.
    Local,
    /// A published version.
    Release(Position),
    /// A revision that has no version tag.
    Revision(Untagged),
}

/// A requirement on a chosen package, and what has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// Who asks.
    pub by: RootOrPackage,
    /// The requirement.
    pub what: Demanded,
}

/// What is required of a chosen package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demanded {
    /// A version of it.
    Version {
        /// As it was written.
        spec: Arc<str>,
        /// The tag or branch that is required, if one is.
        reference: Option<String>,
    },
    /// A capability, from any provider.
    Capability(String),
}

impl Demand {
    /// The tag or branch that is required, if one is.
    pub fn reference(&self) -> Option<&str> {
        match &self.what {
            Demanded::Version { reference, .. } => reference.as_deref(),
            Demanded::Capability(_) => None,
        }
    }
}

/// Something that requires a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RootOrPackage {
    /// A root, by its display name.
    Root(String),
    /// A package.
    Package(PackageId),
}

/// A warning for the user.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectionWarning {
    /// The workspace's own package is used although its version does not meet the requirement.
    LocalDoesNotSatisfy {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Option<Version>,
        /// Who asks.
        by: RootOrPackage,
        /// The requirement.
        requirement: Requirement,
    },
    /// A version that was withdrawn is chosen nevertheless.
    Yanked {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Option<Version>,
        /// Whether it stays because it is locked.
        is_locked: bool,
        /// Why; empty if no reason was given.
        reason: String,
    },
    /// The authors no longer maintain a version, and nothing else fits, or something requires exactly it.
    Deprecated {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Option<Version>,
        /// What they say about it; may be empty.
        reason: String,
    },
}

/// Why there is no selection.
#[derive(Debug)]
pub enum Failure {
    /// Something could not be looked up.
    Unavailable(Unavailable),
    /// The requirements cannot hold together.
    Conflict(Box<Conflict>),
    /// Searching took too many steps.
    Unfinished(Box<Unfinished>),
}

impl From<Unavailable> for Failure {
    fn from(error: Unavailable) -> Self {
        Self::Unavailable(error)
    }
}
