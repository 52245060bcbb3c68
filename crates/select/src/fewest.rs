//! Fewest providers: if several packages are there only for what they provide, checks whether fewer would be
//! enough.
//!
//! The search takes the first provider of each capability that fits, in the order in which registries list
//! them. Here, everything that is required by name or locked stays as it is; only the packages that were
//! added as providers may change. There is one search for each smaller number, with few steps, and none if no
//! package could do the work of two.

use std::collections::BTreeSet;

use pubgrub::VersionSet;
use rustc_hash::FxHashSet;

use crate::node::{Node, PackageIndex, RequirementIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::{self, Choices, Verdict};
use crate::universe::Unavailable;
use crate::world::{ChosenPackage, World};

/// How many steps leaving out packages may take, in addition to as many as were taken so far.
const STEPS: usize = 2_000;

/// The choice `chosen`, or one with fewer packages that are there only for what they provide.
pub(super) fn fewest(world: &mut World<'_>, chosen: Choices) -> Result<Choices, Unavailable> {
    if !world.packages.capabilities.is_any_required() {
        return Ok(chosen);
    }
    let Some(known) = Brought::find(world, &chosen)? else { return Ok(chosen) };
    let count = known.brought.len();
    if count < 2 {
        return Ok(chosen);
    }
    // A lower bound without a search, which most often is what there is already: then the loop below has no round.
    let fewest = world.packages.fewest_providers(known.required, |place| {
        known.fixed.iter().any(|(fixed, _)| *fixed == place)
    });
    // To find out that no fewer will do must not take much longer than the answer did. If it is given up, the answer is
    // right, and has a package more.
    let limit = 2 * world.budget.search_steps() + STEPS;
    for fewer in fewest..count {
        let steps = limit.saturating_sub(world.budget.search_steps());
        world.allow_providers(&known.fixed, fewer as Position)?;
        let answer = search::solve(world, steps);
        // Whatever the answer is, later searches of this world have no such limit.
        world.slots = None;
        match answer? {
            Verdict::Chosen(better) => return Ok(better),
            Verdict::Refuted(_) => {}
            Verdict::GivenUp => break,
        }
    }
    Ok(chosen)
}

/// The packages that are there only for what they provide, and what must not change.
#[derive(Default)]
struct Brought {
    brought: BTreeSet<PackageIndex>,
    /// The capabilities that are required whichever providers are chosen. What a provider requires may change
    /// with its version.
    required: BTreeSet<String>,
    fixed: Vec<(PackageIndex, PositionSet)>,
}

impl Brought {
    /// Follows everything that is chosen, from the roots on; `None` if a package does not provide what it
    /// should.
    fn find(world: &mut World<'_>, chosen: &Choices) -> Result<Option<Self>, Unavailable> {
        let choices = |node: Node| chosen.get(&node).copied();
        let roots = world.roots.to_vec();
        let mut needs: Vec<RequirementIndex> = Vec::new();
        for requirement in roots.iter().flat_map(|root| &root.requirements) {
            needs.push(world.packages.need_for(requirement));
        }
        let mut found = Self::default();
        let mut named: FxHashSet<PackageIndex> = FxHashSet::default();
        let mut seen: FxHashSet<(PackageIndex, Position)> = FxHashSet::default();
        let mut open: Vec<String> = world.own_requires.keys().cloned().collect();
        let mut met: BTreeSet<String> = BTreeSet::new();
        // First completely for what is required by name, and then for each provider.
        let mut is_core = true;
        loop {
            while let Some(need) = needs.pop() {
                let Some(edge) = world.edge_for(need)? else { continue };
                let Some((place, position)) = world.reached(edge, &choices)? else {
                    return Ok(None);
                };
                named.insert(place);
                found.visit(world, (place, position), is_core, &mut seen, &mut needs, &mut open)?;
            }
            // What is open by now is required whichever providers are chosen.
            if is_core {
                found.required.extend(open.iter().cloned());
                is_core = false;
            }
            let Some(name) = open.pop() else { break };
            // Each capability has one provider, so it is followed once.
            if !met.insert(name.clone()) {
                continue;
            }
            let provider = world.packages.capabilities.chosen(&name, &|place, versions| {
                let mut nodes = world.nodes_of_package(place).filter_map(choices);
                nodes.find(|position| versions.holds(*position))
            });
            let Some(ChosenPackage::Candidate(place, position)) = provider else { continue };
            found.brought.insert(place);
            found.visit(world, (place, position), false, &mut seen, &mut needs, &mut open)?;
        }
        // What is required by name is not there only for what it provides.
        let fixed: FxHashSet<PackageIndex> = found.fixed.iter().map(|(place, _)| *place).collect();
        found.brought.retain(|place| !named.contains(place) && !fixed.contains(place));
        Ok(Some(found))
    }

    fn visit(
        &mut self,
        world: &mut World<'_>,
        (place, position): (PackageIndex, Position),
        is_core: bool,
        seen: &mut FxHashSet<(PackageIndex, Position)>,
        needs: &mut Vec<RequirementIndex>,
        open: &mut Vec<String>,
    ) -> Result<(), Unavailable> {
        if !seen.insert((place, position)) {
            return Ok(());
        }
        if is_core || world.package(place).is_locked(position) {
            self.fixed.push((place, PositionSet::singleton(position)));
        }
        needs.extend_from_slice(&world.packages.needs_of(place, position)?);
        open.extend(world.packages.capabilities_of(place, position)?.1);
        Ok(())
    }
}
