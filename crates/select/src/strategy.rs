//! The interface of every strategy. Commands know this trait, and no strategy behind it.

use mu_manifest::reference::{Version, VersionSpec};

use crate::universe::{Requirement, Universe};
use crate::{Change, Failure, Move, Selection, SelectionRequest, WayOut};

/// A way to choose versions, and to move them afterwards.
pub trait Strategy {
    /// Chooses versions so that every requirement is met.
    ///
    /// # Errors
    ///
    /// [`Failure::Conflict`] when there is no such choice, [`Failure::Unavailable`] when what is needed to
    /// tell could not be looked up, [`Failure::Unfinished`] when telling takes more steps than the settings
    /// allow.
    fn select(
        &self,
        universe: &dyn Universe,
        request: &SelectionRequest,
    ) -> Result<Selection, Failure>;

    /// The requirements to write so that versions move; `None` if they stay the same, because the lock alone
    /// says which versions are chosen.
    ///
    /// # Errors
    ///
    /// When the requirements cannot be met, when bounds forbid the move, or when something could not be
    /// looked up.
    fn plan(
        &self,
        _universe: &dyn Universe,
        _request: &SelectionRequest,
        _to: Move<'_>,
    ) -> Result<Option<Change>, Failure> {
        Ok(None)
    }

    /// What was selected for `change`, if its requirements are those of `request`, however they are listed.
    fn planned(&self, _change: &Change, _request: &SelectionRequest) -> Option<Selection> {
        None
    }

    /// The version that a new requirement without a version should start at; `None` if it can stay open, or
    /// if no release meets it.
    ///
    /// # Errors
    ///
    /// When nothing meets it together with the other requirements, or when something could not be looked up.
    fn beginning(
        &self,
        _universe: &dyn Universe,
        _request: &SelectionRequest,
        _wish: &Requirement,
    ) -> Result<Option<VersionSpec>, Failure> {
        Ok(None)
    }

    /// What to require after a pin is removed; `before` is the requirement before the pin.
    fn unpinned(&self, before: Option<VersionSpec>, _pinned: &Version) -> Option<VersionSpec> {
        before
    }

    /// Whether a lock that fits the requirements decides which versions are chosen. Otherwise only the
    /// requirements do: then they also list indirect dependencies, and nothing ever moves to a newer version
    /// by itself.
    fn follows_lock(&self) -> bool;

    /// What the user can do about a failure of `request`, the least invasive first, at most three. Each was
    /// tried by selecting again. If that takes long, or something cannot be looked up, there are fewer.
    fn ways_out(
        &self,
        universe: &dyn Universe,
        request: &SelectionRequest,
        failure: &Failure,
    ) -> Vec<WayOut>;
}
