//! The search for the newest versions that fit together: pubgrub's, over a world.
//!
//! The search is complete. Our part is the order in which nodes are decided ([`Turn`]): first what has no
//! choice left, then what the user wants to move, then what the lock holds, then the rest; among equals,
//! whatever was in the most conflicts, then whatever has the fewest candidates. The order decides which of
//! several answers is found, never whether one is found.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use mu_manifest::reference::PackageId;
use pubgrub::{
    Dependencies, DependencyProvider, DerivationTree, PackageResolutionStatistics, PubGrubError,
    SelectedDependencies,
};
use thiserror::Error;

use crate::node::{MajorLine, Node, NodeKind};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::Unavailable;
use crate::world::World;
use crate::{SelectionRequest, Update};

/// The number of steps that a search may take without reporting progress.
pub(super) const STEPS_WITHOUT_PROGRESS: usize = 20_000;

/// Why there is no solution, in pubgrub's words.
pub(super) type Proof = DerivationTree<Node, PositionSet, Infallible>;

/// The chosen candidate of each node.
pub(super) type Choices = SelectedDependencies<Node, Position>;

/// The result of a search.
pub(super) enum Verdict {
    /// These candidates fit together.
    Chosen(Choices),
    /// Nothing fits together, and this is why.
    Refuted(Proof),
    /// The search took more steps than allowed.
    GivenUp,
}

/// Searches, in at most `steps` steps, and in no more than this world has left. Starts again whenever
/// something turns up that an earlier part of the search should have known, such as a revision that was not
/// named before.
pub(super) fn solve(world: &mut World<'_>, steps: usize) -> Result<Verdict, Unavailable> {
    // This search knows what was named before it started.
    world.take_outdated();
    let ranks = Ranks::new(world.request());
    let limit = world.budget.search_steps().saturating_add(steps).min(world.budget.most);
    loop {
        // Nothing of an earlier run is of use: pubgrub learned from edges that lacked something. But the world has kept
        // what it read, so the next run only walks again. This ends, because each new start comes from something that
        // was read or named for the first time (`Namers`).
        world.budget.effort.begin();
        let search = Search { world: RefCell::new(&mut *world), ranks: &ranks, limit };
        let error = match pubgrub::resolve(&search, Node::GRAPH_ROOT, 0u32) {
            Ok(choices) => return Ok(Verdict::Chosen(choices)),
            Err(PubGrubError::NoSolution(proof)) => return Ok(Verdict::Refuted(proof)),
            // Whatever stopped the search, our own reason is in it.
            Err(PubGrubError::ErrorRetrievingDependencies { source, .. }) => source,
            Err(PubGrubError::ErrorChoosingVersion { source, .. }) => source,
            Err(PubGrubError::ErrorInShouldCancel(source)) => source,
        };
        match error {
            Interruption::Unavailable(error) => return Err(error),
            Interruption::GivenUp => return Ok(Verdict::GivenUp),
            Interruption::Outdated => {}
        }
    }
}

/// Why a search stopped early.
#[derive(Debug, Error)]
enum Interruption {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("a revision was named that the search did not know of")]
    Outdated,
    #[error("the search took too many steps")]
    GivenUp,
}

/// One run of pubgrub over a world.
struct Search<'s, 'w> {
    world: RefCell<&'s mut World<'w>>,
    ranks: &'s Ranks,
    limit: usize,
}

/// The priority of a node; later variants come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    // What follows from the rest (`Idle`) last, what must be proven first (`Raised`) first. Each choice that is made
    // late sees more of the others' needs, so what may be chosen freely, such as providers, comes after what has few
    // ways.
    /// Its choice follows from all others.
    Idle,
    /// Nobody misses it: whatever needs it accepts any other choice.
    Last,
    /// Its choice is open.
    Open,
    /// Its choice is open, and something outside the graph requires it.
    Direct,
    /// The lock has a version for it that fits.
    Locked,
    /// The user wants it to move.
    Moving,
    /// A package that the user wants to move depends on it.
    AboveMoving,
    /// It has no choice left.
    Forced,
    /// The search is about whether it can be raised.
    Raised,
}

