//! The build list: everything that is reachable from the roots, each package at the highest of the minimum versions on the way.
//! And the fewest requirements that give it: Russ Cox's algorithm R.
//!
//! The requirements of a visited version count even if a higher version is chosen, as in Go. So the list does not depend on
//! anything that was published later.
//!
//! Of the fewest requirements, the direct ones of the roots are always listed. Anything else is listed only if no listed
//! requirement already leads to it at the chosen version.

use std::collections::BTreeMap;
use std::sync::Arc;

use mu_manifest::reference::{PackageId, VersionSpec};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Settings;
use crate::candidates::Candidates;
use crate::conflict::Fact;
use crate::filters::Rejection;
use crate::minimal::providers;
use crate::node::{CapabilityIndex, MajorLine, PackageIndex, RequirementIndex};
use crate::plan::spec_beginning_at;
use crate::releases::Position;
use crate::universe::{Requirement, Unavailable};
use crate::world::{Packages, RequirementSet, World};

/// A version of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Pick {
    pub(crate) line: MajorLine,
    pub(crate) position: Position,
}

/// What requires something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// A root, by its place in the request.
    Root(usize),
    /// A visit, by its place in the list.
    Visit(usize),
    /// The command itself, which wants a version.
    Command,
    /// The packages that require a capability.
    Capability(CapabilityIndex),
}

/// A version that is visited although no requirement names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addition {
    pub(crate) place: PackageIndex,
    pub(crate) position: Position,
    /// What it is visited for.
    pub(crate) by: By,
}

/// A version that is the lowest that some requirement accepts.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    pub(crate) place: PackageIndex,
    pub(crate) position: Position,
    /// What required it first, and how.
    pub(crate) by: By,
    pub(crate) requirement: Arc<Requirement>,
}

/// The versions that were visited, and the chosen one of each line.
#[derive(Debug, Default)]
pub(crate) struct BuildList {
    pub(crate) visits: Vec<Visit>,
    pub(crate) chosen: BTreeMap<MajorLine, usize>,
    /// For each replaced package, why it is replaced.
    pub(crate) why_replaced: BTreeMap<PackageId, Vec<Fact>>,
    visited: FxHashMap<(PackageIndex, Position), usize>,
}

impl BuildList {
    /// Visits everything that is reachable from the roots and from `additions`, a level of the graph at a
    /// time. Replacements are visited in place of what they replace, as far as the world knows them.
    pub(super) fn walk(world: &mut World<'_>, additions: &[Addition]) -> Result<Self, Unavailable> {
        let mut list = Self::default();
        // Ends, because a requirement is followed once, and only versions that a requirement or an addition names are
        // visited.
        let mut met = RequirementSet::default();
        let mut wave: Vec<(By, RequirementIndex)> = Vec::new();
        for (index, root) in world.roots.to_vec().iter().enumerate() {
            let needs =
                root.requirements.iter().map(|one| (By::Root(index), world.packages.need_for(one)));
            wave.extend(needs);
        }
        // What the roots require, and what was wanted before, is explained by that, whatever else requires
        // it.
        list.follow(world, wave, &mut met)?;
        for &Addition { place, position, by } in additions {
            let package = world.package(place);
            // An addition has no requirement of its own. In explanations it reads like one of exactly this version.
            let label = package.candidate_label(position);
            let spec = VersionSpec::parse(&label).unwrap_or(VersionSpec::Latest);
            let requirement = Requirement::new(package.id.clone(), spec);
            let requirement = Arc::new(requirement);
            if let Some(visit) = list.note(world, by, requirement, place, position) {
                let needs = world.packages.needs_of(place, position)?;
                let wave = needs.iter().map(|&need| (By::Visit(visit), need)).collect();
                list.follow(world, wave, &mut met)?;
            }
        }
        Ok(list)
    }

    /// Visits everything that a wave requires and that was not visited before.
    fn follow(
        &mut self,
        world: &mut World<'_>,
        mut wave: Vec<(By, RequirementIndex)>,
        met: &mut RequirementSet,
    ) -> Result<(), Unavailable> {
        while !wave.is_empty() {
            // A later requirement of the same adds nothing.
            wave.retain(|&(_, need)| !world.packages.is_resolved_to_own(need) && met.insert(need));
            world.packages.expect(wave.iter().map(|&(_, need)| &world.requirement(need).id));
            // Everything of a level is asked for before any of it is read, so that a cold index waits once for each
            // level.
            let mut fresh = Vec::new();
            for (by, need) in wave {
                fresh.extend(self.visit(world, by, need)?);
            }
            let candidates: Vec<_> = fresh
                .iter()
                .map(|&visit| (self.visits[visit].place, self.visits[visit].position))
                .collect();
            world.packages.expect_requirements(&candidates);
            wave = Vec::new();
            for (visit, (place, position)) in fresh.into_iter().zip(candidates) {
                let needs = world.packages.needs_of(place, position)?;
                wave.extend(needs.iter().map(|&need| (By::Visit(visit), need)));
            }
        }
        Ok(())
    }

