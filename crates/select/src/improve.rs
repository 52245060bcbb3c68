//! What the first answer of a search is improved by: direct dependencies that can be raised if that lowers no other one, and
//! fewer packages that are there only for what they provide.
//!
//! The search first decides what conflicts most, which is fast and gives new versions, but may hold a direct dependency back for
//! an indirect one. One more search, for an answer that is better in one direct dependency and worse in none, finds such cases;
//! dependencies that obviously cannot be raised are left out of it.
//!
//! The search takes the first provider of each capability that fits, in the order in which registries list them. Here, everything
//! that is required by name or locked stays as it is; only the packages that were added as providers may change. There is one
//! search for each smaller number, with few steps, and none if no package could do the work of two.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pubgrub::VersionSet;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::node::{Edge, MajorLine, Node, NodeKind, PackageIndex, RequirementIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::{self, Choices, STEPS_WITHOUT_PROGRESS, Verdict};
use crate::universe::Unavailable;
use crate::world::{ChosenPackage, World};

/// Raises direct dependencies as long as one can be raised without lowering another. Gives up if that is much
/// harder than finding a solution was. Locked versions are not raised.
pub(super) fn raise(world: &mut World<'_>, mut chosen: Choices) -> Result<Choices, Unavailable> {
    if !world.request().locked.is_empty() {
        return Ok(chosen);
    }
    let limit = STEPS_WITHOUT_PROGRESS + 4 * world.budget.search_steps();
    // Each round raises a direct dependency and lowers none, so there are no more rounds than versions above the first
    // answer.
    let roots = world.edges(Node::GRAPH_ROOT, 0)?;
    loop {
        let mut narrowed = Vec::new();
        for edge in roots.iter() {
            let Edge { node, set } = &met(world, edge, &chosen, &mut narrowed)?;
            let Some(&current) = chosen.get(node) else { continue };
            // It is met by a replacement, which is not raised here: `met` has only seen to it that there still is one.
            if matches!(world.kind(*node), NodeKind::ReplacementChoice(_)) {
                continue;
            }
            if matches!(world.kind(*node), NodeKind::ProviderChoice(_)) {
                // Its providers may be known only later.
                narrowed.push(Edge { node: *node, set: PositionSet::full() });
                continue;
            }
            // The current version stays possible, so nothing is lowered.
            let mut set = better(world, *node, set, current);
            set = set.union(&PositionSet::singleton(current));
            narrowed.push(Edge { node: *node, set });
        }
        // Most often this shows without a search that nothing can be raised.
        let possible = Possible::within(world, &narrowed);
        let mut higher = Vec::new();
        for edge in &mut narrowed {
            edge.set = edge.set.intersection(&possible.of(edge.node));
            if matches!(
                world.kind(edge.node),
                NodeKind::ProviderChoice(_) | NodeKind::ReplacementChoice(_)
            ) {
                continue;
            }
            let current = chosen.get(&edge.node).copied().unwrap_or_default();
            let better = edge.set.without(&PositionSet::singleton(current));
            if !better.is_empty() {
                higher.push(Edge { node: edge.node, set: better });
            }
        }
        if higher.is_empty() {
            return Ok(chosen);
        }
        // At least one direct dependency has to be raised in the next choice.
        world.narrow_root(narrowed);
        world.demand_one_of(higher);
        match search::solve(world, limit)? {
            Verdict::Chosen(better) => chosen = better,
            Verdict::Refuted(_) | Verdict::GivenUp => return Ok(chosen),
        }
    }
}

/// The edge to the package that `edge` requires, if others could replace it; the current replacement is as
/// good as possible, and `narrowed` records that.
fn met(
    world: &mut World<'_>,
    edge: &Edge,
    chosen: &Choices,
    narrowed: &mut Vec<Edge>,
) -> Result<Edge, Unavailable> {
    let NodeKind::ReplacementChoice(index) = *world.kind(edge.node) else {
        return Ok(edge.clone());
    };
    let itself = PositionSet::singleton(0);
    let is_itself = chosen.get(&edge.node).is_none_or(|&way| way == 0);
    let ways = if is_itself { itself } else { edge.set.without(&itself) };
    narrowed.push(Edge { node: edge.node, set: ways });
    if is_itself { world.edge_of_way(index, 0) } else { Ok(edge.clone()) }
}

