//! Conflicts between packages: a node for each package and capability that some version conflicts with, which
//! says whether it is chosen.
//!
//! A version that conflicts with it needs it not to be chosen; each version of that package, and each
//! provider of that capability, needs it to be chosen. So a conflict holds in both directions, whichever of
//! the two is chosen first.

use super::presence::Presence;
use crate::index::Unavailable;
use crate::index::releases::Position;
use crate::select::node::{Edge, NodeKind, PackageIndex};
use crate::select::positions::PositionSet;

/// The candidate that says that something is chosen.
const THERE: Position = 0;
/// The candidate that says that it is not.
const ABSENT: Position = 1;

/// Whether a set of candidates is the need of something that conflicts with it.
pub(in crate::select) fn is_opponent(set: &PositionSet) -> bool {
    !set.holds(THERE)
}

impl Presence<'_, '_> {
    /// The edges of a chosen candidate: nothing that it conflicts with is chosen, and nothing that conflicts
    /// with it.
    pub(super) fn edges_apart(
        &mut self,
        place: PackageIndex,
        position: Position,
    ) -> Result<Vec<Edge>, Unavailable> {
        let mut edges = Vec::new();
        for name in self.packages.conflicts_of(place, position)? {
            let opponent = self.packages.note_opponent(&name);
            // The workspace's own packages are there, whatever is chosen.
            let set = match self.packages.is_in_workspace(&name) {
                true => PositionSet::default(),
                false => std::iter::once(ABSENT).collect(),
            };
            edges.push(Edge { node: self.nodes.node(NodeKind::Opponent(opponent)), set });
        }
        if self.packages.opponents.is_empty() {
            return Ok(edges);
        }
        let (mut names, _) = self.packages.capabilities_of(place, position)?;
        names.push(self.packages.get(place).id.as_str().to_owned());
        for name in &names {
            let Some(opponent) = self.packages.opponents.get(name.as_str()).cloned() else {
                continue;
            };
            let set = std::iter::once(THERE).collect();
            edges.push(Edge { node: self.nodes.node(NodeKind::Opponent(opponent)), set });
        }
        Ok(edges)
    }

    /// What the workspace's own packages conflict with.
    pub(super) fn edges_apart_of_own(&mut self) -> Vec<Edge> {
        let own = &self.packages.request.own.conflicts;
        let mut edges = Vec::new();
        for name in own.keys() {
            if self.packages.is_in_workspace(name) {
                continue;
            }
            let opponent = self.packages.note_opponent(name);
            let set = std::iter::once(ABSENT).collect();
            edges.push(Edge { node: self.nodes.node(NodeKind::Opponent(opponent)), set });
        }
        edges
    }
}
