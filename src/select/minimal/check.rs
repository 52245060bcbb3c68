//! Whether a build list keeps the bounds that its versions and the roots ask for, and what to say where it does not.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::index::releases::Position;
use crate::index::{Requirement, Unavailable};
use crate::select::clash;
use crate::select::conflict::{Conflict, Fact, Requirer};
use crate::select::filters::Rejection;
use crate::select::fold::Versions;
use crate::select::minimal::build::{BuildList, By, Line, is_yanked_pin, least, line};
use crate::select::minimal::{providers, provision, replaced};
use crate::select::positions::PositionSet;
use crate::select::stand_ins;
use crate::select::world::{Ask, OwnRequires, World};
use crate::select::{Failure, Root};

/// What facts call the command that wants a version; whoever knows its name puts it there.
pub const COMMAND: &str = "this command";

/// What is wrong with a build list.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Flaw {
    /// Nothing meets a requirement.
    Unmet(By, Requirement),
    /// What is chosen of a line cannot be upgraded to.
    Refused(Line, Rejection),
    /// A requirement does not accept what others need of a line at least.
    Broken(By, Requirement, Line),
}

/// The first requirement of the roots or of a chosen version that is not kept, with how it came to be; none if all are.
pub(in crate::select) fn conflict(
    world: &mut World<'_>,
    list: &BuildList,
) -> Result<Option<Conflict>, Unavailable> {
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

/// The first requirement of the roots or of a chosen version that is not kept.
pub(super) fn flaw(world: &mut World<'_>, list: &BuildList) -> Result<Option<Flaw>, Unavailable> {
    let mut askers: Vec<By> = (0..world.roots().len()).map(By::Root).collect();
    let mut chosen: Vec<usize> = list.chosen.values().copied().collect();
    chosen.sort_unstable();
    askers.extend(chosen.into_iter().map(By::Visit));
    for by in askers {
        let mut asks = required(world, list, by)?;
        // Their order matters only where one of them is not kept.
        if first_flaw(world, list, by, &asks)?.is_some() {
            asks.sort_by(|&one, &two| world.requirement(one).cmp(world.requirement(two)));
            return first_flaw(world, list, by, &asks);
        }
    }
    Ok(None)
}

/// The first of some requirements that is not kept.
fn first_flaw(
    world: &mut World<'_>,
    list: &BuildList,
    by: By,
    asks: &[Ask],
) -> Result<Option<Flaw>, Unavailable> {
    for &ask in asks.iter() {
        if world.is_own(ask) {
            continue;
        }
        let Some((place, least)) = least(world, ask)? else {
            return Ok(Some(Flaw::Unmet(by, (**world.requirement(ask)).clone())));
        };
        let line = line(world.package(place), &world.request().settings, place, least);
        let chosen = list.position(line).unwrap_or(least);
        if let Some(refusal) = world.package(place).refusal(&world.request().settings, chosen) {
            return Ok(Some(Flaw::Refused(line, refusal)));
        }
        if !world.answer(ask)?.1.holds(chosen) {
            let requirement = Arc::clone(world.requirement(ask));
            if !is_kept(world, &requirement, chosen)? {
                return Ok(Some(Flaw::Broken(by, (*requirement).clone(), line)));
            }
        }
    }
    Ok(None)
}

/// The same conflict, or another one, that comes of fewer of the roots' requirements: without any one of them the rest
/// could be met.
pub(in crate::select) fn smallest(
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
        world.require_of_own(required);
        match providers::complete(world, &[]) {
            Err(Failure::Conflict(smaller)) => (smallest, needed) = (*smaller, 0),
            // What takes too long to try may be needed.
            Ok(_) | Err(Failure::Unfinished(_)) => needed += 1,
            Err(Failure::Unavailable(error)) => return Err(error),
        }
    }
}

/// What the workspace's own packages require of the capabilities that a conflict names.
fn named_capabilities(world: &World<'_>, conflict: &Conflict) -> OwnRequires {
    let mut required = world.request().own.requires.clone();
    required.retain(|name, _| {
        conflict.facts.iter().any(|fact| {
            matches!(fact, Fact::RequiresCapability { by: Requirer::Roots(_), capability } if capability == name)
        })
    });
    required
}

/// What roots ask for that a conflict names, each alone.
fn named(world: &World<'_>, conflict: &Conflict) -> Vec<Root> {
    let mut named: Vec<Root> = Vec::new();
    for fact in &conflict.facts {
        let Fact::Requires { by: Requirer::Roots(names), id, asked } = fact else { continue };
        let roots = world.request().roots.iter().filter(|root| names.contains(&root.by));
        for (by, requirement) in
            roots.flat_map(|root| root.requirements.iter().map(|one| (&root.by, one)))
        {
            let alone = Root { by: by.clone(), requirements: vec![requirement.clone()] };
            let is_named = requirement.id == *id && asked.contains(&requirement.to_string());
            if is_named && !named.contains(&alone) {
                named.push(alone);
            }
        }
    }
    named
}

fn required(world: &mut World<'_>, list: &BuildList, by: By) -> Result<Vec<Ask>, Unavailable> {
    Ok(match by {
        By::Root(index) => {
            let requirements = world.roots()[index].requirements.clone();
            requirements.iter().map(|requirement| world.ask_for(requirement)).collect()
        }
        By::Command | By::Capability(_) => Vec::new(),
        By::Visit(visit) => {
            let visit = &list.visits[visit];
            world.asks_of(visit.place, visit.position)?.to_vec()
        }
    })
}

