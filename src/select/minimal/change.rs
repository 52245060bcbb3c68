//! What a move makes of requirements and selection.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::releases::Position;
use crate::index::{Requirement, Unavailable, Universe};
use crate::select::minimal::build::{Pick, lowest};
use crate::select::minimal::requirements::{at_least, indirect, needed};
use crate::select::minimal::select::select;
use crate::select::node::Line;
use crate::select::plan::rewritten;
use crate::select::world::World;
use crate::select::{Change, Failure, Lowered, Request, Root};

/// What becomes of versions that nothing leads to, now that others have moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Idle {
    /// They stay.
    Stays,
    /// They go.
    Goes,
    /// They go, except the one that the command names.
    GoesBut(Line),
}

/// What a move is about to make of the requirements.
#[derive(Debug)]
pub(super) struct Draft {
    /// All that is asked for then: by the roots that are not about what others need, and by one that is.
    pub(super) roots: Vec<Root>,
    asked: Vec<Vec<Option<Requirement>>>,
    indirect: Vec<Requirement>,
    lowered: Vec<Lowered>,
    may_go_on: bool,
}

/// Makes requirements of the versions that are to be chosen, and the selection of those.
pub(super) fn finish(
    universe: &dyn Universe,
    world: &mut World<'_>,
    chosen: BTreeMap<Line, Position>,
    idle: Idle,
) -> Result<Change, Failure> {
    draft(world, chosen, Vec::new(), idle)?.select(universe, world.request())
}

/// Makes requirements of the versions that are to be chosen.
pub(super) fn draft(
    world: &mut World<'_>,
    mut chosen: BTreeMap<Line, Position>,
    mut lowered: Vec<Lowered>,
    idle: Idle,
) -> Result<Draft, Unavailable> {
    let request = world.request();
    let own = &request.roots[..request.roots.len().saturating_sub(request.indirect)];
    let mut asked = Vec::with_capacity(own.len());
    let (mut direct, mut implied) = (Vec::new(), Vec::new());
    for root in own {
        let mut requirements = Vec::with_capacity(root.requirements.len());
        for requirement in &root.requirements {
            let (moved, line) = moved(world, &chosen, requirement)?;
            // What stands in for a package is asked for at what that one is, not at what it is itself.
            let is_at = moved.as_ref().is_some_and(|moved| moved.is_at_chosen);
            implied.extend(line.filter(|_| is_at));
            direct.extend(line);
            requirements.push(moved.map(|moved| moved.requirement));
        }
        asked.push(requirements);
    }
    let mut may_go_on = false;
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
            if is_named && !lowered.iter().any(|one| one.id == *package.id()) {
                let (id, from) = (package.id().clone(), package.label(position));
                lowered.push(Lowered { id, from, to: None, because: None });
            }
        }
    }
    let indirect = indirect(world, &chosen, &implied)?
        .into_iter()
        .map(|Pick { line, position }| {
            let package = world.package(line.place);
            Requirement::new(package.id().clone(), at_least(package, position, None))
        })
        .collect::<BTreeSet<Requirement>>();
    let indirect: Vec<Requirement> = indirect.into_iter().collect();
    let roots = rewritten(&request.roots, &asked, &indirect);
    Ok(Draft { roots, asked, indirect, lowered, may_go_on })
}

impl Draft {
    /// What comes of it.
    pub(super) fn select(
        self,
        universe: &dyn Universe,
        request: &Request,
    ) -> Result<Change, Failure> {
        let Self { roots, asked, indirect, lowered, may_go_on } = self;
        let request = Request { roots, indirect: 1, ..request.clone() };
        let selection = select(universe, &request)?;
        Ok(Change { selection, asked, indirect, lowered, may_go_on })
    }
}

/// What a root's requirement becomes.
struct Moved {
    requirement: Requirement,
    /// Whether it begins at what is chosen.
    is_at_chosen: bool,
}

/// What a root's requirement must become, so that it begins at what is chosen, and of which line that is; `None` if nothing
/// is chosen for it. What something stands in for is asked for as before.
fn moved(
    world: &mut World<'_>,
    chosen: &BTreeMap<Line, Position>,
    requirement: &Requirement,
) -> Result<(Option<Moved>, Option<Line>), Unavailable> {
    let mut requirement = requirement.clone();
    if world.request().is_own(&requirement.id) {
        return Ok((Some(Moved { requirement, is_at_chosen: true }), None));
    }
    let Some((place, least)) = lowest(world, &requirement)? else { return Ok((None, None)) };
    let line = world.line(place, least);
    let Some(&position) = chosen.get(&line) else { return Ok((None, None)) };
    let mut is_at_chosen = true;
    if position != least {
        if *world.package(place).id() == requirement.id {
            requirement.spec = at_least(world.package(place), position, Some(&requirement.spec));
        } else {
            is_at_chosen = false;
        }
    }
    Ok((Some(Moved { requirement, is_at_chosen }), Some(line)))
}
