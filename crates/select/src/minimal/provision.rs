//! Describes capabilities in a build list: which packages provide and require them, that none provides one,
//! or that two do.

use std::collections::BTreeSet;

use crate::clash;
use crate::conflict::{Conflict, Fact, Requirer};
use crate::minimal::build::{Addition, BuildList, By};
use crate::minimal::facts;
use crate::node::{CapabilityIndex, MajorLine, PackageIndex};
use crate::positions::PositionSet;
use crate::supply;
use crate::universe::Unavailable;
use crate::world::World;

/// A capability that nothing chosen provides.
pub(super) struct Missing {
    pub(super) capability: CapabilityIndex,
    pub(super) by: By,
}

/// The conflict if nothing can provide a capability.
pub(super) fn unprovided(world: &World<'_>, list: &BuildList, missing: &Missing) -> Conflict {
    let capability = world.packages.capabilities.name(missing.capability).to_owned();
    let mut conflict = Conflict::within(world);
    match missing.by {
        By::Visit(visit) => {
            let visit = &list.visits[visit];
            conflict.add_facts(facts::chain(world, list, visit.by, &visit.requirement));
            let by = facts::requirer(world, visit);
            conflict.add_facts([Fact::RequiresCapability { by, capability: capability.clone() }]);
        }
        By::Root(_) | By::Command | By::Capability(_) => {
            conflict.add_facts([supply::required_by_own(world, &capability)]);
        }
    }
    conflict.capabilities = vec![supply::describe(world, &capability, false)];
    conflict
}

/// Adds the packages that would provide a missing capability in lower versions than others need, because such
/// versions were not tried.
pub(super) fn add_passed(
    world: &World<'_>,
    list: &BuildList,
    capability: CapabilityIndex,
    tried: &[Addition],
    conflict: &mut Conflict,
) {
    let ranked =
        world.packages.ranked_providers(world.packages.capabilities.name(capability)).into_iter();
    let places: BTreeSet<PackageIndex> = ranked
        .filter_map(|(provider, _)| Some(provider.package()?.0))
        .filter(|place| tried.iter().all(|addition| addition.place != *place))
        .collect();
    for place in places {
        for (_, &visit) in list.chosen.range(MajorLine::all_of(place)) {
            let visit = &list.visits[visit];
            conflict.add_facts(facts::chain(world, list, visit.by, &visit.requirement));
            let mut clash = clash::describe(world, place, Vec::new(), &PositionSet::default());
            clash.needed = Some(world.package(place).candidate_label(visit.position));
            if !conflict.clashes.contains(&clash) {
                conflict.clashes.push(clash);
            }
        }
    }
}

/// The conflict if two chosen packages provide the same capability.
pub(super) fn doubled(
    world: &mut World<'_>,
    list: &BuildList,
) -> Result<Option<Conflict>, Unavailable> {
    // All that is provided, by name, with who does and why that is there. Two neighbours with one name are a conflict,
    // unless they are two majors of one package.
    let mut providers: Vec<(String, Option<PackageIndex>, Fact, Vec<Fact>)> = Vec::new();
    let local = &world.request().local;
    for (name, by) in &world.request().own.provides {
        for id in by.iter().filter(|id| local.contains_key(id)) {
            let base = &world.request().settings.base;
            let by = Requirer::Roots(vec![id.short(base).to_owned()]);
            let fact = Fact::Provides { by, capability: name.clone() };
            providers.push((name.clone(), None, fact, Vec::new()));
        }
    }
    for visit in list.in_order() {
        let visit = &list.visits[visit];
        for name in world.packages.capabilities_of(visit.place, visit.position)?.0 {
            let fact =
                Fact::Provides { by: facts::requirer(world, visit), capability: name.clone() };
            let chain = facts::chain(world, list, visit.by, &visit.requirement);
            providers.push((name, Some(visit.place), fact, chain));
        }
    }
    providers.sort_by(|one, two| one.0.cmp(&two.0));
    for pair in providers.windows(2) {
        let [one, two] = pair else { continue };
        if one.0 == two.0 && (one.1 != two.1 || one.1.is_none()) {
            let mut conflict = Conflict::within(world);
            for (_, _, fact, chain) in [one, two] {
                conflict.add_facts(chain.iter().chain([fact]).cloned());
            }
            conflict.capabilities = vec![supply::describe(world, &one.0, true)];
            return Ok(Some(conflict));
        }
    }
    Ok(None)
}
