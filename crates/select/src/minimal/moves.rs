//! Moves as changes of the requirements, which are the only state; and how such a change affects what is required and selected.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mu_manifest::reference::{PackageId, VersionSpec};
use pubgrub::VersionSet;

use crate::minimal::build::{
    Addition, BuildList, By, Pick, compatible, indirect, is_higher, lowest_candidate, needed,
    spec_with_minimum,
};
use crate::minimal::{check, downgrade, providers, replaced, select_lowest, without_lock};
use crate::node::{Edge, MajorLine, NodeKind, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::{self, Verdict};
use crate::universe::{Requirement, Unavailable, Universe};
use crate::world::World;
use crate::{Change, Chosen, Demanded, Failure, Lowered, Move, SelectionRequest};

/// How often everything is moved again, at most, because a package was dropped that held others back.
const ROUNDS: usize = 8;

/// The requirements after a move.
///
/// # Errors
///
/// When the requirements cannot be met, when bounds forbid the move, or when something could not be looked
/// up.
pub(crate) fn plan(
    universe: &dyn Universe,
    request: &SelectionRequest,
    to: Move<'_>,
) -> Result<Change, Failure> {
    // Requirements are all that a move knows and all that it changes: what is locked must not hold anything.
    let request = &without_lock(request);
    let change = match to {
        Move::Tidy => return list(universe, request, Idle::Stays),
        Move::Clear => return list(universe, request, Idle::Goes),
        Move::Everything => everything(universe, request),
        Move::Raise(ids) => raise(universe, request, Some(ids)),
        Move::To(id, to) => one(universe, request, id, to),
    }?;
    // What the moved packages require may be provided by something that the move itself did not choose.
    let is_provider = |one: &Chosen| {
        one.requested.iter().any(|demand| matches!(demand.what, Demanded::Capability(_)))
    };
    if !change.selection.packages.iter().any(is_provider) {
        return Ok(change);
    }
    let settled = list(universe, &change.rewritten_request(request), Idle::Stays)?;
    let (lowered, may_go_on) = (change.lowered.clone(), change.may_go_on);
    Ok(Change { lowered, may_go_on, ..change.then(settled) })
}

/// Moves nothing, but computes the requirements: direct ones at the chosen version, and the fewest others.
fn list(
    universe: &dyn Universe,
    request: &SelectionRequest,
    idle: Idle,
) -> Result<Change, Failure> {
    let mut world = World::new(universe, request).without_narrowing_upgrades();
    let list = providers::complete_providers(&mut world, &[])?;
    finish(universe, &mut world, list.positions(), idle)
}

/// The newest version that a requirement accepts and that fits the requirements of the roots, also on the
/// same package, as a specification; `None` if it is not a release.
///
/// # Errors
///
/// When there is no such version, when even the newest does not fit, or when something could not be looked
/// up.
pub(crate) fn beginning(
    universe: &dyn Universe,
    request: &SelectionRequest,
    wish: &Requirement,
) -> Result<Option<VersionSpec>, Failure> {
    let request = without_lock(request);
    let mut world = World::new(universe, &request).without_narrowing_upgrades();
    let (place, mut accepted) = world.accepted(wish)?;
    for one in request.roots.iter().flat_map(|root| &root.requirements) {
        let (other, within) = world.accepted(one)?;
        // The error for a package without versions follows below.
        if one.id == wish.id && other == place && !accepted.is_disjoint(&within) {
            accepted = accepted.intersection(&within);
        }
    }
    let Some(newest) = world.package(place).newest(&accepted) else {
        return Err(Failure::Conflict(Box::new(check::nothing(&mut world, wish)?)));
    };
    if world.package(place).revision(newest).is_some() {
        return Ok(None);
    }
    let releases = world.package(place).releases.len();
    let releases = accepted.intersection(&PositionSet::position_range(0, releases));
    // `mu add a` writes a requirement that begins at a version with which everything holds together. The newest often
    // needs something that is not allowed here, so older ones follow.
    for position in world.package(place).preference.preferred_first(&releases) {
        if providers::try_complete_providers(&mut world, &[commanded(place, position)])?.is_some() {
            return Ok(Some(compatible(world.package(place), position)));
        }
    }
    // None fits. This fails, with the reason why the newest does not.
    providers::complete_providers(&mut world, &[commanded(place, newest)])?;
    Ok(None)
}

/// Moves every package to the newest version that its requirements allow, until nothing is left to move.
fn everything(universe: &dyn Universe, request: &SelectionRequest) -> Result<Change, Failure> {
    let mut change = update_once(universe, request)?;
    for _ in 0..ROUNDS {
        if !change.may_go_on {
            break;
        }
        // An update may drop a package that held others back. So it is done again with its own result, until it changes
        // nothing, ROUNDS times at most.
        let next = update_once(universe, &change.rewritten_request(request))?;
        let versions = |change: &Change| -> Vec<_> {
            let chosen = change.selection.packages.iter();
            chosen.map(|chosen| (chosen.id.clone(), chosen.origin.clone())).collect()
        };
        let is_last = versions(&next) == versions(&change);
        change = change.then(next);
        if is_last {
            break;
        }
    }
    Ok(change)
}

/// Moves a package to the lowest version that `to` accepts, up or down.
fn one(
    universe: &dyn Universe,
    request: &SelectionRequest,
    id: &PackageId,
    to: &VersionSpec,
) -> Result<Change, Failure> {
    let mut world = World::new(universe, request).without_narrowing_upgrades();
    let list = replaced::build(&mut world, &[])?;
    let wish = Requirement::new(id.clone(), to.clone());
    let Some((place, position)) = lowest_candidate(&mut world, &wish)? else {
        return Err(Failure::Conflict(Box::new(check::nothing(&mut world, &wish)?)));
    };
    // Up is easy: the version is visited like any other, and raises what it needs. Down is not, because others need
    // more than that: `downgrade`.
    let line = world.line(place, position);
    let current = list.position(line);
    if current.is_none_or(|current| current <= position) {
        let list = providers::complete_providers(&mut world, &[commanded(place, position)])?;
        if let Some(conflict) = check::overtaken(&mut world, &list, &wish, line)? {
            return Err(Failure::Conflict(Box::new(conflict)));
        }
        return finish(universe, &mut world, list.positions(), Idle::GoesBut(line));
    }
    let target = Pick { line, position };
    downgrade::lower_version(universe, &mut world, &list.positions(), target)
}

/// A version that the command wants.
fn commanded(place: PackageIndex, position: Position) -> Addition {
    Addition { place, position, by: By::Command }
}

/// Moves every package to the newest version that its requirements allow.
fn update_once(universe: &dyn Universe, request: &SelectionRequest) -> Result<Change, Failure> {
    let mut world = World::new(universe, request).without_narrowing_upgrades();
    let mut list = providers::complete_providers(&mut world, &[])?;
    // Ends: each round but the last has more packages than the one before, because all that were there are wanted
    // again.
    let change = loop {
        let count = list.chosen.len();
        let Some(newest) = newest(&mut world, &list)? else { break None };
        let wanted: Vec<_> = newest.iter().map(|(line, &at)| commanded(line.place, at)).collect();
        // The needs of one visited version may prevent moving all at once.
        let Some(brought) = providers::try_complete_providers(&mut world, &wanted)? else {
            break None;
        };
        list = brought;
        // Packages that the new versions brought along also move to their newest version.
        if list.chosen.len() == count {
            break match finish(universe, &mut world, newest, Idle::Goes) {
                Err(Failure::Conflict(_)) => None,
                result => Some(result?),
            };
        }
    };
    // All at once is fast, and fails if a single new version breaks a bound. One after the other always gives an
    // answer.
    let change = change.map_or_else(|| raise(universe, request, None), Ok)?;
    // After the others have moved, another provider may fit, and packages that the old one held back may
    // move.
    let has_providers = world.packages.capabilities.is_any_required();
    Ok(Change { may_go_on: change.may_go_on || has_providers, ..change })
}

/// Moves packages, one after the other, to the newest allowed versions whose needs break no bound, until
/// nothing can be raised any more: either some packages, or all that are then needed.
fn raise(
    universe: &dyn Universe,
    request: &SelectionRequest,
    only: Option<&[PackageId]>,
) -> Result<Change, Failure> {
    let mut world = World::new(universe, request).without_narrowing_upgrades();
    let mut list = providers::complete_providers(&mut world, &[])?;
    let mut wanted: Vec<Addition> = Vec::new();
    // A raised package may drop what held others back.
    let mut is_raised = true;
    // Ends, because each round that goes on has raised a version, and `higher` lowers none.
    while std::mem::take(&mut is_raised) {
        let ids = only.map_or_else(|| ids(&world, &list), <[PackageId]>::to_vec);
        for id in &ids {
            let before = list.positions();
            let own = before.iter().filter(|(line, _)| world.package(line.place).id == *id);
            for (&line, &current) in own.collect::<Vec<_>>() {
                if let Some(higher) = higher(&mut world, &list, &mut wanted, line, current)? {
                    list = higher;
                    is_raised = only.is_none_or(|only| only.len() > 1);
                }
            }
        }
    }
    finish(universe, &mut world, list.positions(), Idle::Goes)
}

fn ids(world: &World<'_>, list: &BuildList) -> Vec<PackageId> {
    let mut ids: Vec<PackageId> =
        list.chosen.keys().map(|line| world.package(line.place).id.clone()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// A build list with the newest version of a line above `current` whose needs break no bound, and with
/// nothing lower than before; `wanted` then contains it.
///
/// A provider that is only listed gives way to another one, but never to a lower version of itself: the next
/// run would raise that again.
fn higher(
    world: &mut World<'_>,
    list: &BuildList,
    wanted: &mut Vec<Addition>,
    line: MajorLine,
    current: Position,
) -> Result<Option<BuildList>, Failure> {
    let releases = world.package(line.place).releases.len();
    let newer = bounds(world, list, line)?;
    let package = world.package(line.place);
    let newer = newer.intersection(&PositionSet::position_range(current + 1, releases));
    // If other versions are preferred only because of their channel, that is no reason to move.
    let newer = newer.intersection(&package.preference.preferred_to(&newer, current));
    // The first that fits stays in `wanted`, so that later packages are raised on top of it.
    for position in package.preference.preferred_first(&newer) {
        wanted.push(commanded(line.place, position));
        if let Some(tried) = providers::try_complete_providers(world, wanted)?
            && !lowers(world, list, &tried)
        {
            return Ok(Some(tried));
        }
        wanted.pop();
    }
    Ok(None)
}

/// Whether something is lower in one build list than before.
fn lowers(world: &World<'_>, before: &BuildList, after: &BuildList) -> bool {
    let (before, after) = (before.positions(), after.positions());
    let mut both = before.iter().filter_map(|(line, &old)| Some((line, old, *after.get(line)?)));
    both.any(|(line, old, new)| is_higher(world.package(line.place), old, new))
}

/// The versions of a line that may be chosen at all.
fn allowed(world: &World<'_>, line: MajorLine) -> PositionSet {
    let same = |at: &Position| world.line(line.place, *at) == line;
    world.package(line.place).allowed.iter().filter(same).collect()
}

/// The versions of a line that the roots and the chosen versions accept.
fn bounds(
    world: &mut World<'_>,
    list: &BuildList,
    line: MajorLine,
) -> Result<PositionSet, Unavailable> {
    let roots = &world.request().roots;
    // Only chosen versions have a say here. What a lower version of the same package allowed is over.
    let of_roots = roots.iter().flat_map(|root| root.requirements.iter().cloned());
    let mut all: Vec<Arc<Requirement>> = of_roots.map(Arc::new).collect();
    for &visit in list.chosen.values() {
        let visit = &list.visits[visit];
        all.extend(world.packages.requirements(visit.place, visit.position)?);
    }
    let mut bounds = allowed(world, line);
    let id = world.package(line.place).id.clone();
    for requirement in all.iter().filter(|one| one.id == id) {
        let (_, set) = world.accepted(requirement)?;
        bounds = bounds.intersection(&set);
    }
    // What is there only for a capability must still provide it in the new version.
    if let Some(providing) = providers::providing(world, list)?.get(&line.place) {
        bounds = bounds.intersection(providing);
    }
    Ok(bounds)
}

/// The newest versions that fit together and are not below those of the list, with every package of the list
/// among them. `None` if there are none: the list may contain versions that only the exact wording of its
/// requirements allows.
fn newest(
    world: &mut World<'_>,
    list: &BuildList,
) -> Result<Option<BTreeMap<MajorLine, Position>>, Failure> {
    // The other strategy's search does this, over a root that also needs each package of the list, at its version or
    // above.
    let mut edges = world.root_edges()?;
    let providing = providers::providing(world, list)?;
    let list = list.positions();
    for (&line, &position) in &list {
        let provides =
            |at: &Position| providing.get(&line.place).is_none_or(|providing| providing.holds(*at));
        let allowed = allowed(world, line);
        let above = allowed.iter().filter(|at| *at >= position && provides(at));
        // The version that is there may be withdrawn, and allowed only because something names it.
        let set = above.collect::<PositionSet>().union(&PositionSet::singleton(position));
        edges.push(Edge { node: world.node(NodeKind::Versions(line)), set });
    }
    world.narrow_root(edges);
    let Verdict::Chosen(chosen) = search::solve(world, usize::MAX)? else { return Ok(None) };
    let newest = list.iter().map(|(&line, &position)| {
        let node = world.node(NodeKind::Versions(line));
        (line, chosen.get(&node).copied().unwrap_or(position))
    });
    Ok(Some(newest.collect()))
}

/// What happens to versions that nothing needs after a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Idle {
    /// They stay.
    Stays,
    /// They go.
    Goes,
    /// They go, except the one that the command names.
    GoesBut(MajorLine),
}

/// Turns the versions to choose into requirements, and those into a selection.
pub(super) fn finish(
    universe: &dyn Universe,
    world: &mut World<'_>,
    chosen: BTreeMap<MajorLine, Position>,
    idle: Idle,
) -> Result<Change, Failure> {
    selected(draft(world, chosen, Vec::new(), idle)?, universe, world.request())
}

/// Turns the versions to choose into requirements, which nothing was selected by yet.
pub(super) fn draft(
    world: &mut World<'_>,
    mut chosen: BTreeMap<MajorLine, Position>,
    mut lowered: Vec<Lowered>,
    idle: Idle,
) -> Result<Change, Unavailable> {
    let request = world.request();
    let own = &request.roots[..request.roots.len().saturating_sub(request.indirect)];
    let mut asked = Vec::with_capacity(own.len());
    let (mut direct, mut implied) = (Vec::new(), Vec::new());
    // Each requirement of a root that is no list becomes one that begins at the chosen version. `direct` are the lines
    // that it is about, and `implied` those that are reached at the chosen version by it.
    for root in own {
        let mut requirements = Vec::with_capacity(root.requirements.len());
        for requirement in &root.requirements {
            let (moved, line) = moved(world, &chosen, requirement)?;
            // A replaced package is required at its own version, not at that of its replacement.
            let is_at = moved.as_ref().is_some_and(|moved| moved.is_at_chosen);
            implied.extend(line.filter(|_| is_at));
            direct.extend(line);
            requirements.push(moved.map(|moved| moved.requirement));
        }
        asked.push(requirements);
    }
    let mut may_go_on = false;
    // What nothing of that needs goes, if the move says so. A command that names a package keeps it and tells what
    // went.
    if idle != Idle::Stays {
        let mut from = direct.clone();
        from.extend(match idle {
            Idle::GoesBut(line) => Some(line),
            Idle::Goes | Idle::Stays => None,
        });
        let needed = needed(world, &chosen, &from)?;
        let is_named = matches!(idle, Idle::GoesBut(_));
        for (line, position) in chosen.extract_if(.., |line, _| !needed.contains(line)) {
            let package = world.package(line.place);
            may_go_on = true;
            if is_named && !lowered.iter().any(|one| one.id == package.id) {
                let (id, from) = (package.id.clone(), package.candidate_label(position));
                lowered.push(Lowered { id, from, to: None, because: None });
            }
        }
    }
    // What does not follow from the requirements of the roots is listed, so that it is chosen again.
    let indirect = indirect(world, &chosen, &implied)?
        .into_iter()
        .map(|Pick { line, position }| {
            let package = world.package(line.place);
            Requirement::new(package.id.clone(), spec_with_minimum(package, position, None))
        })
        .collect::<BTreeSet<Requirement>>();
    let indirect: Vec<Requirement> = indirect.into_iter().collect();
    let (selection, request) = Default::default();
    Ok(Change { selection, asked, indirect, lowered, may_go_on, request })
}

/// A draft, with what its requirements select.
pub(super) fn selected(
    draft: Change,
    universe: &dyn Universe,
    request: &SelectionRequest,
) -> Result<Change, Failure> {
    let request = draft.rewritten_request(request);
    let selection = select_lowest(universe, &request)?;
    Ok(Change { selection, request, ..draft })
}

/// What a root's requirement becomes.
struct Moved {
    requirement: Requirement,
    /// Whether it starts at the chosen version.
    is_at_chosen: bool,
}

/// The new form of a root's requirement, which starts at the chosen version, and the line of that version;
/// `None` if nothing is chosen for it. The requirement of a replaced package stays the same.
fn moved(
    world: &mut World<'_>,
    chosen: &BTreeMap<MajorLine, Position>,
    requirement: &Requirement,
) -> Result<(Option<Moved>, Option<MajorLine>), Unavailable> {
    let mut requirement = requirement.clone();
    // A package of the workspace has no line.
    if world.request().is_own(&requirement.id) {
        return Ok((Some(Moved { requirement, is_at_chosen: true }), None));
    }
    let Some((place, lowest)) = lowest_candidate(world, &requirement)? else {
        return Ok((None, None));
    };
    let line = world.line(place, lowest);
    let Some(&position) = chosen.get(&line) else { return Ok((None, None)) };
    let mut is_at_chosen = true;
    if position != lowest {
        // Otherwise the requirement is on a package that another one replaces: its range speaks of the package, and
        // stays.
        if world.package(place).id == requirement.id {
            requirement.spec =
                spec_with_minimum(world.package(place), position, Some(&requirement.spec));
        } else {
            is_at_chosen = false;
        }
    }
    Ok((Some(Moved { requirement, is_at_chosen }), Some(line)))
}