    /// Visits the lowest version that a requirement accepts; returns the visit if it is the first of that version.
    fn visit(
        &mut self,
        world: &mut World<'_>,
        by: By,
        need: RequirementIndex,
    ) -> Result<Option<usize>, Unavailable> {
        let Some((place, position)) = lowest_for(world, need)? else { return Ok(None) };
        if self.visited.contains_key(&(place, position)) {
            return Ok(None);
        }
        let requirement = Arc::clone(world.requirement(need));
        Ok(self.note(world, by, requirement, place, position))
    }

    fn note(
        &mut self,
        world: &World<'_>,
        by: By,
        requirement: Arc<Requirement>,
        place: PackageIndex,
        position: Position,
    ) -> Option<usize> {
        if self.visited.contains_key(&(place, position)) {
            return None;
        }
        let visit = self.visits.len();
        self.visits.push(Visit { place, position, by, requirement });
        self.visited.insert((place, position), visit);
        let package = world.package(place);
        let line = world.line(place, position);
        let chosen = self.chosen.entry(line).or_insert(visit);
        // The rule of Go's minimal version selection: the highest of all minimums. `a` needs `c >=1.2`, `b` needs `c
        // >=1.4`, and `c` has 1.9: it is 1.4.
        if is_higher(package, position, self.visits[*chosen].position) {
            *chosen = visit;
        }
        Some(visit)
    }

    /// The visits of chosen versions, in order.
    pub(super) fn in_order(&self) -> Vec<usize> {
        let mut chosen: Vec<usize> = self.chosen.values().copied().collect();
        chosen.sort_unstable();
        chosen
    }

    /// The chosen version of every line.
    pub(crate) fn positions(&self) -> BTreeMap<MajorLine, Position> {
        self.chosen.iter().map(|(&line, &visit)| (line, self.visits[visit].position)).collect()
    }

    /// The chosen position of a line.
    pub(crate) fn position(&self, line: MajorLine) -> Option<Position> {
        self.chosen.get(&line).map(|&visit| self.visits[visit].position)
    }
}

/// The lowest candidate that a requirement accepts; `None` if there is none.
///
/// A yanked version is used only if the requirement's lower bound is exactly it.
pub(crate) fn lowest_candidate(
    world: &mut World<'_>,
    requirement: &Requirement,
) -> Result<Option<(PackageIndex, Position)>, Unavailable> {
    let need = world.packages.need_for(requirement);
    lowest_for(world, need)
}

/// The lowest candidate that the requirement with this number accepts; `None` if there is none.
pub(crate) fn lowest_for(
    world: &mut World<'_>,
    need: RequirementIndex,
) -> Result<Option<(PackageIndex, Position)>, Unavailable> {
    let (place, lowest) = world.packages.lowest(need, find_lowest)?;
    Ok(lowest.map(|lowest| (place, lowest)))
}

fn find_lowest(
    packages: &mut Packages<'_>,
    requirement: &Requirement,
    place: PackageIndex,
) -> Result<Option<Position>, Unavailable> {
    let (_, set) = packages.find_accepted(requirement)?;
    let lowest = set.lowest_position();
    let package = packages.get(place);
    // Only where something is excluded can a withdrawn version be meant.
    if package.allowed.len() < package.count() as usize {
        let matching = packages.matching(place, requirement)?;
        let package = packages.get(place);
        let settings = &packages.request.settings;
        let mut below = matching.iter().take_while(|&at| lowest.is_none_or(|lowest| at < lowest));
        let is_pin = |&at: &Position| is_yanked_pin(package, settings, requirement, at);
        if let Some(yanked) = below.find(is_pin) {
            return Ok(Some(yanked));
        }
    }
    Ok(lowest)
}

/// Whether the lower bound of a requirement is exactly this version, and the version is excluded only because
/// it was yanked.
pub(crate) fn is_yanked_pin(
    package: &Candidates,
    settings: &Settings,
    requirement: &Requirement,
    position: Position,
) -> bool {
    matches!(package.rejection(settings, position), Some(Rejection::Yanked(_)))
        && package
            .version(position)
            .is_some_and(|version| requirement.spec.has_lower_bound_at(&version))
}

/// Whether one candidate comes after another. A revision comes where its version would, after the release of
/// that version; a revision without a version comes last.
pub(crate) fn is_higher(package: &Candidates, one: Position, than: Position) -> bool {
    let key = |position: Position| {
        let version = package.version(position);
        (version.is_none(), version, package.revision(position).is_some(), position)
    };
    key(one) > key(than)
}

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
