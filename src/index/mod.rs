//! The index: from a package's id to its releases and their requirements, from whichever provider
//! serves it, remembered on disk and in memory.
//!
//! This is where selection's questions become I/O. Each package is asked for once a run, however many
//! threads want it; what will be wanted soon is fetched ahead by a small pool. Which version to choose
//! is not decided here.

// What registries say, and what lies in the cache, leads to no place that nobody looked at.
#![deny(clippy::indexing_slicing)]

mod cache;
mod error;
mod known;
mod limit;
mod package;
mod pool;
mod prefetch;
mod providers;
pub mod releases;
mod routes;
mod sibling;
mod similar;
mod universe;
mod wanted;
mod wire;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use mu_provider::{Found, Progress, Release, SafeUrl};
use rustc_hash::FxHashMap;

use crate::fs::FileError;
use crate::guard::lock;
use crate::index::cache::{Cache, Record};
use crate::index::error::PackageError;
use crate::index::known::Known;
use crate::index::package::Package;
use crate::index::pool::Pool;
use crate::index::prefetch::Guesses;
use crate::index::releases::Releases;
use crate::index::routes::Routes;
use crate::index::wanted::Wanted;
use crate::manifest::Manifest;
use crate::reference::{Defaults, PackageId, Reference, VersionSpec};
use crate::workspace::Registry;

pub use self::error::{Cause, cause};
pub use self::limit::MOST_PACKAGES;
pub use self::routes::{Providers, Route, RouteError};
pub use self::similar::nearest;
pub use self::universe::{
    Candidate, Level, Requirement, Revision, Unavailable, Universe, Untagged,
};
pub use self::wire::moved_to;

/// How the index behaves.
pub struct IndexOptions {
    /// The providers there are.
    pub providers: Providers,
    /// The registries of the settings.
    pub registries: Vec<Registry>,
    /// What references in the manifests of folders leave out.
    pub defaults: Defaults,
    /// Packages that are used instead of others, and those others.
    pub instead_of: HashMap<PackageId, PackageId>,
    /// Whether a package is found in the workspace, whatever registries say.
    pub is_local: Box<dyn Fn(&PackageId) -> bool + Send + Sync>,
    /// What is installed of a package, for [`Index::use_installed`].
    pub installed: Installed,
    /// The cache folder.
    pub cache: PathBuf,
    /// Whether only the cache may be asked.
    pub offline: bool,
    /// Whether plain http to other machines is allowed.
    pub allow_insecure: bool,
    /// Whether it matters when versions were published.
    pub dated: bool,
    /// Now, in seconds since 1970.
    pub now: i64,
    /// How many questions are asked at once.
    pub jobs: usize,
    /// How many packages may be asked for, as [`MOST_PACKAGES`].
    pub most: usize,
    /// Receives waits and warnings.
    pub progress: Arc<dyn Progress>,
    /// Is told how many packages have answered, of how many that were asked about.
    pub answered: Box<dyn Fn(usize, usize) + Send + Sync>,
}

/// Tells the releases that are installed of a package.
pub type Installed = Box<dyn Fn(&PackageId) -> Vec<Release> + Send + Sync>;

/// The index of one run.
#[derive(Debug)]
pub struct Index {
    shared: Arc<Shared>,
}

/// What the run and its pool share.
pub(crate) struct Shared {
    /// Itself, for what the pool does.
    this: Weak<Self>,
    pool: Pool,
    options: IndexOptions,
    routes: Routes,
    caches: Mutex<FxHashMap<SafeUrl, CachesAt>>,
    packages: Mutex<FxHashMap<PackageId, Arc<Slot>>>,
    providers: Mutex<HashMap<providers::Question, Arc<[PackageId]>>>,
    asked: AtomicUsize,
    answered: AtomicUsize,
    met_local: Mutex<BTreeSet<PackageId>>,
    similar: Mutex<HashMap<PackageId, Vec<PackageId>>>,
    wanted: Wanted,
    guesses: Guesses,
    known: Known,
    uses_installed: AtomicBool,
    /// Why nobody is asked any more.
    first_too_many: OnceLock<Arc<PackageError>>,
}

