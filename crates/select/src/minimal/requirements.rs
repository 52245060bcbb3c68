//! The fewest requirements that give a build list: Russ Cox's algorithm R.
//!
//! Direct requirements of the roots are always listed. Anything else is listed only if no listed requirement
//! already leads to it at the chosen version.

use std::collections::BTreeMap;

use mu_manifest::reference::VersionSpec;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::candidates::Candidates;
use crate::minimal::build::{Pick, is_higher, lowest_for};
use crate::minimal::providers;
use crate::node::MajorLine;
use crate::plan::spec_beginning_at;
use crate::releases::Position;
use crate::universe::Unavailable;
use crate::world::World;

/// The lines in addition to `direct` that must be listed, so that the build list is `chosen`.
pub(super) fn indirect(
    world: &mut World<'_>,
    chosen: &BTreeMap<MajorLine, Position>,
    direct: &[MajorLine],
) -> Result<Vec<Pick>, Unavailable> {
    // Three steps: all that is reachable, each after what it needs; what the direct requirements lead to by themselves;
    // and then, from the top down, whatever is not reached at its version. So what is listed first leads to as much as
    // possible, and little has to be listed after it.
    let mut order = Vec::new();
    let mut seen = FxHashSet::default();
    for line in direct.iter().chain(chosen.keys()) {
        if let Some(&position) = chosen.get(line) {
            post_order(world, Pick { line: *line, position }, &mut seen, &mut order)?;
        }
    }
    let mut implied: FxHashMap<MajorLine, Position> = FxHashMap::default();
    let mut walked = FxHashSet::default();
    for line in direct {
        if let Some(&position) = chosen.get(line) {
            imply(world, Pick { line: *line, position }, &mut walked, &mut implied)?;
        }
    }
    let mut listed = Vec::new();
    for pick in order.into_iter().rev() {
        let Pick { line, position } = pick;
        // `a` needs `c >=1.2`, and `c 1.4` was chosen because `b` needed it, which is gone: nothing leads to 1.4 any
        // more, so `c` is listed.
        if chosen.get(&line) == Some(&position) && implied.get(&line) != Some(&position) {
            imply(world, pick, &mut walked, &mut implied)?;
            listed.push(pick);
        }
    }
    listed.sort_unstable();
    Ok(listed)
}

/// The lines that direct requirements reach, through chosen versions, minimums of visited versions, and
/// providers of required capabilities.
pub(super) fn needed(
    world: &mut World<'_>,
    chosen: &BTreeMap<MajorLine, Position>,
    direct: &[MajorLine],
) -> Result<FxHashSet<MajorLine>, Unavailable> {
    let mut lines: FxHashSet<MajorLine> = direct.iter().copied().collect();
    let mut walked = FxHashSet::default();
    let chosen_of = |line: MajorLine| Some(Pick { line, position: *chosen.get(&line)? });
    let mut open: Vec<Pick> = direct.iter().filter_map(|line| chosen_of(*line)).collect();
    let own: Vec<String> = world.own_requires.keys().cloned().collect();
    open.extend(own.iter().filter_map(|name| providers::among(world, chosen, name)));
    while let Some(pick) = open.pop() {
        if !walked.insert(pick) {
            continue;
        }
        lines.insert(pick.line);
        if world.packages.capabilities.is_any_required() && chosen_of(pick.line) == Some(pick) {
            let (_, capabilities) =
                world.packages.capabilities_of(pick.line.place, pick.position)?;
            open.extend(
                capabilities.iter().filter_map(|name| providers::among(world, chosen, name)),
            );
        }
        for lowest in required(world, pick)? {
            lines.insert(lowest.line);
            open.push(lowest);
            // Both, because the needs of a visited version count even if a higher one is chosen.
            open.extend(chosen_of(lowest.line));
        }
    }
    Ok(lines)
}

/// The lowest versions that meet the requirements of a version.
pub(super) fn required(world: &mut World<'_>, pick: Pick) -> Result<Vec<Pick>, Unavailable> {
    let Pick { line: MajorLine { place, .. }, position } = pick;
    let mut required = Vec::new();
    for &need in world.packages.needs_of(place, position)?.iter() {
        if world.packages.is_resolved_to_own(need) {
            continue;
        }
        if let Some((place, position)) = lowest_for(world, need)? {
            required.push(Pick { line: world.line(place, position), position });
        }
    }
    Ok(required)
}

/// Lists everything that is reachable from a version, each after what it needs.
fn post_order(
    world: &mut World<'_>,
    pick: Pick,
    seen: &mut FxHashSet<Pick>,
    order: &mut Vec<Pick>,
) -> Result<(), Unavailable> {
    // A stack of its own instead of recursion: a chain may be thousands of packages long. With `None`, a version was
    // not looked at yet; then it has those of its needs that are left.
    let mut open = vec![(pick, None)];
    while let Some((pick, rest)) = open.pop() {
        let mut rest: Vec<Pick> = match rest {
            Some(rest) => rest,
            None if seen.insert(pick) => {
                let mut required = required(world, pick)?;
                required.sort_unstable();
                // They are taken from the end, so this is their order.
                required.reverse();
                required
            }
            None => continue,
        };
        match rest.pop() {
            Some(next) => open.extend([(pick, Some(rest)), (next, None)]),
            None => order.push(pick),
        }
    }
    Ok(())
}

/// Notes what a version reaches: the highest of each line.
fn imply(
    world: &mut World<'_>,
    pick: Pick,
    walked: &mut FxHashSet<Pick>,
    implied: &mut FxHashMap<MajorLine, Position>,
) -> Result<(), Unavailable> {
    let mut open = vec![pick];
    while let Some(pick) = open.pop() {
        if !walked.insert(pick) {
            continue;
        }
        let Pick { line, position } = pick;
        let known = implied.entry(line).or_insert(position);
        if is_higher(world.package(line.place), position, *known) {
            *known = position;
        }
        open.extend(required(world, pick)?);
    }
    Ok(())
}

/// What to write so that the candidate at `position` is the minimum: as close as possible to what was written
/// before.
pub(crate) fn spec_with_minimum(
    package: &Candidates,
    position: Position,
    before: Option<&VersionSpec>,
) -> VersionSpec {
    match (package.revision(position), package.version(position)) {
        (None, Some(version)) => spec_beginning_at(before, &version),
        (Some(revision), _) => parse(&revision.commit),
        (None, None) => VersionSpec::Latest,
    }
}

/// The versions that are compatible with the candidate at `position`, starting there.
pub(crate) fn compatible(package: &Candidates, position: Position) -> VersionSpec {
    match package.version(position) {
        Some(version) if version.as_semver().is_some() => VersionSpec::compatible_with(&version),
        _ => spec_with_minimum(package, position, None),
    }
}

fn parse(text: &str) -> VersionSpec {
    VersionSpec::parse(text).unwrap_or(VersionSpec::Latest)
}
