//! Minimal version selection, after Russ Cox: every requirement means its lowest match, and each package gets
//! the highest of the matches that are reachable from the roots.
//!
//! Needs no search and no lock: the same requirements give the same versions, whatever is published later.
//! Upper bounds choose nothing; they are checked at the end. Requirements are the only state, so a move is a
//! change of requirements (`moves`).

mod apart;
pub(super) mod build;
mod change;
pub(super) mod check;
mod downgrade;
mod facts;
mod moves;
pub(super) mod providers;
mod provision;
pub(super) mod replaced;
pub(super) mod requirements;
pub(super) mod select;
pub(super) mod smallest;

use crate::index::{Requirement, Universe};
use crate::reference::{Version, VersionSpec};
use crate::select::plan::beginning_at;
use crate::select::strategy::Strategy;
use crate::select::{Change, Failure, Move, Request, Selection, WayOut, ways_out};

/// The lowest versions that meet everything reachable.
#[derive(Debug, Clone, Copy, Default)]
pub struct Minimal;

impl Strategy for Minimal {
    fn select(&self, universe: &dyn Universe, request: &Request) -> Result<Selection, Failure> {
        select::select(universe, request)
    }

    fn plan(
        &self,
        universe: &dyn Universe,
        request: &Request,
        to: Move<'_>,
    ) -> Result<Option<Change>, Failure> {
        moves::plan(universe, request, to).map(Some)
    }

    fn planned(&self, change: &Change, request: &Request) -> Option<Selection> {
        change.answer(&select::without_lock(request))
    }

    fn beginning(
        &self,
        universe: &dyn Universe,
        request: &Request,
        wish: &Requirement,
    ) -> Result<Option<VersionSpec>, Failure> {
        moves::beginning(universe, request, wish)
    }

    fn unpinned(&self, before: Option<VersionSpec>, pinned: &Version) -> Option<VersionSpec> {
        Some(beginning_at(before.as_ref(), pinned))
    }

    fn follows_lock(&self) -> bool {
        false
    }

    fn ways_out(
        &self,
        universe: &dyn Universe,
        request: &Request,
        failure: &Failure,
    ) -> Vec<WayOut> {
        ways_out::of_minimal(universe, request, failure)
    }
}
