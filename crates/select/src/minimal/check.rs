//! What is wrong with a build list: the first bound of its versions and roots that it violates, and as facts why a version is in
//! it (the chain from a root down to it), which packages conflict with each other, and which capabilities none provides, or two.
//!
//! Conflicts between packages are checked at the end, because a higher version may conflict with less.

use std::collections::BTreeSet;
use std::sync::Arc;

use mu_manifest::reference::PackageId;
use pubgrub::VersionSet;
use rustc_hash::FxHashSet;

use crate::clash::{self, FoldedVersions};
use crate::conflict::{Conflict, Fact, Requirer};
use crate::filters::Rejection;
use crate::minimal::build::{Addition, BuildList, By, Visit, is_yanked_pin, lowest_for};
use crate::minimal::replaced;
use crate::node::{CapabilityIndex, MajorLine, PackageIndex, RequirementIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::{Requirement, Unavailable};
use crate::world::{World, stand_ins};

/// The problem of a build list.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Flaw {
    /// Nothing meets a requirement.
    Unmet(By, Requirement),
    /// The installed version cannot be upgraded to the chosen version of a line.
    Refused(MajorLine, Rejection),
    /// A requirement does not accept the minimum that others need of a line.
    Broken(By, Requirement, MajorLine),
}

/// The first violated requirement of the roots or of a chosen version, with its reason; `None` if all hold.
pub(crate) fn first_violation(
    world: &mut World<'_>,
    list: &BuildList,
) -> Result<Option<Conflict>, Unavailable> {
    // Replacements first: while they are not settled, requirements are compared with the wrong package.
    if let Some(conflict) = replaced::conflict(world, list)? {
        return Ok(Some(conflict));
    }
    Ok(match flaw(world, list)? {
        None => None,
        Some(Flaw::Unmet(by, requirement)) => Some(unmet(world, list, by, &requirement)?),
        Some(Flaw::Refused(line, refusal)) => Some(refused(world, list, line, refusal)),
        Some(Flaw::Broken(by, requirement, line)) => {
            Some(broken(world, list, by, &requirement, line)?)
        }
    })
}

/// The first violated requirement of the roots or of a chosen version.
pub(super) fn flaw(world: &mut World<'_>, list: &BuildList) -> Result<Option<Flaw>, Unavailable> {
    // Roots first, since the user can change what they require.
    let mut askers: Vec<By> = (0..world.roots.len()).map(By::Root).collect();
    askers.extend(list.in_order().into_iter().map(By::Visit));
    for by in askers {
        let mut needs = required(world, list, by)?;
        // Their order matters only if one of them is violated.
        if first_flaw(world, list, by, &needs)?.is_some() {
            needs.sort_by(|&one, &two| world.requirement(one).cmp(world.requirement(two)));
            return first_flaw(world, list, by, &needs);
        }
    }
    Ok(None)
}

/// The first requirement of some that is violated.
fn first_flaw(
    world: &mut World<'_>,
    list: &BuildList,
    by: By,
    needs: &[RequirementIndex],
) -> Result<Option<Flaw>, Unavailable> {
    for &need in needs.iter() {
        if world.packages.is_resolved_to_own(need) {
            continue;
        }
        let Some((place, lowest)) = lowest_for(world, need)? else {
            return Ok(Some(Flaw::Unmet(by, (**world.requirement(need)).clone())));
        };
        // Others may need a higher version of this line than the requirement does. What was chosen must be within its
        // bounds.
        let line = world.line(place, lowest);
        let chosen = list.position(line).unwrap_or(lowest);
        if let Some(refusal) =
            world.package(place).upgrade_refusal(&world.request().settings, chosen)
        {
            return Ok(Some(Flaw::Refused(line, refusal)));
        }
        if !world.packages.meaning(need)?.1.holds(chosen) {
            let requirement = Arc::clone(world.requirement(need));
            if !is_kept(world, &requirement, chosen)? {
                return Ok(Some(Flaw::Broken(by, (*requirement).clone(), line)));
            }
        }
    }
    Ok(None)
}

fn required(
    world: &mut World<'_>,
    list: &BuildList,
    by: By,
) -> Result<Vec<RequirementIndex>, Unavailable> {
    Ok(match by {
        By::Root(index) => {
            let requirements = world.roots[index].requirements.clone();
            requirements.iter().map(|requirement| world.packages.need_for(requirement)).collect()
        }
        By::Command | By::Capability(_) => Vec::new(),
        By::Visit(visit) => {
            let visit = &list.visits[visit];
            world.packages.needs_of(visit.place, visit.position)?.to_vec()
        }
    })
}

/// Whether a requirement accepts the chosen version.
fn is_kept(
    world: &mut World<'_>,
    requirement: &Requirement,
    chosen: Position,
) -> Result<bool, Unavailable> {
    let (place, set) = world.accepted(requirement)?;
    let settings = &world.request().settings;
    // Another requirement may have named a yanked version; a requirement that accepts its number is then met.
    let details = world.package(place).details(chosen);
    let is_yanked = details.is_some_and(|details| details.yanked.is_some());
    Ok(set.holds(chosen)
        || is_yanked_pin(world.package(place), settings, requirement, chosen)
        || (is_yanked && world.packages.matching(place, requirement)?.holds(chosen)))
}

