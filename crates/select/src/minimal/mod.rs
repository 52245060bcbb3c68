//! Minimal version selection, after Russ Cox: every requirement means its lowest match, and each package gets
//! the highest of the matches that are reachable from the roots.
//!
//! Needs no search and no lock: the same requirements give the same versions, whatever is published later.
//! Upper bounds choose nothing; they are checked at the end. Requirements are the only state, so a move is a
//! change of requirements (`moves`).

pub(super) mod build;
pub(super) mod check;
mod downgrade;
mod facts;
pub(super) mod moves;
pub(super) mod providers;
pub(super) mod replaced;
pub(super) mod requirements;
pub(super) mod select;