/// The effect of the lock and of requested moves on the order.
struct Ranks {
    moving: BTreeSet<PackageId>,
    above: BTreeSet<PackageId>,
    has_lock: bool,
}

impl Ranks {
    fn new(request: &SelectionRequest) -> Self {
        let moving = match &request.update {
            Update::Packages(packages) => packages.clone(),
            Update::Nothing | Update::Everything => BTreeSet::new(),
        };
        let mut dependents: BTreeMap<&PackageId, Vec<&PackageId>> = BTreeMap::new();
        for locked in &request.locked {
            for dependency in &locked.dependencies {
                dependents.entry(dependency).or_default().push(&locked.id);
            }
        }
        // Everything above what moves, from the lock: if `app` depends on `lib`, and `lib` is to move, `app` is decided
        // before it, and stays at its locked version as long as that leaves any version of `lib`. If `lib` came first,
        // its newest version could push `app` away. Ends, because a package enters `above` once.
        let mut above = BTreeSet::new();
        let mut wave: Vec<&PackageId> = moving.iter().collect();
        while let Some(below) = wave.pop() {
            for &dependent in dependents.get(below).into_iter().flatten() {
                if !moving.contains(dependent) && above.insert(dependent.clone()) {
                    wave.push(dependent);
                }
            }
        }
        Self { moving, above, has_lock: !request.locked.is_empty() }
    }

    fn turn(&self, world: &World<'_>, node: Node, set: &PositionSet) -> Turn {
        // The order of these questions is part of the answer: the first that applies says how urgent the node is.
        if world.is_raised(node, set) {
            return Turn::Raised;
        }
        // With one candidate left, all of them are `Forced` below. Deciding what is forced costs nothing and shows
        // conflicts early.
        if set.len() > 1 {
            match world.kind(node) {
                NodeKind::Occupant(_) | NodeKind::Opponent(_) => return Turn::Idle,
                NodeKind::ProviderChoice(_)
                | NodeKind::PackageRequirer(_)
                | NodeKind::SlotChoice(_) => return Turn::Last,
                _ => {}
            }
        }
        let Some(place) = world.place(node).filter(|_| set.len() > 1) else { return Turn::Forced };
        let package = world.package(place);
        if matches!(world.kind(node), NodeKind::ReplacementChoice(_))
            && kept(world, node, set).is_none()
        {
            // Its possible replacements move first, and are not held back for it.
            Turn::Last
        // From here on the order is that of `Turn`, from late variants to early ones.
        } else if self.above.contains(&package.id) {
            Turn::AboveMoving
        } else if self.moving.contains(&package.id) {
            Turn::Moving
        } else if kept(world, node, set).is_some() {
            Turn::Locked
        } else if self.has_lock && world.is_directly_required(node) {
            Turn::Direct
        } else {
            Turn::Open
        }
    }
}

/// The candidate of `node` within `set` that the lock holds.
fn kept(world: &World<'_>, node: Node, set: &PositionSet) -> Option<Position> {
    match world.kind(node) {
        NodeKind::Root
        | NodeKind::RevisionNamer(..)
        | NodeKind::EdgeChoice
        | NodeKind::PackageRequirer(_)
        | NodeKind::ProviderChoice(_)
        | NodeKind::Occupant(_)
        | NodeKind::Opponent(_)
        | NodeKind::SlotChoice(_)
        | NodeKind::ProviderSlot(_) => None,
        // The package itself stays if the lock has a version of it that fits. A locked replacement is kept at its own
        // node.
        NodeKind::ReplacementChoice(need) => {
            let package = world.package(world.place(node)?);
            let is_kept = set.holds(0) && package.has_locked_match(world.requirement(*need));
            is_kept.then_some(0)
        }
        NodeKind::Versions(MajorLine { place, .. }) => world.package(*place).kept(set),
        NodeKind::MajorChoice(place, versions) => {
            let package = world.package(*place);
            let major = package.major(package.kept_major(versions)?);
            // The candidates of this node are indices into the ascending majors of its set, so a major is looked up
            // there.
            let majors = package.majors(versions);
            let choice = majors.binary_search(&major).ok()? as Position;
            set.holds(choice).then_some(choice)
        }
    }
}

