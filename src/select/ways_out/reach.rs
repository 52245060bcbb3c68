//! What a requirement reaches: the candidates that it accepts, and those beside them.

use pubgrub::VersionSet as _;

use crate::index::releases::Position;
use crate::index::{Requirement, Unavailable};
use crate::reference::VersionSpec;
use crate::select::clash;
use crate::select::node::Place;
use crate::select::positions::PositionSet;
use crate::select::world::World;

/// The candidates of the package of a wish.
pub(super) struct Reach<'w> {
    pub(super) wish: &'w Requirement,
    pub(super) place: Place,
    /// What the wish would accept if its version did not matter.
    pub(super) all: PositionSet,
    /// What it accepts.
    pub(super) now: PositionSet,
}

impl<'w> Reach<'w> {
    pub(super) fn of(wish: &'w Requirement, world: &mut World<'_>) -> Result<Self, Unavailable> {
        let any = Requirement { spec: VersionSpec::Latest, ..wish.clone() };
        let (place, now) = world.accepted(wish)?;
        let (_, all) = world.accepted(&any)?;
        Ok(Self { wish, place, all, now })
    }

    /// The releases above everything that is accepted now.
    pub(super) fn above(&self, world: &World<'_>) -> PositionSet {
        let releases = world.package(self.place).releases.len();
        self.beside(&PositionSet::between(self.end(world), releases))
    }

    /// Those below the last one that is accepted now.
    pub(super) fn below(&self, world: &World<'_>) -> PositionSet {
        self.beside(&PositionSet::between(0, self.end(world)))
    }

    fn beside(&self, set: &PositionSet) -> PositionSet {
        self.all.without(&self.now).intersection(set)
    }

    /// The position after everything that is required, even if nothing there matches.
    fn end(&self, world: &World<'_>) -> Position {
        if let Some(last) = self.now.last() {
            return last + 1;
        }
        clash::behind(world.package(self.place), &self.wish.spec).unwrap_or(0)
    }
}
