//! What is asked before it is needed: what is far away by all threads of the pool, and what is at hand by one of them.
//!
//! Decides nothing: whoever needs an answer that is not there yet gets it as if nothing had been asked ahead.

use std::collections::HashMap;
use std::sync::Arc;

use mu_provider::{Provider, SafeUrl};

use crate::index::pool::Question;
use crate::index::releases::{Position, Releases};
use crate::index::{Index, Shared};
use crate::reference::PackageId;

/// Less than this is read without another thread, if it is at hand.
const MANY: usize = 16;

impl Index {
    /// Asks for the releases of packages without waiting for the answers; returns those that somebody had to be
    /// asked about in this run.
    pub fn ask_ahead<'id>(&self, ids: &'id [PackageId]) -> Vec<&'id PackageId> {
        let shared = &self.shared;
        let others = ids.iter().filter(|id| !(shared.options.is_local)(id));
        let (at_hand, distant): (Vec<_>, Vec<_>) = others.partition(|id| shared.is_at_hand(id));
        // What is on this disk and fresh is read by whoever needs it, and only much of it ahead of need.
        if at_hand.len() >= MANY {
            self.pool.ask(Question::AtHand(at_hand.into_iter().cloned().collect()));
        }
        let asked: Vec<&PackageId> =
            distant.iter().copied().filter(|id| !shared.is_known(id)).collect();
        shared.announce(&asked);
        for id in asked {
            self.pool.ask(Question::Releases(id.clone()));
        }
        distant
    }

    /// Reads the lines of versions without waiting for them, if there are many.
    pub(super) fn read_ahead(&self, versions: &[(Arc<Releases>, Position)]) {
        if versions.len() >= MANY {
            self.pool.ask(Question::Lines(versions.to_vec()));
        }
    }
}

impl Shared {
    /// Whether all that can be known of a package is in the cache, and fresh.
    fn is_at_hand(&self, id: &PackageId) -> bool {
        let Some(route) = self.routes.known(id, &|provider, root| self.is_cached(provider, root))
        else {
            return false;
        };
        let name = &route.location.path;
        self.cache(route.provider.name(), &route.location.root).is_ok_and(|cache| {
            cache.times(name).is_some_and(|(checked, max_age)| {
                self.options.offline || self.is_fresh(checked, max_age)
            })
        })
    }

    /// Tells each provider how many packages it will be asked for of which nothing is in the cache.
    pub(super) fn announce(&self, ids: &[&PackageId]) {
        let mut unknown: HashMap<(String, SafeUrl), (Arc<dyn Provider>, usize)> = HashMap::new();
        for id in ids {
            if let Some(route) = self.unknown_route(id) {
                let place = (route.provider.name().to_owned(), route.location.root);
                unknown.entry(place).or_insert((route.provider, 0)).1 += 1;
            }
        }
        for ((_, root), (provider, packages)) in unknown {
            provider.expect(&root, packages);
        }
    }
}
