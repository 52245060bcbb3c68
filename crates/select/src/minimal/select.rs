//! Turns a build list into a selection.

use rustc_hash::FxHashMap;

use crate::minimal::build::{self, BuildList};
use crate::minimal::{providers, smallest};
use crate::node::{Node, NodeKind, RequirementIndex};
use crate::outcome::{self, Claim};
use crate::releases::Position;
use crate::universe::{Unavailable, Universe};
use crate::world::World;
use crate::{Failure, InstalledVersion, Majors, RootOrPackage, Selection, SelectionRequest};

/// The lowest versions that meet everything reachable; fails with the smallest conflict.
pub(crate) fn select_lowest(
    universe: &dyn Universe,
    request: &SelectionRequest,
) -> Result<Selection, Failure> {
    let request = without_lock(request);
    let mut world = World::new(universe, &request).without_narrowing_upgrades();
    let list = match providers::complete_providers(&mut world, &[]) {
        Err(Failure::Conflict(conflict)) => {
            let smallest = smallest::smallest_conflict(&mut world, *conflict)?;
            return Err(Failure::Conflict(Box::new(smallest)));
        }
        result => result?,
    };
    Ok(gather(&mut world, &list)?)
}

/// The request without the lock, except for what only a lock can hold: the commits of branches that are not
/// to move.
pub(crate) fn without_lock(request: &SelectionRequest) -> SelectionRequest {
    let mut request = request.clone();
    let update = &request.update;
    request.locked.retain(|locked| locked.commit.is_none() || !update.moves(&locked.id));
    for locked in request.locked.extract_if(.., |locked| locked.commit.is_none()) {
        if let Some(version) = locked.version {
            let installed = InstalledVersion { version, channel: None, is_next_wanted: false };
            request.installed.entry(locked.id).or_insert(installed);
        }
    }
    request
}

/// Turns a build list into a selection.
fn gather(world: &mut World<'_>, list: &BuildList) -> Result<Selection, Unavailable> {
    let chosen = list.chosen.values().map(|&visit| &list.visits[visit]);
    world.packages.expect_chosen(chosen.map(|visit| (visit.place, visit.position)));
    let mut is_chosen = vec![false; list.visits.len()];
    list.chosen.values().for_each(|&visit| is_chosen[visit] = true);
    // Versions that were visited and are not chosen have a say, too: `mu why c` names `a 1.0`, although `a 1.1` is
    // installed, because its requirement is why `c` is not lower.
    let mut besides: Vec<Claim> = Vec::new();
    for (visit, _) in list.visits.iter().zip(is_chosen).filter(|(_, is_chosen)| !is_chosen) {
        for &need in world.packages.needs_of(visit.place, visit.position)?.iter() {
            // A requirement of an older version that nothing can meet is ignored.
            if world.packages.is_resolved_to_own(need) || build::lowest_for(world, need)?.is_some()
            {
                let id = world.package(visit.place).id.clone();
                besides.push(Claim { by: RootOrPackage::Package(id), need });
            }
        }
    }
    let choices = choices(world, list)?;
    outcome::gather_selection(world, &|node| choices.get(&node).copied(), &besides)
}

/// The build list, by the nodes that requirements lead to.
fn choices(
    world: &mut World<'_>,
    list: &BuildList,
) -> Result<FxHashMap<Node, Position>, Unavailable> {
    let mut choices = FxHashMap::default();
    for (&line, &visit) in &list.chosen {
        let node = world.node(NodeKind::Versions(line));
        choices.insert(node, list.visits[visit].position);
    }
    // With one version of each package, every requirement leads straight to it.
    if world.allowed_majors() == Majors::One && world.request().settings.side_by_side.is_empty() {
        return Ok(choices);
    }
    let roots = world.roots.to_vec();
    let roots = roots.iter().flat_map(|root| &root.requirements);
    let mut required: Vec<RequirementIndex> =
        roots.map(|requirement| world.packages.need_for(requirement)).collect();
    for visit in &list.visits {
        required.extend_from_slice(&world.packages.needs_of(visit.place, visit.position)?);
    }
    for need in required {
        let Some(edge) = world.edge_for(need)? else { continue };
        if let NodeKind::MajorChoice(..) = world.kind(edge.node) {
            // If several majors match, the lowest is meant.
            choices.insert(edge.node, 0);
        }
    }
    Ok(choices)
}
