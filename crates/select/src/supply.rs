//! Conflicts about capabilities and replacements, as facts: the shared part of `diagnose` and of the minimal
//! strategy's check. `explain` puts them into words.

use mu_manifest::reference::PackageId;
use pubgrub::VersionSet;

use crate::candidates::Candidates;
use crate::clash;
use crate::conflict::{CapabilityClash, Fact, Requirer};
use crate::core::{FactGroup, GraphLink};
use crate::node::{CapabilityIndex, Node, NodeKind};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::world::{CapabilityProvider, World, is_opponent};

/// The fact of a group that starts or ends at a node without a package; `None` if it does neither.
pub(super) fn fact_of_supply(world: &World<'_>, group: &FactGroup) -> Option<Vec<Fact>> {
    // Which nodes the group leads from and to decides what it says. Some say nothing, because another fact says it.
    let GraphLink { from, to, .. } = group[0];
    let versions_of = |node: Node, positions: &PositionSet| {
        let package = world.package(world.place(node)?);
        Some(Requirer::versions(package, positions))
    };
    // The versions of what the group starts at, if there are any.
    let some =
        |positions: &PositionSet| versions_of(from, positions).filter(|_| !positions.is_empty());
    Some(match (world.kind(from), world.kind(to)) {
        (NodeKind::ProviderChoice(_), NodeKind::PackageRequirer(place)) => {
            vec![Fact::OnlyWhereAsked { id: world.package(*place).id.clone() }]
        }
        // What requires the package says so itself.
        (NodeKind::PackageRequirer(_), _) | (_, NodeKind::PackageRequirer(_)) => Vec::new(),
        (NodeKind::ProviderChoice(capability), _) => {
            let by = versions_of(to, &group.iter().map(|link| &link.set).collect());
            let capability = world.packages.capabilities.name(*capability).to_owned();
            by.into_iter().map(|by| Fact::Provides { by, capability: capability.clone() }).collect()
        }
        (NodeKind::Root, NodeKind::ProviderChoice(capability)) => {
            vec![stated_by_root(world, *capability, &group[0].set)]
        }
        (_, NodeKind::Opponent(name)) => {
            // The same node is reached by what wants it absent and by what is it, so the group may have both.
            let (opposing, being): (Vec<&GraphLink>, Vec<&GraphLink>) =
                group.iter().partition(|link| is_opponent(&link.set));
            // Their versions; a line names them all at once.
            let [opposing, being] = [opposing, being].map(|links| -> PositionSet {
                links.into_iter().map(|link| &link.positions).collect()
            });
            let mut facts = Vec::new();
            if from == Node::GRAPH_ROOT {
                facts.push(opposed_by_own(world, name));
            } else if let Some(by) = some(&opposing) {
                facts.push(opposes(world, by, name));
            }
            // The package itself is there because something requires it, which is stated elsewhere.
            let is_it =
                world.place(from).is_some_and(|at| world.package(at).id.as_str() == &**name);
            if let Some(by) = some(&being).filter(|_| !is_it) {
                facts.push(Fact::Provides { by, capability: name.to_string() });
            }
            facts
        }
        // Links that lead only to the package itself say which of its versions provide the capability; the others
        // require it.
        (_, NodeKind::ProviderChoice(capability)) => {
            let (mut providing, mut requiring) = (PositionSet::empty(), PositionSet::empty());
            let providers = world.packages.capabilities.providers(*capability);
            let own = world.place(from);
            let is_own_place = |index: Position| {
                let package = providers.get(index as usize).and_then(CapabilityProvider::package);
                package.is_some_and(|(place, _)| Some(place) == own)
            };
            for link in group {
                let is_own = link.set.iter().all(is_own_place);
                // An empty set is a requirement that nothing provides: all of nothing would be the package itself.
                let into =
                    if is_own && !link.set.is_empty() { &mut providing } else { &mut requiring };
                *into = into.union(&link.positions);
            }
            let name = world.packages.capabilities.name(*capability).to_owned();
            let provides = some(&providing);
            let provides = provides.map(|by| Fact::Provides { by, capability: name.clone() });
            let requires = some(&requiring);
            let requires = requires.map(|by| Fact::RequiresCapability { by, capability: name });
            provides.into_iter().chain(requires).collect()
        }
        _ => return None,
    })
}

