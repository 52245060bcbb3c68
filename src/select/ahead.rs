//! Asks for what the search is likely to need, a whole level of the graph at a time.
//!
//! Without it a search waits for one package after another. It follows the choices that would be made if nothing
//! conflicted, so a cold index is read in about as many waits as the graph is deep. It decides nothing.

use rustc_hash::{FxHashMap, FxHashSet};

use pubgrub::VersionSet;

use crate::index::{Requirement, Unavailable};
use crate::reference::PackageId;
use crate::select::highest::likely;
use crate::select::positions::PositionSet;
use crate::select::world::World;

/// Walks the graph level by level, unless the universe has everything at hand.
pub(super) fn look(world: &mut World<'_>) -> Result<(), Unavailable> {
    if world.universe().is_at_hand() {
        return Ok(());
    }
    let roots = world.roots().iter().flat_map(|root| &root.requirements);
    let mut wave: Vec<Requirement> = roots.cloned().collect();
    let request = world.request();
    let own = request.local.keys().chain(request.replaced.keys());
    let mut seen: FxHashSet<PackageId> = own.cloned().collect();
    while !wave.is_empty() {
        wave.retain(|requirement| !seen.contains(&requirement.id));
        wave.sort_unstable();
        wave.dedup();
        world.expect(wave.iter().map(|requirement| &requirement.id));
        let mut wanted: FxHashMap<usize, PositionSet> = FxHashMap::default();
        for requirement in &wave {
            seen.insert(requirement.id.clone());
            let (place, set) = world.accepted(requirement)?;
            let common = wanted.get(&place).map(|before| before.intersection(&set));
            wanted.insert(place, common.filter(|common| !common.is_empty()).unwrap_or(set));
        }
        let mut choices: Vec<_> = wanted
            .into_iter()
            .filter_map(|(place, set)| Some((place, likely(world.package(place), &set)?)))
            .collect();
        choices.sort_unstable();
        world.expect_requirements(&choices);
        wave.clear();
        for (place, position) in choices {
            wave.extend(world.requirements(place, position)?.iter().cloned());
        }
    }
    Ok(())
}
