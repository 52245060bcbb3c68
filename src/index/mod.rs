//! The index: package ids to releases, fed from providers and kept in a cache.

pub mod releases;
mod universe;

pub use universe::{Candidate, Requirement, Revision, Unavailable, Universe, Untagged};
