//! How long a world may be searched: all searches of one world share one number of steps.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::World;
use crate::reference::PackageId;
use crate::select::node::Node;
use crate::select::unfinished::{NAMED, Unfinished};

impl World<'_> {
    /// Begins a search, which has learned nothing.
    pub(in crate::select) fn begin_search(&mut self) {
        self.effort.begin();
    }

    /// Notes in how many conflicts a node was in the search that goes on.
    pub(in crate::select) fn note_conflicts(&mut self, node: Node, conflicts: u32) {
        self.effort.note(node, conflicts);
    }

    /// Counts one more choice of the search, and says how many steps there were.
    pub(in crate::select) fn step(&mut self) -> usize {
        self.effort.step();
        self.effort.steps()
    }

    /// Counts the steps of what was tried in vain because of the package at a place; says whether more may be tried.
    pub(in crate::select) fn spend(&mut self, steps: usize, place: usize) -> bool {
        self.effort.spend(steps);
        *self.tried.entry(place).or_default() += 1;
        self.steps() <= self.most_steps
    }

    /// How many steps searches took so far.
    pub(in crate::select) fn steps(&self) -> usize {
        self.effort.steps()
    }

    /// How many steps they may take in all.
    pub(in crate::select) fn most_steps(&self) -> usize {
        self.most_steps
    }

    /// Allows no more than this many steps, and no more than the settings do.
    pub(in crate::select) fn limit_steps(&mut self, steps: usize) {
        self.most_steps = self.most_steps.min(steps);
    }

    /// What there is to say when there were too many steps.
    pub(in crate::select) fn unfinished(&self) -> Unfinished {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for (node, count) in self.effort.conflicts() {
            if let Some(place) = self.place(node) {
                *counts.entry(place).or_default() += count;
            }
        }
        for (&place, &count) in &self.tried {
            *counts.entry(place).or_default() += count;
        }
        let counts = counts.into_iter();
        let mut packages: Vec<(Reverse<usize>, &PackageId)> =
            counts.map(|(place, count)| (Reverse(count), self.packages[place].id())).collect();
        packages.sort_unstable();
        let others = packages.len().saturating_sub(NAMED);
        let packages = packages.into_iter().take(NAMED).map(|(_, id)| id.clone()).collect();
        let base = self.request.settings.base.clone();
        Unfinished { steps: self.most_steps, packages, others, base }
    }
}