/// Whether a requirement accepts what is chosen.
fn is_kept(
    world: &mut World<'_>,
    requirement: &Requirement,
    chosen: Position,
) -> Result<bool, Unavailable> {
    let (place, set) = world.accepted(requirement)?;
    let settings = &world.request().settings;
    // Someone may have named a yanked version; who accepts it by its version keeps with it.
    let is_yanked = world.package(place).yanked(chosen).is_some();
    Ok(set.holds(chosen)
        || is_yanked_pin(world.package(place), settings, requirement, chosen)
        || (is_yanked && world.matching(place, requirement)?.holds(chosen)))
}

/// The conflict of something that the command wants and that does not exist.
pub(super) fn nothing(world: &mut World<'_>, wish: &Requirement) -> Result<Conflict, Unavailable> {
    unmet(world, &BuildList::default(), By::Command, wish)
}

/// The conflict of a requirement that nothing meets.
fn unmet(
    world: &mut World<'_>,
    list: &BuildList,
    by: By,
    requirement: &Requirement,
) -> Result<Conflict, Unavailable> {
    let (place, _) = world.accepted(requirement)?;
    let wanted = world.matching(place, requirement)?;
    let mut conflict = begin(world);
    conflict.facts = chain(world, list, by, requirement);
    add(&mut conflict, list.told.get(&requirement.id).cloned().unwrap_or_default());
    let asked = vec![vec![asked(world, place, requirement)]];
    conflict.clashes = vec![clash::describe(world, place, asked, &wanted)];
    Ok(conflict)
}

/// The conflict of a requirement that does not accept what others need at least.
fn broken(
    world: &mut World<'_>,
    list: &BuildList,
    by: By,
    requirement: &Requirement,
    line: Line,
) -> Result<Conflict, Unavailable> {
    let mut conflict = begin(world);
    let forced = &list.visits[list.chosen[&line]];
    conflict.facts = chain(world, list, forced.by, &forced.requirement);
    add(&mut conflict, chain(world, list, by, requirement));
    add(&mut conflict, list.told.get(&requirement.id).cloned().unwrap_or_default());
    let asked = vec![vec![asked(world, line.0, requirement)]];
    let mut clash = clash::describe(world, line.0, asked, &PositionSet::default());
    clash.needed = Some(world.package(line.0).label(forced.position));
    conflict.clashes = vec![clash];
    Ok(conflict)
}

/// Adds the facts that are not there yet.
pub(super) fn add(conflict: &mut Conflict, facts: Vec<Fact>) {
    for fact in facts {
        if !conflict.facts.contains(&fact) {
            conflict.facts.push(fact);
        }
    }
}

/// What a requirement asks of the package at `place`, which may stand in for the one that it names.
fn asked(world: &World<'_>, place: usize, requirement: &Requirement) -> String {
    let asked = requirement.to_string();
    if *world.package(place).id() == requirement.id {
        return asked;
    }
    stand_ins::asked_of(world, &requirement.id, &asked)
}

/// The conflict of a version that is needed at least, and that what is installed cannot be upgraded to.
fn refused(world: &World<'_>, list: &BuildList, line: Line, refusal: Rejection) -> Conflict {
    let mut conflict = begin(world);
    let forced = &list.visits[list.chosen[&line]];
    conflict.facts = chain(world, list, forced.by, &forced.requirement);
    let package = world.package(line.0);
    let mut clash = clash::describe(world, line.0, Vec::new(), &PositionSet::default());
    clash.needed = Some(package.label(forced.position));
    let version = std::iter::once(forced.position).collect();
    clash.rejected = vec![(refusal, Versions::fold(package, &version))];
    conflict.clashes = vec![clash];
    conflict
}

pub(super) fn begin(world: &World<'_>) -> Conflict {
    let base = world.request().settings.base.clone();
    Conflict { statistics: world.statistics(), base, ..Conflict::default() }
}

/// How a requirement came to be, from a root down to it.
pub(super) fn chain(
    world: &World<'_>,
    list: &BuildList,
    by: By,
    requirement: &Requirement,
) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut told = FxHashSet::default();
    let (mut by, mut requirement) = (by, requirement);
    loop {
        let (id, asked) = (requirement.id.clone(), vec![requirement.to_string()]);
        match by {
            By::Root(_) | By::Command => {
                let name = match by {
                    By::Root(index) => world.roots()[index].by.clone(),
                    _ => COMMAND.to_owned(),
                };
                let names = vec![name];
                facts.push(Fact::Requires { by: Requirer::Roots(names), id, asked });
                facts.reverse();
                return facts;
            }
            By::Capability(capability) => {
                facts.extend(provision::provides(world, list, capability, &requirement.id));
                let (required, asker) = provision::required(world, list, capability);
                facts.push(required);
                // Who requires it may in turn be there because of what provides it.
                let Some(asker) = asker.filter(|asker| told.insert(*asker)) else {
                    facts.reverse();
                    return facts;
                };
                let visit = &list.visits[asker];
                (by, requirement) = (visit.by, &visit.requirement);
            }
            By::Visit(visit) => {
                let visit = &list.visits[visit];
                let package = world.package(visit.place);
                let version: PositionSet = std::iter::once(visit.position).collect();
                let versions = Versions::fold(package, &version);
                let requirer = Requirer::Package(package.id().clone(), versions);
                facts.push(Fact::Requires { by: requirer, id, asked });
                (by, requirement) = (visit.by, &visit.requirement);
            }
        }
    }
}
