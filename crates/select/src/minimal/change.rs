//! How a move changes requirements and selection.

use std::collections::{BTreeMap, BTreeSet};

use crate::minimal::build::{Pick, lowest_candidate};
use crate::minimal::requirements::{indirect, needed, spec_with_minimum};
use crate::minimal::select::select_lowest;
use crate::node::MajorLine;
use crate::releases::Position;
use crate::universe::{Requirement, Unavailable, Universe};
use crate::world::World;
use crate::{Change, Failure, Lowered, SelectionRequest};

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
