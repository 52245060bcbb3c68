//! Where packages are by the registries of the settings; and by their base where no setting says it: by what references say in
//! addition to ids, and by what is at the base, which may be a hub, Git repositories, charts, or KUDO operators.
//!
//! A hub has the whole base. All else has a folder of it, so a host can have charts in one folder and repositories in another.
//! The answers hold for a run; what was listed in an earlier run is not looked for again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use mu_provider::threads::lock;
use mu_provider::{
    ErrorKind, Lead, Location, NamedBy, PlaceKind, Progress, Provider, ProviderError, SafeUrl,
    is_bucket_scheme,
};
use rustc_hash::FxHashMap;

use super::{Route, RouteError, Routes, inside, parse};
use crate::index::cache::Caches;
use crate::reference::{Base, GIT_HOSTS, PackageId, Protocol, Reference};
use crate::workspace::ConfiguredRegistry;

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

/// What references say about packages.
#[derive(Debug, Default)]
pub(in crate::index) struct Hints {
    stated: Mutex<FxHashMap<PackageId, Hint>>,
    /// What the lock says, where no reference says anything.
    locked: Mutex<FxHashMap<PackageId, Hint>>,
}

/// What a reference says about the place of a package, in addition to its id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::index) struct Hint {
    pub(super) protocol: Option<Protocol>,
    pub(super) user: Option<String>,
    /// The name as written, `.git` marks kept.
    pub(super) path: Option<String>,
    pub(super) folder: Option<PathBuf>,
}

impl Hint {
    /// What a reference says; local folders are relative to `from`.
    fn read(reference: &Reference, from: &Path) -> Self {
        let marked = reference.path() != reference.name().as_str();
        let mut path = marked.then(|| reference.path().to_owned());
        // As for Git, `git@host:path` is below the home folder of whoever connects. On these hosts both are the same.
        let is_known = reference.base().is_some_and(|base| GIT_HOSTS.contains(&base.host_port()));
        if reference.is_scp() && !is_known {
            path = Some(format!("{HOME}{}", reference.path()));
        }
        Self {
            protocol: reference.protocol().cloned(),
            user: reference.user().map(str::to_owned),
            path,
            folder: reference.local().map(|path| crate::env::absolute(from, Path::new(path))),
        }
    }
}

impl Hints {
    /// What is known about a package.
    pub(in crate::index) fn hint_for(&self, id: &PackageId) -> Option<Hint> {
        let stated = lock(&self.stated).get(id).cloned();
        stated.or_else(|| lock(&self.locked).get(id).cloned())
    }

    /// Records the place of a package that the lock gives.
    pub(super) fn note_locked(&self, id: &PackageId, reference: &Reference) {
        let hint = Hint::read(reference, Path::new(""));
        lock(&self.locked).insert(id.clone(), hint);
    }

    /// Records the place of a package that `reference` gives; local folders are relative to `from`.
    pub(super) fn note(&self, id: &PackageId, reference: &Reference, from: &Path) {
        let hint = Hint::read(reference, from);
        if hint == Hint::default() {
            return;
        }
        let mut hints = lock(&self.stated);
        let known = hints.entry(id.clone()).or_default();
        // The reference that says the most wins, in whatever order they come.
        if rank(&hint) > rank(known) {
            *known = hint;
        }
    }

    /// The reference that leads to `id` again, if its id alone does not.
    pub(in crate::index) fn written(&self, id: &PackageId) -> Option<String> {
        let hint = self.hint_for(id)?;
        if let Some(folder) = &hint.folder {
            return Some(folder.display().to_string());
        }
        let user = hint.user.map(|user| format!("{user}@")).unwrap_or_default();
        let path = hint.path.unwrap_or_else(|| id.name_str().to_owned());
        let protocol = match hint.protocol {
            // The place of a local repository is complete.
            Some(protocol) if protocol.is_file() => {
                return Some(format!("{protocol}:///{path}"));
            }
            // Below the home folder, as Git writes it.
            Some(_) if path.starts_with(HOME) && !user.is_empty() => {
                let base = id.base();
                return Some(format!("{user}{}:{}", base.host_port(), &path[HOME.len()..]));
            }
            Some(protocol) => format!("{protocol}://"),
            None => String::new(),
        };
        Some(format!("{protocol}{user}{}{path}", id.base()))
    }

