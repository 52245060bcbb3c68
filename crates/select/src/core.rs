//! Shrinks a refutation to a smallest set of facts that cannot hold together.
//!
//! Works on the facts alone, in memory: each trial leaves some out and solves what remains. Trials are
//! bounded by the number of facts they look at, so a huge refutation costs no more than the search that found
//! it. The result is then small, but not smallest.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

use pubgrub::{
    Dependencies, DependencyProvider, DerivationTree, External, PackageResolutionStatistics,
    PubGrubError,
};
use rustc_hash::{FxHashMap, FxHashSet};
use thiserror::Error;

use crate::effort::Effort;
use crate::node::Node;
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::Proof;

/// How many facts a single trial may look at.
const EFFORT: usize = 50_000;
/// The number of parts that the groups are first split into.
const PARTS: usize = 8;

/// A fact of the graph: every candidate of `from` in `positions` needs a candidate of `to` in `set`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GraphLink {
    pub(super) from: Node,
    pub(super) positions: PositionSet,
    pub(super) to: Node,
    pub(super) set: PositionSet,
}

/// Facts that are dropped together and explained in one line: everything that one node requires of another.
/// Requirements from outside the graph each form a group of their own.
pub(super) type FactGroup = Vec<GraphLink>;

/// What the facts of one group have in common.
type Key = (Node, Node, Option<PositionSet>);

impl GraphLink {
    fn key(&self) -> Key {
        // What `a` requires of `b` is one group for all versions of `a`, because that is how it is told. Of the root,
        // each set is a group of its own, since different roots may have asked for it.
        (self.from, self.to, (self.from == Node::GRAPH_ROOT).then(|| self.set.clone()))
    }
}

/// A smallest set of facts within `proof` that cannot hold together: without any one group, the rest can. All
/// trials together look at no more than `effort` facts.
pub(super) fn smallest(proof: &Proof, effort: usize) -> Vec<FactGroup> {
    let effort = Cell::new(effort);
    // Which smallest set is found depends on what is dropped first, and neither order is always better. If the deepest
    // go first, what is left is most often near the root, where the user can do something: of two equally small sets,
    // it is that one.
    let groups = by_depth(facts(proof));
    let kept = shrink(groups.clone(), &effort);
    let other = shrink(groups.into_iter().rev().collect(), &effort);
    if other.len() < kept.len() { other } else { kept }
}

/// Whether the facts in `groups` cannot hold together.
pub(super) fn contradict(groups: &[FactGroup]) -> bool {
    matches!(refute(groups.iter().flatten(), &Cell::new(EFFORT)), Attempt::Refuted(_))
}

/// Drops one part after another, the last first, in ever smaller parts, and keeps the groups without which
/// the rest can hold.
fn shrink(groups: Vec<FactGroup>, effort: &Cell<usize>) -> Vec<FactGroup> {
    // `open` is what may still be dropped, `needed` what may not. Together they always contradict each other. Each
    // round either drops a part, cuts it in two, or moves a single group to `needed`, so the rounds end. With two parts
    // instead of PARTS:
    //
    //     open  [a b c d] [e f g h]    needed []      without e f g h: still a contradiction, dropped
    //     open  [a b c d]              needed []      without a b c d: holds, so cut in two
    //     open  [a b] [c d]            needed []      without c d: holds, so cut in two
    //     open  [a b] [c] [d]          needed []      without d: holds, so d is needed
    //
    // Large parts first: most facts of a long refutation have nothing to do with the clash, and go many at a time.
    let size = groups.len().div_ceil(PARTS).max(1);
    let mut open: Vec<Vec<FactGroup>> = groups.chunks(size).map(<[FactGroup]>::to_vec).collect();
    let mut needed: Vec<FactGroup> = Vec::new();
    while let Some(mut tried) = open.pop() {
        let rest = open.iter().flatten().chain(&needed).flatten();
        match refute(rest, effort) {
            Attempt::Refuted(mut smaller) => {
                // The new refutation most often uses only a few of the facts that were left. All others go at once.
                // `remove` leaves each group at one place, and with only those of its facts that are used.
                let mut narrow = |groups: &mut Vec<FactGroup>| {
                    let left = groups.iter().filter_map(|group| smaller.remove(&group[0].key()));
                    *groups = left.collect();
                };
                narrow(&mut needed);
                open.iter_mut().for_each(narrow);
                open.retain(|part| !part.is_empty());
            }
            Attempt::Holds if tried.len() > 1 => {
                let end = tried.split_off(tried.len() / 2);
                open.extend([tried, end]);
            }
            Attempt::Holds => needed.append(&mut tried),
            Attempt::TooMuch => {
                needed.append(&mut tried);
                // Whatever was not tried stays. It contradicts itself still, so the explanation is right, only longer
                // than necessary.
                needed.extend(open.drain(..).flatten());
            }
        }
    }
    needed
}

