//! The fewest requirements that give a build list: Russ Cox's algorithm R.
//!
//! What the roots ask for themselves is always listed. Anything else is listed only if nothing that is listed already
//! leads to it at the chosen version.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::Unavailable;
use crate::index::releases::Position;
use crate::reference::VersionSpec;
use crate::select::candidates::Candidates;
use crate::select::minimal::build::{Line, is_higher, line, lowest};
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

/// What a version needs at least.
pub(super) fn required(world: &mut World<'_>, module: Module) -> Result<Vec<Module>, Unavailable> {
    let ((place, _), position) = module;
    let mut required = Vec::new();
    for requirement in world.requirements(place, position)?.iter() {
        if world.request().local.contains_key(&requirement.id) {
            continue;
        }
        if let Some((place, least)) = lowest(world, requirement)? {
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
    let text = match (package.revision(position), package.version(position)) {
        (None, Some(version)) if version.app().is_none() => like(before, &version.to_string()),
        // A composite version can be named only as a whole, so that its revision counts.
        (None, Some(version)) => version.to_string(),
        (Some(revision), _) => revision.commit.to_string(),
        (None, None) => String::new(),
    };
    VersionSpec::parse(&text).unwrap_or(VersionSpec::Latest)
}

/// A specification like `before` that begins at `version`.
fn like(before: Option<&VersionSpec>, version: &str) -> String {
    match before {
        Some(VersionSpec::Pin(_) | VersionSpec::Commit(_)) => version.to_owned(),
        Some(VersionSpec::Range(range)) => bounded(range.as_str(), version),
        _ => format!("^{version}"),
    }
}

/// A range like `before` that begins at `version`; only what no other form fits keeps its end as it was written.
fn bounded(before: &str, version: &str) -> String {
    let before = before.trim();
    if before.starts_with('~') {
        return format!("~{version}");
    }
    let Some(lower) = before.strip_prefix(">=").filter(|_| !before.contains("||")) else {
        return format!("^{version}");
    };
    match lower.trim_start().split_once([' ', ',']) {
        Some((_, upper)) => format!(">={version} {}", upper.trim_start_matches([' ', ','])),
        None => format!(">={version}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_bound_looks_like_the_old_one() {
        let check = |before: &str, expected: &str| {
            let before = VersionSpec::parse(before).expect("is a version");
            assert_eq!(like(Some(&before), "1.5.0"), expected);
        };
        check("^1.2", "^1.5.0");
        check("~1.2", "~1.5.0");
        check("1.2.0", "1.5.0");
        check(">=1.2", ">=1.5.0");
        check(">=1.2 <2", ">=1.5.0 <2");
        check("^1 || ^3", "^1.5.0");
        check("latest", "^1.5.0");
    }
}
