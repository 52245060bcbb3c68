//! Reads versions before, or although, the search has a reason to read them.
//!
//! A whole level of the graph is requested at a time: without this, a search waits for one package after the other. And a package may help
//! although nothing that was read leads to it: an old version of another package requires it, and it provides or replaces what is
//! required. Only a search that fails reads all of these before it reports the failure. Hints to the universe change no answer; they bring
//! the next packages before they are needed.

use std::sync::Arc;

use mu_manifest::reference::PackageId;
use pubgrub::VersionSet;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Packages, World};
use crate::node::{MajorLine, Node, NodeKind, PackageIndex, RequirementIndex};
use crate::positions::PositionSet;
use crate::releases::{Position, Releases};
use crate::universe::{Candidate, GraphLevel, Unavailable};

/// The most versions that are read in vain.
const MOST: usize = 20_000;

/// Reads every version of every reachable package, once; returns whether that may change an answer. Does
/// nothing unless a capability is required, or a package among `nodes`, which a refutation reached, is
/// replaced or says that it should be.
pub(crate) fn explore(world: &mut World<'_>, nodes: &FxHashSet<Node>) -> Result<bool, Unavailable> {
    if world.is_explored {
        return Ok(false);
    }
    let is_of_use = world.packages.capabilities.is_any_required()
        || nodes.iter().any(|&node| may_have_replacements(world, node));
    if !is_of_use {
        return Ok(false);
    }
    world.is_explored = true;
    world.notes_askers = true;
    world.edges.clear();
    let mut next = 0;
    while next < world.packages.known.len() && world.packages.statistics().versions_read < MOST {
        let place = PackageIndex(next);
        // The manifests of a repository would have to be fetched one by one.
        let package = world.package(place);
        let known = if package.releases.has_commits() { 0 } else { package.releases.len() };
        let allowed = package.allowed.iter();
        let versions: Vec<Position> = allowed.take_while(|at| *at < known).collect();
        for position in versions {
            let node = world.node(NodeKind::Versions(world.line(place, position)));
            world.edges(node, position)?;
        }
        next += 1;
    }
    Ok(true)
}

/// Whether a node is about a package that something replaces, or that says that it has moved.
fn may_have_replacements(world: &World<'_>, node: Node) -> bool {
    match world.kind(node) {
        NodeKind::ReplacementChoice(_) | NodeKind::Occupant(_) => true,
        NodeKind::Versions(MajorLine { place, .. }) | NodeKind::MajorChoice(place, _) => {
            let package = world.package(*place);
            world.packages.replacements.replacers(&package.id).is_some()
                || package.registry_listing().has_moved()
        }
        _ => false,
    }
}

impl Packages<'_> {
    /// Tells the universe which packages come next, in the order in which they will be needed.
    pub(crate) fn expect<'r>(&self, ids: impl Iterator<Item = &'r PackageId>) {
        let overrides = &self.request.settings.overrides;
        let places = ids.filter(|&id| self.place(id).is_none());
        let actual = places.map(|id| overrides.get(id).map_or(id, |instead| &instead.id));
        let mut met = FxHashSet::default();
        let ids: Vec<PackageId> = actual.filter(|&id| met.insert(id)).cloned().collect();
        if !ids.is_empty() {
            self.universe.expect(GraphLevel::Releases(&ids));
        }
    }

    /// Tells the universe which requirements come next.
    pub(crate) fn expect_requirements(&self, candidates: &[(PackageIndex, Position)]) {
        self.universe.expect(GraphLevel::Requirements(&self.releases(candidates.iter().copied())));
    }

    /// Tells the universe what was chosen. Of what the lock has, everything is known.
    pub(crate) fn expect_chosen(&self, chosen: impl Iterator<Item = (PackageIndex, Position)>) {
        let new = chosen.filter(|&(place, position)| !self.get(place).is_locked(position));
        self.universe.expect(GraphLevel::Chosen(&self.releases(new)));
    }

    fn releases(
        &self,
        candidates: impl Iterator<Item = (PackageIndex, Position)>,
    ) -> Vec<(Arc<Releases>, Position)> {
        let releases = candidates.filter_map(|(place, position)| {
            let package = self.get(place);
            matches!(package.candidate(position), Candidate::Release(_))
                .then(|| (Arc::clone(&package.releases), position))
        });
        releases.collect()
    }
}

/// Walks the graph level by level.
pub(crate) fn look_ahead(world: &mut World<'_>) -> Result<(), Unavailable> {
    let roots = world.roots.to_vec();
    let required = roots.iter().flat_map(|root| &root.requirements);
    let mut wave: Vec<RequirementIndex> =
        required.map(|requirement| world.packages.need_for(requirement)).collect();
    let request = world.request();
    let own = request.local.keys().chain(request.replaced.keys());
    let mut seen: FxHashSet<PackageId> = own.cloned().collect();
    // What an earlier look has met was requested then.
    let mut met = std::mem::take(&mut world.met_ahead);
    while !wave.is_empty() {
        wave.retain(|&need| met.insert(need) && !seen.contains(&world.requirement(need).id));
        // What is read must not depend on the order in which manifests are written.
        wave.sort_unstable_by(|&one, &two| world.requirement(one).cmp(world.requirement(two)));
        world.packages.expect(wave.iter().map(|&need| &world.requirement(need).id));
        let mut wanted: FxHashMap<PackageIndex, PositionSet> = FxHashMap::default();
        for &need in &wave {
            seen.insert(world.requirement(need).id.clone());
            let (place, set) = world.packages.meaning(need)?;
            let common = wanted.get(&place).map(|before| before.intersection(set));
            let common = common.filter(|common| !common.is_empty());
            wanted.insert(place, common.unwrap_or_else(|| set.clone()));
        }
        let mut choices: Vec<_> = wanted
            .into_iter()
            .filter_map(|(place, set)| Some((place, world.package(place).likely(&set)?)))
            .collect();
        choices.sort_unstable();
        world.packages.expect_requirements(&choices);
        wave.clear();
        for (place, position) in choices {
            wave.extend_from_slice(&world.packages.needs_of(place, position)?);
        }
    }
    world.met_ahead = met;
    Ok(())
}
