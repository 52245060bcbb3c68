//! The registries of the settings: which of them serves a package, and where the package is in it.

use std::sync::{Arc, OnceLock};

use mu_provider::{Lead, NamedBy, PlaceKind, Provider, SafeUrl, is_bucket_scheme};

use super::base::{GIT_HOSTS, HOME};
use super::{Route, RouteError, Routes, parse};
use crate::reference::{Base, PackageId, Protocol};
use crate::workspace::ConfiguredRegistry;

/// A place where packages can be searched by words.
#[derive(Debug)]
pub struct Searchable {
    /// The start of its packages' ids.
    pub prefix: String,
    /// The part of the ids before the names there.
    pub before_names: String,
    /// Where it is.
    pub route: Result<Route, RouteError>,
}

/// A registry of the settings, with its place once a package was looked for there.
#[derive(Debug)]
pub(super) struct ServingRegistry {
    pub(super) registry: ConfiguredRegistry,
    place: OnceLock<(Arc<dyn Provider>, Lead)>,
}

impl From<ConfiguredRegistry> for ServingRegistry {
    fn from(registry: ConfiguredRegistry) -> Self {
        Self { registry, place: OnceLock::new() }
    }
}

impl RouteError {
    /// This error, with the settings that name the missing provider.
    fn set_in(self, registry: &ConfiguredRegistry) -> Self {
        let file = registry.defined_in.display().to_string();
        match self {
            Self::NoProvider { name, known, .. } if !file.is_empty() => {
                let set_in = format!("; `{}` is set in `{file}`", registry.prefix);
                Self::NoProvider { name, known, set_in }
            }
            error => error,
        }
    }
}

impl Routes {
    /// What the settings say.
    pub(super) fn registered(
        &self,
        id: &PackageId,
        path: &str,
    ) -> Result<Option<Route>, RouteError> {
        let Some((serving, rest)) = self.serving(id) else {
            return Ok(None);
        };
        let (provider, root) = self.place_of(serving)?;
        // The prefix is replaced by the URL, and what is left of the name is the path there.
        if provider.facts().kind != PlaceKind::Repository {
            return self.below(&serving.registry, provider, root, rest).map(Some);
        }
        // `.git` marks survive in the rest, and the prefix may have one, too.
        let segments = |text: &str| text.split('/').filter(|part| !part.is_empty()).count();
        let skipped = segments(id.name_str()) - segments(rest);
        let path = path.strip_prefix(HOME).unwrap_or(path);
        let marked = path.split('/').skip(skipped).collect::<Vec<_>>().join("/");
        let path = if segments(&marked) == segments(rest) { &marked } else { rest };
        self.below(&serving.registry, provider, root, path).map(Some)
    }

    /// Whether a registry of the settings applies to a package that a reference reaches by `protocol`. It
    /// does not apply to folders of this machine.
    pub(in crate::index) fn has_registry_place(&self, id: &PackageId, protocol: &Protocol) -> bool {
        let Some((registry, _)) = self.registry(id) else { return false };
        match protocol {
            Protocol::File | Protocol::GitFile => false,
            protocol => {
                registry.url.is_some()
                    || protocol.provider().is_some() && registry.provider.is_some()
            }
        }
    }

    /// The provider of a registry of the settings, and its folder.
    fn place_of(&self, serving: &ServingRegistry) -> Result<(Arc<dyn Provider>, Lead), RouteError> {
        if let Some(known) = serving.place.get() {
            return Ok(known.clone());
        }
        let registry = &serving.registry;
        let (name, root) = self.place(registry)?;
        let provider = self.providers.get(name).map_err(|error| error.set_in(registry))?;
        let root = match registry.named_by {
            NamedBy::User => Lead::of_user(root.as_folder()),
            _ => Lead::of_workspace(root.as_folder()),
        };
        let found = (provider, root);
        // Without a URL, the references to its packages say whether it is reached over plain http.
        if registry.url.is_some() {
            let _ = serving.place.set(found.clone());
        }
        Ok(found)
    }

