//! Packages that replace others, in the graph.
//!
//! A requirement on a package that something replaces leads to a node of its own ([`Kind::Met`]), which is met by the
//! package itself, or by a version that replaces it and is what was asked for. A second node ([`Kind::Role`]) says who has
//! the package's place: so it is never used beside what replaces it, and never has two that do. What replaces another
//! counts only where something asks for it; nothing is brought in because it would replace something.

use std::collections::BTreeMap;
use std::sync::Arc;

use pubgrub::VersionSet;
use rustc_hash::FxHashMap;

use super::{Ask, World};
use crate::index::releases::Position;
use crate::index::{Requirement, Unavailable};
use crate::reference::PackageId;
use crate::select::node::{Edge, Kind, Node};
use crate::select::positions::PositionSet;

/// The candidate of a role that the package itself has.
const ITSELF: Position = 0;
/// The candidate of a role that nobody has.
const NOBODY: Position = 1;

/// All replacements that were met.
#[derive(Debug, Default)]
pub(super) struct Replacements {
    known: Vec<Replaced>,
    places: FxHashMap<PackageId, usize>,
    /// The requirements on packages that something replaces.
    requirements: Vec<Requirement>,
    requirement_places: FxHashMap<Requirement, usize>,
    /// What stands for what, for a strategy that does not search.
    fixed: Option<BTreeMap<PackageId, PackageId>>,
}

/// A package that others replace.
#[derive(Debug)]
struct Replaced {
    id: PackageId,
    by: Vec<Replacer>,
}

/// A package that replaces another one, in some of its versions.
#[derive(Debug)]
struct Replacer {
    place: usize,
    versions: PositionSet,
}

impl Replacements {
    /// Those of a strategy that does not search, but says what stands for what.
    pub(super) fn fixed() -> Self {
        Self { fixed: Some(BTreeMap::new()), ..Self::default() }
    }
}