/// The fact that something conflicts with a package or a capability.
pub(super) fn opposes(world: &World<'_>, by: Requirer, name: &str) -> Fact {
    // `c/v1/N` also reads like the id of a package. It is a capability if anything provides or requires it.
    let is_capability = world.packages.capabilities.find(name).is_some()
        || world.request().own.provides.contains_key(name);
    match PackageId::parse(name) {
        Ok(with) if !is_capability => Fact::Conflicts { by, with },
        _ => Fact::ConflictsWithProvider { by, capability: name.to_owned() },
    }
}

/// The fact that packages of the workspace conflict with a package or a capability.
pub(super) fn opposed_by_own(world: &World<'_>, name: &str) -> Fact {
    let by = world.request().own.conflicts.get(name).into_iter().flatten();
    let base = &world.request().settings.base;
    let by = Requirer::Roots(by.map(|id| id.short(base).to_owned()).collect());
    opposes(world, by, name)
}

/// The fact of a root about a capability: that it is required, or that a package of the workspace provides
/// it.
fn stated_by_root(world: &World<'_>, capability: CapabilityIndex, set: &PositionSet) -> Fact {
    let name = world.packages.capabilities.name(capability).to_owned();
    let providers = world.packages.capabilities.providers(capability);
    // With one provider alone, "requires it" and "is it" lead to the same set. Then it is told as a requirement.
    if let Some(CapabilityProvider::Local(id)) =
        set.lowest_position().and_then(|index| providers.get(index as usize))
        && set.len() == 1
        && providers.len() > 1
    {
        return Fact::Provides {
            by: Requirer::Roots(vec![id.short(&world.request().settings.base).to_owned()]),
            capability: name,
        };
    }
    required_by_own(world, &name)
}

/// The fact that packages of the workspace require a capability.
pub(super) fn required_by_own(world: &World<'_>, capability: &str) -> Fact {
    let by = world.own_requires.get(capability);
    let by = Requirer::Roots(by.into_iter().flat_map(|by| by.keys().cloned()).collect());
    Fact::RequiresCapability { by, capability: capability.to_owned() }
}

/// Describes a capability of which no provider is left.
pub(super) fn capability_clash(
    world: &World<'_>,
    node: Node,
    left: &PositionSet,
) -> Option<CapabilityClash> {
    let NodeKind::ProviderChoice(capability) = world.kind(node) else { return None };
    let is_provided = !world.packages.capabilities.providers(*capability).is_empty();
    left.is_empty()
        .then(|| describe(world, world.packages.capabilities.name(*capability), is_provided))
}

/// Describes a capability, with the packages that would provide it if no rule excluded them.
pub(super) fn describe(world: &World<'_>, capability: &str, is_provided: bool) -> CapabilityClash {
    let provides = |package: &Candidates, position: Position| {
        let details = package.details(position);
        details.is_some_and(|details| details.facts.provides.iter().any(|one| one == capability))
    };
    let mut rejected = Vec::new();
    for package in world.packages.known.iter().filter(|_| !is_provided) {
        let all = PositionSet::position_range(0, package.count()).without(&package.allowed);
        let barred = all.iter().filter(|&position| provides(package, position)).collect();
        for (rejection, versions) in clash::rejections(world, package, &barred) {
            rejected.push((package.id.clone(), rejection, versions));
        }
    }
    rejected.sort_by(|one, two| one.0.cmp(&two.0));
    CapabilityClash { capability: capability.to_owned(), is_provided, rejected }
}