    /// Records that `id` is where `from` is: a dependency without a base is reached in the same way as the
    /// package that declares it, and comes from the same repository if it is in it.
    pub(in crate::index) fn inherit(&self, id: &PackageId, from: &PackageId) {
        let Some(known) = self.hint_for(from).filter(|_| id.base() == from.base()) else { return };
        let path = known.path.as_deref().and_then(|path| {
            let is_file = known.protocol.as_ref().is_some_and(Protocol::is_file);
            let is_beside = is_file && id.name().namespace() == from.name().namespace();
            let folder = path.rsplit_once('/').filter(|_| is_beside).map(|(folder, _)| folder);
            let beside = || folder.map(|folder| format!("{folder}/{}", id.name().leaf()));
            marked_alike(id.name_str(), path).or_else(beside)
        });
        let hint = Hint { protocol: known.protocol, user: known.user, path, folder: None };
        if hint != Hint::default() {
            lock(&self.stated).entry(id.clone()).or_insert(hint);
        }
    }
}

/// The beginning of a path below the home folder of whoever connects.
const HOME: &str = "~/";

/// `name` with the `.git` mark of `path`, if it is in the same repository.
fn marked_alike(name: &str, path: &str) -> Option<String> {
    if let Some(path) = path.strip_prefix(HOME) {
        return marked_alike(name, path).map(|path| format!("{HOME}{path}"));
    }
    let mut repository = String::new();
    for segment in path.split('/') {
        let (plain, is_marked) = match segment.strip_suffix(".git") {
            Some(plain) => (plain, true),
            None => (segment, false),
        };
        repository.push_str(plain);
        if is_marked {
            let rest = name.strip_prefix(&repository)?;
            let is_inside = rest.is_empty() || rest.starts_with('/');
            return is_inside.then(|| format!("{repository}.git{rest}"));
        }
        repository.push('/');
    }
    None
}

/// The amount of information in a hint.
fn rank(hint: &Hint) -> (bool, bool, bool, String) {
    (
        hint.folder.is_some(),
        hint.protocol
            .as_ref()
            .is_some_and(|protocol| !matches!(protocol, Protocol::Https | Protocol::Http)),
        hint.path.is_some(),
        // Any order works among equals, as long as it is always the same.
        format!("{:?}{:?}{:?}{:?}", hint.protocol, hint.user, hint.path, hint.folder),
    )
}

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
                registry.url.is_some() || protocol.is_of_index() && registry.provider.is_some()
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
        let protocol = Protocol::from_scheme(root.scheme());
        if protocol.transport() == "oci"
            && let Some((_, rest)) = text.split_once("://")
        {
            let said = registry.provider.as_deref().unwrap_or("oci");
            let of_tool = format!("{said}+oci");
            // A format and `oci://` mean what `FORMAT+oci://` does: artifacts tell their format, and a catalog is an image.
            return match Protocol::from_scheme(&of_tool).provider() {
                Some("oci") => Ok(("oci", parse(&format!("https://{rest}"))?)),
                _ if Protocol::provider_of_tool(said).is_some() => {
                    Ok((said, parse(&format!("oci://{rest}"))?))
                }
                _ => Ok((said, parse(&format!("https://{rest}"))?)),
            };
        }
        let (tool, inner) = text.split_once('+').unwrap_or_default();
        let (said, root) = match Protocol::provider_of_tool(tool) {
            // Also where no reference leads: `olm+oci://`.
            Some(provider) => (Some(provider), parse(inner)?),
            None => (protocol.provider(), root),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_the_same_repository_has_its_mark() {
        for (name, path, expected) in [
            ("grp/mono/libs/b", "grp/mono.git/libs/a", Some("grp/mono.git/libs/b")),
            ("grp/mono", "grp/mono.git/libs/a", Some("grp/mono.git")),
            ("grp/monolith", "grp/mono.git", None),
            ("grp/b", "grp/mono.git", None),
            ("grp/mono/b", "grp/mono/a", None),
        ] {
            assert_eq!(marked_alike(name, path).as_deref(), expected, "{name} {path}");
        }
    }
}
