//! The index: from a package's id to its releases and their requirements, from any provider, cached on disk and in
//! memory.
//!
//! [`Index`] is the entry point, where selection's questions become I/O. `shared.rs` requests each package once a run,
//! `load.rs` loads one, and the prefetcher in `prefetch.rs`, which the index owns, requests ahead with a small pool.
//! For messages, the index also finds packages with names like a missing one: in the list of a registry, else in its
//! cache. Selection does not use these. Which version to choose is not decided here.

// Data of registries and of the cache never leads to an unchecked index.
#![deny(clippy::indexing_slicing)]

mod cache;
mod error;
mod load;
mod package;
mod prefetch;
mod routes;
mod run;
mod shared;
mod wire;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mu_provider::catalog::Query;
use mu_provider::threads::lock;
use mu_provider::{LineTrust, Release, Soon};
use rustc_hash::FxHashSet;

use crate::fs::FileError;
#[cfg(feature = "publish")]
use crate::index::cache::Record;
use crate::index::package::Origin;
use crate::index::prefetch::Prefetcher;
use crate::index::shared::{SharedIndex, Slot};
use crate::manifest::Manifest;
use crate::reference::{Base, PackageId, Reference, Version, VersionSpec};
use crate::select::releases::{Details, Position, Releases};
use crate::workspace::ConfiguredRegistry;

pub use self::error::{Cause, cause, unreadable_version};
#[cfg(feature = "publish")]
pub(crate) use self::package::requirements::sibling;
#[cfg(test)]
pub(crate) use self::routes::objection;
pub use self::routes::{Plugins, Providers, Route, RouteError, Searchable};
pub use self::run::{Begin, IndexOptions, InstalledReleases, PlacedPack, RefuseFolder};
pub use self::shared::MOST_PACKAGES;
pub use self::wire::{LeftOut, moved_to};
pub(crate) use self::wire::{conflicting, details};
// What selection sees of the index.
pub use crate::select::{
    Candidate, GraphLevel, Requirement, Revision, Unavailable, Universe, Untagged, releases,
};

/// The index of one run.
#[derive(Debug)]
pub struct Index {
    shared: Arc<SharedIndex>,
    prefetcher: Arc<Prefetcher>,
}

impl Index {
    /// An index that has requested nothing yet.
    pub fn new(options: IndexOptions) -> Self {
        let prefetcher = Prefetcher::new(options);
        Self { shared: Arc::clone(&prefetcher.shared), prefetcher }
    }

    /// Records the place of a package that `reference` gives, and its requirement; local folders are relative
    /// to `from`.
    pub fn declare(&self, id: &PackageId, reference: &Reference, from: &Path) {
        self.shared.run.declare(id, reference, from);
    }

    /// Records the place of a package that the lock gives. It counts if no reference says more than the id of the package.
    pub fn declare_locked(&self, id: &PackageId, reference: &Reference) {
        self.shared.run.routes.record_locked_place(id, reference);
    }

    /// Lets the base of a package be asked although it may be near to this machine, because the workspace names it.
    pub fn let_in(&self, id: &PackageId) {
        self.shared.run.routes.let_in_base(id.base_str());
    }

    /// The releases of a package as its registry lists them now, even if only commits that are on this
    /// machine are required.
    pub fn listed_releases(&self, id: &PackageId) -> Result<Arc<Releases>, Unavailable> {
        self.shared.run.commits.note(id, &VersionSpec::Latest);
        self.forget_recalled();
        self.releases(id)
    }

    /// Forgets answers without a request, if more than commits are now required; returns whether there were
    /// any. A caller that has the releases must start again.
    pub fn forget_recalled(&self) -> bool {
        let commits = &self.shared.run.commits;
        self.forget(Origin::Recalled, |id| commits.only_commits(id).is_none())
    }

