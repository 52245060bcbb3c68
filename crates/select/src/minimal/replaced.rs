//! Packages that chosen ones replace: a requirement on one of them means the lowest match of its replacement.
//!
//! The build list is computed again with the replacements that were found, until nothing changes any more, or
//! it returns to an earlier state; then the result is checked. A replacement stays, even if a higher version
//! of it no longer replaces the package; but a package that is itself replaced replaces nothing.

use std::collections::{BTreeMap, BTreeSet};

use mu_manifest::reference::PackageId;

use crate::conflict::{Conflict, Fact, ReplacementClash};
use crate::minimal::build::{Addition, BuildList, By};
use crate::minimal::check;
use crate::universe::{Requirement, Unavailable};
use crate::world::World;

/// The packages that replace each required package: the visits of chosen versions, lowest first.
type Replacers = BTreeMap<PackageId, Vec<usize>>;

/// The build list with replacements in place of the packages that they replace.
///
/// It is computed again with everything that was found to be replaced, until it does not change any more, or
/// until it returns to an earlier state; [`conflict`] then reports what does not hold together.
pub(crate) fn build(
    world: &mut World<'_>,
    additions: &[Addition],
) -> Result<BuildList, Unavailable> {
    let mut tried: Vec<StandIns> = vec![StandIns::new()];
    let mut why_replaced = BTreeMap::new();
    world.packages.replace(StandIns::new());
    // This ends for two reasons. A list that was walked too early (`take_outdated`) is walked again only because something was
    // read that had not been read. And a set of replacements that was tried before ends the loop, so no set comes twice; there
    // are only so many, because both sides are packages that were read.
    loop {
        world.take_outdated();
        let mut list = BuildList::walk(world, additions)?;
        if world.take_outdated() {
            continue;
        }
        let stand_ins = next(world, &list, &tried[tried.len() - 1], &mut why_replaced)?;
        if tried.contains(&stand_ins) {
            list.why_replaced = why_replaced;
            return Ok(list);
        }
        world.packages.replace(stand_ins.clone());
        tried.push(stand_ins);
    }
}

/// The replacements in a build list that was made with `before`; notes in `why_replaced` why each applies.
fn next(
    world: &mut World<'_>,
    list: &BuildList,
    before: &StandIns,
    why_replaced: &mut BTreeMap<PackageId, Vec<Fact>>,
) -> Result<StandIns, Unavailable> {
    let replacers = replacers(world, list)?;
    let mut after = before.clone();
    for (id, by) in &replacers {
        let id_of = |visit: usize| &world.package(list.visits[visit].place).id;
        // `b` replaces `a`, and `d` replaces `b`: then `b` will be gone, and replaces nothing.
        let active = by.iter().copied().filter(|&visit| !replacers.contains_key(id_of(visit)));
        let active = active.min_by_key(|&visit| id_of(visit));
        // What stands in for a package stays, although others may replace it, too. Otherwise two of them could take
        // turns for ever.
        let Some(visit) = active.filter(|_| !before.contains_key(id)) else { continue };
        after.insert(id.clone(), id_of(visit).clone());
        let mut facts = chain(world, list, visit);
        facts.extend(replaces(world, list, visit, &BTreeSet::from([id.clone()]))?);
        why_replaced.insert(id.clone(), facts);
    }
    let replaced: BTreeSet<PackageId> = after.keys().cloned().collect();
    // Its replacement was just replaced itself. In the next round the package is there again, or replaced by another
    // one.
    after.retain(|_, by| !replaced.contains(by));
    Ok(after)
}

/// What replaces what.
type StandIns = BTreeMap<PackageId, PackageId>;

/// The packages that chosen versions replace, of those that are required, or chosen as a replacement or a
/// provider.
fn replacers(world: &mut World<'_>, list: &BuildList) -> Result<Replacers, Unavailable> {
    let mut replacers = Replacers::new();
    for &visit in list.chosen.values() {
        let (place, position) = (list.visits[visit].place, list.visits[visit].position);
        for id in world.packages.replaced_by(place, position)? {
            replacers.entry(id).or_default().push(visit);
        }
    }
    if replacers.is_empty() {
        return Ok(replacers);
    }
    let mut asked: BTreeSet<PackageId> = BTreeSet::new();
    each(world, list, &mut |_, requirement| {
        asked.insert(requirement.id.clone());
    })?;
    // What nobody requires and nothing has chosen, nobody misses: that it would be replaced changes nothing.
    asked.extend(list.chosen.keys().map(|line| world.package(line.place).id.clone()));
    replacers.retain(|id, _| asked.contains(id));
    for visits in replacers.values_mut() {
        visits.sort_unstable();
    }
    Ok(replacers)
}

/// Lists everything that roots and visited versions require, with what requires it.
fn each(
    world: &mut World<'_>,
    list: &BuildList,
    show: &mut dyn FnMut(By, &Requirement),
) -> Result<(), Unavailable> {
    for (index, root) in world.roots.iter().enumerate() {
        root.requirements.iter().for_each(|one| show(By::Root(index), one));
    }
    for (index, visit) in list.visits.iter().enumerate() {
        let required = world.packages.requirements(visit.place, visit.position)?;
        required.iter().for_each(|one| show(By::Visit(index), one));
    }
    Ok(())
}