/// The candidates of `node` within `set` that are preferred to `current`.
fn better(world: &World<'_>, node: Node, set: &PositionSet, current: Position) -> PositionSet {
    match world.kind(node) {
        NodeKind::Versions(MajorLine { place, .. }) => {
            let package = world.package(*place);
            match package.revision(current) {
                Some(_) => {
                    set.intersection(&PositionSet::position_range(0, package.releases.len()))
                }
                None => package.preference.preferred_to(set, current),
            }
        }
        // A higher major may be in another channel.
        // Then a higher number does not mean a better version, so this node is left as it is.
        NodeKind::MajorChoice(place, _) if world.package(*place).preference.is_any() => {
            PositionSet::default()
        }
        _ => set.intersection(&PositionSet::position_range(current + 1, Position::MAX)),
    }
}

/// The candidates that might be chosen.
///
/// Follows what was read in both directions until nothing changes: what all candidates of a needed package
/// need is needed too, and a candidate that needs something without candidates cannot be chosen.
#[derive(Default)]
struct Possible<'w> {
    edges: FxHashMap<Node, BTreeMap<Position, &'w [Edge]>>,
    dependents: FxHashMap<Node, Vec<(Node, Position, &'w PositionSet)>>,
    sets: FxHashMap<Node, PositionSet>,
    changed: VecDeque<Node>,
}

impl<'w> Possible<'w> {
    /// What is possible if all of `roots` are needed.
    fn within(world: &'w World<'_>, roots: &[Edge]) -> Self {
        let mut possible = Self::default();
        for (node, position, edges) in world.known_edges() {
            possible.edges.entry(node).or_default().insert(position, edges);
            for edge in edges {
                let dependents = possible.dependents.entry(edge.node).or_default();
                dependents.push((node, position, &edge.set));
            }
        }
        let mut needed: FxHashSet<Node> = FxHashSet::default();
        for edge in roots {
            needed.insert(edge.node);
            possible.keep(edge.node, &edge.set);
        }
        // Sets only get smaller, and a node comes back only when its set did, so this ends.
        while let Some(node) = possible.changed.pop_front() {
            // Upwards: whoever needs what is gone is gone. Downwards: what all that are left need is needed.
            possible.exclude_dependents(node);
            if needed.contains(&node) {
                for Edge { node, set } in possible.needed_by(node) {
                    if needed.insert(node) {
                        possible.changed.push_back(node);
                    }
                    possible.keep(node, &set);
                }
            }
        }
        possible
    }

    fn of(&self, node: Node) -> PositionSet {
        self.sets.get(&node).cloned().unwrap_or_else(PositionSet::full)
    }

    fn keep(&mut self, node: Node, set: &PositionSet) {
        let before = self.of(node);
        let left = before.intersection(set);
        if left != before {
            self.sets.insert(node, left);
            self.changed.push_back(node);
        }
    }

    /// Removes the candidates that need removed candidates of `node`.
    fn exclude_dependents(&mut self, node: Node) {
        let left = self.of(node);
        for (dependent, position, set) in self.dependents.get(&node).cloned().unwrap_or_default() {
            if set.is_disjoint(&left) {
                self.keep(dependent, &PositionSet::singleton(position).complement());
            }
        }
    }

    /// What every remaining candidate of `node` needs; empty if one of them was not read.
    fn needed_by(&self, node: Node) -> Vec<Edge> {
        let left = self.of(node);
        let Some(known) = self.edges.get(&node) else { return Vec::new() };
        let mut candidates = left.iter().map(|position| known.get(&position));
        // Of a version that was not read, nothing is known, so it may need nothing at all.
        let Some(Some(first)) = candidates.next() else { return Vec::new() };
        let mut common: Vec<Edge> = first.to_vec();
        for edges in candidates {
            let Some(edges) = edges else { return Vec::new() };
            // `a 1.0` needs `b {0, 1}` and `c {3}`, and `a 1.1` needs `b {2}`: whichever is chosen, one of `b {0, 1,
            // 2}` is needed.
            common.retain_mut(|one| {
                let Some(other) = edges.iter().find(|other| other.node == one.node) else {
                    return false;
                };
                one.set = one.set.union(&other.set);
                true
            });
        }
        common
    }
}

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
