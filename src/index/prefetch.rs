//! Requests ahead of time, in a small pool of threads.
//!
//! [`Prefetcher`], which the index owns, knows what to request. For levels of the graph, it uses all threads of its
//! pool for the network, and one of them for the local data of each level, besides one for each registry that has not
//! changed. [`Pool`] runs these tasks, and does not know what they are. Earlier tasks are done first, by threads that
//! start when there is something to do and end with the index. Nothing waits for the pool and nothing is decided here:
//! if an answer is not there yet, it is requested as if nothing had been requested ahead.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};

use mu_provider::threads::lock;
use mu_provider::{Lead, LineTrust, Soon};

use crate::index::cache;
use crate::index::package::Package;
use crate::index::routes::Route;
use crate::index::run::IndexOptions;
use crate::index::shared::SharedIndex;
use crate::reference::PackageId;
use crate::select::releases::{Position, Releases};
use crate::select::{Candidate, GraphLevel};

/// Fewer packages than this are read without another thread, if they are on this machine.
const MANY: usize = 16;

/// The most packages that a run requests because another may lead to them.
const MOST_GUESSES: usize = 4_096;

/// After this many guessed packages were missing, no others are requested because of a guess.
const MOST_IN_VAIN: usize = 32;

/// What is known of a package's place without a request.
type Registry = (String, Lead);

/// Requests what will be needed, in threads of its own.
#[derive(Debug)]
pub(super) struct Prefetcher {
    pub(super) shared: Arc<SharedIndex>,
    pub(super) pool: Pool,
    /// How many packages were requested because another may lead to them.
    guesses: AtomicUsize,
    /// How many of the guessed packages were missing.
    in_vain: AtomicUsize,
}

