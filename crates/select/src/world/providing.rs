//! What is there once a candidate is chosen: capabilities, of which each is a node whose candidates are the possible providers,
//! what replaces others, and what others conflict with. Nodes stand for these, so that nothing is there twice, or beside what
//! excludes it.
//!
//! What requires a capability needs some candidate of its node, what provides it needs the candidate that is itself, and the
//! candidate needs the versions that provide it. So there is a provider, and never a second one.
//!
//! Conflicts between packages have a node for each package and capability that some version conflicts with, which says whether
//! it is chosen. A version that conflicts with it needs it not to be chosen; each version of that package, and each provider of
//! that capability, needs it to be chosen. So a conflict holds in both directions, whichever of the two is chosen first.

use std::collections::BTreeSet;

use mu_manifest::reference::PackageId;

use super::World;
use super::capabilities::CapabilityProvider;
use super::nodes::Nodes;
use super::packages::Packages;
use crate::namers::{Namer, Topic};
use crate::node::{CapabilityIndex, Edge, Node, NodeKind, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::Unavailable;

impl World<'_> {
    /// Finds the possible providers of a capability that `near` requires, with those that the registry of
    /// `near` lists.
    pub(crate) fn require(
        &mut self,
        name: &str,
        near: &PackageId,
    ) -> Result<(CapabilityIndex, Vec<PackageIndex>), Unavailable> {
        let listed = self.universe().providing(name, near)?;
        let request = self.request();
        // What the settings say comes before what registries list.
        // The workspace's own packages are positions of the capability's node already; none of them is looked up in a
        // registry.
        let stated = request.settings.capabilities.providers(name);
        let mut all: Vec<PackageId> =
            stated.chain(&*listed).filter(|id| !request.is_own(id)).cloned().collect();
        let mut seen = BTreeSet::new();
        all.retain(|id| seen.insert(id.clone()));
        let listed = all;
        // All are read before the number of providers is handed out: a provider that turned up afterwards would start
        // the search again.
        self.packages.expect(listed.iter());
        let mut places = Vec::with_capacity(listed.len());
        for id in &listed {
            places.push(self.packages.find(id)?);
        }
        let capability = self.packages.capabilities.find_or_add(&request.own, name);
        let is_new = self.packages.capabilities.note_required(capability, listed);
        // Earlier edges to its providers did not say that something must require them.
        // As long as no edges are kept, as for what the root requires in a first search, nothing can be outdated.
        self.packages.is_outdated |= is_new && !self.edges.is_empty();
        Ok((capability, places))
    }

    /// What the root needs in addition to its requirements: what the workspace's packages require.
    pub(super) fn edges_of_own(&mut self) -> Result<Vec<Edge>, Unavailable> {
        let required = self.own_requires.clone();
        let mut edges = Vec::new();
        for (name, by) in required.iter() {
            for near in by.values() {
                edges.push(self.edge_to_provider(name, near, Node::GRAPH_ROOT, 0)?);
            }
        }
        edges.dedup();
        Ok(edges)
    }

    fn edge_to_provider(
        &mut self,
        name: &str,
        near: &PackageId,
        by: Node,
        position: Position,
    ) -> Result<Edge, Unavailable> {
        let (capability, listed) = self.require(name, near)?;
        let own = self.place(by);
        // Being listed as a provider is a reason to be there. A package that only says of itself that it provides the
        // capability gets no such note: it has to be required by somebody (`edge_to_requested`).
        for place in listed.into_iter().filter(|place| Some(*place) != own) {
            self.note_namer(Topic::Package(place), Namer::by_capability(by, capability), position);
        }
        let set = self.packages.capabilities.hand_out(capability);
        Ok(Edge { node: self.node(NodeKind::ProviderChoice(capability)), set })
    }

    /// What the candidate at `position` needs because of the capabilities that it provides and requires.
    pub(super) fn edges_of_capabilities(
        &mut self,
        place: PackageIndex,
        by: Node,
        position: Position,
    ) -> Result<Vec<Edge>, Unavailable> {
        let (provides, requires) = self.packages.capabilities_of(place, position)?;
        let mut edges = self.presence().edges_of_provided(&provides, place, position);
        // The registry that is asked for providers is that of the package whose releases these are: that of the
        // override, if there is one.
        let near = self.package(place).releases.id().clone();
        for name in &requires {
            edges.push(self.edge_to_provider(name, &near, by, position)?);
        }
        Ok(edges)
    }

    /// What a candidate of a capability needs: one of the versions that provide it, and something that
    /// requires them.
    pub(super) fn edges_of_provider(
        &mut self,
        capability: CapabilityIndex,
        provider: Position,
    ) -> Vec<Edge> {
        let provider = self.packages.capabilities.providers(capability)[provider as usize].clone();
        // A package of the workspace is there anyway.
        let CapabilityProvider::Package(place, versions) = provider else { return Vec::new() };
        let mut edges = vec![self.edge_to(place, versions)];
        // If nothing requires the capability, only the provider itself leads here, and it was chosen for another
        // reason.
        if self.packages.capabilities.is_required(capability) {
            edges.extend(self.edge_to_requested(place));
        }
        edges
    }

    /// The edge that says that something requires a package; `None` if the root does.
    pub(super) fn edge_to_requested(&mut self, place: PackageIndex) -> Option<Edge> {
        // From the first such question on, requirers are recorded. What was followed before lacks them, so the search
        // starts again, once.
        if !self.notes_askers {
            self.notes_askers = true;
            self.packages.is_outdated = true;
        }
        let set = self.namers.named_positions(Topic::Package(place))?;
        Some(Edge { node: self.node(NodeKind::PackageRequirer(place)), set })
    }

    /// Allows at most `most` packages that are there only for what they provide, and fixes some chosen
    /// candidates.
    pub(crate) fn allow_providers(
        &mut self,
        fixed: &[(PackageIndex, PositionSet)],
        most: Position,
    ) -> Result<(), Unavailable> {
        // The root is made to need what it needs, and in addition that everything in `fixed` stays. `slots` then has
        // each other provider take one of `most` slots, of which each has room for one.
        self.raised.clear();
        let mut edges = self.root_edges()?;
        edges.extend(fixed.iter().map(|(place, set)| self.edge_to(*place, set.clone())));
        self.narrow_root(edges);
        self.slots = Some(most);
        Ok(())
    }

    /// What a requirer of a package needs: it is chosen, and something requires it in turn.
    pub(super) fn edges_of_asker(&mut self, place: PackageIndex, asker: Position) -> Vec<Edge> {
        let Some((edge, way)) = self.namers.edge_to_namer(Topic::Package(place), asker) else {
            return Vec::new();
        };
        // The requirer must be there for a reason, too: it may be a package that nothing but this would bring in. This
        // chain of edges ends at the root, which has no package.
        let above = self.place(edge.node);
        let mut edges = vec![edge];
        // It was reached as a listed provider, so it must really be the provider of that capability, and not just be
        // named in a list while another package provides it.
        if let Some(capability) = way {
            edges.push(self.presence().edge_to_some(capability, |provider| {
                provider.package().is_some_and(|(own, _)| own == place)
            }));
            if let Some(most) = self.slots {
                let set = PositionSet::position_range(0, most);
                edges.push(Edge { node: self.node(NodeKind::SlotChoice(place)), set });
            }
        }
        edges.extend(above.and_then(|above| self.edge_to_requested(above)));
        edges
    }
}

/// Finds the edges that say what is there. Those about packages that replace others are in [`super::stand_ins`],
/// and those about conflicts in [`super::apart`].
pub(super) struct Presence<'w, 'a> {
    pub(super) packages: &'w mut Packages<'a>,
    pub(super) nodes: &'w mut Nodes,
}

impl Presence<'_, '_> {
    /// The edge to the providers of a capability that `is_meant` selects.
    fn edge_to_some(
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
    fn edges_of_provided(
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
