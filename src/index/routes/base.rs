//! Finds what is at a base that no setting mentions: a hub, Git repositories, or charts.

use std::sync::Arc;

use mu_provider::{Location, Progress, SafeUrl};

use super::{Kind, Route, RouteError, Routes};
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
            if !is_git && self.is_helm(&location)? {
                Kind::Helm(root)
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

    /// Whether a package would be in a chart repository.
    fn is_helm(&self, location: &Location) -> Result<bool, RouteError> {
        let route = self.route("helm", location.root.clone(), location.path.clone());
        // A program may be built without this provider.
        let Ok(Route { provider, location }) = route else { return Ok(false) };
        Ok(provider.probe(&location)?)
    }
}
