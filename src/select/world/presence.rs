//! What is there once a candidate is chosen: a provider of its capabilities, what replaces others, and what
//! others conflict with. Nodes stand for these, so that nothing is there twice, or beside what excludes it.

use super::capabilities::Provider;
use super::nodes::Nodes;
use super::packages::Packages;
use crate::index::releases::Position;
use crate::reference::PackageId;
use crate::select::node::{Capability, Edge, NodeKind, PackageIndex};

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
        capability: Capability,
        is_meant: impl Fn(&Provider) -> bool,
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
                |provider| matches!(provider, Provider::Local(own) if own == id),
            ));
        }
        edges
    }
}
