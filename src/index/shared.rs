//! What the index and its prefetcher share: what a run requests from registries, once, however many threads need it.
//!
//! [`SharedIndex`] has the packages, and the providers of a capability that a registry lists, which are cached on disk
//! and in memory like the releases of a package. A run requests a limited number of packages, by default
//! [`MOST_PACKAGES`]: a registry that invents packages, each of which needs others, could otherwise keep mu asking for
//! ever. The path in the message comes from earlier answers, without new requests. How one package is loaded is known
//! in `load.rs`.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use mu_provider::threads::lock;
use mu_provider::{ErrorKind, Lead};
use rustc_hash::FxHashMap;

use crate::index::cache::{Caches, Learned, Record};
use crate::index::error::PackageError;
use crate::index::package::Package;
use crate::index::prefetch::Prefetcher;
use crate::index::routes::Route;
use crate::index::run::{IndexOptions, PackageSurroundings, Run};
use crate::index::wire;
use crate::manifest::Capability;
use crate::reference::PackageId;
use crate::select::Unavailable;

/// What the index and its prefetcher share.
pub(crate) struct SharedIndex {
    /// Told what the answers of registries may lead to.
    pub(super) prefetcher: Weak<Prefetcher>,
    pub(super) run: Run,
    pub(super) caches: Caches,
    pub(super) packages: Mutex<FxHashMap<PackageId, Arc<Slot>>>,
    /// The packages that registries list as providers of a capability.
    pub(super) providers: Mutex<HashMap<ListingQuestion, Arc<[PackageId]>>>,
    pub(super) met_local: Mutex<BTreeSet<PackageId>>,
    pub(super) similar: Mutex<HashMap<PackageId, Vec<PackageId>>>,
    /// Whether a version of a package carries a copy of another one.
    pub(super) copies: Mutex<HashMap<(PackageId, String, PackageId), bool>>,
    /// Held while a version is taken from the candidates of its package.
    pub(super) refusing: Mutex<()>,
    pub(super) uses_installed: AtomicBool,
    /// Why no more requests are sent.
    pub(super) first_too_many: OnceLock<Arc<PackageError>>,
    asked: AtomicUsize,
    answered: AtomicUsize,
}

/// A requested package; a second thread waits for the first.
pub(super) type Slot = OnceLock<Result<Arc<Package>, Arc<PackageError>>>;

impl fmt::Debug for SharedIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("routes", &self.run.routes).finish_non_exhaustive()
    }
}

impl SharedIndex {
    /// A run without any request yet.
    pub(super) fn new(options: IndexOptions, prefetcher: Weak<Prefetcher>) -> Self {
        Self {
            prefetcher,
            caches: Caches::new(options.cache.clone()),
            run: Run::new(options),
            packages: Mutex::default(),
            providers: Mutex::default(),
            met_local: Mutex::default(),
            similar: Mutex::default(),
            copies: Mutex::default(),
            refusing: Mutex::default(),
            uses_installed: AtomicBool::new(false),
            first_too_many: OnceLock::new(),
            asked: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
        }
    }

    /// Whether a package was requested.
    pub(super) fn is_known(&self, id: &PackageId) -> bool {
        lock(&self.packages).contains_key(id)
    }

    /// The package, if it was requested and is known.
    pub(super) fn loaded(&self, id: &PackageId) -> Option<Arc<Package>> {
        lock(&self.packages).get(id)?.get()?.as_ref().ok().cloned()
    }

    /// Whether a package is as in its last answer, as far as that can be told without a request for it alone.
    pub(super) fn is_unchanged_since_answer(
        &self,
        Route { provider, location, .. }: &Route,
    ) -> bool {
        let cache = self.caches.cache_of_registry(provider.name(), &location.root).ok();
        let validator = cache.and_then(|cache| cache.validator(&location.path));
        validator.is_some_and(|validator| {
            provider.is_unchanged(location, &validator, self.run.progress())
        })
    }

    /// The package, requested at most once.
    pub(super) fn package(&self, id: &PackageId) -> Result<Arc<Package>, Unavailable> {
        let slot = {
            let mut packages = lock(&self.packages);
            let known = packages.get(id).cloned();
            known.unwrap_or_else(|| Arc::clone(packages.entry(id.clone()).or_default()))
        };
        let result = slot.get_or_init(|| {
            let options = &self.run.options;
            let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
            if asked > options.most {
                return Err(self.too_many_packages(id));
            }
            (options.answered)(self.answered.load(Ordering::Relaxed), asked);
            let aliases = &options.defaults.aliases;
            let loaded = self.load(id).map(|package| {
                let mut package = package.counted(aliases);
                package.order = asked;
                Arc::new(package)
            });
            let result = loaded.map_err(Arc::new);
            let answered = self.answered.fetch_add(1, Ordering::Relaxed) + 1;
            (options.answered)(answered, self.asked.load(Ordering::Relaxed));
            result
        });
        match result {
            Ok(package) => Ok(Arc::clone(package)),
            Err(error) => Err(Unavailable::new(id, Arc::clone(error))),
        }
    }
}

impl PackageSurroundings for SharedIndex {
    fn run(&self) -> &Run {
        &self.run
    }

    fn is_there(&self, id: &PackageId) -> Result<bool, Unavailable> {
        Ok(self.package(id)?.releases.tried().is_none())
    }