    /// From now on, asks registries however recent their last answers are, and forgets those that were used without a
    /// request and may have changed; returns whether there were any. A caller that has the releases must start again.
    pub fn ask_again(&self) -> bool {
        if self.shared.run.options.offline {
            return false;
        }
        self.shared.run.asks_all.store(true, Ordering::Relaxed);
        let providers = std::mem::take(&mut *lock(&self.shared.providers));
        let all: Vec<Arc<Slot>> = lock(&self.shared.packages).values().cloned().collect();
        let known = all.iter().filter_map(|slot| slot.get()?.as_ref().ok());
        let unchanged: FxHashSet<&PackageId> = known
            .filter(|package| package.origin == Origin::Remembered)
            .filter(|package| self.shared.is_unchanged_since_answer(&package.route))
            .map(|package| package.id())
            .collect();
        self.forget(Origin::Remembered, |id| !unchanged.contains(id)) || !providers.is_empty()
    }

    /// From now on, asks about a package, however recent the last answer is.
    pub fn ask_about(&self, id: &PackageId) {
        if !self.shared.run.options.offline {
            lock(&self.shared.run.asked_about).insert(id.clone());
            self.forget(Origin::Remembered, |other| other == id);
        }
    }

    /// Records that this machine is about to change a package in its registry, so that its last answer is out of date.
    #[cfg(feature = "publish")]
    pub(crate) fn outdate(&self, id: &PackageId) {
        let Some(route) = self.known_route(id) else { return };
        let (name, root) = (&route.location.path, &route.location.root);
        let Ok(cache) = self.shared.caches.cache_of_registry(route.provider.name(), root) else {
            return;
        };
        if let Some(record) = cache.find(name) {
            cache.touch(name, &Record { checked: 0, ..record });
        }
    }

    /// Whether the last answer about a package was used without a request, and lacks this version.
    pub fn is_outdated(&self, id: &PackageId, version: &Version) -> bool {
        let known = self.shared.loaded(id).filter(|one| one.origin == Origin::Remembered);
        known.is_some_and(|package| package.releases.position_of_version(version).is_none())
    }

    /// Whether the last answer about a package was used without a request, and was that there is none.
    pub(crate) fn is_recalled_as_absent(&self, id: &PackageId) -> bool {
        let known = self.shared.loaded(id).filter(|one| one.origin == Origin::Remembered);
        known.is_some_and(|package| package.releases.tried().is_some())
    }

    /// Forgets what was answered about a package in this run: it is asked for at another place now.
    pub fn forget_answer(&self, id: &PackageId) {
        lock(&self.shared.packages).remove(id);
    }

    fn forget(&self, origin: Origin, is_one: impl Fn(&PackageId) -> bool) -> bool {
        let mut packages = lock(&self.shared.packages);
        let before = packages.len();
        packages.retain(|id, slot| match slot.get() {
            Some(Ok(package)) => package.origin != origin || !is_one(id),
            _ => true,
        });
        packages.len() < before
    }

    /// The reference that leads to `id` again, if its id alone does not.
    pub fn written(&self, id: &PackageId) -> Option<String> {
        self.shared.run.routes.hints.written(id)
    }

    /// The provider with this name.
    pub fn providers(&self) -> &Providers {
        &self.shared.run.routes.providers
    }

