//! The seam before every way to choose versions. Commands know this trait, and no strategy behind it.

use crate::index::{Requirement, Universe};
use crate::reference::{Version, VersionSpec};
use crate::select::{Change, Failure, Move, Request, Selection, WayOut};

/// A way to choose versions, and to move them afterwards.
pub trait Strategy {
    /// Chooses versions such that everything that is required is there.
    ///
    /// # Errors
    ///
    /// [`Failure::Conflict`] when there is no such choice, [`Failure::Unavailable`] when what is needed to tell could not be
    /// found out, [`Failure::Unfinished`] when telling takes more steps than the settings allow.
    fn select(&self, universe: &dyn Universe, request: &Request) -> Result<Selection, Failure>;

    /// What the requirements must become so that versions move; `None` where they stay as they are, because the lock
    /// says by itself which versions are chosen.
    ///
    /// # Errors
    ///
    /// When the requirements cannot be met, when bounds forbid the move, or when something could not be found out.
    fn plan(
        &self,
        universe: &dyn Universe,
        request: &Request,
        to: Move<'_>,
    ) -> Result<Option<Change>, Failure>;

    /// The version that a new requirement which names none should begin at; `None` where it can stay open, or where no
    /// release meets it.
    ///
    /// # Errors
    ///
    /// When nothing meets it together with what else is asked for, or when something could not be found out.
    fn beginning(
        &self,
        universe: &dyn Universe,
        request: &Request,
        wish: &Requirement,
    ) -> Result<Option<VersionSpec>, Failure>;

    /// What to ask for where a pin is taken back; `before` is what was asked for before the pin.
    fn unpinned(&self, before: Option<VersionSpec>, pinned: &Version) -> Option<VersionSpec>;

    /// Whether a lock that fits the requirements decides which versions are chosen. Otherwise the requirements alone do:
    /// then they also list what only others need, and nothing ever moves to a newer version by itself.
    fn follows_lock(&self) -> bool;

    /// What the user can do about a failure that `request` led to, the least invasive first, at most three. Each was tried
    /// by selecting again; where that takes long, or what is needed to tell cannot be found out, there are fewer.
    fn ways_out(
        &self,
        universe: &dyn Universe,
        request: &Request,
        failure: &Failure,
    ) -> Vec<WayOut>;
}
