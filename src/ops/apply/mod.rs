//! From a lock to packs on disk: fetching, installing, and the edits of manifests that go with it.

pub(crate) mod dependencies;
pub(crate) mod development;
pub(crate) mod edited;
pub(crate) mod element;
pub mod fetch;
pub(crate) mod helmignore;
mod identity;
pub mod install;
mod kinds;
pub(crate) mod outcome;
pub(crate) mod patched;
pub(crate) mod plan;
pub(crate) mod rewrite;
pub(crate) mod written;