    /// The registry of the settings that serves `id`, and what is left of the id below it.
    pub fn registry<'id>(&self, id: &'id PackageId) -> Option<(&ConfiguredRegistry, &'id str)> {
        self.shared.run.routes.registry(id)
    }

    /// Whether a registry of the settings has the place of a package, whatever the protocol of this reference to it states.
    #[cfg(feature = "publish")]
    pub(crate) fn is_placed(&self, id: &PackageId, reference: &Reference) -> bool {
        let protocol = reference.protocol();
        protocol.is_some_and(|protocol| self.shared.run.routes.has_registry_place(id, protocol))
    }

    /// Which provider serves a registry, whether or not the settings have it.
    pub fn provider_of(&self, registry: &ConfiguredRegistry) -> Result<String, RouteError> {
        self.shared.run.routes.registry_provider(registry)
    }

    /// Where packages can be looked for by words: the registries of the settings and the base of references
    /// without one.
    pub fn registries(&self) -> Vec<Searchable> {
        self.shared.run.searchable_registries()
    }

    /// The repositories of these references, where packages can be looked for by words, too: those that no registry of the
    /// settings serves.
    pub fn repositories(&self, references: &[Reference]) -> Vec<Searchable> {
        self.shared.run.searchable_repositories(references)
    }

    /// Where the settings lead a package, if that is known without a request.
    pub fn known_route(&self, id: &PackageId) -> Option<Route> {
        self.shared.run.routes.known(id, Some(&self.shared.caches))
    }

    /// Where a package is, whether or not it has versions.
    pub fn route(&self, id: &PackageId) -> Result<Arc<Route>, Unavailable> {
        Ok(Arc::clone(&self.shared.package(id)?.route))
    }

    /// Whether the versions of a requested package are packs of this machine, because no registry has it, or
    /// because somebody has put one into the workspace.
    pub fn has_pack_versions(&self, id: &PackageId) -> bool {
        self.shared.loaded(id).is_some_and(|package| package.origin == Origin::Packs)
    }

    /// Whether a requested package is known only as far as it is installed, because its registry could not be asked.
    pub fn is_unasked(&self, id: &PackageId) -> bool {
        self.shared.loaded(id).is_some_and(|package| package.origin == Origin::Installed)
    }

    /// Whether a package was requested in this run and answered.
    pub fn has_answered(&self, id: &PackageId) -> bool {
        self.shared.loaded(id).is_some()
    }

    /// The packages of this run that require `id`, each in its newest version that does.
    pub fn requirers(&self, id: &PackageId) -> Vec<(PackageId, Version)> {
        let all: Vec<Arc<Slot>> = lock(&self.shared.packages).values().cloned().collect();
        let known = all.iter().filter_map(|slot| slot.get()?.as_ref().ok());
        let requiring = known.filter_map(|package| {
            Some((package.id().clone(), package.requiring(&*self.shared, id)?))
        });
        let mut found: Vec<(PackageId, Version)> = requiring.collect();
        found.sort();
        found
    }

    /// The packages on the way to one in this run: what requires it, what requires that, and so on.
    pub fn way_to(&self, id: &PackageId) -> Vec<PackageId> {
        self.shared.way_to(id)
    }

    /// Where a candidate is, and what is known about it: everything that fetching needs.
    pub fn release(
        &self,
        id: &PackageId,
        candidate: Candidate<'_>,
    ) -> Result<(Arc<Route>, Arc<Release>), Unavailable> {
        let package = self.shared.package(id)?;
        package.release(candidate).map_err(|error| Unavailable::new(id, error))
    }

    /// Those of the chosen versions about which [`Index::confirm`] asks the place itself, which is told what it will be asked.
    pub fn unconfirmed<'a>(
        &self,
        chosen: &'a [(PackageId, Position)],
    ) -> Vec<&'a (PackageId, Position)> {
        let is_unconfirmed = |(id, position): &&(PackageId, Position)| {
            let Some(package) = self.shared.loaded(id) else { return true };
            let provider = &package.route.provider;
            let is_short = package.is_short(*position);
            if is_short {
                provider.soon(&package.route.location, Soon::ListInFull);
            }
            is_short || provider.facts().lines == LineTrust::Hint
        };
        chosen.iter().filter(is_unconfirmed).collect()
    }

    /// Whether the listing of a chosen version leaves out its digests.
    pub fn leaves_out_digests(&self, id: &PackageId, position: Position) -> bool {
        self.shared.loaded(id).is_some_and(|package| package.is_short(position))
    }

    /// If listings are only hints, or leave out digests, asks the place itself about a chosen version. Returns whether selection
    /// used the same data; if not, it uses the new data from now on, and has to choose again.
    pub fn confirm(&self, id: &PackageId, position: Position) -> Result<bool, Unavailable> {
        let package = self.shared.package(id)?;
        if package.is_short(position) {
            let completed = self.shared.list_chosen_in_full(&package, position);
            return completed.map_err(|error| Unavailable::new(id, error));
        }
        let confirmed = package.confirm_release(&*self.shared, position);
        let corrected = confirmed.and_then(|otherwise| match otherwise {
            None => Ok(true),
            Some(own) => self.shared.correct(&package, position, &own).map(|()| false),
        });
        corrected.map_err(|error| Unavailable::new(id, error))
    }

    /// From now on, a version is no candidate in this run, and selection has to choose again; `why` says so. Nothing is remembered
    /// of it.
    pub fn refuse(&self, id: &PackageId, position: Position, why: &str) -> Result<(), Unavailable> {
        // Two threads may refuse two versions of a package: the second one must know of the first.
        let _refusing = lock(&self.shared.refusing);
        let package = self.shared.package(id)?;
        let refusing = Releases::clone(&package.releases).refusing(position, why);
        let slot = Arc::new(Slot::from(Ok(Arc::new(package.with_releases(refusing)))));
        lock(&self.shared.packages).insert(id.clone(), slot);
        Ok(())
    }

    /// From now on, a version counts as published at this time, in seconds since 1970, in this run; `false` if it did not count as older
    /// before.
    pub fn note_publication(
        &self,
        id: &PackageId,
        position: Position,
        time: i64,
    ) -> Result<bool, Unavailable> {
        let _refusing = lock(&self.shared.refusing);
        let package = self.shared.package(id)?;
        let releases = &package.releases;
        if releases.is_ageless || releases.published(position).is_none_or(|known| known >= time) {
            return Ok(false);
        }
        let changed = Releases::clone(releases).published_at(position, time);
        let slot = Arc::new(Slot::from(Ok(Arc::new(package.with_releases(changed)))));
        lock(&self.shared.packages).insert(id.clone(), slot);
        Ok(true)
    }

    /// Like [`Index::release`], but also asks the place itself if its listing lacks the version's
    /// requirements.
    pub fn release_in_full(
        &self,
        id: &PackageId,
        candidate: Candidate<'_>,
    ) -> Result<(Arc<Route>, Arc<Release>), Unavailable> {
        let found = self.release(id, candidate)?;
        match candidate {
            Candidate::Release(position) if found.1.dependencies.is_none() => {
                self.confirm(id, position)?;
                self.release(id, candidate)
            }
            _ => Ok(found),
        }
    }

    /// The releases of a package in its registry, whether or not the workspace has one of its own.
    pub fn published(&self, id: &PackageId) -> Result<Arc<Releases>, Unavailable> {
        Ok(Arc::clone(&self.shared.package(id)?.releases))
    }

    /// The entries of a package in its registry that are not versions.
    pub fn left_out(&self, id: &PackageId) -> Result<Vec<LeftOut>, Unavailable> {
        Ok(self.shared.package(id)?.left_out())
    }

    /// As [`Self::left_out`], without asking for the package; none of one that was not looked up.
    pub fn left_out_if_known(&self, id: &PackageId) -> Vec<LeftOut> {
        self.shared.loaded(id).map(|package| package.left_out()).unwrap_or_default()
    }

    /// The folders of a repository that have version tags of their own.
    pub fn folders_with_versions(&self, id: &PackageId) -> Result<BTreeSet<String>, Unavailable> {
        Ok(self.shared.package(id)?.folders_with_tags())
    }

    /// The whole names of the tags and branches of a repository (`refs/tags/v1.0.0`), and that of its default branch without `refs/heads/`.
    pub fn names(&self, id: &PackageId) -> Result<(Vec<String>, Option<String>), Unavailable> {
        let package = self.shared.package(id)?;
        package.names().map_err(|error| Unavailable::new(id, error))
    }

    /// The manifest of a candidate, if its place can show it without a fetch; a hub cannot, and has the
    /// relevant data in its index.
    pub fn manifest(
        &self,
        id: &PackageId,
        candidate: Candidate<'_>,
    ) -> Result<Option<Manifest>, Unavailable> {
        let package = self.shared.package(id)?;
        let (_, release) =
            package.release(candidate).map_err(|error| Unavailable::new(id, error))?;
        package.manifests(&*self.shared).read(&release).map_err(|error| Unavailable::new(id, error))
    }

    /// The packages of the workspace that were requested since the last call.
    ///
    /// The index does not answer for them: the caller must know them, and ask again without them.
    pub fn take_met_local(&self) -> BTreeSet<PackageId> {
        std::mem::take(&mut *lock(&self.shared.met_local))
    }

    /// From now on, treats the installed versions as all versions of packages that only the network knows
    /// better.
    pub fn use_installed(&self) {
        self.shared.uses_installed.store(true, Ordering::SeqCst);
        // Packages that could not be requested are looked up again.
        lock(&self.shared.packages).retain(|_, slot| !matches!(slot.get(), Some(Err(_))));
    }

    /// Stops requesting packages that others may lead to: the choice is made.
    pub fn forget_guesses(&self) {
        self.prefetcher.pool.drop_guesses();
    }

    /// Writes what was learned to the cache folder.
    pub fn save(&self) -> Result<(), FileError> {
        self.shared.caches.open_caches().iter().try_for_each(|cache| cache.save())
    }

    /// Requests the releases of packages without waiting for the answers, and not their dependencies.
    pub fn ask_for_releases(&self, ids: &[PackageId]) {
        self.prefetcher.prefetch_releases(ids, false);
    }
}

