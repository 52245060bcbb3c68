//! The manifests that a command would change: the session keeps its own as they were read.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::manifest::Manifest;
use crate::workspace::Workspace;

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
