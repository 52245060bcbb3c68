//! Counts the cost of searching, in steps that are the same on every machine, so that a search can be
//! stopped.
//!
//! A step is a version that is chosen for a trial. The more a search has learned from conflicts, the more it
//! looks at before each choice, so a choice then counts for more. This follows the real time of searches,
//! short ones and endless ones alike, within a small factor. Stopping is not done here.

use crate::select::node::Node;

/// How many steps a search may take by default: some seconds of a search that would not end, and a hundred
/// times what the hard graphs of `benches/` need.
pub const STEPS: usize = 1_000_000;

/// After this many package conflicts, every later choice counts for one step more.
const WEIGHT: usize = 4_096;

/// The cost of a search. The same question costs the same on every machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packages whose releases were looked at.
    pub packages_read: usize,
    /// Versions whose requirements were looked at.
    pub versions_read: usize,
}

/// The cost of the searches so far.
#[derive(Debug, Default)]
pub(super) struct Effort {
    steps: usize,
    /// The sum of the conflicts that nodes were in during the current search: what it learned.
    conflicts: usize,
    /// The number of conflicts that each node was in during the current search.
    by_node: Vec<u32>,
    /// The number of conflicts that each node was in during all searches.
    in_all: Vec<usize>,
}

impl Effort {
    /// Starts a new search, which has learned nothing.
    pub(super) fn begin(&mut self) {
        self.conflicts = 0;
        self.by_node.fill(0);
    }

    /// Notes in how many conflicts a node was in this search.
    pub(super) fn note(&mut self, node: Node, conflicts: u32) {
        if conflicts == 0 {
            return;
        }
        let index = node.0 as usize;
        // Both lists grow together, and have a place for each node that was ever in a conflict.
        if self.by_node.len() <= index {
            self.by_node.resize(index + 1, 0);
            self.in_all.resize(index + 1, 0);
        }
        // pubgrub tells the number so far, not each conflict; so what is new is the difference to what it told before.
        let more = conflicts.saturating_sub(self.by_node[index]) as usize;
        self.by_node[index] = conflicts;
        self.in_all[index] += more;
        self.conflicts += more;
    }

    /// Counts a choice; returns its cost.
    pub(super) fn step(&mut self) -> usize {
        let cost = 1 + self.conflicts / WEIGHT;
        self.steps += cost;
        cost
    }

    /// Counts steps of another kind.
    pub(super) fn spend(&mut self, steps: usize) {
        self.steps += steps;
    }

    /// How many steps there were.
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// In how many conflicts each node was that was in any.
    pub(super) fn conflicts(&self) -> impl Iterator<Item = (Node, usize)> {
        let all = self.in_all.iter().enumerate().filter(|(_, count)| **count > 0);
        all.map(|(index, &count)| (Node(index as u32), count))
    }
}