impl Universe for Index {
    fn releases(&self, id: &PackageId) -> Result<Arc<Releases>, Unavailable> {
        if (self.shared.run.options.is_local)(id) {
            lock(&self.shared.met_local).insert(id.clone());
            return Err(Unavailable::new(id, "it is in the workspace".to_owned()));
        }
        Ok(Arc::clone(&self.shared.package(id)?.releases))
    }

    fn revision(
        &self,
        releases: &Releases,
        name: &VersionSpec,
    ) -> Result<Option<Revision>, Unavailable> {
        let id = releases.id();
        let package = self.shared.package(id)?;
        package.revision(&*self.shared, name).map_err(|error| Unavailable::new(id, error))
    }

    fn requirements(
        &self,
        releases: &Releases,
        candidate: Candidate<'_>,
    ) -> Result<Arc<[Arc<Requirement>]>, Unavailable> {
        let id = releases.id();
        let package = self.shared.package(id)?;
        package.requirements(&*self.shared, candidate).map_err(|error| Unavailable::new(id, error))
    }

    fn expect(&self, level: GraphLevel<'_>) {
        self.prefetcher.prefetch_level(level);
    }

    fn carries_copy(&self, by: &PackageId, version: &str, of: &PackageId) -> bool {
        let key = (by.clone(), version.to_owned(), of.clone());
        if let Some(known) = lock(&self.shared.copies).get(&key) {
            return *known;
        }
        let package = self.shared.package(by);
        let carries =
            package.is_ok_and(|package| load::carries(&package, version, of.name().leaf()));
        lock(&self.shared.copies).insert(key, carries);
        carries
    }