/// The conflict if the command wants something that does not exist.
pub(super) fn nothing(world: &mut World<'_>, wish: &Requirement) -> Result<Conflict, Unavailable> {
    unmet(world, &BuildList::default(), By::Command, wish)
}

/// The conflict if the command wants a version that itself needs a higher version of its own package.
pub(super) fn overtaken(
    world: &mut World<'_>,
    list: &BuildList,
    wish: &Requirement,
    line: MajorLine,
) -> Result<Option<Conflict>, Unavailable> {
    let Some(chosen) = list.position(line) else { return Ok(None) };
    if is_kept(world, wish, chosen)? {
        return Ok(None);
    }
    broken(world, list, By::Command, wish, line).map(Some)
}

/// The conflict if nothing meets a requirement.
fn unmet(
    world: &mut World<'_>,
    list: &BuildList,
    by: By,
    requirement: &Requirement,
) -> Result<Conflict, Unavailable> {
    let (place, _) = world.accepted(requirement)?;
    let wanted = world.packages.matching(place, requirement)?;
    let mut conflict = Conflict::within(world);
    conflict.facts = chain(world, list, by, requirement);
    conflict.add_facts(list.why_replaced.get(&requirement.id).cloned().unwrap_or_default());
    let asked = vec![vec![asked(world, place, requirement)]];
    conflict.clashes = vec![clash::describe(world, place, asked, &wanted)];
    Ok(conflict)
}

/// The conflict if a requirement does not accept the minimum that others need.
fn broken(
    world: &mut World<'_>,
    list: &BuildList,
    by: By,
    requirement: &Requirement,
    line: MajorLine,
) -> Result<Conflict, Unavailable> {
    let mut conflict = Conflict::within(world);
    let forced = &list.visits[list.chosen[&line]];
    conflict.facts = chain(world, list, forced.by, &forced.requirement);
    conflict.add_facts(chain(world, list, by, requirement));
    conflict.add_facts(list.why_replaced.get(&requirement.id).cloned().unwrap_or_default());
    let asked = vec![vec![asked(world, line.place, requirement)]];
    let mut clash = clash::describe(world, line.place, asked, &PositionSet::default());
    clash.needed = Some(world.package(line.place).candidate_label(forced.position));
    conflict.clashes = vec![clash];
    Ok(conflict)
}

/// What a requirement requires of the package at `place`, which may replace the package that it names.
fn asked(world: &World<'_>, place: PackageIndex, requirement: &Requirement) -> String {
    let asked = requirement.to_string();
    if world.package(place).id == requirement.id {
        return asked;
    }
    stand_ins::asked_of_replaced(world, &requirement.id, &asked)
}

/// The conflict if the installed version cannot be upgraded to the minimum that is needed.
fn refused(world: &World<'_>, list: &BuildList, line: MajorLine, refusal: Rejection) -> Conflict {
    let mut conflict = Conflict::within(world);
    let forced = &list.visits[list.chosen[&line]];
    conflict.facts = chain(world, list, forced.by, &forced.requirement);
    let package = world.package(line.place);
    let mut clash = clash::describe(world, line.place, Vec::new(), &PositionSet::default());
    clash.needed = Some(package.candidate_label(forced.position));
    let version = std::iter::once(forced.position).collect();
    clash.rejected = vec![(refusal, FoldedVersions::fold_candidates(package, &version))];
    conflict.clashes = vec![clash];
    conflict
}

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
                let (required, asker) = required_capability(world, list, capability);
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
fn provides(
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
fn required_capability(
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
        _ => (clash::required_by_own(world, name), None),
    }
}

/// The visited version, as a package that requires, provides or replaces something.
pub(super) fn requirer(world: &World<'_>, visit: &Visit) -> Requirer {
    Requirer::versions(world.package(visit.place), &PositionSet::singleton(visit.position))
}

/// The first conflict between two packages, in the order of visits.
pub(super) fn first_opponents(
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
            conflict.add_facts(chain(world, list, by.by, &by.requirement));
            conflict.add_facts([clash::opposes(world, requirer(world, by), name)]);
        }
        None => conflict.add_facts([clash::opposed_by_own(world, name)]),
    }
    if let Some(other) = other.map(|other| &list.visits[other]) {
        conflict.add_facts(chain(world, list, other.by, &other.requirement));
        if world.package(other.place).id.as_str() != name {
            let by = requirer(world, other);
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
            conflict.add_facts(chain(world, list, visit.by, &visit.requirement));
            let by = requirer(world, visit);
            conflict.add_facts([Fact::RequiresCapability { by, capability: capability.clone() }]);
        }
        By::Root(_) | By::Command | By::Capability(_) => {
            conflict.add_facts([clash::required_by_own(world, &capability)]);
        }
    }
    conflict.capabilities = vec![clash::describe_capability(world, &capability, false)];
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
            conflict.add_facts(chain(world, list, visit.by, &visit.requirement));
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
            let fact = Fact::Provides { by: requirer(world, visit), capability: name.clone() };
            let chain = chain(world, list, visit.by, &visit.requirement);
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
            conflict.capabilities = vec![clash::describe_capability(world, &one.0, true)];
            return Ok(Some(conflict));
        }
    }
    Ok(None)
}
