//! Packages that replace others, in the graph.
//!
//! A requirement on a replaceable package leads to a separate node ([`NodeKind::ReplacementChoice`]), which is met by the
//! package itself, or by a version that replaces it and fits the requirement. A second node ([`NodeKind::Occupant`])
//! says what has the package's place: so the package is never used together with its replacement, and never
//! has two.
//!
//! Here is also what `diagnose` makes of these nodes: conflicts about packages that replace others, as facts. `explain` puts them into words.

use mu_manifest::reference::PackageId;
use pubgrub::VersionSet;

use super::World;
use super::providing::Presence;
use crate::conflict::{Fact, ReplacementClash, Requirer};
use crate::core::{FactGroup, GraphLink};
use crate::namers::Namer;
use crate::node::{Edge, Node, NodeKind, PackageIndex, RequirementIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::{Requirement, Unavailable};

/// The candidate of a role: the package itself.
// The positions of `Occupant(a)`, if `b` and `d` can replace `a`:
//
//     0 a itself   1 nobody   2 b   3 d
//
// and those of `ReplacementChoice` of a requirement on `a`, each one less than that of the same package:
//
//     0 a itself   1 b   2 d
const ITSELF: Position = 0;
/// The candidate of a role: nothing.
const NOBODY: Position = 1;

/// Whether a set of candidates of a role requires a replacement.
pub(crate) fn is_taken(set: &PositionSet) -> bool {
    !set.holds(ITSELF) && !set.is_empty()
}

impl Presence<'_, '_> {
    /// The edges of a chosen candidate: it has its own place, and the places of what it replaces.
    pub(super) fn edges_of_roles(
        &mut self,
        place: PackageIndex,
        position: Position,
    ) -> Result<Vec<Edge>, Unavailable> {
        if self.packages.replacements.are_fixed() {
            return Ok(Vec::new());
        }
        // For each package that this one replaces: either this one has its place, or nobody needs the place. A third
        // package, or the replaced one itself, cannot have it beside this one.
        let mut edges = Vec::new();
        for id in self.packages.replaced_by(place, position)? {
            // The manifests of a repository are read one by one.
            self.packages.note_replacer(&id, place, PositionSet::singleton(position));
            let Some(by) = self.packages.replacements.replacers(&id) else { continue };
            // It is among them, because it was just noted.
            let index = by.iter().position(|replacer| replacer.place == place);
            let own = NOBODY + 1 + index.unwrap_or_default() as Position;
            let set = PositionSet::singleton(NOBODY).union(&PositionSet::singleton(own));
            edges.push(Edge { node: self.nodes.node(NodeKind::Occupant(id)), set });
        }
        // A package that others can replace says that it has its own place. If nothing can replace it, nobody asks.
        let id = &self.packages.get(place).id;
        if self.packages.replacements.replacers(id).is_some() {
            let (role, set) = (NodeKind::Occupant(id.clone()), PositionSet::singleton(ITSELF));
            edges.push(Edge { node: self.nodes.node(role), set });
        }
        Ok(edges)
    }
}

impl World<'_> {
    /// The edge to the ways to meet a requirement on a replaceable package; `None` if nothing replaces it.
    pub(super) fn edge_to_ways(&mut self, need: RequirementIndex) -> Option<Edge> {
        if self.packages.replacements.is_empty() {
            return None;
        }
        let by = self.packages.replacements.replacers(&self.requirement(need).id)?;
        let set = PositionSet::position_range(0, 1 + by.len() as Position);
        Some(Edge { node: self.node(NodeKind::ReplacementChoice(need)), set })
    }

    /// The edge from one way to meet a requirement to the package and versions that meet it.
    pub(crate) fn edge_of_way(
        &mut self,
        need: RequirementIndex,
        way: Position,
    ) -> Result<Edge, Unavailable> {
        // Way 0 is the package itself, and any version of it that the requirement accepts will do.
        let Some(index) = way.checked_sub(1) else {
            let (place, set) = self.packages.meaning(need)?;
            let set = set.clone();
            return Ok(self.edge_to(place, set));
        };
        let requirement = self.requirement(need).clone();
        let by = self.packages.replacements.replacers(&requirement.id);
        let by = by.expect("there is a way only where something replaces it");
        let replacer = &by[index as usize];
        let (place, versions) = (replacer.place, replacer.versions.clone());
        let id = self.package(place).id.clone();
        // `a ^1`, met by `b`, means `b ^1`, in those of its versions that replace `a`.
        let (_, set) = self.accepted(&Requirement { id, ..(*requirement).clone() })?;
        Ok(self.edge_to(place, set.intersection(&versions)))
    }

    /// What one way to meet a requirement needs.
    pub(super) fn edges_of_way(
        &mut self,
        node: Node,
        need: RequirementIndex,
        way: Position,
    ) -> Result<Vec<Edge>, Unavailable> {
        let edge = self.edge_of_way(need, way)?;
        // A way may be chosen that was possible when its set was made, before anything else that replaces the package
        // was read.
        let Some(place) = self.place(edge.node) else { return Ok(vec![edge]) };
        self.note_named(place, &edge.set, Namer::by_name(node), way);
        let mut edges = vec![edge];
        let id = &self.requirement(need).id;
        // A replacement takes the place of the package, and something must require it for its own sake. Otherwise a
        // requirement on `a` could bring in any package of the world that says that it replaces `a`.
        if way > 0 && self.packages.replacements.replacers(id).is_some() {
            let (role, set) =
                (NodeKind::Occupant(id.clone()), PositionSet::singleton(NOBODY + way));
            edges.push(Edge { node: self.node(role), set });
            edges.extend(self.edge_to_requested(place));
        }
        Ok(edges)
    }

    /// The way to meet a requirement that is tried first: the package itself, else its first replacement by
    /// id.
    pub(crate) fn preferred_way(
        &self,
        need: RequirementIndex,
        set: &PositionSet,
    ) -> Option<Position> {
        let by = self.packages.replacements.replacers(&self.requirement(need).id)?;
        // `None` comes before any id: the package itself is first. The order in which replacements were read does not
        // count.
        set.iter().take_while(|&way| way as usize <= by.len()).min_by_key(|&way| {
            let replacer = way.checked_sub(1).map(|index| &by[index as usize]);
            replacer.map(|replacer| &self.package(replacer.place).id)
        })
    }
}