    /// The name of the provider of a registry, and its place.
    fn place<'r>(
        &self,
        registry: &'r ConfiguredRegistry,
    ) -> Result<(&'r str, SafeUrl), RouteError> {
        let root = match &registry.url {
            Some(url) => url.clone(),
            None => self.web_root(registry.prefix.split('/').next().unwrap_or_default())?,
        };
        let text = root.as_url().as_str();
        let artifacts = ["oci://", "helm+oci://", "kudo+oci://"];
        if let Some(rest) = artifacts.iter().find_map(|scheme| text.strip_prefix(scheme)) {
            let root = parse(&format!("https://{rest}"))?;
            return Ok((registry.provider.as_deref().unwrap_or("oci"), root));
        }
        let (word, inner) = text.split_once('+').unwrap_or_default();
        let said = ["git", "helm", "kudo", "olm"].into_iter().find(|known| *known == word);
        let (said, root) = match said {
            Some(_) => (said, parse(inner)?),
            None => (matches!(root.scheme(), "git" | "ssh").then_some("git"), root),
        };
        let by_scheme = || match registry.url.as_ref().map(SafeUrl::scheme) {
            None | Some("http" | "https" | "file") => "hub",
            Some(scheme) if is_bucket_scheme(scheme) => "hub",
            // Like the protocol of a reference, a scheme without a provider is reported as such.
            Some(scheme) => scheme,
        };
        Ok((registry.provider.as_deref().or(said).unwrap_or_else(by_scheme), root))
    }

    fn below(
        &self,
        registry: &ConfiguredRegistry,
        provider: Arc<dyn Provider>,
        root: Lead,
        path: &str,
    ) -> Result<Route, RouteError> {
        let mut route = self.route_with(provider, root, path.to_owned())?;
        route.location.insecure |= registry.insecure;
        route.location.lenient = registry.lenient;
        Ok(route)
    }

    /// Where packages can be looked for by words: the registries of the settings, and the base of references
    /// without one.
    pub(in crate::index) fn registries_for_search(&self, base: &Base) -> Vec<Searchable> {
        let mut places: Vec<Searchable> = Vec::new();
        if !self.registries.iter().any(|serving| serving.registry.prefix == base.as_str())
            && !GIT_HOSTS.contains(&base.host_port())
        {
            let route = self.web_root(base.host_port());
            let route =
                route.and_then(|root| self.route("hub", Lead::of_user(root), String::new()));
            let prefix = base.as_str().to_owned();
            places.push(Searchable { before_names: prefix.clone(), prefix, route });
        }
        for serving in &self.registries {
            let registry = &serving.registry;
            let place = self.place_of(serving);
            let route = place.and_then(|(provider, root)| self.below(registry, provider, root, ""));
            let before_names = registry.before_names().to_owned();
            places.push(Searchable { prefix: registry.prefix.clone(), before_names, route });
        }
        // The default base first, then by name, whatever order the settings have.
        places.sort_by(|left, right| {
            let (left, right) = (&left.prefix, &right.prefix);
            (left != base.as_str(), left).cmp(&(right != base.as_str(), right))
        });
        places
    }

    /// Which provider serves a registry of the settings.
    pub(in crate::index) fn registry_provider(
        &self,
        registry: &ConfiguredRegistry,
    ) -> Result<String, RouteError> {
        let (provider, _) = self.place_of(&ServingRegistry::from(registry.clone()))?;
        Ok(provider.name().to_owned())
    }

    /// The registry with the longest prefix of `id`, and the rest of the id.
    pub(in crate::index) fn registry<'id>(
        &self,
        id: &'id PackageId,
    ) -> Option<(&ConfiguredRegistry, &'id str)> {
        self.serving(id).map(|(serving, rest)| (&serving.registry, rest))
    }

    fn serving<'id>(&self, id: &'id PackageId) -> Option<(&ServingRegistry, &'id str)> {
        self.registries.iter().find_map(|serving| Some((serving, serving.registry.rest_of(id)?)))
    }
}
