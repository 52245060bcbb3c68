//! Providers of capabilities in a build list: adds the fewest that are needed, in the order in which
//! providers are listed.
//!
//! A capability names no version, so it has no minimum version. The first provider with which everything
//! holds together is taken, at its lowest version that provides the capability.

use std::collections::{BTreeMap, BTreeSet};

use mu_manifest::reference::PackageId;
use pubgrub::VersionSet as _;

use crate::Failure;
use crate::conflict::{Conflict, Fact, Requirer};
use crate::minimal::build::{Addition, BuildList, By, Pick, Visit, is_higher};
use crate::minimal::check::Missing;
use crate::minimal::{check, replaced};
use crate::node::{CapabilityIndex, MajorLine, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::Unavailable;
use crate::world::{CapabilityProvider, ChosenPackage, World, unfinished};

/// The build list in which every required capability is provided.
///
/// # Errors
///
/// [`Failure::Conflict`] when there is none, and [`Failure::Unfinished`] when too many providers were tried
/// in vain.
///
/// A provider that is listed only because others need one gives way to another one: the world then no longer
/// requires it.
pub(crate) fn complete_providers(
    world: &mut World<'_>,
    additions: &[Addition],
) -> Result<BuildList, Failure> {
    let mut conflict = match attempt(world, additions) {
        Err(Failure::Conflict(conflict)) => conflict,
        Ok(list) => return fewest(world, additions, list),
        result => return result,
    };
    let asked = world.roots.to_vec();
    // Ends: each call below has a package less in the lists of indirect dependencies.
    for id in listed(world, &conflict) {
        let mut roots = asked.clone();
        for root in &mut roots {
            let by = &root.by;
            root.requirements.retain(|one| one.id != id || !world.request().lists(by, one));
        }
        world.ask(roots);
        match complete_providers(world, additions) {
            // Only the objections that remain then count.
            Err(Failure::Conflict(other)) => conflict = other,
            result => return result,
        }
    }
    world.ask(asked);
    let facts = overridden(world, &conflict);
    conflict.add_facts(facts);
    Err(Failure::Conflict(conflict))
}

/// The packages in a conflict that something else replaces.
fn overridden(world: &World<'_>, conflict: &Conflict) -> Vec<Fact> {
    let mut named = BTreeSet::new();
    for fact in &conflict.facts {
        let Fact::Requires { by, id, .. } = fact else { continue };
        named.insert(id);
        if let Requirer::Package(by, _) = by {
            named.insert(by);
        }
    }
    let by = |id: &PackageId| world.package(world.packages.place(id)?).used_override().cloned();
    let facts =
        named.into_iter().filter_map(|id| Some(Fact::Overridden { id: id.clone(), by: by(id)? }));
    facts.collect()
}

/// The build list in which every required capability is provided; `None` if there is none.
pub(crate) fn try_complete_providers(
    world: &mut World<'_>,
    additions: &[Addition],
) -> Result<Option<BuildList>, Failure> {
    match complete_providers(world, additions) {
        Ok(list) => Ok(Some(list)),
        Err(Failure::Conflict(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The packages in a conflict that provide the same, or that provide something and conflict with another
/// package, and that are in a list of indirect dependencies; the preferred one last.
fn listed(world: &World<'_>, conflict: &Conflict) -> Vec<PackageId> {
    let is_listed = |id: &PackageId| {
        let mut roots = world.roots.iter();
        roots.any(|root| {
            let mut asked = root.requirements.iter();
            asked.any(|one| one.id == *id && world.request().lists(&root.by, one))
        })
    };
    let provides = |id: &PackageId| {
        let place = world.packages.place(id);
        place.is_some_and(|place| world.packages.capabilities.is_provider(place))
    };
    let opposed = check::involved(conflict).into_iter();
    let mut listed: Vec<PackageId> = opposed.filter(|id| is_listed(id) && provides(id)).collect();
    for doubled in conflict.capabilities.iter().filter(|clash| clash.is_provided) {
        let provides = |id: &PackageId| {
            conflict.facts.iter().any(|fact| {
                matches!(fact, Fact::Provides { by: Requirer::Package(by, _), capability }
                    if by == id && *capability == doubled.capability)
            })
        };
        let ranked = world.packages.ranked_providers(&doubled.capability).into_iter().rev();
        let ranked = ranked.filter_map(|(provider, _)| provider.package());
        let ranked = ranked.map(|(place, _)| &world.package(place).id);
        for id in ranked.filter(|id| provides(id) && is_listed(id)) {
            if !listed.contains(id) {
                listed.push(id.clone());
            }
        }
    }
    listed
}

/// The most build lists to try to find one with fewer providers.
const TRIES: usize = 32;

/// The build list `list`, or one in which fewer packages are there only for what they provide.
fn fewest(
    world: &mut World<'_>,
    additions: &[Addition],
    list: BuildList,
) -> Result<BuildList, Failure> {
    let is_brought = |visit: &&Visit| matches!(visit.by, By::Capability(_));
    let places = |list: &BuildList| -> BTreeSet<PackageIndex> {
        list.visits.iter().filter(is_brought).map(|visit| visit.place).collect()
    };
    // With one such package there is nothing to save.
    let brought = places(&list);
    if brought.len() < 2 {
        return Ok(list);
    }
    let mut required: BTreeSet<String> = world.own_requires.keys().cloned().collect();
    // What a provider requires may change with its version, or with another provider.
    for (MajorLine { place, .. }, position) in list.positions() {
        if !brought.contains(&place) {
            required.extend(world.packages.capabilities_of(place, position)?.1);
        }
    }
    let is_there = |place: PackageIndex| {
        !brought.contains(&place) && list.chosen.range(MajorLine::all_of(place)).next().is_some()
    };
    let fewest = world.packages.fewest_providers(required, is_there).max(1);
    let mut tries = TRIES;
    // The fewest first. All of these numbers share `tries`, so a large graph keeps the answer that it has.
    for most in fewest..brought.len() {
        if let Some(fewer) = within(world, additions, most, &mut tries)? {
            return Ok(fewer);
        }
    }
    // The world knows the replacements in the list that was built last.
    let providers = list.visits.iter().filter(is_brought);
    let providers =
        providers.map(|&Visit { place, position, by, .. }| Addition { place, position, by });
    let all: Vec<Addition> = additions.iter().copied().chain(providers).collect();
    Ok(replaced::build(world, &all)?)
}

/// The first build list with at most this many providers besides `additions`, in which everything is
/// provided.
fn within(
    world: &mut World<'_>,
    additions: &[Addition],
    most: usize,
    tries: &mut usize,
) -> Result<Option<BuildList>, Failure> {
    let Some(left) = tries.checked_sub(1) else { return Ok(None) };
    *tries = left;
    let list = replaced::build(world, additions)?;
    if check::first_violation(world, &list)?.is_some() {
        return Ok(None);
    }
    let Some(missing) = missing(world, &list)? else {
        let is_fine = check::doubled(world, &list)?.is_none()
            && check::first_opponents(world, &list)?.is_none();
        return Ok(is_fine.then_some(list));
    };
    // Something is missing, and no further provider may be added.
    let Some(fewer) = most.checked_sub(1) else { return Ok(None) };
    for provider in candidates(world, &list, missing.capability) {
        let wanted: Vec<Addition> = additions.iter().copied().chain([provider]).collect();
        if let Some(list) = within(world, &wanted, fewer, tries)? {
            return Ok(Some(list));
        }
    }
    Ok(None)
}

/// Tries one way after the other to provide what is missing; if none works, returns why each failed.
fn attempt(world: &mut World<'_>, additions: &[Addition]) -> Result<BuildList, Failure> {
    let list = replaced::build(world, additions)?;
    if let Some(conflict) = check::first_violation(world, &list)? {
        return Err(Failure::Conflict(Box::new(conflict)));
    }
    let Some(missing) = missing(world, &list)? else {
        return match check::doubled(world, &list)? {
            Some(conflict) => Err(Failure::Conflict(Box::new(conflict))),
            None => match check::first_opponents(world, &list)? {
                Some(conflict) => Err(Failure::Conflict(Box::new(conflict))),
                None => Ok(list),
            },
        };
    };
    let mut all: Option<Box<Conflict>> = None;
    let candidates = candidates(world, &list, missing.capability);
    // A search by trying, as deep as there are capabilities. It has no memory as pubgrub has, because there are few
    // capabilities; if there are many, `spend` ends it.
    for &provider in &candidates {
        let wanted: Vec<Addition> = additions.iter().copied().chain([provider]).collect();
        match attempt(world, &wanted) {
            Err(Failure::Conflict(other)) => match &mut all {
                Some(all) => join(all, *other),
                None => all = Some(other),
            },
            result => return result,
        }
        if !world.budget.spend_on_trial(list.visits.len(), provider.place) {
            return Err(Failure::Unfinished(Box::new(unfinished(world))));
        }
    }
    let mut all = all.unwrap_or_else(|| Box::new(check::unprovided(world, &list, &missing)));
    check::add_passed(world, &list, missing.capability, &candidates, &mut all);
    Err(Failure::Conflict(all))
}

/// The most facts, and the most of anything else without candidates, that one conflict reports.
const MOST_REPORTED: usize = 128;

/// Adds what another conflict says in addition.
fn join(all: &mut Conflict, other: Conflict) {
    fn add<T: PartialEq>(all: &mut Vec<T>, others: Vec<T>) -> usize {
        let mut untold = 0;
        for other in others {
            if all.len() >= MOST_REPORTED {
                untold += 1;
            } else if !all.contains(&other) {
                all.push(other);
            }
        }
        untold
    }
    all.untold += other.untold + add(&mut all.facts, other.facts);
    add(&mut all.clashes, other.clashes);
    add(&mut all.capabilities, other.capabilities);
    add(&mut all.replacements, other.replacements);
}

/// The first capability that a root or a chosen version requires and nothing provides.
fn missing(world: &mut World<'_>, list: &BuildList) -> Result<Option<Missing>, Unavailable> {
    let mut required = Vec::new();
    for (name, by) in world.own_requires.iter() {
        required.extend(by.values().map(|near| (name.clone(), near.clone(), By::Command)));
    }
    for visit in list.in_order() {
        let (place, position) = (list.visits[visit].place, list.visits[visit].position);
        let near = world.package(place).releases.id().clone();
        for name in world.packages.capabilities_of(place, position)?.1 {
            required.push((name, near.clone(), By::Visit(visit)));
        }
    }
    // By name, so that neither the order of members nor that of visits decides which capability gets its provider
    // first.
    required.sort_by(|one, two| one.0.cmp(&two.0));
    for (name, near, by) in required {
        let (capability, _) = world.require(&name, &near)?;
        let provider = |place, versions: &_| chosen(list, place, versions);
        if world.packages.capabilities.chosen(&name, &provider).is_none() {
            return Ok(Some(Missing { capability, by }));
        }
    }
    Ok(None)
}

/// The provider of a capability among the versions to choose.
pub(super) fn among(
    world: &World<'_>,
    chosen: &BTreeMap<MajorLine, Position>,
    name: &str,
) -> Option<Pick> {
    let in_line = |place: PackageIndex, versions: &PositionSet| {
        let mut lines = chosen.range(MajorLine::all_of(place)).map(|(_, &position)| position);
        lines.find(|&position| versions.holds(position))
    };
    let ChosenPackage::Candidate(place, position) =
        world.packages.capabilities.chosen(name, &in_line)?
    else {
        return None;
    };
    Some(Pick { line: world.line(place, position), position })
}

/// The versions that provide a capability, of packages that nothing requires by name.
pub(super) fn providing(
    world: &mut World<'_>,
    list: &BuildList,
) -> Result<BTreeMap<PackageIndex, PositionSet>, Unavailable> {
    let mut providing = BTreeMap::new();
    if !world.packages.capabilities.is_any_required() {
        return Ok(providing);
    }
    let positions = list.positions();
    let mut required: BTreeSet<String> = world.own_requires.keys().cloned().collect();
    for (&MajorLine { place, .. }, &position) in &positions {
        required.extend(world.packages.capabilities_of(place, position)?.1);
    }
    let request = world.request();
    // A list of indirect dependencies only records what was chosen before. It is no reason for a package to be there.
    let own = &request.roots[..request.roots.len().saturating_sub(request.indirect)];
    let own = own.iter().flat_map(|root| &root.requirements);
    let mut asked: BTreeSet<PackageId> = own.map(|requirement| requirement.id.clone()).collect();
    for visit in &list.visits {
        for &need in world.packages.needs_of(visit.place, visit.position)?.iter() {
            asked.insert(world.requirement(need).id.clone());
        }
    }
    for name in &required {
        let Some(Pick { line: MajorLine { place, .. }, .. }) = among(world, &positions, name)
        else {
            continue;
        };
        if asked.contains(&world.package(place).id) {
            continue;
        }
        let all = world.packages.ranked_providers(name).into_iter();
        let all = all.filter_map(|(provider, _)| provider.package());
        let own = all.filter(|(own, _)| *own == place);
        let versions: PositionSet = own.map(|(_, versions)| versions).collect();
        let known = providing.entry(place).or_insert_with(PositionSet::full);
        *known = known.intersection(&versions);
    }
    Ok(providing)
}

/// The chosen version of the package at `place` within `versions`.
fn chosen(list: &BuildList, place: PackageIndex, versions: &PositionSet) -> Option<Position> {
    let lines = list.chosen.range(MajorLine::all_of(place));
    let mut positions = lines.filter_map(|(&line, _)| list.position(line));
    positions.find(|&position| versions.holds(position))
}

/// The other possible providers of a capability, the preferred first: each at its lowest version that
/// provides it and is not below the chosen one. A package that no registry lists and nothing requires cannot
/// be one.
fn candidates(world: &World<'_>, list: &BuildList, capability: CapabilityIndex) -> Vec<Addition> {
    let ranked = world.packages.ranked_providers(world.packages.capabilities.name(capability));
    let candidates = ranked.into_iter().filter_map(|(provider, is_listed)| {
        let CapabilityProvider::Package(place, versions) = provider else { return None };
        let package = world.package(*place);
        let settings = &world.request().settings;
        let lowest = versions.iter().find(|&position| {
            let version = package.version(position);
            // Nobody asks for a version here, so nobody asks for a prerelease either.
            let is_stable = settings.prereleases || version.is_some_and(|one| !one.is_prerelease());
            let current = list.position(world.line(*place, position));
            is_stable && current.is_none_or(|current| is_higher(package, position, current))
        })?;
        // Any package may say of itself that it provides `c/v1/N`. Only those count that a registry lists, or that are
        // there anyway.
        let is_asked = list.chosen.range(MajorLine::all_of(*place)).next().is_some();
        let by = By::Capability(capability);
        (is_listed || is_asked).then_some(Addition { place: *place, position: lowest, by })
    });
    candidates.collect()
}
