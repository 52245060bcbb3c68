//! Shrinks a refutation to a smallest set of facts that cannot hold together.
//!
//! Works on the facts alone, in memory: each trial leaves some out and solves what remains. Trials are bounded by the
//! candidates they look at, so a huge refutation costs no more than the search that found it; what remains of it is
//! then small, not smallest.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

use pubgrub::{
    Dependencies, DependencyProvider, DerivationTree, External, PackageResolutionStatistics,
    PubGrubError,
};
use rustc_hash::{FxHashMap, FxHashSet};
use thiserror::Error;

use crate::index::releases::Position;
use crate::select::highest::Proof;
use crate::select::positions::PositionSet;
use crate::select::world::{Node, World};

/// How many candidates all trials together may look at.
const EFFORT: usize = 100_000;

/// A fact of the graph: every candidate of `from` in `positions` needs a candidate of `to` in `set`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Link {
    pub(super) from: Node,
    pub(super) positions: PositionSet,
    pub(super) to: Node,
    pub(super) set: PositionSet,
}

/// Facts that are dropped together and told in one line: all that one node asks of another, but each thing that is
/// asked from outside the graph alone.
pub(super) type Group = Vec<Link>;

/// A smallest set of facts within `proof` that cannot hold together: without any one group, the rest can.
pub(super) fn smallest(proof: &Proof) -> Vec<Group> {
    let effort = Cell::new(EFFORT);
    let groups = by_depth(facts(proof));
    let kept = shrink(groups.clone(), &effort);
    let other = shrink(groups.into_iter().rev().collect(), &effort);
    if other.len() < kept.len() { other } else { kept }
}

/// Whether `facts` cannot hold together.
pub(super) fn contradict(facts: &[Link]) -> bool {
    matches!(refute(facts, &Cell::new(EFFORT)), Trial::Refuted(_))
}

/// Drops one group after another, the last first, and keeps those without which the rest holds.
fn shrink(mut open: Vec<Group>, effort: &Cell<usize>) -> Vec<Group> {
    let mut needed: Vec<Group> = Vec::new();
    while let Some(tried) = open.pop() {
        let rest: Vec<Link> = open.iter().chain(&needed).flatten().cloned().collect();
        match refute(&rest, effort) {
            Trial::Refuted(smaller) => {
                for groups in [&mut open, &mut needed] {
                    for group in groups.iter_mut() {
                        group.retain(|link| smaller.contains(link));
                    }
                    groups.retain(|group| !group.is_empty());
                }
            }
            Trial::Holds => needed.push(tried),
            Trial::TooMuch => {
                needed.push(tried);
                needed.append(&mut open);
            }
        }
    }
    needed
}

/// The facts that a refutation rests on, each once.
fn facts(proof: &Proof) -> FxHashSet<Link> {
    let mut facts = FxHashSet::default();
    let mut seen = FxHashSet::default();
    let mut open = vec![proof];
    while let Some(tree) = open.pop() {
        match tree {
            DerivationTree::Derived(derived) => {
                for cause in [&derived.cause1, &derived.cause2] {
                    if seen.insert(std::ptr::from_ref(&**cause)) {
                        open.push(cause);
                    }
                }
            }
            DerivationTree::External(External::FromDependencyOf(from, positions, to, set)) => {
                facts.insert(Link {
                    from: *from,
                    positions: positions.clone(),
                    to: *to,
                    set: set.clone(),
                });
            }
            DerivationTree::External(_) => {}
        }
    }
    facts
}

/// Groups facts, those nearest to the root first.
fn by_depth(facts: FxHashSet<Link>) -> Vec<Group> {
    let mut groups: BTreeMap<Node, BTreeMap<(Node, Option<String>), Group>> = BTreeMap::new();
    for link in facts {
        let alone = (link.from == World::ROOT).then(|| link.set.to_string());
        groups.entry(link.from).or_default().entry((link.to, alone)).or_default().push(link);
    }
    let mut ordered = Vec::new();
    let mut queue = VecDeque::from([World::ROOT]);
    while let Some(node) = queue.pop_front() {
        for ((to, _), mut group) in groups.remove(&node).into_iter().flatten() {
            group.sort_by_key(|link| link.positions.first());
            ordered.push(group);
            queue.push_back(to);
        }
    }
    ordered
}

/// What came of a trial.
enum Trial {
    /// The facts cannot hold together; these of them suffice to show it.
    Refuted(FxHashSet<Link>),
    /// They can.
    Holds,
    /// It took too long to tell.
    TooMuch,
}

/// Tries to make `facts` hold together.
fn refute(facts: &[Link], effort: &Cell<usize>) -> Trial {
    let mut by_node: FxHashMap<Node, Vec<&Link>> = FxHashMap::default();
    for link in facts {
        by_node.entry(link.from).or_default().push(link);
    }
    match pubgrub::resolve(&Facts { by_node, effort }, World::ROOT, 0u32) {
        Ok(_) => Trial::Holds,
        Err(PubGrubError::NoSolution(proof)) => Trial::Refuted(self::facts(&proof)),
        Err(_) => Trial::TooMuch,
    }
}

/// A world in which nothing holds but some facts.
struct Facts<'f> {
    by_node: FxHashMap<Node, Vec<&'f Link>>,
    effort: &'f Cell<usize>,
}

/// The trials took too long.
#[derive(Debug, Error)]
#[error("too many candidates were tried")]
struct TooMuch;

impl DependencyProvider for Facts<'_> {
    type P = Node;
    type V = Position;
    type VS = PositionSet;
    type M = Infallible;
    type Err = TooMuch;
    type Priority = (u32, Reverse<usize>);

    fn prioritize(
        &self,
        _node: &Node,
        set: &PositionSet,
        conflicts: &PackageResolutionStatistics,
    ) -> Self::Priority {
        (conflicts.conflict_count(), Reverse(set.len()))
    }

    fn choose_version(&self, _: &Node, set: &PositionSet) -> Result<Option<Position>, TooMuch> {
        Ok(set.last())
    }

    fn get_dependencies(
        &self,
        node: &Node,
        position: &Position,
    ) -> Result<Dependencies<Node, PositionSet, Infallible>, TooMuch> {
        self.effort.set(self.effort.get().checked_sub(1).ok_or(TooMuch)?);
        let facts = self.by_node.get(node).into_iter().flatten();
        let needed = facts.filter(|link| link.positions.holds(*position));
        Ok(Dependencies::Available(needed.map(|link| (link.to, link.set.clone())).collect()))
    }
}
