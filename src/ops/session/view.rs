//! How a session looks at manifests: the two views of a workspace in which packages are edited, such a package, and the manifests that a
//! command would change. The session keeps its own as they were read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use mu_provider::Commit;

use crate::env::Environment;
use crate::manifest::Manifest;
use crate::reference::PackageId;
#[cfg(feature = "git")]
use crate::workspace::programs::local_git;
use crate::workspace::{Member, Workspace};

/// Which packages count as the workspace's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum View {
    /// Also packages that only this machine uses.
    #[default]
    Here,
    /// Only packages that everyone has.
    Team,
    /// As [`View::Here`] if this package, or without one the package around the current folder, is only used here; else as
    /// [`View::Team`].
    Around(Option<String>),
}

/// A package that only this machine uses.
#[derive(Debug, Clone)]
pub struct EditedPackage {
    /// The package that it is used as.
    pub id: PackageId,
    /// The package itself.
    pub member: Member,
    /// The commit that its changes are counted from.
    #[cfg_attr(not(feature = "git"), allow(dead_code, reason = "only Git counts them"))]
    pub(super) base: Option<Commit>,
    /// Whether it is used instead of a locked package, or mu has made it.
    pub is_used: bool,
}

impl EditedPackage {
    /// How many commits it has beyond those of its origin, if that is known.
    #[cfg(feature = "git")]
    pub(crate) fn ahead(&self, environment: &Environment, root: &Path) -> Option<usize> {
        let local = local_git(environment);
        local.commits_ahead(root, &self.member.folder, self.base.as_ref()).ok().flatten()
    }

    /// How many commits it has beyond those of its origin: without Git, nobody knows.
    #[cfg(not(feature = "git"))]
    pub(crate) fn ahead(&self, _environment: &Environment, _root: &Path) -> Option<usize> {
        None
    }
}

/// The manifests that a command would change, as it would leave them; by the member's place in the workspace.
#[derive(Debug, Clone, Default)]
pub struct ChangedManifests(Arc<BTreeMap<usize, Manifest>>);

impl ChangedManifests {
    /// The manifest of a member: as the command would leave it, or as the workspace has it.
    pub(crate) fn manifest<'m>(&'m self, workspace: &'m Workspace, index: usize) -> &'m Manifest {
        self.0.get(&index).unwrap_or_else(|| &workspace.members[index].manifest)
    }

    /// Has the command leave the member's manifest so.
    pub(crate) fn set(&mut self, index: usize, manifest: Manifest) {
        Arc::make_mut(&mut self.0).insert(index, manifest);
    }

    /// The changed ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Manifest)> {
        self.0.iter().map(|(&index, manifest)| (index, manifest))
    }
}
