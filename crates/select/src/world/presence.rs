//! What is there once a candidate is chosen: a provider of its capabilities, what replaces others, and what
//! others conflict with. Nodes stand for these, so that nothing is there twice, or beside what excludes it.
//!
//! Conflicts between packages have a node for each package and capability that some version conflicts with, which says whether it is
//! chosen. A version that conflicts with it needs it not to be chosen; each version of that package, and each
//! provider of that capability, needs it to be chosen. So a conflict holds in both directions, whichever of
//! the two is chosen first.

use mu_manifest::reference::PackageId;

use super::capabilities::CapabilityProvider;
use super::nodes::Nodes;
use super::packages::Packages;
use crate::node::{CapabilityIndex, Edge, NodeKind, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::Unavailable;

/// Finds the edges that say what is there. Those about packages that replace others are in [`super::stand_ins`],
/// and those about conflicts in [`super::apart`].
pub(super) struct Presence<'w, 'a> {
    pub(super) packages: &'w mut Packages<'a>,
    pub(super) nodes: &'w mut Nodes,
}

impl Presence<'_, '_> {
    /// The edge to the providers of a capability that `is_meant` selects.
    pub(super) fn edge_to_some(
        &mut self,
        capability: CapabilityIndex,
        is_meant: impl Fn(&CapabilityProvider) -> bool,
    ) -> Edge {
        let providers = self.packages.capabilities.providers(capability).iter();
        let meant = (0..).zip(providers).filter(|(_, provider)| is_meant(provider));
        let set = meant.map(|(index, _)| index).collect();
        Edge { node: self.nodes.node(NodeKind::ProviderChoice(capability)), set }
    }

    /// The effect of choosing a candidate: it is the provider of what it provides.
    pub(super) fn edges_of_provided(
        &mut self,
        provides: &[String],
        place: PackageIndex,
        position: Position,
    ) -> Vec<Edge> {
        let own = &self.packages.request.own;
        let mut edges = Vec::new();
        for name in provides {
            let capability = self.packages.capabilities.find_or_add(own, name);
            edges.push(self.edge_to_some(capability, |provider| {
                let package = provider.package();
                package.is_some_and(|(own, versions)| own == place && versions.holds(position))
            }));
        }
        edges
    }

    /// The effect of requiring a package of the workspace: it is the provider of what it provides.
    pub(super) fn edges_of_local(&mut self, id: &PackageId) -> Vec<Edge> {
        let own = &self.packages.request.own;
        let provided = own.provides.iter().filter(|(_, by)| by.contains(id));
        let mut edges = Vec::new();
        for (name, _) in provided {
            let capability = self.packages.capabilities.find_or_add(own, name);
            edges.push(self.edge_to_some(
                capability,
                |provider| matches!(provider, CapabilityProvider::Local(own) if own == id),
            ));
        }
        edges
    }
}

/// The candidate that says that something is chosen.
const THERE: Position = 0;
/// The candidate that says that it is not.
const ABSENT: Position = 1;

/// Whether a set of candidates is the need of something that conflicts with it.
pub(crate) fn is_opponent(set: &PositionSet) -> bool {
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
