//! From requirements to a lock: which versions are chosen, and how they are recorded. Nothing is fetched or
//! written here.

pub mod asking;
pub(crate) mod copies;
mod locked_universe;
pub(crate) mod names;
pub mod narrowed;
pub(crate) mod patches;
pub(crate) mod planning;
pub mod question;
pub(crate) mod record;
pub mod solver;
pub(crate) mod trusted;
mod unstated;
