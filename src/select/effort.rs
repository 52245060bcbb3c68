//! Counts what searching costs, in steps that are the same on every machine, so that it can be stopped.
//!
//! A step is a version that is chosen, to be tried. The more a search has learned from conflicts, the more it looks at
//! before each choice, so a choice counts for more then. That follows the time that searches take, those that end at once
//! and those that never would, within a small factor. Stopping is not done here.

use crate::select::node::Node;

/// How many steps a search may take if nobody says otherwise: some seconds of a search that would not end, and a hundred
/// times what the hard graphs of `benches/` need.
pub const STEPS: usize = 1_000_000;

/// How many conflicts of packages make every choice from then on count for one step more.
const WEIGHT: usize = 4_096;

/// What searches cost so far.
#[derive(Debug, Default)]
pub(super) struct Effort {
    steps: usize,
    /// In how many conflicts nodes were in the search that goes on: what it learned.
    conflicts: usize,
    /// In how many conflicts each node was in the search that goes on.
    by_node: Vec<u32>,
    /// In how many conflicts each node was in all searches.
    in_all: Vec<usize>,
}

impl Effort {
    /// Begins a search, which has learned nothing.
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
        if self.by_node.len() <= index {
            self.by_node.resize(index + 1, 0);
            self.in_all.resize(index + 1, 0);
        }
        let more = conflicts.saturating_sub(self.by_node[index]) as usize;
        self.by_node[index] = conflicts;
        self.in_all[index] += more;
        self.conflicts += more;
    }

    /// Counts a choice; says what it costs.
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
