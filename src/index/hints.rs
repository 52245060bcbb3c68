//! Packages that will be wanted because a closure says so, asked for at once instead of step by step.
//!
//! A closure is what a hub says: it may be behind, or nonsense. It decides nothing, and no more is asked for
//! because of it than is bounded here.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::guard::lock;
use crate::index::Shared;
use crate::reference::PackageId;

/// How many packages are asked for in a run because of closures, at most.
const MOST: usize = 4_096;

/// After so many that are not there, no others are asked for.
const MOST_IN_VAIN: usize = 32;

/// What was hinted so far.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// The packages that a closure named, or whose own was asked for.
    seen: Mutex<HashSet<PackageId>>,
    followed: AtomicUsize,
    in_vain: AtomicUsize,
}

impl Shared {
    /// Whether the closure of a package that will be wanted is worth asking for: nothing is known of it, and
    /// no other closure has named it yet.
    pub(super) fn is_closure_wanted(&self, id: &PackageId) -> bool {
        !self.options.offline
            && !lock(&self.hints.seen).contains(id)
            && self.unknown_route(id).is_some()
    }

    /// Takes the closure of a package on; `false` if another closure has named it meanwhile.
    pub(super) fn take_closure(&self, id: &PackageId) -> bool {
        lock(&self.hints.seen).insert(id.clone())
    }

    /// The packages that the closure of `id` adds to those that will be wanted.
    pub(super) fn hinted(&self, id: &PackageId) -> Vec<PackageId> {
        let known = |provider: &str, root: &crate::index::SafeUrl| self.is_cached(provider, root);
        let progress = &*self.options.progress;
        let Ok(route) = self.routes.find(id, &known, progress) else { return Vec::new() };
        let Some(prefix) = id.as_str().strip_suffix(route.location.path.as_str()) else {
            return Vec::new();
        };
        let names = route.provider.closure(&route.location, progress);
        let ids = names.iter().filter_map(|name| PackageId::parse(&format!("{prefix}{name}")).ok());
        let mut hinted = Vec::new();
        for id in ids {
            // A hub speaks of its own packages alone.
            let is_its_own = self.unknown_route(&id).is_some_and(|other| {
                (other.provider.name(), &other.location.root)
                    == (route.provider.name(), &route.location.root)
            });
            // Also one that is asked for already needs no closure of its own.
            if is_its_own
                && lock(&self.hints.seen).insert(id.clone())
                && !self.is_known(&id)
                && !(self.options.is_local)(&id)
                && self.hints.followed.fetch_add(1, Ordering::Relaxed) < MOST
            {
                hinted.push(id);
            }
        }
        self.announce(&hinted.iter().collect::<Vec<_>>());
        hinted
    }

    /// Asks for a package that a closure named.
    pub(super) fn follow(&self, id: &PackageId) {
        if self.hints.in_vain.load(Ordering::Relaxed) >= MOST_IN_VAIN {
            return;
        }
        let is_there = self.package(id).is_ok_and(|package| package.releases().tried().is_none());
        if !is_there {
            self.hints.in_vain.fetch_add(1, Ordering::Relaxed);
        }
    }
}
