//! Loads one package: from the cache, from its registry, or from what is installed.
//!
//! Whether a version carries a copy of a package that it depends on, as charts do in `charts/`, only its archive says. It is looked at where the answer is offered to a person, and nowhere else.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mu_provider::fs::{AtPath as _, private_folder};
use mu_provider::threads::lock;
use mu_provider::{
    Dates, ErrorKind, Folder, Found, Limits, LineTrust, Listing, PlaceKind, ProviderError, Release,
    Silent, TreeWriter, json_lines,
};

use crate::index::cache::{Learned, Record};
use crate::index::error::PackageError;
use crate::index::package::{self, Origin, Package};
use crate::index::routes::Route;
use crate::index::shared::{SharedIndex, Slot};
use crate::index::wire;
use crate::manifest::Manifest;
use crate::reference::{PackageId, Version};
use crate::select::Candidate;
use crate::select::releases::Position;

/// The registry's line for the version that a folder of the workspace's packs holds, if it has the same content; other content is
/// refused.
fn listed_alike(
    package: &Package,
    folder: &Path,
    placed: &Release,
) -> Result<Option<Release>, PackageError> {
    let version = wire::version_of(placed, true);
    let Some(at) = version.and_then(|version| package.releases.position_of_version(&version))
    else {
        return Ok(None);
    };
    let (route, listed) = package.release(Candidate::Release(at))?;
    match (&listed.digest, &placed.digest) {
        (Some(expected), Some(found)) if expected != found => {
            let text = format!(
                "`{}` holds `{}` {}, but not with the content that {} lists: expected {expected}, got {found}",
                folder.display(),
                package.id(),
                placed.version,
                route.location.describe(),
            );
            let error = ProviderError::new(ErrorKind::Integrity, text);
            // Only the lock says what a build makes of a package.
            let loaded = Manifest::load(folder).ok().flatten();
            let is_built = loaded.is_some_and(|loaded| loaded.manifest.build.is_some());
            let error = match is_built {
                true => error.hint("remove it, and `mu get` and `mu build` make it again, if that is what a build has made of it"),
                false => error.hint("remove that folder, and `mu get` installs what the registry has"),
            };
            Err(error.into())
        }
        (Some(_), Some(_)) => Ok(Some(Release::clone(&listed))),
        _ => Ok(None),
    }
}

impl SharedIndex {
    /// The package as its registry lists it; offline, only its installed versions.
    pub(super) fn load(&self, id: &PackageId) -> Result<Package, PackageError> {
        let options = &self.run.options;
        if let Some((folder, release)) = (options.placed)(id) {
            return self.placed(id, &folder, release);
        }
        match self.load_from_registry(id).map(|package| package.by_format(self)) {
            Ok(package) if package.releases.tried().is_some() => {
                let releases = (options.of_user_and_runtime)(id);
                if releases.is_empty() {
                    return Ok(package);
                }
                let route = Route::clone(&package.route);
                let record = self.listed_as(&route, releases)?.record;
                Ok(Package::new(id, route, record, Origin::Packs))
            }
            Err(error) if error.is_offline() && self.uses_installed.load(Ordering::SeqCst) => {
                self.installed(id).ok_or(error)
            }
            result => result,
        }
    }

    /// The installed versions of the package, if their lines are complete.
    fn installed(&self, id: &PackageId) -> Option<Package> {
        let releases = (self.run.options.installed)(id);
        let route = self.run.routes.presumed(id, Some(&self.caches))?;
        // A pack does not say its commit.
        if releases.is_empty() || route.provider.facts().kind == PlaceKind::Repository {
            return None;
        }
        let record = self.listed_as(&route, releases).ok()?.record;
        Some(Package::new(id, route, record, Origin::Installed))
    }

    /// The package that somebody has put into the workspace. If its registry has that version, it must be the
    /// same.
    fn placed(
        &self,
        id: &PackageId,
        folder: &Path,
        release: Release,
    ) -> Result<Package, PackageError> {
        let route = match self.load_from_registry(id) {
            Ok(package) => {
                let route = Route::clone(&package.route);
                if let Some(listed) = listed_alike(&package, folder, &release)? {
                    // It is the registry's own version, which everyone can get.
                    if !self.run.options.keeps_placed {
                        return Ok(package);
                    }
                    let record = self.listed_as(&route, vec![listed])?.record;
                    return Ok(Package::new(id, route, record, Origin::Asked));
                }
                route
            }
            Err(error) if error.is_offline() => {
                self.run.routes.presumed(id, Some(&self.caches)).ok_or(error)?
            }
            Err(error) => return Err(error),
        };
        let record = self.listed_as(&route, vec![release])?.record;
        Ok(Package::new(id, route, record, Origin::Packs))
    }

