//! Requests what the search is likely to need, a whole level of the graph at a time.
//!
//! Without this, a search waits for one package after another. It follows the choices that would be made if
//! nothing conflicted, so a cold index is read in about as many waits as the graph is deep. It decides
//! nothing.

use rustc_hash::{FxHashMap, FxHashSet};

use pubgrub::VersionSet;

use crate::index::Unavailable;
use crate::reference::PackageId;
use crate::select::node::{PackageIndex, RequirementIndex};
use crate::select::positions::PositionSet;
use crate::select::world::World;

/// Walks the graph level by level.
pub(super) fn look(world: &mut World<'_>) -> Result<(), Unavailable> {
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