/// The facts that a refutation rests on.
fn facts(proof: &Proof) -> FxHashMap<Key, FactGroup> {
    let mut facts: FxHashMap<Key, FactGroup> = FxHashMap::default();
    // A refutation is a graph in which large parts are shared, often thousands of times. Each node is visited once, by
    // its address; without that this would take time exponential in its depth.
    let (mut seen, mut found) = (FxHashSet::default(), FxHashSet::default());
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
                if found.insert((from, positions, to, set)) {
                    let (positions, set) = (positions.clone(), set.clone());
                    let link = GraphLink { from: *from, positions, to: *to, set };
                    facts.entry(link.key()).or_default().push(link);
                }
            }
            // That there is no version in a set, or that the root is needed, follows from the facts about edges.
            DerivationTree::External(_) => {}
        }
    }
    facts
}

/// The nodes that the facts of a refutation lead to.
pub(super) fn reached_nodes(proof: &Proof) -> FxHashSet<Node> {
    facts(proof).into_values().flatten().map(|link| link.to).collect()
}

/// The groups, those nearest to the root first.
fn by_depth(facts: FxHashMap<Key, FactGroup>) -> Vec<FactGroup> {
    let mut by_node: BTreeMap<Node, Vec<FactGroup>> = BTreeMap::new();
    for (key, mut group) in facts {
        group.sort_by_key(|link| link.positions.lowest_position());
        by_node.entry(key.0).or_default().push(group);
    }
    let mut ordered = Vec::new();
    let mut queue = VecDeque::from([Node::GRAPH_ROOT]);
    while let Some(node) = queue.pop_front() {
        // A node is in the queue once for each way to it. Its groups are there the first time only, so the walk ends.
        let mut groups = by_node.remove(&node).unwrap_or_default();
        // They come from a hash map: without an order of their own, the same conflict would read differently in each
        // run.
        groups.sort_by_cached_key(|group| (group[0].to, group[0].set.to_string()));
        for group in groups {
            queue.push_back(group[0].to);
            ordered.push(group);
        }
    }
    ordered
}

/// The result of a trial.
enum Attempt {
    /// The facts cannot hold together; these are enough to prove it.
    Refuted(FxHashMap<Key, FactGroup>),
    /// The facts can hold together.
    Holds,
    /// The trial took too long.
    TooMuch,
}

/// Tries to make `facts` hold together.
fn refute<'f>(facts: impl Iterator<Item = &'f GraphLink>, effort: &Cell<usize>) -> Attempt {
    let mut by_node: FxHashMap<Node, Vec<&GraphLink>> = FxHashMap::default();
    for link in facts {
        by_node.entry(link.from).or_default().push(link);
    }
    // The same search as that over the world, over edges that are all known. Where a fact was left out, a candidate
    // simply needs less.
    let facts = Facts { by_node, left: effort, effort: RefCell::default() };
    match pubgrub::resolve(&facts, Node::GRAPH_ROOT, 0u32) {
        Ok(_) => Attempt::Holds,
        Err(PubGrubError::NoSolution(proof)) => Attempt::Refuted(self::facts(&proof)),
        Err(_) => Attempt::TooMuch,
    }
}

/// A world that consists only of some facts.
struct Facts<'f> {
    by_node: FxHashMap<Node, Vec<&'f GraphLink>>,
    /// How many facts may still be looked at.
    left: &'f Cell<usize>,
    effort: RefCell<Effort>,
}

impl Facts<'_> {
    fn spend(&self, facts: usize) -> Result<(), TooMuch> {
        self.left.set(self.left.get().checked_sub(facts).ok_or(TooMuch)?);
        Ok(())
    }
}

/// The trials took too long.
#[derive(Debug, Error)]
#[error("too many facts were looked at")]
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
        node: &Node,
        set: &PositionSet,
        conflicts: &PackageResolutionStatistics,
    ) -> Self::Priority {
        let conflicts = conflicts.conflict_count();
        self.effort.borrow_mut().note(*node, conflicts);
        // What is in most conflicts first: here nobody cares which versions are found, only whether there are any.
        (conflicts, Reverse(set.len()))
    }

    fn choose_version(&self, _: &Node, set: &PositionSet) -> Result<Option<Position>, TooMuch> {
        // Facts and choices are paid from one purse, because either can be what a trial is long of.
        self.spend(self.effort.borrow_mut().count_choice())?;
        Ok(set.highest_position())
    }

    fn get_dependencies(
        &self,
        node: &Node,
        position: &Position,
    ) -> Result<Dependencies<Node, PositionSet, Infallible>, TooMuch> {
        let facts = self.by_node.get(node).map(Vec::as_slice).unwrap_or_default();
        self.spend(facts.len())?;
        let needed = facts.iter().filter(|link| link.positions.holds(*position));
        Ok(Dependencies::Available(needed.map(|link| (link.to, link.set.clone())).collect()))
    }
}