impl World<'_> {
    /// Says what stands for what, for a strategy that does not search.
    pub(in crate::select) fn replace(&mut self, stand_ins: BTreeMap<PackageId, PackageId>) {
        if self.replacements.fixed.as_ref() != Some(&stand_ins) {
            self.replacements.fixed = Some(stand_ins);
            self.asked.forget_answers();
        }
    }

    /// What stands for what, by a strategy that does not search.
    pub(in crate::select) fn stand_ins(&self) -> Option<&BTreeMap<PackageId, PackageId>> {
        self.replacements.fixed.as_ref()
    }

    /// What a requirement becomes where something stands for what it asks for.
    pub(super) fn instead(&self, requirement: &Requirement) -> Option<Requirement> {
        let stand_ins = self.replacements.fixed.as_ref().filter(|fixed| !fixed.is_empty())?;
        let by = stand_ins.get(&requirement.id)?;
        Some(Requirement { id: by.clone(), ..requirement.clone() })
    }

    /// The packages that a candidate says it replaces.
    pub(in crate::select) fn declared_replaces(
        &self,
        place: usize,
        position: Position,
    ) -> Result<Vec<PackageId>, Unavailable> {
        let package = &self.packages[place];
        if let Some(details) = package.details(position) {
            return Ok(details.replaces.clone());
        }
        if !package.releases().is_repository() {
            return Ok(Vec::new());
        }
        let declared = self.universe.declared(package.releases(), package.candidate(position))?;
        Ok(declared.map(|declared| declared.replaces.clone()).unwrap_or_default())
    }

    /// The packages that a candidate replaces.
    pub(in crate::select) fn replaced_by(
        &self,
        place: usize,
        position: Position,
    ) -> Result<Vec<PackageId>, Unavailable> {
        let mut replaced = self.declared_replaces(place, position)?;
        replaced.retain(|id| self.may_replace(self.packages[place].id(), id));
        Ok(replaced)
    }

    /// Whether a node is about a package that something replaces, or that says that it has moved.
    pub(super) fn may_have_replacements(&self, node: Node) -> bool {
        match self.kind(node) {
            Kind::Met(_) | Kind::Role(_) => true,
            Kind::Package(place) | Kind::Line(place, _) | Kind::Majors(place, _) => {
                let package = &self.packages[*place];
                self.replacements.places.contains_key(package.id()) || package.has_moved()
            }
            _ => false,
        }
    }

    /// Whether `by` can stand for `id` at all: not for the workspace's own packages, nor where the settings say otherwise.
    fn may_replace(&self, by: &PackageId, id: &PackageId) -> bool {
        let settings = &self.request.settings;
        by != id
            && !self.request.is_own(id)
            && !settings.overrides.contains_key(id)
            && settings.replacements.get(id).is_none_or(|only| only == by)
    }

    /// Notes what the package at a place, which was just read, replaces.
    pub(super) fn note_replaced(&mut self, place: usize) {
        if self.replacements.fixed.is_some() {
            return;
        }
        for (id, versions) in self.packages[place].replaced() {
            if self.may_replace(self.packages[place].id(), &id) {
                self.add_replacer(&id, place, versions);
            }
        }
    }

    fn add_replacer(&mut self, id: &PackageId, place: usize, versions: PositionSet) {
        let replacements = &mut self.replacements;
        let known = *replacements.places.entry(id.clone()).or_insert_with(|| {
            replacements.known.push(Replaced { id: id.clone(), by: Vec::new() });
            replacements.known.len() - 1
        });
        let by = &mut replacements.known[known].by;
        match by.iter_mut().find(|replacer| replacer.place == place) {
            Some(replacer) if versions.subset_of(&replacer.versions) => return,
            Some(replacer) => replacer.versions = replacer.versions.union(&versions),
            None => by.push(Replacer { place, versions }),
        }
        // Whoever asked for it before took it for a package like any other.
        self.is_outdated |= self.places.contains_key(id);
    }

    /// What it means that a candidate is chosen: that it has its own place, and that of what it replaces.
    pub(super) fn edges_of_roles(
        &mut self,
        place: usize,
        position: Position,
    ) -> Result<Vec<Edge>, Unavailable> {
        if self.replacements.fixed.is_some() {
            return Ok(Vec::new());
        }
        let mut edges = Vec::new();
        for id in self.replaced_by(place, position)? {
            // Manifests of a repository are read one by one.
            self.add_replacer(&id, place, PositionSet::singleton(position));
            let known = self.replacements.places[&id];
            let mut by = self.replacements.known[known].by.iter();
            let index = by.position(|replacer| replacer.place == place);
            let role = NOBODY + 1 + index.unwrap_or_default() as Position;
            let set = PositionSet::singleton(NOBODY).union(&PositionSet::singleton(role));
            edges.push(Edge { node: self.node(Kind::Role(known)), set });
        }
        if let Some(&known) = self.replacements.places.get(self.packages[place].id()) {
            let set = PositionSet::singleton(ITSELF);
            edges.push(Edge { node: self.node(Kind::Role(known)), set });
        }
        Ok(edges)
    }

    /// The edge to the ways to meet a requirement on a package that something replaces; none if nothing does.
    pub(super) fn edge_to_ways(&mut self, requirement: &Requirement) -> Option<Edge> {
        let known = *self.replacements.places.get(&requirement.id)?;
        let ways = 1 + self.replacements.known[known].by.len();
        let replacements = &mut self.replacements;
        let index = match replacements.requirement_places.get(requirement) {
            Some(&index) => index,
            None => {
                let index = replacements.requirements.len();
                replacements.requirements.push(requirement.clone());
                replacements.requirement_places.insert(requirement.clone(), index);
                index
            }
        };
        let set = PositionSet::between(0, ways as Position);
        Some(Edge { node: self.node(Kind::Met(index)), set })
    }

    /// The same of a requirement that has a number.
    pub(super) fn edge_to_ways_for(&mut self, ask: Ask) -> Option<Edge> {
        if self.replacements.known.is_empty() {
            return None;
        }
        let requirement = Arc::clone(self.requirement(ask));
        self.edge_to_ways(&requirement)
    }

    /// The requirement that a [`Kind::Met`] is about.
    pub(in crate::select) fn met(&self, index: usize) -> &Requirement {
        &self.replacements.requirements[index]
    }

    /// The place of the package that it asks for.
    pub(super) fn place_of_met(&self, index: usize) -> Option<usize> {
        self.places.get(&self.met(index).id).copied()
    }

    /// The package that a [`Kind::Role`] is of.
    pub(in crate::select) fn role(&self, known: usize) -> &PackageId {
        &self.replacements.known[known].id
    }

    /// Whether a set of candidates of a role leaves it to something that replaces the package.
    pub(in crate::select) fn is_taken(set: &PositionSet) -> bool {
        !set.holds(ITSELF) && !set.is_empty()
    }

    /// The edge from one way to meet a requirement to the package that does, in the versions that do.
    pub(in crate::select) fn edge_of_way(
        &mut self,
        index: usize,
        way: Position,
    ) -> Result<Edge, Unavailable> {
        let requirement = self.replacements.requirements[index].clone();
        let Some(replacer) = way.checked_sub(1) else {
            let (place, set) = self.accepted(&requirement)?;
            return Ok(self.edge_to(place, set));
        };
        let known = self.replacements.places[&requirement.id];
        let Replacer { place, versions } = &self.replacements.known[known].by[replacer as usize];
        let (place, versions) = (*place, versions.clone());
        let id = self.packages[place].id().clone();
        let (_, set) = self.accepted(&Requirement { id, ..requirement })?;
        Ok(self.edge_to(place, set.intersection(&versions)))
    }

    /// What one way to meet a requirement needs.
    pub(super) fn edges_of_way(
        &mut self,
        node: Node,
        index: usize,
        way: Position,
    ) -> Result<Vec<Edge>, Unavailable> {
        let edge = self.edge_of_way(index, way)?;
        let Some(place) = self.place(edge.node) else { return Ok(vec![edge]) };
        self.note_named(place, &edge.set, (node, None), way);
        let mut edges = vec![edge];
        if way > 0 {
            let known = self.replacements.places[&self.met(index).id];
            let set = PositionSet::singleton(NOBODY + way);
            edges.push(Edge { node: self.node(Kind::Role(known)), set });
            edges.extend(self.edge_to_wanted(place));
        }
        Ok(edges)
    }

    /// The way to meet a requirement that is tried first: the package itself, else what comes first by its id.
    pub(in crate::select) fn preferred_way(
        &self,
        index: usize,
        set: &PositionSet,
    ) -> Option<Position> {
        let known = *self.replacements.places.get(&self.met(index).id)?;
        let by = &self.replacements.known[known].by;
        set.iter().take_while(|&way| way as usize <= by.len()).min_by_key(|&way| {
            let replacer = way.checked_sub(1).map(|index| &by[index as usize]);
            replacer.map(|replacer| self.packages[replacer.place].id())
        })
    }
}
