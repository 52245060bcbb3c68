//! Chooses versions: turns requirements, a lock and rules into one selection, or into the smallest conflict.
//!
//! Does no I/O: it sees a [`Universe`], which mu's index is, and whose data is in [`releases`]. One trait, [`Strategy`], is
//! the interface of every engine: what it chooses, how a move changes the requirements, and what helps if it fails. Engines
//! share the graph (`world`), the candidates of a package as a sorted array in which a requirement is a set of positions
//! (`candidates`, `positions`), and the rules that exclude candidates (`filters`). A failure is data ([`Conflict`]); `explain`
//! puts it into words, and `ways_out` finds what helps, by trying. The answer depends only on the request and the universe,
//! not on the order of requirements.
//!
//! It is a separate crate so that it cannot know workspaces, registries or files, and so that it compiles while the providers
//! do.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]

mod candidates;
mod clash;
mod conflict;
mod core;
mod diagnose;
mod effort;
mod explain;
mod filters;
mod improve;
mod minimal;
mod namers;
mod newer;
mod node;
mod plan;
mod positions;
pub mod releases;
mod request;
mod search;
mod selection;
mod strategies;
mod trial;
mod universe;
mod ways_out;
mod world;

pub use clash::{FoldedVersions, VersionRun};
pub use conflict::{
    Ask, CapabilityClash, Clash, Conflict, Fact, ReplacementClash, Requirer, WayOut,
};
pub use effort::{STEPS, Statistics, Unfinished};
pub use filters::{Passed, Rejection, incompatibilities};
pub use newer::{Ceiling, Newer, Obstacle, RequirementByRequirer};
pub use plan::{Because, Change, Lowered, Move, spec_beginning_at};
pub use request::{
    Bundled, CandidateOfLock, Exclusion, InstalledVersion, Local, Majors, Override,
    OwnCapabilities, RootRequirer, SelectionRequest, Settings, StatedCapabilities, Update,
};
pub use selection::{
    Chosen, Demand, Demanded, Failure, Origin, Replaced, RootOrPackage, Selection, SelectionWarning,
};
pub use strategies::{Highest, Minimal, Resolution, Strategy, strategy_named};
pub use universe::{Candidate, GraphLevel, Requirement, Revision, Unavailable, Universe, Untagged};

#[cfg(test)]
mod tests;
