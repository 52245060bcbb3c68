//! Capabilities in the graph: a node for each, whose candidates are those who can provide it.
//!
//! Whoever requires a capability needs some candidate of its node, whoever provides it needs the candidate that it is itself,
//! and the candidate needs the versions that provide it: so there is a provider, and never a second one. A package that is
//! not listed as a provider counts only where something that is chosen asks for it.

use pubgrub::VersionSet;
use rustc_hash::FxHashMap;

use super::World;
use crate::index::Unavailable;
use crate::index::releases::Position;
use crate::reference::PackageId;
use crate::select::namers::Topic;
use crate::select::node::{Edge, Kind, Node};
use crate::select::positions::PositionSet;

/// All capabilities that were met.
#[derive(Debug, Default)]
pub(super) struct Capabilities {
    known: Vec<Capability>,
    places: FxHashMap<Box<str>, usize>,
}

/// A capability, and who can provide it.
#[derive(Debug)]
struct Capability {
    name: Box<str>,
    /// Candidates of its node.
    providers: Vec<Provider>,
    /// The packages that registries list, each with its place in their order.
    listed: FxHashMap<PackageId, usize>,
    /// Whether something requires it.
    is_required: bool,
    /// Whether somebody knows how many providers there are.
    is_handed_out: bool,
}

/// Someone who can provide a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::select) enum Provider {
    /// A package of the workspace.
    Local(PackageId),
    /// The package at a place, in some of its versions. One with versions outside its default channel is there a second time,
    /// with those inside alone.
    Package(usize, PositionSet),
}

/// How much a provider is preferred; the least comes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'r> {
    is_fetched: bool,
    is_unlocked: bool,
    listed: usize,
    id: &'r PackageId,
    /// Its place among the providers, where versions in the default channel come before all.
    index: usize,
}

