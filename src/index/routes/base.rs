//! Finds what is at a base that no setting mentions: a hub, Git repositories, charts, or KUDO operators.
//!
//! A hub has the whole base. All else has a folder of it, so a host can have charts in one folder and repositories in
//! another. The answers hold for a run; what was listed in an earlier run is not looked for again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mu_provider::threads::lock;
use mu_provider::{
    ErrorKind, Lead, Location, PlaceKind, Progress, ProviderError, is_bucket_scheme,
};

use super::hint::Hint;
use super::{Route, RouteError, Routes, inside, parse};
use crate::index::cache::Caches;
use crate::reference::{PackageId, Protocol};

/// What a run knows about a base that no setting mentions.
#[derive(Debug, Default)]
pub(super) struct Found {
    is_hub: Mutex<Option<bool>>,
    /// Which provider reads the packages of a folder.
    folders: Mutex<HashMap<String, Arc<Mutex<Option<&'static str>>>>>,
}

/// The providers whose packages are looked for in a folder, in this order.
const IN_FOLDERS: [&str; 3] = ["git", "helm", "kudo"];

impl Routes {
    /// The route to a package below a base that no setting mentions; `None` if that needs a request that is not allowed.
    pub(super) fn base(
        &self,
        id: &PackageId,
        root: Lead,
        path: &str,
        caches: Option<&Caches>,
        progress: Option<&dyn Progress>,
    ) -> Result<Option<Route>, RouteError> {
        let found = Arc::clone(lock(&self.bases).entry(id.base().as_str().to_owned()).or_default());
        let in_hub = || self.route("hub", root.clone(), id.name_str().to_owned()).map(Some);
        // First what is known without a request: a hub, or a cache that has the package.
        if self.is_hub(&found, &root, caches, None)? == Some(true) {
            return in_hub();
        }
        let mut routes = Vec::new();
        for provider in IN_FOLDERS {
            // A program may be built without one of them.
            let Ok(route) = self.route(provider, root.clone(), path.to_owned()) else { continue };
            // One index has all packages of its place, and one repository only its own.
            let name = (route.provider.facts().kind == PlaceKind::Repository)
                .then_some(route.location.path.as_str());
            if caches.is_some_and(|caches| caches.has_listed(provider, &route.location.root, name))
            {
                return Ok(Some(route));
            }
            routes.push((provider, route));
        }
        // The packages of a folder have the provider that was found for the first of them.
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let found_in = Arc::clone(lock(&found.folders).entry(folder).or_default());
        let Some(progress) = progress else {
            let known = *lock(&found_in);
            return Ok(routes
                .into_iter()
                .find_map(|(provider, route)| (known == Some(provider)).then_some(route)));
        };
        if self.is_hub(&found, &root, caches, Some(progress))? == Some(true) {
            return in_hub();
        }
        // Held while places are asked, so that other packages of the folder wait for the answer.
        let mut known = lock(&found_in);
        let mut tried = Vec::new();
        for (provider, route) in routes {
            if *known == Some(provider) || known.is_none() && is_there(&route, progress)? {
                *known = Some(provider);
                return Ok(Some(route));
            }
            let place = &route.location;
            tried.push(match route.provider.facts().kind == PlaceKind::Repository {
                true => format!("{}, where there is no Git repository", place.describe()),
                false => format!("{}index.yaml", place.root),
            });
        }
        tried.dedup();
        // Treated as a hub without that package, which is what a bare reference means first; the next package of the folder
        // may be a repository.
        Ok(in_hub()?.map(|route| Route { tried, ..route }))
    }

    /// Whether there is a hub at a base; `None` if that needs a request, and there is no `progress` to report to.
    fn is_hub(
        &self,
        found: &Found,
        root: &Lead,
        caches: Option<&Caches>,
        progress: Option<&dyn Progress>,
    ) -> Result<Option<bool>, RouteError> {
        let mut is_hub = lock(&found.is_hub);
        if is_hub.is_none() && caches.is_some_and(|caches| caches.has_listed("hub", root, None)) {
            *is_hub = Some(true);
        }
        if is_hub.is_none() && progress.is_some() {
            let mut location = Location::new(root.clone(), "");
            location.insecure = self.allow_insecure;
            *is_hub = Some(self.providers.get("hub")?.probe(&location)?);
        }
        Ok(*is_hub)
    }

    /// The bucket that a reference to a package names, if one does and no registry has the package.
    pub(super) fn bucket(&self, id: &PackageId, hint: &Hint) -> Result<Option<Lead>, RouteError> {
        let Some(protocol @ Protocol::Plugin(scheme)) = &hint.protocol else { return Ok(None) };
        if !is_bucket_scheme(scheme) || self.has_registry_place(id, protocol) {
            return Ok(None);
        }
        let user = hint.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let url = parse(&format!("{scheme}://{user}{}", id.base()))?;
        Ok(Some(Lead::of_workspace(url)))
    }

    /// The route to a package in a bucket. The hub is in the first folder on the way that has a `hub.json`, and the rest is
    /// the package's name there.
    pub(super) fn in_bucket(
        &self,
        bucket: &Lead,
        path: &str,
        caches: Option<&Caches>,
        progress: Option<&dyn Progress>,
    ) -> Result<Option<Route>, RouteError> {
        let mut folders = vec![(bucket.clone(), path)];
        for (slash, _) in path.match_indices('/') {
            let (folder, name) = path.split_at(slash);
            folders.push((inside(bucket, folder)?, name.trim_start_matches('/')));
        }
        let of = |(root, name): &(Lead, &str)| {
            self.route("hub", root.clone(), (*name).to_owned()).map(Some)
        };
        let listed =
            |root: &Lead| caches.is_some_and(|caches| caches.has_listed("hub", root, None));
        if let Some(found) = folders.iter().find(|(root, _)| listed(root)) {
            return of(found);
        }
        if progress.is_none() {
            return Ok(None);
        }
        let hub = self.providers.get("hub")?;
        for folder in &folders {
            let mut location = Location::new(folder.0.clone(), "");
            location.insecure = self.allow_insecure;
            if hub.probe(&location)? {
                return of(folder);
            }
        }
        let tried: Vec<String> = folders.iter().map(|(root, _)| format!("`{root}`")).collect();
        let text =
            format!("there is no hub in the bucket: no `hub.json` in {}", tried.join(" or "));
        Err(ProviderError::new(ErrorKind::NotFound, text).into())
    }
}

/// Asks whether the package of a route can be there.
fn is_there(route: &Route, progress: &dyn Progress) -> Result<bool, RouteError> {
    let location = &route.location;
    if route.provider.facts().kind == PlaceKind::Repository {
        progress.waiting(&format!("looking for a Git repository at {}", location.describe()));
    }
    Ok(route.provider.probe(location)?)
}
