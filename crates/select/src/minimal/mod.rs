//! Minimal version selection, after Russ Cox: every requirement means its lowest match, and each package gets the highest of the
//! matches that are reachable from the roots.
//!
//! Needs no search and no lock: the same requirements give the same versions, whatever is published later. Upper bounds choose
//! nothing; they are checked at the end. Requirements are the only state, so a move is a change of requirements (`moves`).
//!
//! Here, a build list becomes a selection, or else the smallest conflict: the requirements of roots are left out, one after the
//! other, as long as the rest still fails.

pub(super) mod build;
pub(super) mod check;
mod downgrade;
pub(super) mod moves;
pub(super) mod providers;
pub(super) mod replaced;

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::conflict::{Conflict, Fact, Requirer};
use crate::minimal::build::BuildList;
use crate::node::{Node, NodeKind, RequirementIndex};
use crate::releases::Position;
use crate::selection::{self, Claim};
use crate::universe::{Unavailable, Universe};
use crate::world::{OwnRequires, World};
use crate::{
    Failure, InstalledVersion, Majors, RootOrPackage, RootRequirer, Selection, SelectionRequest,
};

/// The lowest versions that meet everything reachable; fails with the smallest conflict.
pub(crate) fn select_lowest(
    universe: &dyn Universe,
    request: &SelectionRequest,
) -> Result<Selection, Failure> {
    let request = without_lock(request);
    let mut world = World::new(universe, &request).without_narrowing_upgrades();
    let list = match providers::complete_providers(&mut world, &[]) {
        Err(Failure::Conflict(conflict)) => {
            let smallest = smallest_conflict(&mut world, *conflict)?;
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
    selection::gather_selection(world, &|node| choices.get(&node).copied(), &besides)
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

/// The conflict `conflict`, or another one, from fewer requirements of the roots: without any one of them,
/// the rest could be met.
pub(crate) fn smallest_conflict(
    world: &mut World<'_>,
    conflict: Conflict,
) -> Result<Conflict, Unavailable> {
    let mut smallest = conflict;
    let mut needed: usize = 0;
    loop {
        let mut roots = named(world, &smallest);
        let mut required = named_capabilities(world, &smallest);
        if let Some(capability) = needed.checked_sub(roots.len()) {
            let Some(name) = required.keys().nth(capability).cloned() else { return Ok(smallest) };
            required.remove(&name);
        } else {
            roots.remove(needed);
        }
        world.ask(roots);
        world.own_requires = Cow::Owned(required);
        match providers::complete_providers(world, &[]) {
            Err(Failure::Conflict(smaller)) => (smallest, needed) = (*smaller, 0),
            // If a trial takes too long, the requirement counts as needed.
            Ok(_) | Err(Failure::Unfinished(_)) => needed += 1,
            Err(Failure::Unavailable(error)) => return Err(error),
        }
    }
}

/// The capabilities in a conflict that the workspace's own packages require.
fn named_capabilities(world: &World<'_>, conflict: &Conflict) -> OwnRequires {
    let mut required = world.request().own.requires.clone();
    required.retain(|name, _| {
        conflict.facts.iter().any(|fact| {
            matches!(fact, Fact::RequiresCapability { by: Requirer::Roots(_), capability } if capability == name)
        })
    });
    required
}

/// The requirements of roots that a conflict names, each alone.
fn named(world: &World<'_>, conflict: &Conflict) -> Vec<RootRequirer> {
    let mut named: Vec<RootRequirer> = Vec::new();
    for fact in &conflict.facts {
        let Fact::Requires { by: Requirer::Roots(names), id, asked } = fact else { continue };
        let roots = world.request().roots.iter().filter(|root| names.contains(&root.by));
        for (by, requirement) in
            roots.flat_map(|root| root.requirements.iter().map(|one| (&root.by, one)))
        {
            let alone = RootRequirer { by: by.clone(), requirements: vec![requirement.clone()] };
            let is_named = requirement.id == *id && asked.contains(&requirement.to_string());
            if is_named && !named.contains(&alone) {
                named.push(alone);
            }
        }
    }
    named
}
