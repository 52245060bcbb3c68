//! Checks a build list against the upper bounds of its versions and roots, and describes the first violation.

use std::sync::Arc;

use crate::clash;
use crate::conflict::Conflict;
use crate::filters::Rejection;
use crate::fold::FoldedVersions;
use crate::minimal::build::{BuildList, By, is_yanked_pin, lowest_for};
use crate::minimal::{facts, replaced};
use crate::node::{MajorLine, PackageIndex, RequirementIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::{Requirement, Unavailable};
use crate::world::World;
use crate::world::stand_ins;

/// The problem of a build list.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Flaw {
    /// Nothing meets a requirement.
    Unmet(By, Requirement),
    /// The installed version cannot be upgraded to the chosen version of a line.
    Refused(MajorLine, Rejection),
    /// A requirement does not accept the minimum that others need of a line.
    Broken(By, Requirement, MajorLine),
}

/// The first violated requirement of the roots or of a chosen version, with its reason; `None` if all hold.
pub(crate) fn conflict(
    world: &mut World<'_>,
    list: &BuildList,
) -> Result<Option<Conflict>, Unavailable> {
    // Replacements first: while they are not settled, requirements are compared with the wrong package.
    if let Some(conflict) = replaced::conflict(world, list)? {
        return Ok(Some(conflict));
    }
    Ok(match flaw(world, list)? {
        None => None,
        Some(Flaw::Unmet(by, requirement)) => Some(unmet(world, list, by, &requirement)?),
        Some(Flaw::Refused(line, refusal)) => Some(refused(world, list, line, refusal)),
        Some(Flaw::Broken(by, requirement, line)) => {
            Some(broken(world, list, by, &requirement, line)?)
        }
    })
}

/// The first violated requirement of the roots or of a chosen version.
pub(super) fn flaw(world: &mut World<'_>, list: &BuildList) -> Result<Option<Flaw>, Unavailable> {
    // Roots first, since the user can change what they require.
    let mut askers: Vec<By> = (0..world.roots.len()).map(By::Root).collect();
    askers.extend(list.in_order().into_iter().map(By::Visit));
    for by in askers {
        let mut needs = required(world, list, by)?;
        // Their order matters only if one of them is violated.
        if first_flaw(world, list, by, &needs)?.is_some() {
            needs.sort_by(|&one, &two| world.requirement(one).cmp(world.requirement(two)));
            return first_flaw(world, list, by, &needs);
        }
    }
    Ok(None)
}

/// The first requirement of some that is violated.
fn first_flaw(
    world: &mut World<'_>,
    list: &BuildList,
    by: By,
    needs: &[RequirementIndex],
) -> Result<Option<Flaw>, Unavailable> {
    for &need in needs.iter() {
        if world.packages.is_resolved_to_own(need) {
            continue;
        }
        let Some((place, lowest)) = lowest_for(world, need)? else {
            return Ok(Some(Flaw::Unmet(by, (**world.requirement(need)).clone())));
        };
        // Others may need a higher version of this line than the requirement does. What was chosen must be within its
        // bounds.
        let line = world.line(place, lowest);
        let chosen = list.position(line).unwrap_or(lowest);
        if let Some(refusal) =
            world.package(place).upgrade_refusal(&world.request().settings, chosen)
        {
            return Ok(Some(Flaw::Refused(line, refusal)));
        }
        if !world.packages.meaning(need)?.1.holds(chosen) {
            let requirement = Arc::clone(world.requirement(need));
            if !is_kept(world, &requirement, chosen)? {
                return Ok(Some(Flaw::Broken(by, (*requirement).clone(), line)));
            }
        }
    }
    Ok(None)
}

fn required(
    world: &mut World<'_>,
    list: &BuildList,
    by: By,
) -> Result<Vec<RequirementIndex>, Unavailable> {
    Ok(match by {
        By::Root(index) => {
            let requirements = world.roots[index].requirements.clone();
            requirements.iter().map(|requirement| world.packages.need_for(requirement)).collect()
        }
        By::Command | By::Capability(_) => Vec::new(),
        By::Visit(visit) => {
            let visit = &list.visits[visit];
            world.packages.needs_of(visit.place, visit.position)?.to_vec()
        }
    })
}