impl World<'_> {
    /// The name of the capability at a place that a [`Kind`] names.
    pub(in crate::select) fn capability(&self, capability: usize) -> &str {
        &self.capabilities.known[capability].name
    }

    /// Those who can provide a capability.
    pub(in crate::select) fn providers(&self, capability: usize) -> &[Provider] {
        &self.capabilities.known[capability].providers
    }

    /// The capabilities that a candidate provides, and those that it requires.
    pub(in crate::select) fn capabilities_of(
        &mut self,
        place: usize,
        position: Position,
    ) -> Result<(Vec<String>, Vec<String>), Unavailable> {
        let package = &self.packages[place];
        if let Some(details) = package.details(position) {
            return Ok((details.provides.clone(), details.requires.clone()));
        }
        let releases = package.releases();
        let declared = self.universe.declared(releases, package.candidate(position))?;
        let Some(declared) = declared else { return Ok((Vec::new(), Vec::new())) };
        for name in &declared.provides {
            self.note_provided_by(name, place, position);
        }
        Ok((declared.provides.clone(), declared.requires.clone()))
    }

    /// Whether anything that was met requires a capability.
    pub(in crate::select) fn requires_capabilities(&self) -> bool {
        self.capabilities.known.iter().any(|capability| capability.is_required)
    }

    /// The place of a capability, which comes into being if it was not known; the workspace's own providers come first.
    fn place_of_capability(&mut self, name: &str) -> usize {
        if let Some(&place) = self.capabilities.places.get(name) {
            return place;
        }
        let place = self.capabilities.known.len();
        let own = self.request.own.provides.get(name).into_iter().flatten();
        self.capabilities.known.push(Capability {
            name: name.into(),
            providers: own.cloned().map(Provider::Local).collect(),
            listed: FxHashMap::default(),
            is_required: false,
            is_handed_out: false,
        });
        self.capabilities.places.insert(name.into(), place);
        place
    }

    /// Notes what the package at a place, which was just read, provides.
    pub(super) fn note_provided(&mut self, place: usize) {
        for (name, versions, preferred) in self.packages[place].provided() {
            for versions in preferred.into_iter().chain([versions]) {
                self.add_provider(&name, place, versions);
            }
        }
    }

    fn add_provider(&mut self, name: &str, place: usize, versions: PositionSet) {
        let capability = self.place_of_capability(name);
        let capability = &mut self.capabilities.known[capability];
        capability.providers.push(Provider::Package(place, versions));
        self.is_outdated |= capability.is_handed_out;
    }

    /// Notes that a version of a repository, whose manifest was just read, provides something.
    fn note_provided_by(&mut self, name: &str, place: usize, position: Position) {
        let capability = self.place_of_capability(name);
        let providers = &mut self.capabilities.known[capability].providers;
        let known = providers.iter_mut().find_map(|provider| match provider {
            Provider::Package(own, versions) if *own == place => Some(versions),
            _ => None,
        });
        let one = PositionSet::singleton(position);
        match known {
            Some(versions) if versions.holds(position) => {}
            Some(versions) => {
                *versions = versions.union(&one);
                self.is_outdated = true;
            }
            None => self.add_provider(name, place, one),
        }
    }

    /// Finds who can provide a capability that `near` requires, with those that the registry of `near` lists.
    pub(in crate::select) fn require(
        &mut self,
        name: &str,
        near: &PackageId,
    ) -> Result<(usize, Vec<usize>), Unavailable> {
        let listed = self.universe.providing(name, near)?;
        let request = self.request;
        let listed: Vec<PackageId> =
            listed.iter().filter(|id| !request.is_own(id)).cloned().collect();
        self.expect(listed.iter());
        let mut places = Vec::with_capacity(listed.len());
        for id in &listed {
            places.push(self.find(id)?);
        }
        let place = self.place_of_capability(name);
        let capability = &mut self.capabilities.known[place];
        self.is_outdated |= !capability.is_required && !self.edges.is_empty();
        capability.is_required = true;
        for id in listed {
            let next = capability.listed.len();
            capability.listed.entry(id).or_insert(next);
        }
        Ok((place, places))
    }

    /// What the root needs besides its requirements: what the workspace's packages require.
    pub(super) fn edges_of_own(&mut self) -> Result<Vec<Edge>, Unavailable> {
        let required = self.own_requires.clone();
        let mut edges = Vec::new();
        for (name, by) in required.iter() {
            for near in by.values() {
                edges.push(self.edge_to_provider(name, near, Node::ROOT, 0)?);
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
        for place in listed.into_iter().filter(|place| Some(*place) != own) {
            let way = (by, Some(capability));
            self.is_outdated |= self.namers.note(Topic::Package(place), way, position);
        }
        let known = &mut self.capabilities.known[capability];
        known.is_handed_out = true;
        let set = PositionSet::between(0, known.providers.len() as Position);
        Ok(Edge { node: self.node(Kind::Capability(capability)), set })
    }

    /// What the candidate at `position` needs for what it provides and requires.
    pub(super) fn edges_of_capabilities(
        &mut self,
        place: usize,
        by: Node,
        position: Position,
    ) -> Result<Vec<Edge>, Unavailable> {
        let (provides, requires) = self.capabilities_of(place, position)?;
        let mut edges = Vec::new();
        for name in &provides {
            let capability = self.place_of_capability(name);
            let providers = self.providers(capability).iter().enumerate();
            let own = providers.filter(|(_, provider)| match provider {
                Provider::Package(own, versions) => *own == place && versions.holds(position),
                Provider::Local(_) => false,
            });
            let set = own.map(|(index, _)| index as Position).collect();
            edges.push(Edge { node: self.node(Kind::Capability(capability)), set });
        }
        let near = self.packages[place].releases().id().clone();
        for name in &requires {
            edges.push(self.edge_to_provider(name, &near, by, position)?);
        }
        Ok(edges)
    }

    /// What asking for a package of the workspace means: it is the one that provides what it provides.
    pub(super) fn edges_of_local(&mut self, id: &PackageId) -> Vec<Edge> {
        let own = &self.request.own.provides;
        let provided = own.iter().filter(|(_, by)| by.contains(id));
        let mut edges = Vec::new();
        for (name, _) in provided {
            let capability = self.place_of_capability(name);
            let providers = self.providers(capability).iter();
            let set = providers
                .enumerate()
                .filter(|(_, provider)| matches!(provider, Provider::Local(own) if own == id))
                .map(|(index, _)| index as Position)
                .collect();
            edges.push(Edge { node: self.node(Kind::Capability(capability)), set });
        }
        edges
    }

    /// What a candidate of a capability needs: one of the versions that provide it, and that something asks for them.
    pub(super) fn edges_of_provider(&mut self, capability: usize, provider: Position) -> Vec<Edge> {
        let known = &self.capabilities.known[capability];
        let is_required = known.is_required;
        let (place, versions) = match &known.providers[provider as usize] {
            Provider::Local(_) => return Vec::new(),
            Provider::Package(place, versions) => (*place, versions.clone()),
        };
        let mut edges = vec![self.edge_to(place, versions)];
        if is_required {
            edges.extend(self.edge_to_wanted(place));
        }
        edges
    }

    /// The edge that says that something asks for a package; none if the root does.
    pub(super) fn edge_to_wanted(&mut self, place: usize) -> Option<Edge> {
        if !self.notes_askers {
            self.notes_askers = true;
            self.is_outdated = true;
        }
        let set = self.namers.of(Topic::Package(place))?;
        Some(Edge { node: self.node(Kind::Wanted(place)), set })
    }

    /// What it means that one of those who ask for a package does so: it is chosen, and something asks for it in turn.
    pub(super) fn edges_of_asker(&mut self, place: usize, asker: Position) -> Vec<Edge> {
        let Some((edge, way)) = self.namers.edge_to_namer(Topic::Package(place), asker) else {
            return Vec::new();
        };
        let above = self.place(edge.node);
        let mut edges = vec![edge];
        if let Some(capability) = way {
            let providers = self.providers(capability).iter().enumerate();
            let own = providers.filter(
                |(_, provider)| matches!(provider, Provider::Package(own, _) if *own == place),
            );
            let set = own.map(|(index, _)| index as Position).collect();
            edges.push(Edge { node: self.node(Kind::Capability(capability)), set });
        }
        edges.extend(above.and_then(|above| self.edge_to_wanted(above)));
        edges
    }

    /// The candidate of a capability within `set` that is tried first: the workspace's own, what the lock holds, then in the
    /// order in which registries list them, versions in the default channel before others.
    pub(in crate::select) fn preferred_provider(
        &self,
        capability: usize,
        set: &PositionSet,
    ) -> Option<Position> {
        let known = &self.capabilities.known[capability];
        let within = set.iter().take_while(|&index| (index as usize) < known.providers.len());
        within.min_by_key(|&index| self.rank(known, index as usize))
    }

    /// Those who can provide a capability, the preferred first, and whether a registry lists them.
    pub(in crate::select) fn ranked_providers(&self, name: &str) -> Vec<(&Provider, bool)> {
        let Some(&capability) = self.capabilities.places.get(name) else { return Vec::new() };
        let known = &self.capabilities.known[capability];
        let mut ranks: Vec<Rank<'_>> =
            (0..known.providers.len()).map(|index| self.rank(known, index)).collect();
        ranks.sort_unstable();
        let ranked = ranks.into_iter();
        ranked.map(|rank| (&known.providers[rank.index], rank.listed != usize::MAX)).collect()
    }

    fn rank<'r>(&'r self, known: &'r Capability, index: usize) -> Rank<'r> {
        match &known.providers[index] {
            Provider::Local(id) => {
                Rank { is_fetched: false, is_unlocked: false, listed: 0, id, index }
            }
            Provider::Package(place, versions) => {
                let package = &self.packages[*place];
                Rank {
                    is_fetched: true,
                    is_unlocked: package.kept(versions).is_none(),
                    listed: known.listed.get(package.id()).copied().unwrap_or(usize::MAX),
                    id: package.id(),
                    index,
                }
            }
        }
    }

    /// The provider of a capability among chosen candidates: the workspace's own, or a place and a position.
    pub(in crate::select) fn chosen_provider(
        &self,
        name: &str,
        chosen: &dyn Fn(usize, &PositionSet) -> Option<Position>,
    ) -> Option<Result<(usize, Position), PackageId>> {
        let &capability = self.capabilities.places.get(name)?;
        let mut providers = self.providers(capability).iter().rev();
        providers
            .find_map(|provider| match provider {
                Provider::Local(_) => None,
                Provider::Package(place, versions) => Some(Ok((*place, chosen(*place, versions)?))),
            })
            .or_else(|| {
                let mut own = self.providers(capability).iter();
                own.find_map(|provider| match provider {
                    Provider::Local(id) => Some(Err(id.clone())),
                    Provider::Package(..) => None,
                })
            })
    }
}
