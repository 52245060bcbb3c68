//! Chooses versions: from requirements, a lock and rules to one selection, or to the smallest conflict.
//!
//! Does no I/O: it sees a [`crate::index::Universe`]. One trait, [`Strategy`], stands before every engine; they share
//! the graph (`world`), the candidates of a package as a sorted array in which a requirement is a set of positions
//! (`candidates`, `positions`), and the rules that take candidates out (`filters`). A failure is data
//! ([`Conflict`]); `explain` words it, and `ways_out` finds what helps, by trying. The answer depends on the request and the universe alone, in whatever order
//! requirements are written.

mod ahead;
mod candidates;
mod clash;
mod conflict;
mod core;
mod diagnose;
mod effort;
mod explain;
mod filters;
mod fold;
mod highest;
mod minimal;
mod namers;
mod newer;
mod node;
mod outcome;
mod positions;
mod raise;
mod request;
mod selection;
mod stand_ins;
mod supply;
mod trial;
mod unfinished;
mod upgrades;
mod way_out;
mod ways_out;
mod world;

pub use conflict::{CapabilityClash, Clash, Conflict, Fact, ReplacementClash, Requirer};
pub use effort::STEPS;
pub use filters::Rejection;
pub use fold::{Run, Versions};
pub use highest::Highest;
pub use minimal::{Because, COMMAND, Change, Lowered, Minimal, beginning_at};
pub use newer::{Asking, Ceiling, Newer, Obstacle};
pub use request::{
    Exclusion, Local, Locked, Majors, Override, OwnCapabilities, Request, Root, Settings, Update,
};
pub use selection::{
    Asker, CAPABILITY, Chosen, Demand, Failure, Origin, Replaced, Selection, Statistics, Warning,
};
pub use unfinished::Unfinished;
pub use way_out::{Ask, WayOut};

use crate::index::Universe;

/// A way to choose versions.
pub trait Strategy {
    /// Chooses versions such that everything that is required is there.
    ///
    /// # Errors
    ///
    /// [`Failure::Conflict`] when there is no such choice, [`Failure::Unavailable`] when what is needed to tell could not be
    /// found out, [`Failure::Unfinished`] when telling takes more steps than the settings allow.
    fn select(&self, universe: &dyn Universe, request: &Request) -> Result<Selection, Failure>;

    /// What the user can do about a conflict that `request` led to, the least invasive first, at most three. Each was tried
    /// by selecting again; where that takes long, or what is needed to tell cannot be found out, there are fewer.
    fn ways_out(
        &self,
        universe: &dyn Universe,
        request: &Request,
        conflict: &Conflict,
    ) -> Vec<WayOut>;

    /// What the user can do where searching was stopped, at most two things, each tried like a way out of a conflict.
    fn ways_on(
        &self,
        universe: &dyn Universe,
        request: &Request,
        unfinished: &Unfinished,
    ) -> Vec<WayOut>;
}

#[cfg(test)]
mod tests;
