//! How long a world may be searched: all searches of one world share one number of steps.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::select::effort::Effort;
use crate::select::node::{Node, PackageIndex};

/// The steps that searches took, and how many they may take.
#[derive(Debug)]
pub(in crate::select) struct Budget {
    pub(in crate::select) effort: Effort,
    /// How many steps they may take in all.
    pub(in crate::select) most: usize,
    /// How often something was tried in vain because of each package.
    tried: FxHashMap<PackageIndex, usize>,
}

impl Budget {
    /// Allows this many steps.
    pub(super) fn new(most: usize) -> Self {
        Self { effort: Effort::default(), most, tried: FxHashMap::default() }
    }

    /// Counts one more choice of the search, and returns the steps so far.
    pub(in crate::select) fn step(&mut self) -> usize {
        self.effort.step();
        self.effort.steps()
    }

    /// Counts the steps of a trial that failed because of a package; returns whether more may be tried.
    pub(in crate::select) fn spend(&mut self, steps: usize, place: PackageIndex) -> bool {
        self.effort.spend(steps);
        *self.tried.entry(place).or_default() += 1;
        self.steps() <= self.most
    }

    /// How many steps searches took so far.
    pub(in crate::select) fn steps(&self) -> usize {
        self.effort.steps()
    }

    /// Lowers the limit to this many steps; never raises it.
    pub(in crate::select) fn limit(&mut self, steps: usize) {
        self.most = self.most.min(steps);
    }

    /// The packages that searches came back to, and how often: those in conflicts, or tried in vain.
    pub(super) fn returns(
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