    fn ask_ahead(&self, ids: &[PackageId]) {
        if let Some(prefetcher) = self.prefetcher.upgrade() {
            prefetcher.prefetch_releases(ids, true);
        }
    }
}

/// How many packages a run requests at most, by default.
pub const MOST_PACKAGES: usize = 100_000;

/// The most packages of a path that are named.
const NAMED: usize = 4;

/// The most versions that are searched for the path.
const LOOKED_INTO: u32 = 1_000_000;

impl SharedIndex {
    /// The error of every package above the limit.
    fn too_many_packages(&self, id: &PackageId) -> Arc<PackageError> {
        let error = self.first_too_many.get_or_init(|| {
            let most = self.run.options.most;
            let steps = self.way_to(id);
            let named = steps.iter().take(NAMED).map(|by| format!(", which `{by}` requires"));
            let mut way: String = named.collect();
            if steps.len() > NAMED {
                way.push_str(", and so on");
            }
            Arc::new(PackageError::TooMany { id: id.clone(), most, way })
        });
        Arc::clone(error)
    }

    /// The packages on the way to one: what requires it, what requires that, and so on, each time what was requested first.
    pub(super) fn way_to(&self, id: &PackageId) -> Vec<PackageId> {
        let packages: Vec<Arc<Package>> = lock(&self.packages)
            .values()
            .filter_map(|slot| slot.get()?.as_ref().ok().cloned())
            .collect();
        // For each required package, as far as known, the requirer that was requested first.
        let mut askers: FxHashMap<PackageId, &Arc<Package>> = FxHashMap::default();
        let mut left = LOOKED_INTO;
        for package in &packages {
            for id in package.known_requirements(self, &mut left) {
                let first = askers.entry(id).or_insert(package);
                if package.order < first.order {
                    *first = package;
                }
            }
        }
        let mut way = Vec::new();
        let (mut id, mut before) = (id, usize::MAX);
        // A package that was requested later is not the reason for this one; so the way ends.
        while let Some(asker) = askers.get(id).filter(|asker| asker.order < before) {
            (id, before) = (asker.id(), asker.order);
            way.push(id.clone());
        }
        way
    }
}

/// A registry, the start of its packages' ids, and a capability.
pub(super) type ListingQuestion = (String, Lead, String, String);

impl SharedIndex {
    /// The packages that the registry of `near` lists as providers of a capability, in its order.
    pub(super) fn providers(
        &self,
        capability: &str,
        near: &PackageId,
    ) -> Result<Arc<[PackageId]>, PackageError> {
        // A text that is not a capability is not the name of a file either.
        if Capability::parse(capability).is_err() {
            return Ok(Arc::from([]));
        }
        let route = self.run.routes.find(near, Some(&self.caches), self.run.progress())?;
        let Some(prefix) = near.as_str().strip_suffix(route.location.path.as_str()) else {
            return Ok(Arc::from([]));
        };
        let provider = route.provider.name().to_owned();
        let root = route.location.root.clone();
        let question = (provider, root, prefix.to_owned(), capability.to_owned());
        if let Some(known) = lock(&self.providers).get(&question) {
            return Ok(Arc::clone(known));
        }
        let record = self.list_providers(&route, capability)?;
        let listing = record.listing.iter();
        let names = listing.flat_map(|listing| {
            let lines = listing.heads().map(|head| wire::release(&listing.lines, head.line));
            lines.filter_map(|line| Some(line.ok()?.name))
        });
        let ids = names.filter_map(|name| PackageId::parse(&format!("{prefix}{name}")).ok());
        // If names stay whole, a registry may list what another one serves.
        let serving = |id: &PackageId| {
            self.run.routes.registry(id).map(|(registry, _)| registry.prefix.as_str())
        };
        let ids: Arc<[PackageId]> = ids.filter(|id| serving(id) == serving(near)).collect();
        // What a reference says about the registry of one holds for the others.
        ids.iter().for_each(|id| self.run.routes.hints.inherit(id, near));
        lock(&self.providers).insert(question, Arc::clone(&ids));
        Ok(ids)
    }

    fn list_providers(&self, route: &Route, capability: &str) -> Result<Record, PackageError> {
        let cache = self.caches.cache_of_registry(route.provider.name(), &route.location.root);
        let cache = cache.map_err(PackageError::Cache)?;
        // No package has such a name.
        let name = format!("capability:{capability}");
        let mut remembered = cache.find(&name);
        let is_fresh = |record: &mut Record| self.run.is_fresh(record.times());
        if let Some(record) = remembered.take_if(is_fresh) {
            return Ok(record);
        }
        let validator = remembered.as_ref().and_then(|record| record.validator.as_deref());
        let progress = self.run.progress();
        let answer = route.provider.providers(&route.location, capability, validator, progress);
        let listing = match answer {
            // A registry that cannot be reached lists nothing; other providers still count.
            Err(error) if error.kind() == ErrorKind::Offline => {
                let root = &route.location.root;
                return Ok(Learned::absent(self.run.options.now, Some(0), None, &[], root).record);
            }
            answer => answer?,
        };
        Ok(cache.put(&name, self.answer(route, listing, remembered.as_ref())?))
    }
}
