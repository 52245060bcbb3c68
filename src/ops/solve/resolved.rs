//! The result of resolving: a lock, and what is known about its new entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mu_provider::Release;
use rustc_hash::FxHashMap;

use crate::index::Route;
use crate::lock::{LockedPackage, Lockfile};
use crate::reference::PackageId;

/// A lock that fits the requirements, and how to fetch its new packages.
#[derive(Debug, Default)]
pub struct Resolved {
    /// The lock as it should be.
    pub lock: Arc<Lockfile>,
    /// The previous lock.
    pub previous: Arc<Lockfile>,
    /// The routes of the packages that were looked up in this run, by their place in `lock.packages`.
    pub releases: FxHashMap<usize, (Arc<Route>, Arc<Release>)>,
    /// The packages that are locked and not installed, by their place in `lock.packages`.
    pub left_out: BTreeSet<usize>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The versions that packages move through, step by step.
    pub ways: BTreeMap<PackageId, Vec<String>>,
}

impl Resolved {
    /// Whether the lock on disk is already the right one.
    pub fn is_lock_current(&self) -> bool {
        self.lock == self.previous || self.lock.is_empty() && self.previous.is_empty()
    }

    /// What was built of a package stays known as long as its content stays.
    pub(super) fn keep_built(&mut self) {
        let is_built = |package: &LockedPackage| package.built.is_some();
        if !self.previous.packages.iter().any(is_built) {
            return;
        }
        for package in &mut Arc::make_mut(&mut self.lock).packages {
            let mut before = self.previous.find(&package.id);
            let is_it = |before: &&LockedPackage| {
                let is_same = package.digest.is_none() || before.digest == package.digest;
                let is_same = is_same && before.patch == package.patch;
                before.version == package.version
                    && before.revision() == package.revision()
                    && is_same
            };
            package.built = before.find(is_it).and_then(|before| before.built);
        }
    }
}
