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

use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::releases::Position;
use crate::index::{Requirement, Unavailable, Universe};
use crate::select::minimal::build::BuildList;
use crate::select::node::{Kind, Node};
use crate::select::outcome::{self, Asked};
use crate::select::world::World;
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
    let mut required: Vec<Requirement> = Vec::new();
    let mut besides: Vec<Asked> = Vec::new();
    for root in &world.request().roots {
        required.extend(root.requirements.iter().cloned());
    }
    let chosen: FxHashSet<usize> = list.chosen.values().copied().collect();
    for (index, visit) in list.visits.iter().enumerate() {
        let id = world.package(visit.place).id().clone();
        for requirement in world.requirements(visit.place, visit.position)?.iter() {
            required.push(requirement.clone());
            // What an older version asks for and nothing meets binds nobody.
            if !chosen.contains(&index) && is_met(world, requirement)? {
                besides.push((Asker::Package(id.clone()), requirement.clone()));
            }
        }
    }
    let choices = choices(world, list, &required)?;
    outcome::gather(world, &|node| choices.get(&node).copied(), &besides)
}

fn is_met(world: &mut World<'_>, requirement: &Requirement) -> Result<bool, Unavailable> {
    let is_local = world.request().is_own(&requirement.id);
    Ok(is_local || build::lowest(world, requirement)?.is_some())
}

/// The build list, by the nodes that requirements lead to.
fn choices(
    world: &mut World<'_>,
    list: &BuildList,
    required: &[Requirement],
) -> Result<FxHashMap<Node, Position>, Unavailable> {
    let mut choices = FxHashMap::default();
    // What nothing requires was chosen because it provides something.
    for (&(place, major), &visit) in &list.chosen {
        let node = world.line_node(place, major);
        choices.insert(node, list.visits[visit].position);
    }
    for requirement in required {
        let Some(mut edge) = world.edge(requirement)? else { continue };
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
