//! The strategies: the interface of all, the two that there are, and which of them the settings name. Commands know only
//! [`Strategy`], and no strategy behind it.
//!
//! The default one is [`Highest`]: the newest versions that fit together, found by a complete search. Its state is the lock: a
//! locked version stays as long as it fits, so no move changes a manifest. Without a lock, direct dependencies are raised after
//! the search (`improve`), because the search first decides whatever conflicts most, direct or not.
//!
//! [`Minimal`] is described where its parts are, in `minimal`.

use mu_manifest::choice;
use mu_manifest::reference::{Version, VersionSpec};

use crate::minimal::{self, moves};
use crate::node::NodeKind;
use crate::plan::spec_beginning_at;
use crate::search::Verdict;
use crate::universe::{Requirement, Universe};
use crate::world::{World, explore, look_ahead, unfinished};
use crate::{
    Change, Failure, Move, Selection, SelectionRequest, WayOut, core, diagnose, improve, search,
    selection, ways_out,
};

choice! {
    /// How versions are chosen.
    #[derive(Default)]
    pub enum Resolution {
        /// The newest versions that fit together.
        #[default]
        Highest = "highest",
        /// The lowest versions that satisfy every minimum.
        Minimal = "minimal",
    }
}

/// The strategy of a name.
pub fn strategy_named(resolution: Resolution) -> &'static dyn Strategy {
    match resolution {
        Resolution::Highest => &Highest,
        Resolution::Minimal => &Minimal,
    }
}

/// The newest versions that fit together, direct dependencies preferred, found by a complete search.
#[derive(Debug, Clone, Copy, Default)]
pub struct Highest;

impl Strategy for Highest {
    fn select(
        &self,
        universe: &dyn Universe,
        request: &SelectionRequest,
    ) -> Result<Selection, Failure> {
        let mut world = World::new(universe, request);
        look_ahead(&mut world)?;
        answer(&mut world)
    }

    fn follows_lock(&self) -> bool {
        true
    }

    fn ways_out(
        &self,
        universe: &dyn Universe,
        request: &SelectionRequest,
        failure: &Failure,
    ) -> Vec<WayOut> {
        ways_out::of_highest(universe, request, failure)
    }
}

/// Searches, and searches again if exploring more may help.
pub(super) fn answer(world: &mut World<'_>) -> Result<Selection, Failure> {
    loop {
        match search::solve(world, usize::MAX)? {
            Verdict::Chosen(chosen) => return gather(world, chosen),
            // Packages that nothing has led to yet may still help: then the search starts again.
            Verdict::Refuted(proof) if explore(world, &core::reached_nodes(&proof))? => {}
            Verdict::Refuted(proof) => {
                return Err(Failure::Conflict(Box::new(diagnose::conflict(world, &proof)?)));
            }
            Verdict::GivenUp => return Err(Failure::Unfinished(Box::new(unfinished(world)))),
        }
    }
}

/// The result of a search, after direct dependencies were raised and unneeded providers left out.
fn gather(world: &mut World<'_>, chosen: search::Choices) -> Result<Selection, Failure> {
    let chosen = improve::raise(world, chosen)?;
    let chosen = improve::fewest(world, chosen)?;
    let packages = chosen.iter().filter_map(|(&node, &position)| {
        let is_package = matches!(world.kind(node), NodeKind::Versions(_));
        is_package.then_some((world.place(node)?, position))
    });
    world.packages.expect_chosen(packages);
    Ok(selection::gather_selection(world, &|node| chosen.get(&node).copied(), &[])?)
}

/// The lowest versions that meet everything reachable.
#[derive(Debug, Clone, Copy, Default)]
pub struct Minimal;

impl Strategy for Minimal {
    fn select(
        &self,
        universe: &dyn Universe,
        request: &SelectionRequest,
    ) -> Result<Selection, Failure> {
        minimal::select_lowest(universe, request)
    }

    fn plan(
        &self,
        universe: &dyn Universe,
        request: &SelectionRequest,
        to: Move<'_>,
    ) -> Result<Option<Change>, Failure> {
        moves::plan(universe, request, to).map(Some)
    }

    fn planned(&self, change: &Change, request: &SelectionRequest) -> Option<Selection> {
        change.answer(&minimal::without_lock(request))
    }

    fn beginning(
        &self,
        universe: &dyn Universe,
        request: &SelectionRequest,
        wish: &Requirement,
    ) -> Result<Option<VersionSpec>, Failure> {
        moves::beginning(universe, request, wish)
    }

    fn unpinned(&self, before: Option<VersionSpec>, pinned: &Version) -> Option<VersionSpec> {
        Some(spec_beginning_at(before.as_ref(), pinned))
    }

    fn follows_lock(&self) -> bool {
        false
    }

    fn ways_out(
        &self,
        universe: &dyn Universe,
        request: &SelectionRequest,
        failure: &Failure,
    ) -> Vec<WayOut> {
        ways_out::of_minimal(universe, request, failure)
    }
}

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
