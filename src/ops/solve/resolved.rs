//! What resolving gives: a lock, and what is known of what is new in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use mu_provider::Release;
use rustc_hash::FxHashMap;

use crate::index::Route;
use crate::lock::Lockfile;
use crate::reference::PackageId;

/// A lock that fits the requirements, and how to fetch what is new in it.
#[derive(Debug, Default)]
pub struct Resolved {
    /// The lock as it should be.
    pub lock: Arc<Lockfile>,
    /// The lock as it was.
    pub previous: Arc<Lockfile>,
    /// Where the packages are that were asked for in this run, by their place in `lock.packages`.
    pub releases: FxHashMap<usize, (Arc<Route>, Arc<Release>)>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// The versions that packages move over, step by step.
    pub ways: BTreeMap<PackageId, Vec<String>>,
}

impl Resolved {
    /// Whether the lock on disk is already the right one.
    pub fn is_unchanged(&self) -> bool {
        self.lock == self.previous
    }
}
