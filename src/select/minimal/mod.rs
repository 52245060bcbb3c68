//! Minimal version selection, after Russ Cox: every requirement means its lowest match, and each package gets the highest
//! of those that are reachable from the roots.
//!
//! Needs no search and no lock: the same requirements give the same versions whatever is published later. Upper bounds
//! choose nothing; they are checked at the end.

pub(super) mod build;
mod change;
pub(super) mod check;
mod downgrade;
pub(super) mod providers;
mod replaced;
pub(super) mod requirements;
mod update;

use rustc_hash::FxHashMap;

use crate::index::releases::Position;
use crate::index::{Unavailable, Universe};
use crate::select::minimal::build::BuildList;
use crate::select::node::{Kind, Node};
use crate::select::outcome::{self, Asked};
use crate::select::world::{Ask, AskSet, World};
use crate::select::{Asker, Conflict, Failure, Request, Selection, Strategy, WayOut, ways_out};

/// The least versions that everything reachable asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Minimal;

impl Strategy for Minimal {
    fn select(&self, universe: &dyn Universe, request: &Request) -> Result<Selection, Failure> {
        let request = without_lock(request);
        let mut world = World::new(universe, &request).without_narrowing_upgrades();
        let list = match providers::complete(&mut world, &[])? {
            Ok(list) => list,
            Err(conflict) => {
                let smallest = check::smallest(&mut world, *conflict)?;
                return Err(Failure::Conflict(Box::new(smallest)));
            }
        };
        Ok(gather(&mut world, &list)?)
    }

    fn ways_out(
        &self,
        universe: &dyn Universe,
        request: &Request,
        conflict: &Conflict,
    ) -> Vec<WayOut> {
        ways_out::of_minimal(universe, request, conflict)
    }
}

pub use self::change::{Because, Change, Lowered};
pub use self::check::COMMAND;
pub use self::requirements::beginning_at;
pub(super) use self::requirements::compatible;

/// The request without what the lock holds, but for what only a lock can hold: where a branch was.
pub(super) fn without_lock(request: &Request) -> Request {
    let mut request = request.clone();
    for locked in request.locked.extract_if(.., |locked| locked.commit.is_none()) {
        if let Some(version) = locked.version {
            request.installed.entry(locked.id).or_insert(version);
        }
    }
    request
}

/// The selection that a build list is.
fn gather(world: &mut World<'_>, list: &BuildList) -> Result<Selection, Unavailable> {
    let mut required: Vec<Ask> = Vec::new();
    let mut met = AskSet::default();
    let mut besides: Vec<Asked> = Vec::new();
    for root in &world.request().roots {
        let asks = root.requirements.iter().map(|requirement| world.ask_for(requirement));
        required.extend(asks.filter(|&ask| met.insert(ask)));
    }
    let mut is_chosen = vec![false; list.visits.len()];
    list.chosen.values().for_each(|&visit| is_chosen[visit] = true);
    for (index, visit) in list.visits.iter().enumerate() {
        for &ask in world.asks_of(visit.place, visit.position)?.iter() {
            if met.insert(ask) {
                required.push(ask);
            }
            // What an older version asks for and nothing meets binds nobody.
            if !is_chosen[index] && is_met(world, ask)? {
                let id = world.package(visit.place).id().clone();
                besides.push((Asker::Package(id), ask));
            }
        }
    }
    let choices = choices(world, list, &required)?;
    outcome::gather(world, &|node| choices.get(&node).copied(), &besides)
}

fn is_met(world: &mut World<'_>, ask: Ask) -> Result<bool, Unavailable> {
    Ok(world.is_own(ask) || build::least(world, ask)?.is_some())
}

/// The build list, by the nodes that requirements lead to.
fn choices(
    world: &mut World<'_>,
    list: &BuildList,
    required: &[Ask],
) -> Result<FxHashMap<Node, Position>, Unavailable> {
    let mut choices = FxHashMap::default();
    // What nothing requires was chosen because it provides something.
    for (&(place, major), &visit) in &list.chosen {
        let node = world.line_node(place, major);
        choices.insert(node, list.visits[visit].position);
    }
    for &ask in required {
        let Some(mut edge) = world.edge_for(ask)? else { continue };
        if let Kind::Majors(place, set) = world.kind(edge.node).clone() {
            // Of several majors the lowest is meant.
            choices.insert(edge.node, 0);
            edge = world.choice_edge(place, &set, 0);
        }
        let line = match world.kind(edge.node) {
            Kind::Package(place) => (*place, 0),
            Kind::Line(place, major) => (*place, *major),
            _ => continue,
        };
        choices.extend(list.position(line).map(|position| (edge.node, position)));
    }
    Ok(choices)
}