/// The fact of a group that starts at a way to meet a requirement, or ends at a role; `None` if it does
/// neither.
pub(crate) fn fact_of_replacement(world: &World<'_>, group: &FactGroup) -> Option<Vec<Fact>> {
    let GraphLink { from, to, .. } = group[0];
    match (world.kind(from), world.kind(to)) {
        (NodeKind::ReplacementChoice(_), NodeKind::PackageRequirer(place)) => {
            let id = world.package(*place).id.clone();
            Some(vec![Fact::ReplacesWhereAsked { id }])
        }
        // The requirement of its package states this already.
        (NodeKind::ReplacementChoice(_), _) => Some(Vec::new()),
        (_, NodeKind::Occupant(id)) => {
            let taking = group.iter().filter(|link| is_taken(&link.set));
            let versions: PositionSet = taking.map(|link| &link.positions).collect();
            let by = world.place(from).filter(|_| !versions.is_empty());
            let by = by.map(|by| Requirer::versions(world.package(by), &versions));
            Some(by.map(|by| Fact::Replaces { by, id: id.clone() }).into_iter().collect())
        }
        _ => None,
    }
}

/// What is required of a package that `by` replaces, in the words of a clash about `by`.
pub(crate) fn asked_of_replaced(world: &World<'_>, id: &PackageId, asked: &str) -> String {
    format!("{asked} (required of {})", id.short(&world.request().settings.base))
}

/// Describes a role that several packages would have.
pub(crate) fn replacement_clash(
    world: &World<'_>,
    node: Node,
    groups: &[FactGroup],
) -> Option<ReplacementClash> {
    let NodeKind::Occupant(id) = world.kind(node) else { return None };
    let links = groups.iter().flatten().filter(|link| link.to == node);
    let taking = links.filter(|link| is_taken(&link.set));
    let mut by: Vec<&PackageId> = taking
        .filter(|link| !matches!(world.kind(link.from), NodeKind::ReplacementChoice(_)))
        .filter_map(|link| Some(&world.package(world.place(link.from)?).id))
        .collect();
    by.sort_unstable();
    by.dedup();
    (by.len() > 1).then(|| ReplacementClash::Several { id: id.clone() })
}
