//! Asks for what the search is likely to need, a whole level of the graph at a time.
//!
//! Without it a search waits for one package after another. It follows the choices that would be made if nothing
//! conflicted, so a cold index is read in about as many waits as the graph is deep. It decides nothing.

use rustc_hash::{FxHashMap, FxHashSet};

use pubgrub::VersionSet;

use crate::index::Unavailable;
use crate::reference::PackageId;
use crate::select::positions::PositionSet;
use crate::select::world::{Ask, AskSet, World};

/// Walks the graph level by level.
pub(super) fn look(world: &mut World<'_>) -> Result<(), Unavailable> {
    let roots = world.roots().to_vec();
    let required = roots.iter().flat_map(|root| &root.requirements);
    let mut wave: Vec<Ask> = required.map(|requirement| world.ask_for(requirement)).collect();
    let request = world.request();
    let own = request.local.keys().chain(request.replaced.keys());
    let mut seen: FxHashSet<PackageId> = own.cloned().collect();
    let mut met = AskSet::default();
    while !wave.is_empty() {
        wave.retain(|&ask| met.insert(ask) && !seen.contains(&world.requirement(ask).id));
        wave.sort_unstable_by(|&one, &two| world.requirement(one).cmp(world.requirement(two)));
        world.expect(wave.iter().map(|&ask| &world.requirement(ask).id));
        let mut wanted: FxHashMap<usize, PositionSet> = FxHashMap::default();
        for &ask in &wave {
            seen.insert(world.requirement(ask).id.clone());
            let (place, set) = world.answer(ask)?;
            let common = wanted.get(&place).map(|before| before.intersection(set));
            let common = common.filter(|common| !common.is_empty());
            wanted.insert(place, common.unwrap_or_else(|| set.clone()));
        }
        let mut choices: Vec<_> = wanted
            .into_iter()
            .filter_map(|(place, set)| Some((place, world.package(place).likely(&set)?)))
            .collect();
        choices.sort_unstable();
        world.expect_requirements(&choices);
        wave.clear();
        for (place, position) in choices {
            wave.extend_from_slice(&world.asks_of(place, position)?);
        }
    }
    Ok(())
}
