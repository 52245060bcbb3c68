//! The fewest requirements that give a build list: Russ Cox's algorithm R.
//!
//! What the roots ask for themselves is always listed. Anything else is listed only if nothing that is listed already
//! leads to it at the chosen version.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::Unavailable;
use crate::index::releases::Position;
use crate::reference::{Version, VersionSpec};
use crate::select::candidates::Candidates;
use crate::select::minimal::build::{Line, is_higher, least, line};
use crate::select::minimal::providers;
use crate::select::world::World;

/// A version of a line.
pub(super) type Module = (Line, Position);

/// The lines besides `direct` that must be listed, so that the build list comes out as `chosen`.
pub(super) fn indirect(
    world: &mut World<'_>,
    chosen: &BTreeMap<Line, Position>,
    direct: &[Line],
) -> Result<Vec<Module>, Unavailable> {
    let mut order = Vec::new();
    let mut seen = FxHashSet::default();
    for line in direct.iter().chain(chosen.keys()) {
        if let Some(&position) = chosen.get(line) {
            post_order(world, (*line, position), &mut seen, &mut order)?;
        }
    }
    let mut implied: FxHashMap<Line, Position> = FxHashMap::default();
    let mut walked = FxHashSet::default();
    for line in direct {
        if let Some(&position) = chosen.get(line) {
            imply(world, (*line, position), &mut walked, &mut implied)?;
        }
    }
    let mut listed = Vec::new();
    for module in order.into_iter().rev() {
        let (line, position) = module;
        if chosen.get(&line) == Some(&position) && implied.get(&line) != Some(&position) {
            imply(world, module, &mut walked, &mut implied)?;
            listed.push(module);
        }
    }
    listed.sort_unstable();
    Ok(listed)
}

/// The lines that direct requirements lead to, over what is chosen, over what visited versions need at least, and over what
/// provides the capabilities that are required.
pub(super) fn needed(
    world: &mut World<'_>,
    chosen: &BTreeMap<Line, Position>,
    direct: &[Line],
) -> Result<FxHashSet<Line>, Unavailable> {
    let mut lines: FxHashSet<Line> = direct.iter().copied().collect();
    let mut walked = FxHashSet::default();
    let mut open: Vec<Module> =
        direct.iter().filter_map(|line| Some((*line, *chosen.get(line)?))).collect();
    let own: Vec<String> = world.own_requires().keys().cloned().collect();
    open.extend(own.iter().filter_map(|name| providers::among(world, chosen, name)));
    while let Some(module) = open.pop() {
        if !walked.insert(module) {
            continue;
        }
        lines.insert(module.0);
        if world.requires_capabilities() && chosen.get(&module.0) == Some(&module.1) {
            let (_, capabilities) = world.capabilities_of(module.0.0, module.1)?;
            open.extend(
                capabilities.iter().filter_map(|name| providers::among(world, chosen, name)),
            );
        }
        for (line, least) in required(world, module)? {
            lines.insert(line);
            open.push((line, least));
            open.extend(chosen.get(&line).map(|&position| (line, position)));
        }
    }
    Ok(lines)
}

/// What a version needs at least.
pub(super) fn required(world: &mut World<'_>, module: Module) -> Result<Vec<Module>, Unavailable> {
    let ((place, _), position) = module;
    let mut required = Vec::new();
    for &ask in world.asks_of(place, position)?.iter() {
        if world.is_own(ask) {
            continue;
        }
        if let Some((place, least)) = least(world, ask)? {
            let package = world.package(place);
            required.push((line(package, &world.request().settings, place, least), least));
        }
    }
    Ok(required)
}

/// Lists everything that is reachable from a version, each behind what it needs.
fn post_order(
    world: &mut World<'_>,
    module: Module,
    seen: &mut FxHashSet<Module>,
    order: &mut Vec<Module>,
) -> Result<(), Unavailable> {
    let mut open = vec![(module, None)];
    while let Some((module, rest)) = open.pop() {
        let mut rest: Vec<Module> = match rest {
            Some(rest) => rest,
            None if seen.insert(module) => {
                let mut required = required(world, module)?;
                required.sort_unstable();
                required.reverse();
                required
            }
            None => continue,
        };
        match rest.pop() {
            Some(next) => open.extend([(module, Some(rest)), (next, None)]),
            None => order.push(module),
        }
    }
    Ok(())
}

/// Notes what a version leads to: the highest of each line.
fn imply(
    world: &mut World<'_>,
    module: Module,
    walked: &mut FxHashSet<Module>,
    implied: &mut FxHashMap<Line, Position>,
) -> Result<(), Unavailable> {
    let mut open = vec![module];
    while let Some(module) = open.pop() {
        if !walked.insert(module) {
            continue;
        }
        let (line, position) = module;
        let known = implied.entry(line).or_insert(position);
        if is_higher(world.package(line.0), position, *known) {
            *known = position;
        }
        open.extend(required(world, module)?);
    }
    Ok(())
}

/// What to write so that the candidate at `position` is the least: as close as possible to what was written before.
pub(in crate::select) fn at_least(
    package: &Candidates,
    position: Position,
    before: Option<&VersionSpec>,
) -> VersionSpec {
    match (package.revision(position), package.version(position)) {
        (None, Some(version)) => beginning_at(before, &version),
        (Some(revision), _) => parse(&revision.commit),
        (None, None) => VersionSpec::Latest,
    }
}

/// A specification that begins at `version`, and says else what `before` said; without that, any version from there on.
///
/// Only a pin has room for nothing else, and a composite version can be named only as a whole, so that its revision counts.
pub fn beginning_at(before: Option<&VersionSpec>, version: &Version) -> VersionSpec {
    match (before, version.as_semver()) {
        (_, None) | (Some(VersionSpec::Pin(_) | VersionSpec::Commit(_)), _) => {
            parse(&version.to_string())
        }
        (Some(VersionSpec::Range(range)), Some(semver)) => {
            parse(range.beginning_at(semver).as_str())
        }
        (_, Some(semver)) => parse(&format!(">={semver}")),
    }
}

/// What is compatible with the candidate at `position`, and begins there.
pub(in crate::select) fn compatible(package: &Candidates, position: Position) -> VersionSpec {
    match package.version(position) {
        Some(version) if version.as_semver().is_some() => parse(&format!("^{version}")),
        _ => at_least(package, position, None),
    }
}

fn parse(text: &str) -> VersionSpec {
    VersionSpec::parse(text).unwrap_or(VersionSpec::Latest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_bound_looks_like_the_old_one() {
        let check = |before: &str, expected: &str| {
            let before = VersionSpec::parse(before).expect("is a version");
            let version = Version::parse("1.5.0").expect("is a version");
            assert_eq!(beginning_at(Some(&before), &version).as_str(), expected);
        };
        check("^1.2", "^1.5.0");
        check("1.2.0", "1.5.0");
        check(">=1.2 <2", ">=1.5.0 <2");
        check("latest", ">=1.5.0");
        check("tip", ">=1.5.0");
    }
}
