//! Conflicts between packages of a build list. They are checked at the end, because a higher version may
//! conflict with less.

use mu_manifest::reference::PackageId;

use crate::conflict::{Conflict, Fact, Requirer};
use crate::minimal::build::BuildList;
use crate::minimal::facts;
use crate::supply;
use crate::universe::Unavailable;
use crate::world::World;

/// The first conflict between two packages, in the order of visits.
pub(super) fn conflict(
    world: &mut World<'_>,
    list: &BuildList,
) -> Result<Option<Conflict>, Unavailable> {
    let chosen = list.in_order();
    let own = world.request().own.conflicts.keys();
    let own = own.filter(|name| !world.packages.is_in_workspace(name));
    // What the workspace conflicts with (`None`), then what each chosen version does. What is in the workspace itself
    // is there whatever is chosen.
    let mut opposed: Vec<(Option<usize>, String)> = own.map(|name| (None, name.clone())).collect();
    for &visit in &chosen {
        let one = &list.visits[visit];
        let names = world.packages.conflicts_of(one.place, one.position)?;
        opposed.extend(names.into_iter().map(|name| (Some(visit), name)));
    }
    for (by, name) in opposed {
        let is_own = world.packages.is_in_workspace(&name);
        let mut other = None;
        for &visit in chosen.iter().filter(|&&visit| !is_own && by != Some(visit)) {
            let one = &list.visits[visit];
            if world.package(one.place).id.as_str() == name
                || world.packages.capabilities_of(one.place, one.position)?.0.contains(&name)
            {
                other = Some(visit);
                break;
            }
        }
        if is_own || other.is_some() {
            return Ok(Some(tell(world, list, by, &name, other)));
        }
    }
    Ok(None)
}

/// The reasons why both packages were chosen, and the conflict between them.
fn tell(
    world: &World<'_>,
    list: &BuildList,
    by: Option<usize>,
    name: &str,
    other: Option<usize>,
) -> Conflict {
    let mut conflict = Conflict::within(world);
    match by.map(|by| &list.visits[by]) {
        Some(by) => {
            conflict.add_facts(facts::chain(world, list, by.by, &by.requirement));
            conflict.add_facts([supply::opposes(world, facts::requirer(world, by), name)]);
        }
        None => conflict.add_facts([supply::opposed_by_own(world, name)]),
    }
    if let Some(other) = other.map(|other| &list.visits[other]) {
        conflict.add_facts(facts::chain(world, list, other.by, &other.requirement));
        if world.package(other.place).id.as_str() != name {
            let by = facts::requirer(world, other);
            conflict.add_facts([Fact::Provides { by, capability: name.to_owned() }]);
        }
    }
    conflict
}

/// The two packages of a conflict that exclude each other.
pub(super) fn involved(conflict: &Conflict) -> Vec<PackageId> {
    let mut involved = Vec::new();
    for fact in &conflict.facts {
        match fact {
            Fact::Conflicts { by, with } => {
                involved.extend(package(by));
                involved.push(with.clone());
            }
            // The conflict names no package, so the one that provides the capability is looked for.
            Fact::ConflictsWithProvider { by, capability } => {
                involved.extend(package(by));
                involved.extend(conflict.facts.iter().filter_map(|fact| match fact {
                    Fact::Provides { by, capability: other } if other == capability => package(by),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    involved
}

fn package(by: &Requirer) -> Option<PackageId> {
    match by {
        Requirer::Package(id, _) => Some(id.clone()),
        Requirer::Roots(_) => None,
    }
}