impl Prefetcher {
    /// Creates a prefetcher that has requested nothing yet.
    pub(super) fn new(options: IndexOptions) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            pool: Pool::new(options.jobs),
            shared: Arc::new(SharedIndex::new(options, Weak::clone(this))),
            guesses: AtomicUsize::new(0),
            in_vain: AtomicUsize::new(0),
        })
    }

    /// Requests what a level of the graph needs, without waiting for the answers.
    pub(super) fn prefetch_level(self: &Arc<Self>, level: GraphLevel<'_>) {
        match level {
            GraphLevel::Releases(ids) => self.prefetch_releases(ids, true),
            GraphLevel::Requirements(versions) => {
                for (releases, position) in versions {
                    self.ask_for_requirements(releases, *position);
                }
            }
            GraphLevel::Chosen(versions) => self.read_lines(versions),
        }
    }

    /// Requests the releases of packages without waiting for the answers; `leads_on` says that their
    /// dependencies will be requested, too.
    pub(super) fn prefetch_releases(self: &Arc<Self>, ids: &[PackageId], leads_on: bool) {
        let shared = &self.shared;
        let (mut here, mut away) = (Vec::new(), Vec::new());
        let mut remembered: HashMap<Registry, Vec<(PackageId, Route)>> = HashMap::new();
        for id in ids {
            if (shared.run.options.is_local)(id) || shared.is_known(id) {
                continue;
            }
            let route = shared.run.routes.known(id, Some(&shared.caches));
            match route.and_then(|route| Some((self.times(&route)?, route))) {
                // Its registry must be asked.
                None => away.push(id.clone()),
                Some((times, _)) if shared.run.is_fresh_for(id, times) => here.push(id.clone()),
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
            let prefetcher = Arc::clone(self);
            self.pool.run(move || prefetcher.ask_for_changed(packages));
        }
        if here.len() >= MANY {
            let prefetcher = Arc::clone(self);
            self.pool.run(move || prefetcher.read_from_the_end(&here));
        }
    }

    /// Requests the requirements of a version, if that needs a request.
    fn ask_for_requirements(&self, releases: &Arc<Releases>, position: Position) {
        let package = self.shared.loaded(releases.id());
        if package.is_some_and(|package| package.has_known_requirements()) {
            return;
        }
        let (shared, releases) = (Arc::clone(&self.shared), Arc::clone(releases));
        self.pool.run(move || {
            // A failure is kept with the answer, and returned when the answer is needed.
            if let Ok(package) = shared.package(releases.id()) {
                drop(package.requirements(&*shared, Candidate::Release(position)));
            }
        });
    }

    /// Reads the lines of versions in another thread, only if there are many: what the cache file has of them at once, and then each from the
    /// last on, while the thread that needs them reads them from the first on.
    fn read_lines(&self, versions: &[(Arc<Releases>, Position)]) {
        if versions.len() < MANY {
            return;
        }
        let (shared, versions) = (Arc::clone(&self.shared), versions.to_vec());
        self.pool.run(move || {
            let unread = versions.iter().filter_map(|(releases, position)| {
                let package = shared.loaded(releases.id())?;
                // Its own place may say something else.
                let is_hint = package.route.provider.facts().lines == LineTrust::Hint;
                let is_unread = !is_hint && package.known_line(*position).is_none();
                is_unread.then_some((package, *position))
            });
            let unread: Vec<(Arc<Package>, Position)> = unread.collect();
            cache::read_ahead(
                unread.iter().filter_map(|(package, position)| package.place_of_line(*position)),
            );
            for (package, position) in unread.iter().rev() {
                if package.known_line(*position).is_none() {
                    drop(package.release(Candidate::Release(*position)));
                }
            }
        });
    }

    /// Requests a package in the next free thread.
    fn ask(&self, id: PackageId) {
        let shared = Arc::clone(&self.shared);
        self.pool.run(move || drop(shared.package(&id)));
    }

    /// Requests the packages of one registry that may have changed in all threads, and reads the others in
    /// this one.
    fn ask_for_changed(&self, packages: Vec<(PackageId, Route)>) {
        let mut unchanged = Vec::with_capacity(packages.len());
        for (id, route) in packages {
            if self.shared.is_unchanged_since_answer(&route) {
                unchanged.push(id);
            } else {
                self.ask(id);
            }
        }
        self.read_from_the_end(&unchanged);
    }

    /// Starts with the last, because the thread that needs them starts with the first; when the two meet, all
    /// are read.
    fn read_from_the_end(&self, ids: &[PackageId]) {
        let unread = ids.iter().rev().take_while(|id| !self.shared.is_known(id));
        unread.for_each(|id| drop(self.shared.package(id)));
    }

    /// When the last answer is from that is in the cache, and for how long it is fresh.
    fn times(&self, Route { provider, location, .. }: &Route) -> Option<(i64, Option<u32>)> {
        self.shared
            .caches
            .cache_of_registry(provider.name(), &location.root)
            .ok()?
            .times(&location.path)
    }

    /// The most likely place of a package, if nothing of it is in the cache.
    fn unknown_route(&self, id: &PackageId) -> Option<Route> {
        let SharedIndex { run, caches, .. } = &*self.shared;
        let route = run.routes.presumed(id, Some(caches))?;
        let cache = caches.cache_of_registry(route.provider.name(), &route.location.root).ok()?;
        cache.times(&route.location.path).is_none().then_some(route)
    }

    /// Tells each provider which packages without cached data will be requested.
    fn announce(&self, ids: &[PackageId], leads_on: bool) {
        let mut unknown: HashMap<Registry, (Route, Vec<String>)> = HashMap::new();
        for id in ids {
            if let Some(route) = self.unknown_route(id) {
                let place = (route.provider.name().to_owned(), route.location.root.clone());
                let path = route.location.path.clone();
                unknown.entry(place).or_insert_with(|| (route, Vec::new())).1.push(path);
            }
        }
        for (Route { provider, location, .. }, packages) in unknown.into_values() {
            provider.soon(&location, Soon::List { packages: &packages, leads_on });
        }
    }

    /// Requests packages that the one at `route` may lead to, when there is nothing else to do.
    pub(super) fn prefetch_leads(
        self: &Arc<Self>,
        id: &PackageId,
        route: &Route,
        names: &[String],
    ) {
        let Some(prefix) = id.as_str().strip_suffix(route.location.path.as_str()) else { return };
        for name in names {
            let Ok(id) = PackageId::parse(&format!("{prefix}{name}")) else { continue };
            // A registry lists only its own packages.
            let is_its_own = self.unknown_route(&id).is_some_and(|other| {
                (other.provider.name(), &other.location.root)
                    == (route.provider.name(), &route.location.root)
            });
            if is_its_own
                && !self.shared.is_known(&id)
                && !(self.shared.run.options.is_local)(&id)
                && self.guesses.fetch_add(1, Ordering::Relaxed) < MOST_GUESSES
            {
                let prefetcher = Arc::clone(self);
                self.pool.run_when_idle(move || prefetcher.try_guess(&id));
            }
        }
    }

    fn try_guess(&self, id: &PackageId) {
        if self.in_vain.load(Ordering::Relaxed) < MOST_IN_VAIN
            && !self.shared.package(id).is_ok_and(|package| package.releases.tried().is_none())
        {
            self.in_vain.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A task.
type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    /// Tasks for when there is nothing else.
    guesses: VecDeque<Task>,
    idle: usize,
    closed: bool,
}

/// The pool of one index.
pub(super) struct Pool(Arc<Desk>);

struct Desk {
    queue: Mutex<Queue>,
    changed: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
    limit: usize,
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").field("limit", &self.0.limit).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool of at most `limit` threads.
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Desk {
            queue: Mutex::default(),
            changed: Condvar::new(),
            threads: Mutex::default(),
            limit: limit.max(1),
        }))
    }

    /// Runs a task in the next free thread.
    pub(super) fn run(&self, task: impl FnOnce() + Send + 'static) {
        self.put(|queue| queue.tasks.push_back(Box::new(task)));
    }

    /// Runs a task when there is nothing else to do, unless it is dropped before.
    fn run_when_idle(&self, task: impl FnOnce() + Send + 'static) {
        self.put(|queue| queue.guesses.push_back(Box::new(task)));
    }

    /// Drops the tasks of this kind that have not started.
    pub(super) fn drop_guesses(&self) {
        lock(&self.0.queue).guesses.clear();
    }

    /// Queues a task, and wakes a thread for it, or starts one if all are busy.
    fn put(&self, put: impl FnOnce(&mut Queue)) {
        let mut queue = lock(&self.0.queue);
        if queue.closed {
            return;
        }
        put(&mut queue);
        self.0.changed.notify_one();
        let mut threads = lock(&self.0.threads);
        if queue.tasks.len() + queue.guesses.len() > queue.idle && threads.len() < self.0.limit {
            let desk = Arc::clone(&self.0);
            // If the system cannot start another thread, the existing ones do it, or the thread that needs
            // the answer.
            threads.extend(Builder::new().spawn(move || desk.work()).ok());
        }
    }

    /// Ends the threads, each after its current task.
    pub(super) fn end(&self) {
        let mut queue = lock(&self.0.queue);
        queue.closed = true;
        queue.tasks.clear();
        queue.guesses.clear();
        drop(queue);
        self.0.changed.notify_all();
        // No new task is started from now on.
        let threads = std::mem::take(&mut *lock(&self.0.threads));
        for thread in threads {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn work(&self) {
        while let Some(task) = self.next() {
            task();
        }
    }

    fn next(&self) -> Option<Task> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return None;
            }
            if let Some(task) = queue.tasks.pop_front() {
                return Some(task);
            }
            if let Some(guess) = queue.guesses.pop_front() {
                return Some(guess);
            }
            queue.idle += 1;
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}
