//! The caches of the registries of a run, each opened when it is first needed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use mu_provider::Lead;
use rustc_hash::FxHashMap;

use crate::fs::FileError;
use crate::index::cache::Cache;
use mu_provider::threads::lock;

/// The caches of one run.
#[derive(Debug)]
pub(super) struct Caches {
    folder: PathBuf,
    opened: Mutex<FxHashMap<Lead, CachesAt>>,
}

/// A registry's cache; a second thread waits for the first.
type CacheSlot = OnceLock<Result<Arc<Cache>, Arc<FileError>>>;

/// The caches of the registries with one root, by provider.
type CachesAt = Vec<(String, Arc<CacheSlot>)>;

impl Caches {
    /// The caches in the cache folder `folder`.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, opened: Mutex::default() }
    }

    /// The cache of a registry.
    ///
    /// # Errors
    ///
    /// When it exists and cannot be read.
    pub(super) fn cache_of_registry(
        &self,
        provider: &str,
        root: &Lead,
    ) -> Result<Arc<Cache>, Arc<FileError>> {
        let slot = {
            let mut opened = lock(&self.opened);
            let of_root = opened.get(root).into_iter().flatten();
            let known = of_root.into_iter().find(|(known, _)| known == provider);
            match known.map(|(_, slot)| Arc::clone(slot)) {
                Some(slot) => slot,
                None => {
                    let slot = Arc::default();
                    let of_root = opened.entry(root.clone()).or_default();
                    of_root.push((provider.to_owned(), Arc::clone(&slot)));
                    slot
                }
            }
        };
        let open = || Cache::open(&self.folder, provider, root).map(Arc::new).map_err(Arc::new);
        slot.get_or_init(open).clone()
    }

    /// Whether a registry once listed a package, or if `name` is `None`, any.
    pub(super) fn has_listed(&self, provider: &str, root: &Lead, name: Option<&str>) -> bool {
        self.cache_of_registry(provider, root).is_ok_and(|cache| match name {
            Some(name) => cache.lists(name),
            None => cache.names().any(|name| cache.lists(name)),
        })
    }

    /// The caches that could be opened.
    pub(super) fn open_caches(&self) -> Vec<Arc<Cache>> {
        let opened = lock(&self.opened);
        let slots = opened.values().flatten();
        slots.filter_map(|(_, slot)| slot.get()?.as_ref().ok().cloned()).collect()
    }
}