    fn similar(&self, id: &PackageId) -> Vec<PackageId> {
        self.shared.similar_packages(id)
    }

    fn declared(
        &self,
        id: &PackageId,
        candidate: Candidate<'_>,
    ) -> Result<Option<Arc<Details>>, Unavailable> {
        let package = self.shared.package(id)?;
        package.declared(&*self.shared, candidate).map_err(|error| Unavailable::new(id, error))
    }

    fn providing(
        &self,
        capability: &str,
        near: &PackageId,
    ) -> Result<Arc<[PackageId]>, Unavailable> {
        self.shared.providers(capability, near).map_err(|error| Unavailable::new(near, error))
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.prefetcher.pool.end();
    }
}

/// The most names that are compared with a missing one.
const MOST_LISTED: usize = 5000;

impl SharedIndex {
    fn similar_packages(&self, id: &PackageId) -> Vec<PackageId> {
        if let Some(known) = lock(&self.similar).get(id) {
            return known.clone();
        }
        let mut known = self.cached(id).unwrap_or_default();
        let listed = self.listed(id);
        // A registry's list supersedes its cache.
        match listed.is_empty() {
            true => known.extend(self.in_lower_case(id)),
            false => known = listed,
        }
        let similar = nearest_ids(id, known);
        lock(&self.similar).insert(id.clone(), similar.clone());
        similar
    }

