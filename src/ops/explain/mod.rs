//! Why something failed or was passed over, in words, and hints.

pub mod carried;
mod details;
pub(crate) mod failure;
pub(crate) mod not_asked_for;
pub(crate) mod other_places;
pub(crate) mod own_packages;
pub(crate) mod unserved;
mod ways_out;
