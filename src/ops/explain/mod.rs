//! Why something failed or was passed over, in words, and hints.

pub mod carried;
mod details;
pub(crate) mod failure;
pub(crate) mod places;
pub(crate) mod unserved;
pub(crate) mod untrusted;
mod ways_out;