/// A registry's cache, opened when it is first needed.
type CacheSlot = OnceLock<Result<Arc<Cache>, Arc<FileError>>>;

/// The caches of the registries with one root, by provider.
type CachesAt = Vec<(String, Arc<CacheSlot>)>;

/// A package that was asked for; whoever asks second waits for the first.
type Slot = OnceLock<Result<Arc<Package>, Arc<PackageError>>>;

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Index").field("routes", &self.routes).finish_non_exhaustive()
    }
}

impl Index {
    /// An index that has asked nothing yet.
    pub fn new(mut options: IndexOptions) -> Self {
        let routes = Routes::new(
            std::mem::take(&mut options.providers),
            std::mem::take(&mut options.registries),
            options.allow_insecure,
            options.dated,
        );
        let shared = Arc::new_cyclic(|this| Shared {
            this: Weak::clone(this),
            pool: Pool::new(options.jobs),
            options,
            routes,
            caches: Mutex::default(),
            packages: Mutex::default(),
            providers: Mutex::default(),
            asked: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            met_local: Mutex::default(),
            similar: Mutex::default(),
            wanted: Wanted::default(),
            guesses: Guesses::default(),
            known: Known::default(),
            uses_installed: AtomicBool::new(false),
            first_too_many: OnceLock::new(),
        });
        Self { shared }
    }

    /// Remembers where `reference` says that its package is, and what it asks of it; local folders are
    /// relative to `from`.
    pub fn declare(&self, id: &PackageId, reference: &Reference, from: &Path) {
        self.shared.declare(id, reference, from);
    }

    /// The releases of a package as its registry lists them now, even if nothing but commits that are on
    /// this machine was asked of it.
    ///
    /// # Errors
    ///
    /// When it could not be found out.
    pub fn listed(&self, id: &PackageId) -> Result<Arc<Releases>, Unavailable> {
        self.shared.wanted.note(id, &VersionSpec::Latest);
        self.forget_recalled();
        self.releases(id)
    }

    /// Forgets what was recalled without asking, where more than commits were asked since; says whether
    /// there was anything. Whoever has its releases must begin anew.
    pub fn forget_recalled(&self) -> bool {
        let mut packages = lock(&self.shared.packages);
        let before = packages.len();
        packages.retain(|id, slot| {
            let is_recalled = matches!(slot.get(), Some(Ok(package)) if package.is_recalled());
            !is_recalled || self.shared.wanted.commits_alone(id).is_some()
        });
        packages.len() < before
    }

    /// What must be written to come to `id` again, where its id alone does not lead there.
    pub fn written(&self, id: &PackageId) -> Option<String> {
        self.shared.routes.written(id)
    }

