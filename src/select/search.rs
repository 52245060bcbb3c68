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

use pubgrub::{
    Dependencies, DependencyProvider, DerivationTree, PackageResolutionStatistics, PubGrubError,
    SelectedDependencies,
};
use thiserror::Error;

use crate::index::Unavailable;
use crate::index::releases::Position;
use crate::reference::PackageId;
use crate::select::node::{MajorLine, Node, NodeKind};
use crate::select::positions::PositionSet;
use crate::select::world::World;
use crate::select::{Request, Update};

/// The number of steps that a search may take without reporting progress.
pub(super) const PATIENCE: usize = 20_000;

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
    let limit = world.budget.steps().saturating_add(steps).min(world.budget.most);
    loop {
        world.budget.effort.begin();
        let search = Search { world: RefCell::new(&mut *world), ranks: &ranks, limit };
        let error = match pubgrub::resolve(&search, Node::ROOT, 0u32) {
            Ok(choices) => return Ok(Verdict::Chosen(choices)),
            Err(PubGrubError::NoSolution(proof)) => return Ok(Verdict::Refuted(proof)),
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
    fn new(request: &Request) -> Self {
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
        if world.is_raised(node, set) {
            return Turn::Raised;
        }
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
        } else if self.above.contains(&package.id) {
            Turn::AboveMoving
        } else if self.moving.contains(&package.id) {
            Turn::Moving
        } else if kept(world, node, set).is_some() {
            Turn::Locked
        } else if self.has_lock && world.is_direct(node) {
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
        NodeKind::ReplacementChoice(need) => {
            let package = world.package(world.place(node)?);
            let is_kept = set.holds(0) && package.keeps(world.requirement(*need));
            is_kept.then_some(0)
        }
        NodeKind::Versions(MajorLine { place, .. }) => world.package(*place).kept(set),
        NodeKind::MajorChoice(place, versions) => {
            let package = world.package(*place);
            let major = package.major(package.kept(versions)?);
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
            let within = || {
                let major = |at: &Position| {
                    let choice = majors.binary_search(&package.major(*at)).unwrap_or_default();
                    set.holds(choice as Position)
                };
                let newest = package.newest(&versions.iter().filter(major).collect())?;
                Some(majors.binary_search(&package.major(newest)).ok()? as Position)
            };
            if package.preference.is_any() { within() } else { set.last() }
        }
        NodeKind::Root
        | NodeKind::RevisionNamer(..)
        | NodeKind::EdgeChoice
        | NodeKind::PackageRequirer(_) => set.last(),
        NodeKind::ProviderChoice(capability) => world.packages.preferred_provider(*capability, set),
        NodeKind::ReplacementChoice(need) => world.preferred_way(*need, set),
        NodeKind::Occupant(_)
        | NodeKind::Opponent(_)
        | NodeKind::SlotChoice(_)
        | NodeKind::ProviderSlot(_) => set.first(),
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
        (turn, conflicts, Reverse(set.len()))
    }

    fn choose_version(
        &self,
        node: &Node,
        set: &PositionSet,
    ) -> Result<Option<Position>, Interruption> {
        let mut world = self.world.borrow_mut();
        if world.budget.step() > self.limit {
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
        let edges = world.edges(*node, *position)?;
        if world.take_outdated() {
            return Err(Interruption::Outdated);
        }
        let edges = edges.iter().map(|edge| (edge.node, edge.set.clone()));
        Ok(Dependencies::Available(edges.collect()))
    }
}