    /// The packages that the cache of the registry of `id` has.
    fn cached(&self, id: &PackageId) -> Option<Vec<PackageId>> {
        let package = self.package(id).ok()?;
        let route = &package.route;
        let before_names = id.as_str().strip_suffix(&*route.location.path)?;
        let cache =
            self.caches.cache_of_registry(route.provider.name(), &route.location.root).ok()?;
        // Missing packages are cached too.
        let is_there = |name: &&str| cache.lists(name);
        let ids = cache.names().filter(is_there).filter_map(|name| {
            let id = format!("{before_names}{name}");
            PackageId::parse(&id).ok()
        });
        Some(ids.collect())
    }

    /// The package with the same name in lower case, if there is one. If a registry has no list, only this
    /// name is requested.
    fn in_lower_case(&self, id: &PackageId) -> Option<PackageId> {
        if id.base() == Base::localhost() {
            // The path of a folder: in lower case, it would be a name in a registry at that host.
            return None;
        }
        let lower = PackageId::parse(&id.as_str().to_ascii_lowercase()).ok()?;
        let package = (lower != *id).then(|| self.package(&lower))?.ok()?;
        let is_there = package.releases.tried().is_none();
        is_there.then_some(lower)
    }

    /// The packages that the registry of `id` lists, if it lists any; for a registry that only answers
    /// searches, those with the same last part of the name.
    fn listed(&self, id: &PackageId) -> Vec<PackageId> {
        let serving = (self.run.searchable_registries().into_iter())
            .filter(|place| id.as_str().starts_with(&*place.prefix))
            .max_by_key(|place| place.prefix.len());
        let Some(Searchable { prefix, before_names, route: Ok(route) }) = serving else {
            return Vec::new();
        };
        let search = |words: &str| {
            let query = Query::new(words, MOST_LISTED);
            let found = route.provider.search(&route.location, &query, self.run.progress());
            found.ok().flatten().unwrap_or_default()
        };
        let mut hits = search("");
        if hits.packages.is_empty() || hits.packages.len() < hits.total {
            hits.packages.extend(search(id.name().leaf()).packages);
        }
        let names = hits.packages.into_iter().map(|package| package.name);
        let ids = names.filter_map(|name| PackageId::parse(&format!("{before_names}{name}")).ok());
        ids.filter(|id| id.as_str().starts_with(&prefix)).collect()
    }
}

/// The ids that look like `id`, best first, at most three.
pub fn nearest_ids(id: &PackageId, known: impl IntoIterator<Item = PackageId>) -> Vec<PackageId> {
    let mut near: Vec<(usize, PackageId)> = known
        .into_iter()
        .filter_map(|other| {
            let [name, like] = [id, &other].map(|id| id.name_str().to_ascii_lowercase());
            let [distance, hosts] = [(&*name, &*like), (id.base_str(), other.base_str())]
                .map(|(one, two)| strsim::damerau_levenshtein(one, two));
            // Names of two hosts may be alike by chance.
            let close = distance <= 1 + name.len() / 5 && hosts <= 1 + id.base_str().len() / 5;
            let same_leaf = other.name().leaf().eq_ignore_ascii_case(id.name().leaf());
            (other != *id && (close || same_leaf)).then_some((distance, other))
        })
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().map(|(_, id)| id).take(3).collect()
}