    fn load_from_registry(&self, id: &PackageId) -> Result<Package, PackageError> {
        if !self.run.is_looked_for(id)
            && let Some(route) = self.run.routes.presumed(id, Some(&self.caches))
        {
            return Ok(self.not_looked_for(id, route));
        }
        let route = self.run.routes.find(id, Some(&self.caches), self.run.progress())?;
        if route.provider.facts().kind == PlaceKind::Folder {
            return self.load_folder(id, route);
        }
        let cache = self.caches.cache_of_registry(route.provider.name(), &route.location.root);
        let cache = cache.map_err(PackageError::Cache)?;
        let name = route.location.path.clone();
        // If another setting decides what counts as a version, the same lines make another package.
        let is_alike = |record: &Record| {
            let listing = record.listing.as_ref();
            listing.is_none_or(|listing| listing.location.lenient == route.location.lenient)
        };
        // An answer without dates is not enough where they decide.
        let is_dated = |record: &Record| {
            let mut heads = record.listing.iter().flat_map(|listing| listing.heads());
            route.location.dates != Dates::Needed || heads.all(|head| head.published.is_some())
        };
        let mut remembered = cache.find(&name).filter(is_alike);
        let is_fresh = |record: &mut Record| {
            self.run.is_fresh_for(id, record.times())
                && (self.run.options.offline || is_dated(record))
        };
        if let Some(record) = remembered.take_if(is_fresh) {
            self.run.progress().detail(&|| {
                let age = self.run.options.now.saturating_sub(record.checked);
                format!("cached: what the registry said of {id} {age} s ago")
            });
            return Ok(Package::new(id, route, record, Origin::Remembered));
        }
        // Commits that are on this machine need no request.
        if let Some(record) = self.recall(id, &route, remembered.as_ref()) {
            return Ok(Package::new(id, route, record, Origin::Recalled));
        }
        let validator = remembered.as_ref().and_then(|record| record.validator.as_deref());
        let listing = {
            let progress = self.run.start_lookup(id);
            route.provider.list(&route.location, validator, &*progress)?
        };
        // What this package may lead to is requested when there is nothing else to do.
        if let (Listing::Found(found), Some(prefetcher)) = (&listing, self.prefetcher.upgrade()) {
            prefetcher.prefetch_leads(id, &route, &found.leads_to);
        }
        let listing = match listing {
            Listing::Found(found) if route.provider.facts().lines == LineTrust::InArchive => {
                Listing::Found(self.completed(id, &route, found)?)
            }
            other => other,
        };
        let learned = self.answer(&route, listing, remembered.as_ref())?;
        let Record { max_age, validator, .. } = &learned.record;
        let known = remembered.as_ref().and_then(|known| known.validator.as_ref());
        // If a place always has to be asked, the time of the request is useless.
        let is_news = learned.is_new() || *max_age != Some(0) || validator.as_ref() != known;
        let record = if is_news { cache.put(&name, learned) } else { learned.record };
        Ok(Package::new(id, route, record, Origin::Asked))
    }

    /// A listing whose lines have what only the manifests in the archives say.
    fn completed(
        &self,
        id: &PackageId,
        route: &Route,
        mut found: Found,
    ) -> Result<Found, PackageError> {
        let mut releases = Vec::new();
        for mut release in found.releases() {
            if release.dependencies.is_none() {
                let progress = self.run.start_lookup(id);
                let file = route.provider.manifest(&found.location, &release, &*progress)?;
                if let Some(file) = file {
                    release = package::with_manifest(id, release, &found.location, &file)?;
                }
                release.dependencies.get_or_insert_default();
            }
            releases.push(release);
        }
        found.lines = json_lines(releases);
        Ok(found)
    }

    /// A package that counts as absent, because it is excluded from lookups.
    fn not_looked_for(&self, id: &PackageId, route: Route) -> Package {
        let only = self.run.options.only.join("`, `");
        let tried = [format!("only `{only}`, because of `--only`")];
        let learned =
            Learned::absent(self.run.options.now, Some(0), None, &tried, &route.location.root);
        Package::new(id, route, learned.record, Origin::Asked)
    }

    /// A folder on this machine is read in every run.
    fn load_folder(&self, id: &PackageId, route: Route) -> Result<Package, PackageError> {
        if let Some(folder) = route.folder() {
            (self.run.options.check_folder)(&folder)?;
        }
        match route.provider.list(&route.location, None, &*self.run.start_lookup(id))? {
            Listing::Found(found) => Package::in_folder(self, id, route, &found),
            listing => {
                let record = self.answer(&route, listing, None)?.record;
                Ok(Package::new(id, route, record, Origin::Asked))
            }
        }
    }

    /// What is known about a package without a request, if that is enough for its requirements.
    fn recall(&self, id: &PackageId, route: &Route, remembered: Option<&Record>) -> Option<Record> {
        let commits = self.run.commits.only_commits(id)?;
        let found = route.provider.recall(&route.location, &commits, self.run.progress())?;
        let listed = remembered.filter(|record| record.listing.is_some());
        listed.cloned().or_else(|| Some(self.learned(&found).ok()?.record))
    }

