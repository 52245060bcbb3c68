//! From a lock to packs on disk: fetching, installing, and the edits of manifests that go with it.

pub(crate) mod dependencies;
pub(crate) mod draft;
pub(crate) mod edited;
pub(crate) mod element;
pub mod fetch;
mod identity;
pub mod install;
pub(crate) mod kinds;
pub(crate) mod outcome;
pub(crate) mod patched;
pub(crate) mod rewrite;
pub(crate) mod transaction;
pub(crate) mod written;
