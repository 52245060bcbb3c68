//! Counts the cost of searching, in steps that are the same on every machine, so that a search can be stopped; and what is said
//! of a search that was stopped before its end.
//!
//! A step is a version that is chosen for a trial. The more a search has learned from conflicts, the more it looks at before each
//! choice, so a choice then counts for more. This follows the real time of searches, short ones and endless ones alike, within a
//! small factor. All searches of one world share one number of steps. Stopping is not done here.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use mu_manifest::reference::{Base, PackageId};
use rustc_hash::FxHashMap;

use crate::node::{Node, PackageIndex};

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
    pub(super) fn count_choice(&mut self) -> usize {
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

/// The steps that searches took, and how many they may take.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) effort: Effort,
    /// How many steps they may take in all.
    pub(crate) most: usize,
    /// How often something was tried in vain because of each package.
    tried: FxHashMap<PackageIndex, usize>,
}

impl Budget {
    /// Allows this many steps.
    pub(crate) fn new(most: usize) -> Self {
        Self { effort: Effort::default(), most, tried: FxHashMap::default() }
    }

    /// Counts one more choice of the search, and returns the steps so far.
    pub(crate) fn count_search_step(&mut self) -> usize {
        self.effort.count_choice();
        self.effort.steps()
    }

    /// Counts the steps of a trial that failed because of a package; returns whether more may be tried.
    pub(crate) fn spend_on_trial(&mut self, steps: usize, place: PackageIndex) -> bool {
        self.effort.spend(steps);
        *self.tried.entry(place).or_default() += 1;
        self.search_steps() <= self.most
    }

    /// How many steps searches took so far.
    pub(crate) fn search_steps(&self) -> usize {
        self.effort.steps()
    }

    /// Lowers the limit to this many steps; never raises it.
    pub(crate) fn lower_limit(&mut self, steps: usize) {
        self.most = self.most.min(steps);
    }

    /// The packages that searches came back to, and how often: those in conflicts, or tried in vain.
    pub(crate) fn returns(
        &self,
        place: impl Fn(Node) -> Option<PackageIndex>,
    ) -> Vec<(Reverse<usize>, PackageIndex)> {
        let mut counts: BTreeMap<PackageIndex, usize> = BTreeMap::new();
        let in_conflicts = self.effort.conflicts();
        let in_conflicts = in_conflicts.filter_map(|(node, count)| Some((place(node)?, count)));
        let tried = self.tried.iter().map(|(&place, &count)| (place, count));
        for (place, count) in in_conflicts.chain(tried) {
            *counts.entry(place).or_default() += count;
        }
        counts.into_iter().map(|(place, count)| (Reverse(count), place)).collect()
    }
}

/// More packages than this are not named.
pub(super) const NAMED: usize = 5;

/// What is known about a search that exceeded its steps: whether versions fit together is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// How many steps it was allowed.
    pub steps: usize,
    /// The packages that it came back to most often, those first.
    pub packages: Vec<PackageId>,
    /// How many others it came back to.
    pub others: usize,
    /// The default base, which names leave out where they can.
    pub base: Base,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.packages.iter().map(|id| id.short(&self.base).to_owned());
        let mut names: Vec<String> = names.collect();
        if self.others > 0 {
            names.push(format!("{} other packages", self.others));
        }
        if !names.is_empty() {
            let last = names.pop().unwrap_or_default();
            let and = if names.is_empty() { "" } else { " and " };
            writeln!(formatter, "most conflicts were about {}{and}{last}", names.join(", "))?;
        }
        formatter.write_str("whether any versions fit together is not known")
    }
}
