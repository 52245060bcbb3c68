//! What selection answers. Plain data: nothing here is worded, sorted for display, or shortened.

use std::sync::Arc;

use crate::index::releases::Position;
use crate::index::{Candidate, Requirement, Unavailable, Untagged};
use crate::reference::{PackageId, Version};
use crate::select::{Conflict, Statistics, Unfinished};

/// The versions that were chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// The packages, by id, then by version.
    pub packages: Vec<Chosen>,
    /// The packages that something else is used for, by id.
    pub replaced: Vec<Replaced>,
    /// What the user should know though it stops nothing.
    pub warnings: Vec<Warning>,
    /// What the search cost.
    pub statistics: Statistics,
}

impl Selection {
    /// The version that was chosen of a package, the highest if there are several.
    pub fn find(&self, id: &PackageId) -> Option<&Chosen> {
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
    /// The package whose releases were used, where an override names another.
    pub instead: Option<PackageId>,
    /// Which of its candidates it is.
    pub origin: Origin,
    /// Its version; `None` for a revision that has none.
    pub version: Option<Version>,
    /// Its commit (Git).
    pub commit: Option<Arc<str>>,
    /// The versions to install in between, where its versions say that they follow each other step by step.
    pub way: Vec<Version>,
    /// Capabilities that it provides.
    pub provides: Vec<String>,
    /// Capabilities that it requires.
    pub requires: Vec<String>,
    /// Packages that it replaces wherever they are asked for.
    pub replaces: Vec<PackageId>,
    /// Whether a root asks for it.
    pub direct: bool,
    /// Who asks for it, and how; roots first, then packages by id.
    pub requested: Vec<Demand>,
    /// What it depends on: places in [`Selection::packages`], ascending. Empty for the workspace's own.
    pub dependencies: Vec<usize>,
}

impl Chosen {
    /// A package of which nothing more is known yet.
    pub(super) fn new(id: PackageId, origin: Origin) -> Self {
        Self {
            id,
            instead: None,
            origin,
            version: None,
            commit: None,
            way: Vec::new(),
            provides: Vec::new(),
            requires: Vec::new(),
            replaces: Vec::new(),
            direct: false,
            requested: Vec::new(),
            dependencies: Vec::new(),
        }
    }

    /// Whether it is the workspace's own.
    pub fn is_local(&self) -> bool {
        self.origin == Origin::Local
    }

    /// What to ask the universe about it, under the id [`Self::source`]; nothing if it is the workspace's own.
    pub fn candidate(&self) -> Option<Candidate<'_>> {
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

/// A package that another one stands in for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The package.
    pub id: PackageId,
    /// What is used for it.
    pub by: PackageId,
    /// Who asks for it, and how.
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

/// Who asks for a chosen package, and how.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// Who asks.
    pub by: Asker,
    /// What is asked.
    pub what: Demanded,
}

/// What is asked of a chosen package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demanded {
    /// A version of it.
    Version {
        /// As it was written.
        spec: Arc<str>,
        /// The tag or branch that is asked for, if one is.
        reference: Option<String>,
    },
    /// A capability, whoever provides it.
    Capability(String),
}

impl Demand {
    /// The tag or branch that is asked for, if one is.
    pub fn reference(&self) -> Option<&str> {
        match &self.what {
            Demanded::Version { reference, .. } => reference.as_deref(),
            Demanded::Capability(_) => None,
        }
    }
}

/// Someone who asks for a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asker {
    /// A root, by its name for people.
    Root(String),
    /// A package.
    Package(PackageId),
}

/// Something the user should know though it stops nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// The workspace's own package is used though its version is not what was asked for.
    LocalDoesNotSatisfy {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Option<Version>,
        /// Who asks.
        by: Asker,
        /// What was asked.
        requirement: Requirement,
    },
    /// The lock holds a version that was withdrawn since; it stays.
    Yanked {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Option<Version>,
        /// Why; empty if nobody said.
        reason: String,
    },
}

/// Why there is no selection.
#[derive(Debug)]
pub enum Failure {
    /// Something could not be found out.
    Unavailable(Unavailable),
    /// The requirements cannot hold together.
    Conflict(Box<Conflict>),
    /// Searching took too long to tell.
    Unfinished(Box<Unfinished>),
}

impl From<Unavailable> for Failure {
    fn from(error: Unavailable) -> Self {
        Self::Unavailable(error)
    }
}
