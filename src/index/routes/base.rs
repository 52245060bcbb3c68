//! Finds what is at a base that no setting mentions: a hub, Git repositories, charts, or KUDO operators.

use std::sync::Arc;

use mu_provider::{ErrorKind, Location, Progress, ProviderError, SafeUrl, is_bucket_scheme};

use super::hint::Hint;
use super::{Kind, Route, RouteError, Routes, inside, parse};
use crate::reference::{PackageId, Protocol};
use mu_provider::threads::lock;

impl Routes {
    /// Finds what is at a base, once a run; `None` if that needs a request that is not allowed.
    pub(super) fn base(
        &self,
        base: &str,
        root: SafeUrl,
        path: &str,
        known: &dyn Fn(&str, &SafeUrl) -> bool,
        progress: Option<&dyn Progress>,
    ) -> Result<Option<Kind>, RouteError> {
        let cell = Arc::clone(lock(&self.bases).entry(base.to_owned()).or_default());
        let mut found = lock(&cell);
        if let Some(found) = &*found {
            return Ok(Some(found.clone()));
        }
        let Some(progress) = progress else {
            let is_known = known("hub", &root);
            return Ok(is_known.then_some(Kind::Hub(root)));
        };
        let mut location = Location::new(root.clone(), "");
        location.insecure = self.allow_insecure;
        let hub = self.providers.get("hub")?;
        let base = if known("hub", &root) || (!known("git", &root) && hub.probe(&location)?) {
            Kind::Hub(root)
        } else {
            location.path = path.to_owned();
            let is_git = match self.providers.get("git") {
                Ok(_) if known("git", &root) => true,
                Ok(git) => {
                    progress.waiting(&format!(
                        "looking for a Git repository at {}",
                        location.describe()
                    ));
                    git.probe(&location)?
                }
                Err(_) => false,
            };
            if !is_git && self.is_listed("helm", &location)? {
                Kind::Helm(root)
            } else if !is_git && self.is_listed("kudo", &location)? {
                Kind::Kudo(root)
            } else if !is_git {
                // Treated as a hub without that package, which is what a bare reference means first; not
                // cached, because the next package may be a repository.
                return Ok(Some(Kind::Hub(root)));
            } else {
                Kind::Git(root)
            }
        };
        *found = Some(base.clone());
        Ok(Some(base))
    }

    /// The bucket that a reference to a package names, if one does and no registry has the package.
    pub(super) fn bucket(
        &self,
        id: &PackageId,
        hint: &Hint,
    ) -> Result<Option<SafeUrl>, RouteError> {
        let Some(Protocol::Plugin(scheme)) = &hint.protocol else { return Ok(None) };
        let protocol = Protocol::Plugin(scheme.clone());
        if !is_bucket_scheme(scheme) || self.is_placed(id, &protocol) {
            return Ok(None);
        }
        let user = hint.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        parse(&format!("{scheme}://{user}{}", id.base())).map(Some)
    }

    /// The route to a package in a bucket. The hub is in the first folder on the way that has a `hub.json`, and the rest is
    /// the package's name there.
    pub(super) fn in_bucket(
        &self,
        bucket: &SafeUrl,
        path: &str,
        known: &dyn Fn(&str, &SafeUrl) -> bool,
        progress: Option<&dyn Progress>,
    ) -> Result<Option<Route>, RouteError> {
        let mut folders = vec![(bucket.clone(), path)];
        for (slash, _) in path.match_indices('/') {
            let (folder, name) = path.split_at(slash);
            folders.push((inside(bucket, folder)?, name.trim_start_matches('/')));
        }
        let of = |(root, name): &(SafeUrl, &str)| {
            self.route("hub", root.clone(), (*name).to_owned()).map(Some)
        };
        if let Some(found) = folders.iter().find(|(root, _)| known("hub", root)) {
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

    /// Whether a package would be in a repository that `provider` reads: there is an `index.yaml` of its kind.
    fn is_listed(&self, provider: &str, location: &Location) -> Result<bool, RouteError> {
        let route = self.route(provider, location.root.clone(), location.path.clone());
        // A program may be built without this provider.
        let Ok(Route { provider, location }) = route else { return Ok(false) };
        Ok(provider.probe(&location)?)
    }
}