    /// The provider with this name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn providers(&self) -> &Providers {
        self.shared.routes.providers()
    }

    /// The registry of the settings that serves `id`, and what is left of the id below it.
    pub fn registry<'id>(&self, id: &'id PackageId) -> Option<(&Registry, &'id str)> {
        self.shared.routes.registry(id)
    }

    /// Where packages can be looked for by words: the registries of the settings and the base of references
    /// without one, each with what the ids of its packages begin with.
    pub fn registries(&self) -> Vec<(String, Result<Route, RouteError>)> {
        self.shared.routes.registries(&self.shared.options.defaults.base)
    }

    /// Where a package is, whether or not it has versions.
    ///
    /// # Errors
    ///
    /// When the package cannot be asked for.
    pub fn route(&self, id: &PackageId) -> Result<Arc<Route>, Unavailable> {
        Ok(Arc::clone(self.shared.package(id)?.route()))
    }

    /// Where a candidate is, and what is known of it: all that fetching it needs.
    ///
    /// # Errors
    ///
    /// When the package cannot be asked for, or its line cannot be read.
    pub fn release(
        &self,
        id: &PackageId,
        candidate: Candidate<'_>,
    ) -> Result<(Arc<Route>, Arc<Release>), Unavailable> {
        let package = self.shared.package(id)?;
        package.release(candidate).map_err(|error| unavailable(id, error))
    }

    /// The releases of a package in its registry, whether or not the workspace has one of its own.
    ///
    /// # Errors
    ///
    /// When it could not be found out.
    pub fn published(&self, id: &PackageId) -> Result<Arc<Releases>, Unavailable> {
        Ok(Arc::clone(self.shared.package(id)?.releases()))
    }

    /// The manifest of a candidate, where its place can show it without being fetched whole; a hub cannot,
    /// and says in its index what matters.
    ///
    /// # Errors
    ///
    /// When the candidate cannot be asked for, or its manifest cannot be read.
    pub fn manifest(
        &self,
        id: &PackageId,
        candidate: Candidate<'_>,
    ) -> Result<Option<Manifest>, Unavailable> {
        let package = self.shared.package(id)?;
        let (_, release) = package.release(candidate).map_err(|error| unavailable(id, error))?;
        package.manifest(&self.shared, &release).map_err(|error| unavailable(id, error))
    }

    /// The packages of the workspace that were asked for since this was last called.
    ///
    /// The index does not answer for them: who asks must know of them, and ask again without.
    pub fn take_met_local(&self) -> BTreeSet<PackageId> {
        std::mem::take(&mut *lock(&self.shared.met_local))
    }

    /// From now on, takes what is installed for all there is of packages that only the network knows more of.
    pub fn use_installed(&self) {
        self.shared.uses_installed.store(true, Ordering::SeqCst);
        // Whoever could not be asked is looked for again.
        lock(&self.shared.packages).retain(|_, slot| !matches!(slot.get(), Some(Err(_))));
    }

    /// Asks no more for what packages may lead to: the choice is made.
    pub fn forget_guesses(&self) {
        self.shared.pool.forget_guesses();
    }

    /// Writes what was learned to the cache folder.
    ///
    /// # Errors
    ///
    /// When the disk refuses; nothing but time is lost then.
    pub fn save(&self) -> Result<(), FileError> {
        let caches = lock(&self.shared.caches);
        for (_, cache) in caches.values().flatten() {
            if let Some(Ok(cache)) = cache.get() {
                cache.save()?;
            }
        }
        Ok(())
    }
}

impl Universe for Index {
    fn releases(&self, id: &PackageId) -> Result<Arc<Releases>, Unavailable> {
        if (self.shared.options.is_local)(id) {
            lock(&self.shared.met_local).insert(id.clone());
            return Err(unavailable(id, "it is in the workspace".to_owned()));
        }
        Ok(Arc::clone(self.shared.package(id)?.releases()))
    }

    fn revision(
        &self,
        releases: &Releases,
        name: &VersionSpec,
    ) -> Result<Option<Revision>, Unavailable> {
        let id = releases.id();
        let package = self.shared.package(id)?;
        package.revision(&self.shared, name).map_err(|error| unavailable(id, error))
    }

    fn requirements(
        &self,
        releases: &Releases,
        candidate: Candidate<'_>,
    ) -> Result<Arc<[Arc<Requirement>]>, Unavailable> {
        let id = releases.id();
        let package = self.shared.package(id)?;
        package.requirements(&self.shared, candidate).map_err(|error| unavailable(id, error))
    }

    fn expect(&self, level: Level<'_>) {
        self.ask_ahead(level);
    }

    fn similar(&self, id: &PackageId) -> Vec<PackageId> {
        self.shared.similar(id)
    }

    fn declared(
        &self,
        releases: &Releases,
        candidate: Candidate<'_>,
    ) -> Result<Option<Arc<releases::Details>>, Unavailable> {
        let id = releases.id();
        let package = self.shared.package(id)?;
        package.declared(&self.shared, candidate).map_err(|error| unavailable(id, error))
    }

    fn providing(
        &self,
        capability: &str,
        near: &PackageId,
    ) -> Result<Arc<[PackageId]>, Unavailable> {
        self.shared.providers(capability, near).map_err(|error| unavailable(near, error))
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.shared.pool.end();
    }
}

