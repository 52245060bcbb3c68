//! The registries of the settings: which of them serves a package, and where it is in that.

use mu_provider::SafeUrl;

use super::{GIT_HOSTS, Route, RouteError, Routes, parse};
use crate::reference::{Base, PackageId, Protocol};
use crate::workspace::Registry;

impl Routes {
    /// What the settings say.
    pub(super) fn registered(
        &self,
        id: &PackageId,
        path: &str,
    ) -> Result<Option<Route>, RouteError> {
        let Some((registry, rest)) = self.registry(id) else {
            return Ok(None);
        };
        let (provider, root) = self.place(registry)?;
        // What the prefix names is replaced by the URL; `.git` marks survive in the rest.
        let skipped = id.name_str().len() - rest.len();
        let is_repository = self.providers.get(provider)?.is_repository();
        let path = if is_repository { path.get(skipped..).unwrap_or(rest) } else { rest };
        self.below(registry, provider, root, path).map(Some)
    }

    /// Whether the settings say where the repositories really are that a reference reaches by `protocol`.
    pub(super) fn has_repositories_elsewhere(
        &self,
        id: &PackageId,
        protocol: &Protocol,
    ) -> Result<bool, RouteError> {
        let is_git = matches!(
            protocol,
            Protocol::GitHttps
                | Protocol::GitHttp
                | Protocol::GitSsh
                | Protocol::Ssh
                | Protocol::Git
        );
        let registry = self.registry(id).map(|(registry, _)| registry);
        let Some(registry) = registry.filter(|registry| is_git && registry.url.is_some()) else {
            return Ok(false);
        };
        let (provider, _) = self.place(registry)?;
        Ok(self.providers.get(provider)?.is_repository())
    }

    /// Which provider serves a registry of the settings, and where it is.
    fn place<'r>(&self, registry: &'r Registry) -> Result<(&'r str, SafeUrl), RouteError> {
        let root = match &registry.url {
            Some(url) => url.clone(),
            None => self.web_root(host_of(&registry.prefix))?,
        };
        let (is_git, root) = match root.as_url().as_str().strip_prefix("git+") {
            Some(inner) => (true, parse(inner)?),
            None => (matches!(root.scheme(), "git" | "ssh"), root),
        };
        let provider = match (registry.provider.as_deref(), root.scheme()) {
            (Some(provider), _) => provider,
            (None, _) if is_git => "git",
            (None, _) => match registry.url.as_ref().map(SafeUrl::scheme) {
                None | Some("http" | "https" | "file") => "hub",
                // As the protocol of a reference, a scheme that is no provider's is told as such.
                Some(scheme) => scheme,
            },
        };
        Ok((provider, root))
    }

    fn below(
        &self,
        registry: &Registry,
        provider: &str,
        root: SafeUrl,
        path: &str,
    ) -> Result<Route, RouteError> {
        let mut route = self.route(provider, root.as_folder(), path.to_owned())?;
        route.location.insecure |= registry.insecure;
        route.location.lenient = registry.lenient;
        Ok(route)
    }

    /// Where packages can be looked for by words: the registries of the settings, and the base of references
    /// without one, each with what the ids of its packages begin with.
    pub(in crate::index) fn registries(
        &self,
        base: &Base,
    ) -> Vec<(String, Result<Route, RouteError>)> {
        let mut places: Vec<(String, Result<Route, RouteError>)> = Vec::new();
        if !self.registries.iter().any(|registry| registry.prefix == base.as_str())
            && !GIT_HOSTS.contains(&base.host_port())
        {
            let route = self.web_root(base.host_port());
            let route = route.and_then(|root| self.route("hub", root, String::new()));
            places.push((base.as_str().to_owned(), route));
        }
        for registry in &self.registries {
            let place = self.place(registry);
            let route = place.and_then(|(provider, root)| self.below(registry, provider, root, ""));
            places.push((registry.prefix.clone(), route));
        }
        // The default base first, then by name, whatever order the settings have.
        places.sort_by(|(left, _), (right, _)| {
            (left != base.as_str(), left).cmp(&(right != base.as_str(), right))
        });
        places
    }

    /// The registry with the longest prefix of `id`, and what is left of the id.
    pub(in crate::index) fn registry<'id>(
        &self,
        id: &'id PackageId,
    ) -> Option<(&Registry, &'id str)> {
        self.registries.iter().find_map(|registry| Some((registry, registry.rest_of(id)?)))
    }
}

/// The host and port that the ids of a registry's packages begin with.
fn host_of(prefix: &str) -> &str {
    prefix.split_once('/').map_or(prefix, |(host, _)| host)
}