/// The candidate of `node` within `set` that is tried first.
fn preferred(world: &World<'_>, node: Node, set: &PositionSet) -> Option<Position> {
    kept(world, node, set).or_else(|| match world.kind(node) {
        NodeKind::MajorChoice(place, versions) => {
            let package = world.package(*place);
            let majors = package.majors(versions);
            // The major of the preferred version; that is the highest, unless channels decide otherwise.
            // `a` has 1.4.0 in the channel `stable` and 2.0.0 in `fast`. Then `a >=1` means 1.4.0 first, and so its
            // major.
            let within = || {
                let major = |at: &Position| {
                    let choice = majors.binary_search(&package.major(*at)).unwrap_or_default();
                    set.holds(choice as Position)
                };
                let newest = package.newest(&versions.iter().filter(major).collect())?;
                Some(majors.binary_search(&package.major(newest)).ok()? as Position)
            };
            if package.preference.is_any() { within() } else { set.highest_position() }
        }
        NodeKind::Root
        | NodeKind::RevisionNamer(..)
        | NodeKind::EdgeChoice
        | NodeKind::PackageRequirer(_) => set.highest_position(),
        NodeKind::ProviderChoice(capability) => world.packages.preferred_provider(*capability, set),
        NodeKind::ReplacementChoice(need) => world.preferred_way(*need, set),
        // These follow from what was chosen by now: of what is left, any will do.
        NodeKind::Occupant(_)
        | NodeKind::Opponent(_)
        | NodeKind::SlotChoice(_)
        | NodeKind::ProviderSlot(_) => set.lowest_position(),
        NodeKind::Versions(MajorLine { place, .. }) => world.package(*place).likely(set),
    })
}

impl DependencyProvider for Search<'_, '_> {
    type P = Node;
    type V = Position;
    type VS = PositionSet;
    type M = Infallible;
    type Err = Interruption;
    type Priority = (Turn, u32, Reverse<usize>);

    fn prioritize(
        &self,
        node: &Node,
        set: &PositionSet,
        conflicts: &PackageResolutionStatistics,
    ) -> Self::Priority {
        let conflicts = conflicts.conflict_count();
        let mut world = self.world.borrow_mut();
        world.budget.effort.note(*node, conflicts);
        let turn = self.ranks.turn(&world, *node, set);
        // pubgrub decides the highest first. Between nodes of the same turn, the conflict count is its own rule of
        // thumb: what was often in the way is decided before what it is in the way of.
        (turn, conflicts, Reverse(set.len()))
    }

    fn choose_version(
        &self,
        node: &Node,
        set: &PositionSet,
    ) -> Result<Option<Position>, Interruption> {
        let mut world = self.world.borrow_mut();
        // Each choice is counted, also one that is undone later, so a search that goes back and forth ends here.
        if world.budget.count_search_step() > self.limit {
            return Err(Interruption::GivenUp);
        }
        Ok(preferred(&world, *node, set))
    }

    fn get_dependencies(
        &self,
        node: &Node,
        position: &Position,
    ) -> Result<Dependencies<Node, PositionSet, Infallible>, Interruption> {
        let mut world = self.world.borrow_mut();
        // What these edges read may make edges outdated that pubgrub was given before. It cannot take those back.
        let edges = world.edges(*node, *position)?;
        if world.take_outdated() {
            return Err(Interruption::Outdated);
        }
        let edges = edges.iter().map(|edge| (edge.node, edge.set.clone()));
        Ok(Dependencies::Available(edges.collect()))
    }
}