/// Why packages cannot be replaced as necessary; `None` if they can.
pub(super) fn conflict(
    world: &mut World<'_>,
    list: &BuildList,
) -> Result<Option<Conflict>, Unavailable> {
    let replacers = replacers(world, list)?;
    let mut stand_ins = world.packages.replacements.fixed.clone().unwrap_or_default();
    // First what holds now: a package has one replacement, and that one is in use.
    for (id, by) in &replacers {
        let names: BTreeSet<&PackageId> =
            by.iter().map(|&visit| &world.package(list.visits[visit].place).id).collect();
        let clash = if names.len() > 1 {
            ReplacementClash::Several { id: id.clone() }
        } else if !stand_ins.contains_key(id) {
            // Everything that a staying package replaces was found already.
            ReplacementClash::Circle { ids: circle(world, list, &replacers) }
        } else {
            continue;
        };
        let visits: Vec<usize> = match &clash {
            ReplacementClash::Circle { .. } => replacers.values().flatten().copied().collect(),
            _ => by.clone(),
        };
        return conflict_about(world, list, id, &visits, clash).map(Some);
    }
    // Then what has ended: `b 1.0` replaced `a`, but others need `b 2.0`, which does not. That matters if anything
    // requires `a`.
    stand_ins.retain(|id, by| {
        let mut still = replacers.get(id).into_iter().flatten();
        !still.any(|&visit| world.package(list.visits[visit].place).id == *by)
    });
    for (id, by) in stand_ins {
        let of = |visit: &&usize| world.package(list.visits[**visit].place).id == by;
        let chosen = list.chosen.values().filter(of).max().copied();
        let (Some(visit), Some(_)) = (chosen, asker(world, list, &id)?) else { continue };
        let needed =
            world.package(list.visits[visit].place).candidate_label(list.visits[visit].position);
        let clash = ReplacementClash::Ended { id: id.clone(), by, needed };
        return conflict_about(world, list, &id, &[visit], clash).map(Some);
    }
    Ok(None)
}

/// The packages that replace each other.
fn circle(world: &World<'_>, list: &BuildList, replacers: &Replacers) -> Vec<PackageId> {
    let by = replacers.values().flatten().map(|&visit| world.package(list.visits[visit].place));
    let by: BTreeSet<&PackageId> = by.map(|package| &package.id).collect();
    replacers.keys().filter(|id| by.contains(id)).cloned().collect()
}

/// The first requirement of a package.
fn asker(
    world: &mut World<'_>,
    list: &BuildList,
    id: &PackageId,
) -> Result<Option<(By, Requirement)>, Unavailable> {
    let mut first = None;
    each(world, list, &mut |by, requirement| {
        if requirement.id == *id {
            first.get_or_insert((by, requirement.clone()));
        }
    })?;
    Ok(first)
}

/// A conflict about `id`, with the reasons why it and the versions at `visits` are required.
fn conflict_about(
    world: &mut World<'_>,
    list: &BuildList,
    id: &PackageId,
    visits: &[usize],
    clash: ReplacementClash,
) -> Result<Conflict, Unavailable> {
    let mut facts = match asker(world, list, id)? {
        Some((by, requirement)) => check::chain(world, list, by, &requirement),
        None => Vec::new(),
    };
    if let ReplacementClash::Ended { .. } = &clash {
        facts.extend(list.why_replaced.get(id).into_iter().flatten().cloned());
    }
    for &visit in visits {
        facts.extend(chain(world, list, visit));
    }
    let asked: BTreeSet<PackageId> = match &clash {
        ReplacementClash::Circle { ids } => ids.iter().cloned().collect(),
        _ => BTreeSet::from([id.clone()]),
    };
    for &visit in visits {
        facts.extend(replaces(world, list, visit, &asked)?);
    }
    let mut conflict = Conflict::within(world);
    conflict.add_facts(facts);
    conflict.replacements.push(clash);
    Ok(conflict)
}

/// The packages, of some given ones, that the version of a visit replaces.
fn replaces(
    world: &mut World<'_>,
    list: &BuildList,
    visit: usize,
    of: &BTreeSet<PackageId>,
) -> Result<Vec<Fact>, Unavailable> {
    let visit = &list.visits[visit];
    let replaced = world.packages.replaced_by(visit.place, visit.position)?;
    let by = check::requirer(world, visit);
    let replaced = replaced.into_iter().filter(|id| of.contains(id));
    Ok(replaced.map(|id| Fact::Replaces { by: by.clone(), id }).collect())
}

/// The facts that led to a visit.
fn chain(world: &World<'_>, list: &BuildList, visit: usize) -> Vec<Fact> {
    let visit = &list.visits[visit];
    check::chain(world, list, visit.by, &visit.requirement)
}
