//! Why a version is in a build list, as facts: the chain from a root down to it.

use mu_manifest::reference::PackageId;
use pubgrub::VersionSet;
use rustc_hash::FxHashSet;

use crate::conflict::{Fact, Requirer};
use crate::minimal::build::{BuildList, By, Visit};
use crate::node::CapabilityIndex;
use crate::positions::PositionSet;
use crate::supply;
use crate::universe::Requirement;
use crate::world::World;

/// The chain of facts from a root down to a requirement.
pub(super) fn chain(
    world: &World<'_>,
    list: &BuildList,
    by: By,
    requirement: &Requirement,
) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut walked = FxHashSet::default();
    // Upwards from the requirement, and then turned round. Ends: what visited a version first was visited before it,
    // and a way through a capability takes each asker once.
    let (mut by, mut requirement) = (by, requirement);
    loop {
        let (id, asked) = (requirement.id.clone(), vec![requirement.to_string()]);
        let (fact, next) = match by {
            By::Root(index) => {
                let by = Requirer::Roots(vec![world.roots[index].by.clone()]);
                (Fact::Requires { by, id, asked }, None)
            }
            By::Command => {
                let by = Requirer::Roots(vec![Requirer::COMMAND.to_owned()]);
                (Fact::Requires { by, id, asked }, None)
            }
            By::Capability(capability) => {
                facts.extend(provides(world, list, capability, &requirement.id));
                let (required, asker) = required(world, list, capability);
                // The package that requires it may in turn be there because of the provider.
                (required, asker.filter(|asker| walked.insert(*asker)))
            }
            By::Visit(visit) => {
                let by = requirer(world, &list.visits[visit]);
                (Fact::Requires { by, id, asked }, Some(visit))
            }
        };
        facts.push(fact);
        let Some(visit) = next else {
            facts.reverse();
            return facts;
        };
        (by, requirement) = (list.visits[visit].by, &list.visits[visit].requirement);
    }
}

/// The fact that a version provides a capability, for which it was added to the list.
pub(super) fn provides(
    world: &World<'_>,
    list: &BuildList,
    capability: CapabilityIndex,
    id: &PackageId,
) -> Option<Fact> {
    let visit = list.visits.iter().find(|visit| {
        visit.by == By::Capability(capability) && world.package(visit.place).id == *id
    })?;
    let capability = world.packages.capabilities.name(capability).to_owned();
    Some(Fact::Provides { by: requirer(world, visit), capability })
}

/// The package that requires a capability, and its visit if it is not a root.
pub(super) fn required(
    world: &World<'_>,
    list: &BuildList,
    capability: CapabilityIndex,
) -> (Fact, Option<usize>) {
    let name = world.packages.capabilities.name(capability);
    let asker = list.visits.iter().position(|visit| {
        let details = world.package(visit.place).details(visit.position);
        details.is_some_and(|details| details.facts.requires.iter().any(|one| one == name))
    });
    match asker {
        Some(asker) if !world.own_requires.contains_key(name) => {
            let by = requirer(world, &list.visits[asker]);
            (Fact::RequiresCapability { by, capability: name.to_owned() }, Some(asker))
        }
        _ => (supply::required_by_own(world, name), None),
    }
}

/// The visited version, as a package that requires, provides or replaces something.
pub(super) fn requirer(world: &World<'_>, visit: &Visit) -> Requirer {
    Requirer::versions(world.package(visit.place), &PositionSet::singleton(visit.position))
}
