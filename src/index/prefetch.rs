//! Requests ahead of time: for levels of the graph, it uses all threads of the pool for the network, and one
//! of them for the local data of each level, besides one for each registry that has not changed.
//!
//! It decides nothing: if an answer is not there yet, it is requested as if nothing had been requested ahead.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mu_provider::{SafeUrl, Soon};

use crate::index::releases::{Position, Releases};
use crate::index::routes::Route;
use crate::index::shared::Shared;
use crate::index::universe::Candidate;
use crate::reference::PackageId;

/// Fewer packages than this are read without another thread, if they are on this machine.
const MANY: usize = 16;

/// The most packages that a run requests because another may lead to them.
const MOST_GUESSES: usize = 4_096;

/// After this many of them were missing, no others are requested.
const MOST_IN_VAIN: usize = 32;

/// What is known of a package's place without a request.
type Registry = (String, SafeUrl);

impl Shared {
    /// Requests the releases of packages without waiting for the answers; `leads_on` says that their
    /// dependencies will be requested, too.
    pub(super) fn ask_for_releases(self: &Arc<Self>, ids: &[PackageId], leads_on: bool) {
        let (mut here, mut away) = (Vec::new(), Vec::new());
        let mut remembered: HashMap<Registry, Vec<(PackageId, Route)>> = HashMap::new();
        for id in ids {
            if (self.run.options.is_local)(id) || self.is_known(id) {
                continue;
            }
            let route = self.run.routes.known(id, Some(&self.caches));
            match route.and_then(|route| Some((self.times(&route)?, route))) {
                // Its registry must be asked.
                None => away.push(id.clone()),
                Some((times, _)) if self.run.is_fresh_for(id, times) => here.push(id.clone()),
                // One request to its registry may confirm that nothing changed.
                Some((_, route)) => {
                    let registry = (route.provider.name().to_owned(), route.location.root.clone());
                    remembered.entry(registry).or_default().push((id.clone(), route));
                }
            }
        }
        self.announce(&away, leads_on);
        // A single one is requested right away by the thread that needs it.
        if ids.len() == 1 {
            return;
        }
        for id in away {
            self.ask(id);
        }
        for packages in remembered.into_values() {
            let shared = Arc::clone(self);
            self.pool.run(move || shared.ask_for_changed(packages));
        }
        if here.len() >= MANY {
            let shared = Arc::clone(self);
            self.pool.run(move || shared.read_from_the_end(&here));
        }
    }

    /// Requests the requirements of a version, if that needs a request.
    pub(super) fn ask_for_requirements(
        self: &Arc<Self>,
        releases: &Arc<Releases>,
        position: Position,
    ) {
        let package = self.loaded(releases.id());
        if package.is_some_and(|package| package.is_complete()) {
            return;
        }
        let (shared, releases) = (Arc::clone(self), Arc::clone(releases));
        self.pool.run(move || {
            // A failure is kept with the answer, and returned when the answer is needed.
            if let Ok(package) = shared.package(releases.id()) {
                drop(package.requirements(&*shared, Candidate::Release(position)));
            }
        });
    }

    /// Reads the lines of versions from the last on, while another thread reads them from the first on; only
    /// if there are many.
    pub(super) fn read_lines(self: &Arc<Self>, versions: &[(Arc<Releases>, Position)]) {
        if versions.len() < MANY {
            return;
        }
        let (shared, versions) = (Arc::clone(self), versions.to_vec());
        self.pool.run(move || {
            for (releases, position) in versions.iter().rev() {
                let Some(package) = shared.loaded(releases.id()) else { continue };
                // Its own place may say something else.
                let is_hint = package.route.provider.facts().lines_are_hints;
                if !is_hint && package.known_line(*position).is_none() {
                    drop(package.release(Candidate::Release(*position)));
                }
            }
        });
    }

    /// Requests a package in the next free thread.
    fn ask(self: &Arc<Self>, id: PackageId) {
        let shared = Arc::clone(self);
        self.pool.run(move || drop(shared.package(&id)));
    }

    /// Requests the packages of one registry that may have changed in all threads, and reads the others in
    /// this one.
    fn ask_for_changed(self: &Arc<Self>, packages: Vec<(PackageId, Route)>) {
        let mut unchanged = Vec::with_capacity(packages.len());
        for (id, route) in packages {
            if self.is_unchanged(&route) {
                unchanged.push(id);
            } else {
                self.ask(id);
            }
        }
        self.read_from_the_end(&unchanged);
    }

    /// Whether a package is as in its last answer, as far as that can be told without a request for it alone.
    pub(super) fn is_unchanged(&self, Route { provider, location, .. }: &Route) -> bool {
        let cache = self.caches.of(provider.name(), &location.root).ok();
        let validator = cache.and_then(|cache| cache.validator(&location.path));
        validator.is_some_and(|validator| {
            provider.is_unchanged(location, &validator, self.run.progress())
        })
    }

    /// Starts with the last, because the thread that needs them starts with the first; when the two meet, all
    /// are read.
    fn read_from_the_end(&self, ids: &[PackageId]) {
        let unread = ids.iter().rev().take_while(|id| !self.is_known(id));
        unread.for_each(|id| drop(self.package(id)));
    }

    /// When the last answer is from that is in the cache, and for how long it is fresh.
    fn times(&self, Route { provider, location, .. }: &Route) -> Option<(i64, Option<u32>)> {
        self.caches.of(provider.name(), &location.root).ok()?.times(&location.path)
    }

    /// Tells each provider how many packages without cached data will be requested.
    fn announce(&self, ids: &[PackageId], leads_on: bool) {
        let mut unknown: HashMap<Registry, (Route, usize)> = HashMap::new();
        for id in ids {
            if let Some(route) = self.unknown_route(id) {
                let place = (route.provider.name().to_owned(), route.location.root.clone());
                unknown.entry(place).or_insert((route, 0)).1 += 1;
            }
        }
        for (Route { provider, location, .. }, packages) in unknown.into_values() {
            provider.soon(&location, Soon::List { packages, leads_on });
        }
    }

    /// Requests packages that the one at `route` may lead to, when there is nothing else to do.
    pub(super) fn follow(&self, id: &PackageId, route: &Route, names: &[String]) {
        let (Some(prefix), Some(shared)) =
            (id.as_str().strip_suffix(route.location.path.as_str()), self.this.upgrade())
        else {
            return;
        };
        for name in names {
            let Ok(id) = PackageId::parse(&format!("{prefix}{name}")) else { continue };
            // A registry lists only its own packages.
            let is_its_own = self.unknown_route(&id).is_some_and(|other| {
                (other.provider.name(), &other.location.root)
                    == (route.provider.name(), &route.location.root)
            });
            if is_its_own
                && !self.is_known(&id)
                && !(self.run.options.is_local)(&id)
                && self.guesses.made.fetch_add(1, Ordering::Relaxed) < MOST_GUESSES
            {
                let shared = Arc::clone(&shared);
                self.pool.guess(move || shared.try_guess(&id));
            }
        }
    }

    fn try_guess(&self, id: &PackageId) {
        let in_vain = &self.guesses.in_vain;
        if in_vain.load(Ordering::Relaxed) < MOST_IN_VAIN
            && !self.package(id).is_ok_and(|package| package.releases.tried().is_none())
        {
            in_vain.fetch_add(1, Ordering::Relaxed);
        }
    }
}
