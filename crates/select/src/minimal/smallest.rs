//! The smallest conflict: leaves out the requirements of roots, one after the other, as long as the rest
//! still fails.

use std::borrow::Cow;

use crate::conflict::{Conflict, Fact, Requirer};
use crate::minimal::providers;
use crate::universe::Unavailable;
use crate::world::{OwnRequires, World};
use crate::{Failure, RootRequirer};

/// The conflict `conflict`, or another one, from fewer requirements of the roots: without any one of them,
/// the rest could be met.
pub(crate) fn smallest_conflict(
    world: &mut World<'_>,
    conflict: Conflict,
) -> Result<Conflict, Unavailable> {
    let mut smallest = conflict;
    let mut needed: usize = 0;
    loop {
        let mut roots = named(world, &smallest);
        let mut required = named_capabilities(world, &smallest);
        if let Some(capability) = needed.checked_sub(roots.len()) {
            let Some(name) = required.keys().nth(capability).cloned() else { return Ok(smallest) };
            required.remove(&name);
        } else {
            roots.remove(needed);
        }
        world.ask(roots);
        world.own_requires = Cow::Owned(required);
        match providers::complete_providers(world, &[]) {
            Err(Failure::Conflict(smaller)) => (smallest, needed) = (*smaller, 0),
            // If a trial takes too long, the requirement counts as needed.
            Ok(_) | Err(Failure::Unfinished(_)) => needed += 1,
            Err(Failure::Unavailable(error)) => return Err(error),
        }
    }
}

/// The capabilities in a conflict that the workspace's own packages require.
fn named_capabilities(world: &World<'_>, conflict: &Conflict) -> OwnRequires {
    let mut required = world.request().own.requires.clone();
    required.retain(|name, _| {
        conflict.facts.iter().any(|fact| {
            matches!(fact, Fact::RequiresCapability { by: Requirer::Roots(_), capability } if capability == name)
        })
    });
    required
}

/// The requirements of roots that a conflict names, each alone.
fn named(world: &World<'_>, conflict: &Conflict) -> Vec<RootRequirer> {
    let mut named: Vec<RootRequirer> = Vec::new();
    for fact in &conflict.facts {
        let Fact::Requires { by: Requirer::Roots(names), id, asked } = fact else { continue };
        let roots = world.request().roots.iter().filter(|root| names.contains(&root.by));
        for (by, requirement) in
            roots.flat_map(|root| root.requirements.iter().map(|one| (&root.by, one)))
        {
            let alone = RootRequirer { by: by.clone(), requirements: vec![requirement.clone()] };
            let is_named = requirement.id == *id && asked.contains(&requirement.to_string());
            if is_named && !named.contains(&alone) {
                named.push(alone);
            }
        }
    }
    named
}