fn unavailable(
    id: &PackageId,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Unavailable {
    Unavailable { id: id.clone(), source: source.into() }
}

impl Shared {
    fn declare(&self, id: &PackageId, reference: &Reference, from: &Path) {
        self.routes.declare(id, reference, from);
        self.wanted.note(id, &reference.spec());
    }

    /// Remembers that `id` is asked for at `commit`, out of the repository that `from` is in.
    fn declare_beside(&self, id: &PackageId, from: &PackageId, commit: &VersionSpec) {
        self.routes.inherit(id, from);
        self.wanted.note(id, commit);
    }

    fn is_known(&self, id: &PackageId) -> bool {
        lock(&self.packages).contains_key(id)
    }

    /// The package, if it was asked for and has answered.
    fn loaded(&self, id: &PackageId) -> Option<Arc<Package>> {
        lock(&self.packages).get(id)?.get()?.as_ref().ok().cloned()
    }

    /// Where a package most likely is, if nothing of it is in the cache.
    fn unknown_route(&self, id: &PackageId) -> Option<Route> {
        let known = |provider: &str, root: &SafeUrl| self.is_cached(provider, root);
        let route = self.routes.presumed(id, &known)?;
        let cache = self.cache(route.provider.name(), &route.location.root).ok()?;
        cache.times(&route.location.path).is_none().then_some(route)
    }

    /// Whether anything of a registry is in the cache.
    fn is_cached(&self, provider: &str, root: &SafeUrl) -> bool {
        self.cache(provider, root).is_ok_and(|cache| !cache.is_empty())
    }

    /// The package, asked for at most once.
    fn package(&self, id: &PackageId) -> Result<Arc<Package>, Unavailable> {
        let slot = {
            let mut packages = lock(&self.packages);
            let known = packages.get(id).cloned();
            known.unwrap_or_else(|| Arc::clone(packages.entry(id.clone()).or_default()))
        };
        let result = slot.get_or_init(|| {
            let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
            if asked > self.options.most {
                return Err(self.too_many(id));
            }
            (self.options.answered)(self.answered.load(Ordering::Relaxed), asked);
            let loaded = self.load(id).map(|package| package.at_turn(asked));
            let result = loaded.map(Arc::new).map_err(Arc::new);
            let answered = self.answered.fetch_add(1, Ordering::Relaxed) + 1;
            (self.options.answered)(answered, self.asked.load(Ordering::Relaxed));
            result
        });
        match result {
            Ok(package) => Ok(Arc::clone(package)),
            Err(error) => Err(unavailable(id, Arc::clone(error))),
        }
    }

    fn load(&self, id: &PackageId) -> Result<Package, PackageError> {
        match self.load_from_registry(id) {
            Err(error) if error.is_offline() && self.uses_installed.load(Ordering::SeqCst) => {
                self.installed(id).ok_or(error)
            }
            result => result,
        }
    }

    /// The package as far as it is installed, if it is one of a hub.
    fn installed(&self, id: &PackageId) -> Option<Package> {
        let releases = (self.options.installed)(id);
        let known = |provider: &str, root: &SafeUrl| self.is_cached(provider, root);
        let route = self.routes.presumed(id, &known)?;
        // A commit is more than a pack tells.
        if releases.is_empty() || !route.provider.lines_are_complete() {
            return None;
        }
        let mut lines = Vec::new();
        for release in releases {
            serde_json::to_writer(&mut lines, &release).expect("a release is text and numbers");
            lines.push(b'\n');
        }
        let location = route.location.clone();
        let found = Found { lines, validator: None, max_age: 0, location, leads_to: Vec::new() };
        let record = self.record(found);
        Some(Package::installed(id, route, record))
    }

    fn load_from_registry(&self, id: &PackageId) -> Result<Package, PackageError> {
        let known = |provider: &str, root: &SafeUrl| self.is_cached(provider, root);
        let route = self.routes.find(id, &known, &*self.options.progress)?;
        if route.provider.is_folder() {
            let listing = route.provider.list(&route.location, None, &*self.options.progress)?;
            let (Answer::New(record) | Answer::Unchanged(record)) =
                self.answer(&route, listing, None)?;
            return Package::in_folder(self, id, route, record);
        }
        let cache = self.cache(route.provider.name(), &route.location.root)?;
        let name = route.location.path.clone();
        let mut remembered = cache.find(&name);
        if let Some(record) =
            remembered.take_if(|record| self.is_fresh(record.checked, record.max_age))
        {
            return Ok(Package::new(id, route, record));
        }
        if let Some(record) = self.recall(id, &route, remembered.as_ref()) {
            return Ok(Package::recalled(id, route, record));
        }
        let validator = remembered.as_ref().and_then(|record| record.validator.as_deref());
        let progress = &*self.options.progress;
        let listing = route.provider.list(&route.location, validator, progress)?;
        if let mu_provider::Listing::Found(found) = &listing {
            self.follow(id, &route, &found.leads_to);
        }
        let record = match self.answer(&route, listing, remembered.as_ref())? {
            Answer::New(record) => cache.put(&name, record),
            Answer::Unchanged(record) => {
                let known = remembered.and_then(|known| known.validator);
                // A place that always wants to be asked will be; the time of asking is of no use then.
                if record.max_age > 0 || record.validator != known {
                    cache.touch(&name, &record);
                }
                record
            }
        };
        Ok(Package::new(id, route, record))
    }

    /// What is known of a package without asking, if that answers all that is asked of it.
    fn recall(&self, id: &PackageId, route: &Route, remembered: Option<&Record>) -> Option<Record> {
        let commits = self.wanted.commits_alone(id)?;
        let progress = &*self.options.progress;
        let found = route.provider.recall(&route.location, &commits, progress)?;
        let listed = remembered.filter(|record| record.listing.is_some());
        Some(listed.cloned().unwrap_or_else(|| self.record(found)))
    }

    fn record(&self, found: Found) -> Record {
        let heads = cache::Heads::Each(wire::heads(&found));
        let Found { lines, validator, max_age, location, .. } = found;
        let listing = Some(cache::Listing { location, heads, lines: cache::Lines::fetched(lines) });
        Record { checked: self.options.now, max_age, validator, listing, tried: Vec::new() }
    }

    /// Whether nobody need be asked, or may be, about what was said at `checked`, in seconds since 1970.
    fn is_fresh(&self, checked: i64, max_age: u32) -> bool {
        let age = self.options.now.saturating_sub(checked);
        self.options.offline || (0..i64::from(max_age)).contains(&age)
    }

    /// That nothing is known.
    fn nothing(&self) -> Record {
        let checked = self.options.now;
        Record { checked, max_age: 0, validator: None, listing: None, tried: Vec::new() }
    }

    /// What came of asking, given what is remembered.
    fn answer(
        &self,
        route: &Route,
        listing: mu_provider::Listing,
        remembered: Option<&Record>,
    ) -> Result<Answer, PackageError> {
        let checked = self.options.now;
        let nothing = self.nothing();
        Ok(match (listing, remembered) {
            (mu_provider::Listing::Unchanged { max_age, validator }, Some(record)) => {
                let validator = validator.or_else(|| record.validator.clone());
                Answer::Unchanged(Record { checked, max_age, validator, ..record.clone() })
            }
            (mu_provider::Listing::Unchanged { .. }, None) => {
                return Err(PackageError::Unasked(route.location.describe()));
            }
            (mu_provider::Listing::Absent { tried }, _) => Answer::New(Record { tried, ..nothing }),
            (mu_provider::Listing::Found(found), _) => Answer::New(self.record(found)),
        })
    }

    fn cache(&self, provider: &str, root: &SafeUrl) -> Result<Arc<Cache>, PackageError> {
        let cell = {
            let mut caches = lock(&self.caches);
            let of_root = caches.get(root).into_iter().flatten();
            let known = of_root.into_iter().find(|(known, _)| known == provider);
            match known.map(|(_, slot)| Arc::clone(slot)) {
                Some(slot) => slot,
                None => {
                    let slot = Arc::default();
                    let of_root = caches.entry(root.clone()).or_default();
                    of_root.push((provider.to_owned(), Arc::clone(&slot)));
                    slot
                }
            }
        };
        cell.get_or_init(|| {
            Cache::open(&self.options.cache, provider, root).map(Arc::new).map_err(Arc::new)
        })
        .clone()
        .map_err(PackageError::Cache)
    }
}

/// What a provider answered.
enum Answer {
    New(Record),
    Unchanged(Record),
}
