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
mod provision;
mod replaced;
pub(super) mod requirements;
mod update;

use rustc_hash::FxHashMap;

use crate::index::releases::Position;
use crate::index::{Unavailable, Universe};
use crate::select::minimal::build::BuildList;
use crate::select::node::{Kind, Node};
use crate::select::outcome::{self, Asked};
use crate::select::world::{Ask, World};
use crate::select::{
    Asker, Conflict, Failure, Majors, Request, Selection, Strategy, Unfinished, WayOut, ways_out,
};

/// The least versions that everything reachable asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Minimal;

impl Strategy for Minimal {
    fn select(&self, universe: &dyn Universe, request: &Request) -> Result<Selection, Failure> {
        let request = without_lock(request);
        let mut world = World::new(universe, &request).without_narrowing_upgrades();
        let list = match providers::complete(&mut world, &[]) {
            Err(Failure::Conflict(conflict)) => {
                let smallest = check::smallest(&mut world, *conflict)?;
                return Err(Failure::Conflict(Box::new(smallest)));
            }
            result => result?,
        };
        let chosen = list.chosen.values().map(|&visit| &list.visits[visit]);
        world.expect_chosen(chosen.map(|visit| (visit.place, visit.position)));
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

    fn ways_on(
        &self,
        universe: &dyn Universe,
        request: &Request,
        unfinished: &Unfinished,
    ) -> Vec<WayOut> {
        ways_out::on_from_minimal(universe, request, unfinished)
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
    let mut is_chosen = vec![false; list.visits.len()];
    list.chosen.values().for_each(|&visit| is_chosen[visit] = true);
    let mut besides: Vec<Asked> = Vec::new();
    for (visit, _) in list.visits.iter().zip(is_chosen).filter(|(_, is_chosen)| !is_chosen) {
        for &ask in world.asks_of(visit.place, visit.position)?.iter() {
            // What an older version asks for and nothing meets binds nobody.
            if world.is_own(ask) || build::least(world, ask)?.is_some() {
                let id = world.package(visit.place).id().clone();
                besides.push((Asker::Package(id), ask));
            }
        }
    }
    let choices = choices(world, list)?;
    outcome::gather(world, &|node| choices.get(&node).copied(), &besides)
}

/// The build list, by the nodes that requirements lead to.
fn choices(
    world: &mut World<'_>,
    list: &BuildList,
) -> Result<FxHashMap<Node, Position>, Unavailable> {
    let mut choices = FxHashMap::default();
    for (&(place, major), &visit) in &list.chosen {
        let node = world.line_node(place, major);
        choices.insert(node, list.visits[visit].position);
    }
    if world.request().settings.majors == Majors::One {
        return Ok(choices);
    }
    let roots = world.roots().to_vec();
    let roots = roots.iter().flat_map(|root| &root.requirements);
    let mut required: Vec<Ask> = roots.map(|requirement| world.ask_for(requirement)).collect();
    for visit in &list.visits {
        required.extend_from_slice(&world.asks_of(visit.place, visit.position)?);
    }
    for ask in required {
        let Some(edge) = world.edge_for(ask)? else { continue };
        if let Kind::Majors(..) = world.kind(edge.node) {
            // Of several majors the lowest is meant.
            choices.insert(edge.node, 0);
        }
    }
    Ok(choices)
}