/// Whether a requirement accepts the chosen version.
fn is_kept(
    world: &mut World<'_>,
    requirement: &Requirement,
    chosen: Position,
) -> Result<bool, Unavailable> {
    let (place, set) = world.accepted(requirement)?;
    let settings = &world.request().settings;
    // Another requirement may have named a yanked version; a requirement that accepts its number is then met.
    let details = world.package(place).details(chosen);
    let is_yanked = details.is_some_and(|details| details.yanked.is_some());
    Ok(set.holds(chosen)
        || is_yanked_pin(world.package(place), settings, requirement, chosen)
        || (is_yanked && world.packages.matching(place, requirement)?.holds(chosen)))
}

/// The conflict if the command wants something that does not exist.
pub(super) fn nothing(world: &mut World<'_>, wish: &Requirement) -> Result<Conflict, Unavailable> {
    unmet(world, &BuildList::default(), By::Command, wish)
}

/// The conflict if the command wants a version that itself needs a higher version of its own package.
pub(super) fn overtaken(
    world: &mut World<'_>,
    list: &BuildList,
    wish: &Requirement,
    line: MajorLine,
) -> Result<Option<Conflict>, Unavailable> {
    let Some(chosen) = list.position(line) else { return Ok(None) };
    if is_kept(world, wish, chosen)? {
        return Ok(None);
    }
    broken(world, list, By::Command, wish, line).map(Some)
}

/// The conflict if nothing meets a requirement.
fn unmet(
    world: &mut World<'_>,
    list: &BuildList,
    by: By,
    requirement: &Requirement,
) -> Result<Conflict, Unavailable> {
    let (place, _) = world.accepted(requirement)?;
    let wanted = world.packages.matching(place, requirement)?;
    let mut conflict = Conflict::within(world);
    conflict.facts = facts::chain(world, list, by, requirement);
    conflict.add_facts(list.why_replaced.get(&requirement.id).cloned().unwrap_or_default());
    let asked = vec![vec![asked(world, place, requirement)]];
    conflict.clashes = vec![clash::describe(world, place, asked, &wanted)];
    Ok(conflict)
}

/// The conflict if a requirement does not accept the minimum that others need.
fn broken(
    world: &mut World<'_>,
    list: &BuildList,
    by: By,
    requirement: &Requirement,
    line: MajorLine,
) -> Result<Conflict, Unavailable> {
    let mut conflict = Conflict::within(world);
    let forced = &list.visits[list.chosen[&line]];
    conflict.facts = facts::chain(world, list, forced.by, &forced.requirement);
    conflict.add_facts(facts::chain(world, list, by, requirement));
    conflict.add_facts(list.why_replaced.get(&requirement.id).cloned().unwrap_or_default());
    let asked = vec![vec![asked(world, line.place, requirement)]];
    let mut clash = clash::describe(world, line.place, asked, &PositionSet::default());
    clash.needed = Some(world.package(line.place).candidate_label(forced.position));
    conflict.clashes = vec![clash];
    Ok(conflict)
}

/// What a requirement requires of the package at `place`, which may replace the package that it names.
fn asked(world: &World<'_>, place: PackageIndex, requirement: &Requirement) -> String {
    let asked = requirement.to_string();
    if world.package(place).id == requirement.id {
        return asked;
    }
    stand_ins::asked_of_replaced(world, &requirement.id, &asked)
}

/// The conflict if the installed version cannot be upgraded to the minimum that is needed.
fn refused(world: &World<'_>, list: &BuildList, line: MajorLine, refusal: Rejection) -> Conflict {
    let mut conflict = Conflict::within(world);
    let forced = &list.visits[list.chosen[&line]];
    conflict.facts = facts::chain(world, list, forced.by, &forced.requirement);
    let package = world.package(line.place);
    let mut clash = clash::describe(world, line.place, Vec::new(), &PositionSet::default());
    clash.needed = Some(package.candidate_label(forced.position));
    let version = std::iter::once(forced.position).collect();
    clash.rejected = vec![(refusal, FoldedVersions::fold_candidates(package, &version))];
    conflict.clashes = vec![clash];
    conflict
}
