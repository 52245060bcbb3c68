//! Raises direct dependencies where that lowers no other one.
//!
//! The search decides first what conflicts most, which is fast and gives new versions, but may hold a direct dependency
//! back for the sake of a package that nobody asked for. One more search, for an answer that is better in one direct
//! dependency and worse in none, finds that out; what obviously cannot be raised is left out of it.

use std::collections::VecDeque;

use pubgrub::VersionSet;
use rustc_hash::FxHashMap;

use crate::index::Unavailable;
use crate::index::releases::Position;
use crate::select::highest::{self, Answer, Choices, PATIENCE};
use crate::select::node::{Edge, Kind, Node};
use crate::select::positions::PositionSet;
use crate::select::world::World;

/// Raises direct dependencies as long as one can be raised without lowering another. Gives up where that is much harder
/// than finding a solution was. What the lock keeps is not raised.
pub(super) fn raise(world: &mut World<'_>, mut chosen: Choices) -> Result<Choices, Unavailable> {
    if !world.request().locked.is_empty() {
        return Ok(chosen);
    }
    let limit = PATIENCE + 4 * world.steps();
    let roots = world.edges(Node::ROOT, 0)?;
    loop {
        let possible = Possible::among_read(world, &roots);
        let mut narrowed = Vec::new();
        let mut higher = Vec::new();
        for Edge { node, set } in roots.iter() {
            let Some(&current) = chosen.get(node) else { continue };
            let better = better(world, *node, set, current);
            let better = better.intersection(&possible.of(*node));
            let set = better.union(&PositionSet::singleton(current));
            narrowed.push(Edge { node: *node, set });
            if !better.is_empty() {
                higher.push(Edge { node: *node, set: better });
            }
        }
        if higher.is_empty() {
            return Ok(chosen);
        }
        world.narrow_root(narrowed);
        world.demand_one_of(higher);
        match highest::solve(world, limit)? {
            Answer::Chosen(better) => chosen = better,
            Answer::Refuted(_) | Answer::GivenUp => return Ok(chosen),
        }
    }
}

/// The candidates of `node` within `set` that are preferred to `current`.
fn better(world: &World<'_>, node: Node, set: &PositionSet, current: Position) -> PositionSet {
    let above = set.intersection(&PositionSet::between(current + 1, Position::MAX));
    match world.kind(node) {
        Kind::Package(place) | Kind::Line(place, _) => {
            let package = world.package(*place);
            let releases = PositionSet::between(0, package.releases().len());
            match package.revision(current) {
                Some(_) => set.intersection(&releases),
                None => above.intersection(&releases),
            }
        }
        _ => above,
    }
}

/// Candidates of which it is not yet obvious that they cannot be chosen: something that they need, whatever is chosen of
/// it, needs something that the root rules out.
struct Possible {
    sets: FxHashMap<Node, PositionSet>,
}

impl Possible {
    /// Follows what was read backwards from what the root asks.
    fn among_read(world: &World<'_>, roots: &[Edge]) -> Self {
        let mut dependents: FxHashMap<Node, Vec<(Node, Position, &PositionSet)>> =
            FxHashMap::default();
        for (node, position, edges) in world.known_edges() {
            for edge in edges {
                dependents.entry(edge.node).or_default().push((node, position, &edge.set));
            }
        }
        let mut possible = Self { sets: FxHashMap::default() };
        for edge in roots {
            possible.keep(edge.node, &edge.set);
        }
        let mut changed: VecDeque<Node> = roots.iter().map(|edge| edge.node).collect();
        while let Some(node) = changed.pop_front() {
            let left = possible.of(node);
            for (dependent, position, set) in dependents.get(&node).into_iter().flatten() {
                if set.is_disjoint(&left) && possible.of(*dependent).holds(*position) {
                    possible.keep(*dependent, &PositionSet::singleton(*position).complement());
                    changed.push_back(*dependent);
                }
            }
        }
        possible
    }

    fn of(&self, node: Node) -> PositionSet {
        self.sets.get(&node).cloned().unwrap_or_else(PositionSet::full)
    }

    fn keep(&mut self, node: Node, set: &PositionSet) {
        let left = self.of(node).intersection(set);
        self.sets.insert(node, left);
    }
}
