//! Why something failed or was passed over, in words, and hints.

mod age;
pub mod carried;
mod details;
pub(crate) mod disk;
pub(crate) mod failure;
pub(crate) mod not_asked_for;
pub(crate) mod other_places;
pub(crate) mod own_conflicts;
pub(crate) mod own_packages;
pub(crate) mod refs;
pub(crate) mod unserved;
mod ways_out;