    /// Lists a package in full, and uses that from now on. Returns whether the version is what it was, in the same place.
    pub(super) fn list_chosen_in_full(
        &self,
        package: &Package,
        position: Position,
    ) -> Result<bool, PackageError> {
        let (id, route) = (package.id(), Route::clone(&package.route));
        let listing = {
            let progress = self.run.start_lookup(id);
            route.provider.list_in_full(&route.location, &*progress)?
        };
        let cache = self.caches.cache_of_registry(route.provider.name(), &route.location.root);
        let cache = cache.map_err(PackageError::Cache)?;
        let record = cache.put(&route.location.path, self.answer(&route, listing, None)?);
        let aliases = &self.run.options.defaults.aliases;
        let mut whole = Package::new(id, route, record, Origin::Asked).counted(aliases);
        whole.order = package.order;
        let is_same = whole.has_alike(package, position);
        lock(&self.packages).insert(id.clone(), Arc::new(Slot::from(Ok(Arc::new(whole)))));
        Ok(is_same)
    }

    /// From now on, uses the place's own answer about a version instead of its listing.
    pub(super) fn correct(
        &self,
        package: &Package,
        position: Position,
        own: &Release,
    ) -> Result<(), PackageError> {
        let (id, route) = (package.id(), Route::clone(&package.route));
        let releases = package.releases_with(position, own)?;
        let cache = self.caches.cache_of_registry(route.provider.name(), &route.location.root);
        let cache = cache.map_err(PackageError::Cache)?;
        let learned = self.listed_as(&route, releases)?;
        let record = cache.put(&route.location.path, learned);
        let corrected = Package::new(id, route, record, Origin::Asked);
        let slot = Slot::from(Ok(Arc::new(corrected)));
        lock(&self.packages).insert(id.clone(), Arc::new(slot));
        Ok(())
    }

    /// The answer that a registry with these releases would give.
    fn listed_as(&self, route: &Route, releases: Vec<Release>) -> Result<Learned, PackageError> {
        self.learned(&Found::new(&route.location, json_lines(releases), None, None))
    }

    fn learned(&self, found: &Found) -> Result<Learned, PackageError> {
        Ok(wire::learned(self.run.options.now, found, &wire::fetched(found)?))
    }

    /// The result of a request, given what is cached.
    pub(super) fn answer(
        &self,
        route: &Route,
        listing: Listing,
        remembered: Option<&Record>,
    ) -> Result<Learned, PackageError> {
        let checked = self.run.options.now;
        // A folder of this machine is read every time.
        let unstated = (route.location.root.scheme() == "file").then_some(0);
        Ok(match (listing, remembered) {
            (Listing::Unchanged { max_age, validator }, Some(record)) => {
                let validator = validator.or_else(|| record.validator.clone());
                let max_age = max_age.or(unstated);
                let record = Record { checked, max_age, validator, ..record.clone() };
                Learned::unchanged(record)
            }
            (Listing::Unchanged { .. }, None) => {
                return Err(PackageError::Unasked(route.location.describe()));
            }
            // Remembered as long as what was found.
            (Listing::Absent { mut tried, validator, max_age }, _) => {
                tried.extend(route.tried.iter().cloned());
                let (validator, root) = (validator.as_deref(), &route.location.root);
                Learned::absent(checked, max_age.or(unstated), validator, &tried, root)
            }
            (Listing::Found(found), _) => {
                let max_age = found.max_age.or(unstated);
                self.learned(&Found { max_age, ..found })?
            }
        })
    }
}

/// Whether a version of `package` carries a copy of the package called `name`. What cannot be looked at counts as carrying one.
pub(super) fn carries(package: &Package, version: &str, name: &str) -> bool {
    let route = &package.route;
    if !route.provider.carries_copies(&route.location) {
        return false;
    }
    let position = Version::parse_lenient(version).ok();
    let Some(position) =
        position.and_then(|version| package.releases.position_of_version(&version))
    else {
        return true;
    };
    paths(package, Candidate::Release(position))
        .is_none_or(|paths| paths.iter().any(|path| mu_formats::helm::is_copy(path, name)))
}

/// The paths of the files of a version; `None` if it cannot be fetched.
fn paths(package: &Package, candidate: Candidate<'_>) -> Option<Vec<String>> {
    let (route, release) = package.release(candidate).ok()?;
    let fetched = || -> Result<Vec<String>, ProviderError> {
        let folder = private_folder();
        let folder = folder.tempdir().at("make a folder in", &std::env::temp_dir())?;
        let opened = Folder::open(folder.path()).at("open", folder.path())?;
        let mut tree = TreeWriter::new(opened, Limits::default());
        route.provider.fetch(&route.location, &release, &mut tree, &Silent)?;
        let tree = tree.finish()?;
        Ok(tree.entries().iter().map(|entry| entry.path.clone()).collect())
    };
    fetched().ok()
}
