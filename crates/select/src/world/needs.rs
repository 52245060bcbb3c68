//! Requirements in the order in which they are found: each has a number, and the candidates that it accepts
//! are computed once.
//!
//! The same few requirements occur again and again, and comparing them means comparing texts; so the graph
//! uses numbers.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::node::{PackageIndex, RequirementIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::Requirement;

/// A set of requirements.
#[derive(Debug, Default)]
pub(crate) struct RequirementSet(Vec<bool>);

impl RequirementSet {
    /// Inserts a requirement; returns whether it is new.
    pub(crate) fn insert(&mut self, RequirementIndex(number): RequirementIndex) -> bool {
        if self.0.len() <= number {
            self.0.resize(number + 1, false);
        }
        !std::mem::replace(&mut self.0[number], true)
    }
}

/// All known requirements, and which version has which.
#[derive(Debug, Default)]
pub(super) struct KnownRequirements {
    numbers: FxHashMap<Arc<Requirement>, RequirementIndex>,
    /// The numbers by the address of requirements in memory; most requirements are shared by everything that
    /// has the same.
    by_address: FxHashMap<usize, RequirementIndex>,
    pub(super) met: Vec<Met>,
    /// What versions require, if that was read.
    pub(super) by_version: FxHashMap<(PackageIndex, Position), Rc<[RequirementIndex]>>,
}

/// A requirement, and what is known about it.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) requirement: Arc<Requirement>,
    /// Whether the workspace itself has the package.
    pub(super) is_own: bool,
    pub(super) meaning: Option<RequirementMeaning>,
}

/// What a requirement means in the known world.
#[derive(Debug)]
pub(super) struct RequirementMeaning {
    pub(super) place: PackageIndex,
    pub(super) accepted: PositionSet,
    /// The lowest accepted candidate for the minimal strategy, if that was computed.
    pub(super) lowest: Option<Option<Position>>,
}

impl KnownRequirements {
    /// The number of a requirement, if it is known.
    pub(super) fn find(&self, requirement: &Requirement) -> Option<RequirementIndex> {
        self.numbers.get(requirement).copied()
    }

    /// The number of a requirement that may be shared, if it is known.
    pub(super) fn find_shared(&self, requirement: &Arc<Requirement>) -> Option<RequirementIndex> {
        // An address stands for one requirement as long as the world lives: `met` holds every requirement whose address
        // is a key here, so none is freed and its address given to another one. A copy at another address costs a
        // comparison of texts.
        let address = Arc::as_ptr(requirement).addr();
        self.by_address.get(&address).copied().or_else(|| self.find(requirement))
    }

    /// Gives a new requirement its number; `is_own` says whether the workspace itself has the package.
    pub(super) fn add(&mut self, requirement: Arc<Requirement>, is_own: bool) -> RequirementIndex {
        let need = RequirementIndex(self.met.len());
        self.numbers.insert(Arc::clone(&requirement), need);
        self.by_address.insert(Arc::as_ptr(&requirement).addr(), need);
        self.met.push(Met { requirement, is_own, meaning: None });
        need
    }

    /// Forgets what requirements mean, because the candidates have changed.
    pub(super) fn forget_meanings(&mut self) {
        // The numbers stay, because edges and nodes (`ReplacementChoice`) hold them.
        self.met.iter_mut().for_each(|met| met.meaning = None);
    }
}
