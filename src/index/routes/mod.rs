//! Which provider serves a package, where the package really is, and who may name that place.
//!
//! [`Routes`] finds it, in this order: a folder, the place of Git repositories in the registries of the settings, an
//! explicit scheme (`git+https://`, `ssh://`, `oci://`, `s3://`), all other registries, an archive by its name
//! (`x-1.2.tgz`), well-known Git hosts, then probing: for a hub at the base, then for a Git repository or an
//! `index.yaml` in the folder.
//!
//! A reference of the workspace or the user leads anywhere, and so do the settings. Content of the network is kept away
//! from this machine: a dependency of a package that was fetched leads no nearer to it than the place of that package.
//! What it names is checked here before it becomes the place of a package, and a place near to this machine that nobody
//! has named so is not asked. Versions are not requested here.

mod base;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mu_provider::threads::lock;
use mu_provider::{
    Dates, Lead, Location, ManifestFile, PlaceKind, Progress, Provider, ProviderError, Reach,
    SafeUrl, is_bucket_scheme,
};
use rustc_hash::{FxHashMap, FxHashSet};

pub use self::base::Searchable;
use self::base::{Hint, Hints, ServingRegistry};
use crate::index::cache::Caches;
use crate::index::run::IndexOptions;
use crate::reference::{GIT_HOSTS, PackageId, Protocol, Reference};

/// The providers of this program, by name, and those of plugins.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    built_in: BTreeMap<String, Arc<dyn Provider>>,
    plugins: Option<Arc<dyn Plugins>>,
}

/// Knows the plugins of this machine.
pub trait Plugins: fmt::Debug + Send + Sync {
    /// The plugin that serves a scheme, which is also its name; the same one in every call.
    fn find(&self, name: &str) -> Option<Arc<dyn Provider>>;
}

impl Providers {
    /// Adds a provider under its own name.
    pub fn add(&mut self, provider: Arc<dyn Provider>) {
        self.built_in.insert(provider.name().to_owned(), provider);
    }

    /// These providers with plugins, which serve what no provider of this program serves.
    #[must_use]
    pub fn with_plugins(self, plugins: Arc<dyn Plugins>) -> Self {
        Self { plugins: Some(plugins), ..self }
    }

    /// The names of the providers of this program.
    #[cfg(test)]
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.built_in.keys().map(String::as_str)
    }

    /// The provider with this name.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Provider>, RouteError> {
        if let Some(provider) = self.built_in.get(name) {
            return Ok(Arc::clone(provider));
        }
        let plugin = self.plugins.as_ref().and_then(|plugins| plugins.find(name));
        plugin.ok_or_else(|| RouteError::NoProvider {
            name: name.to_owned(),
            known: self.built_in.keys().cloned().collect::<Vec<_>>().join(", "),
            set_in: String::new(),
        })
    }
}

/// Why no provider serves a package.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// No provider has that name.
    #[error(
        "there is no protocol or provider `{name}`: the built-in providers are {known}, and no plugin `mu-provider-{name}` is in `~/.mu/plugins` or on `PATH`{set_in}"
    )]
    NoProvider {
        /// The name.
        name: String,
        /// The existing names.
        known: String,
        /// Which settings name it, in words.
        set_in: String,
    },
    /// The place is not a URL.
    #[error("`{text}` is not a URL that packages can come from")]
    Url {
        /// The text.
        text: String,
    },
    /// The place could not be reached.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

/// A provider, and the place of the package for it.
#[derive(Debug, Clone)]
pub struct Route {
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// The place.
    pub location: Location,
    /// Where the package was looked for before it was taken to be there.
    pub tried: Vec<String>,
}

impl Route {
    /// The folder of a package that is a local folder.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let is_folder = self.provider.facts().kind == PlaceKind::Folder;
        let root = is_folder.then(|| self.location.root.as_url().to_file_path().ok()).flatten()?;
        Some(if self.location.path.is_empty() { root } else { root.join(&self.location.path) })
    }

    /// Where a manifest is, for messages.
    pub(super) fn manifest_path(&self, file: &ManifestFile) -> PathBuf {
        match self.folder() {
            Some(folder) => folder.join(&file.name),
            None => PathBuf::from(format!("{}/{}", self.location.describe(), file.name)),
        }
    }
}

/// Finds routes, and remembers the results of probing bases.
#[derive(Debug)]
pub(super) struct Routes {
    pub(super) providers: Providers,
    registries: Vec<ServingRegistry>,
    allow_insecure: bool,
    dates: Dates,
    pub(super) hints: Hints,
    /// Bases that some reference reaches over plain http.
    plain: Mutex<HashSet<String>>,
    /// Bases that somebody named who may name places near to this machine.
    near: Mutex<FxHashSet<Box<str>>>,
    /// How near to this machine the hosts of bases are. Every dependency of every version that is looked at is judged by this.
    reaches: Mutex<FxHashMap<Box<str>, Reach>>,
    bases: Mutex<HashMap<String, Arc<base::Found>>>,
}

impl Routes {
    /// Takes providers and registries out of the options.
    pub(super) fn new(options: &mut IndexOptions) -> Self {
        let mut registries = std::mem::take(&mut options.registries);
        // Longest first, so that the first match is the one that counts.
        registries.sort_by_key(|registry| std::cmp::Reverse(registry.prefix.len()));
        Self {
            providers: std::mem::take(&mut options.providers),
            registries: registries.into_iter().map(ServingRegistry::from).collect(),
            allow_insecure: options.allow_insecure,
            dates: options.dates,
            hints: Hints::default(),
            plain: Mutex::default(),
            near: Mutex::new(FxHashSet::from_iter([options.defaults.base.as_str().into()])),
            reaches: Mutex::default(),
            bases: Mutex::default(),
        }
    }

    /// Records the place of a package that `reference` gives, which was written by somebody who may name it; local folders are
    /// relative to `from`.
    pub(super) fn declare(&self, id: &PackageId, reference: &Reference, from: &Path) {
        self.let_in_base(id.base_str());
        let is_plain = |protocol: &Protocol| protocol.transport() == "http" && !protocol.is_git();
        if reference.protocol().is_some_and(is_plain) {
            lock(&self.plain).insert(id.base().as_str().to_owned());
        }
        self.hints.note(id, reference, from);
    }

    /// Records the place of a package that the lock gives.
    pub(super) fn record_locked_place(&self, id: &PackageId, reference: &Reference) {
        if reference.protocol() == Some(&Protocol::Http) {
            lock(&self.plain).insert(id.base().as_str().to_owned());
        }
        self.hints.note_locked(id, reference);
    }

    /// The route to a package.
    ///
    /// What has cached answers in `caches` is not probed for again.
    pub(super) fn find(
        &self,
        id: &PackageId,
        caches: Option<&Caches>,
        progress: &dyn Progress,
    ) -> Result<Route, RouteError> {
        let route = self.look_up(id, caches, Some(progress))?;
        Ok(route.expect("there is a route once everybody may be asked"))
    }

    /// The route to a package, if it is known without a request.
    pub(super) fn known(&self, id: &PackageId, caches: Option<&Caches>) -> Option<Route> {
        self.look_up(id, caches, None).ok().flatten()
    }

    /// The route to a package as far as known without a request; an unknown base counts as a hub, which is
    /// what a bare reference means first.
    pub(super) fn presumed(&self, id: &PackageId, caches: Option<&Caches>) -> Option<Route> {
        self.known(id, caches).or_else(|| {
            let root = self.lead(id, self.web_root(id.base().host_port()).ok()?).ok()?;
            self.route("hub", root, id.name_str().to_owned()).ok()
        })
    }

    /// The route to a package; `None` if that needs a request, and there is no `progress` to report to.
    fn look_up(
        &self,
        id: &PackageId,
        caches: Option<&Caches>,
        progress: Option<&dyn Progress>,
    ) -> Result<Option<Route>, RouteError> {
        let hint = self.hints.hint_for(id).unwrap_or_default();
        if let Some(folder) = &hint.folder {
            let root = url::Url::from_directory_path(folder)
                .map_err(|()| RouteError::Url { text: folder.display().to_string() })?;
            return Ok(Some(Route {
                provider: self.providers.get("path")?,
                location: Location::new(Lead::of_workspace(root.into()), ""),
                tried: Vec::new(),
            }));
        }
        let path = hint.path.clone().unwrap_or_else(|| id.name_str().to_owned());
        if let Some(protocol) = &hint.protocol
            && (is_misspelt(protocol) || !self.has_registry_place(id, protocol))
            && let Some(route) = self.explicit(id, protocol, &hint, &path)?
        {
            return Ok(Some(route));
        }
        if let Some(bucket) = self.bucket(id, &hint)? {
            return self.in_bucket(&bucket, id.name_str(), caches, progress);
        }
        if let Some(route) = self.registered(id, &path)? {
            return Ok(Some(route));
        }
        let base = id.base();
        let root = self.lead(id, self.web_root(base.host_port())?)?;
        if hint.path.is_none() && id.name().is_archive() {
            return self.route("url", root, path).map(Some);
        }
        if hint.path.is_some() || GIT_HOSTS.contains(&base.host_port()) {
            return self.route("git", root, path).map(Some);
        }
        self.base(id, root, &path, caches, progress)
    }

    fn route(&self, provider: &str, root: Lead, path: String) -> Result<Route, RouteError> {
        self.route_with(self.providers.get(provider)?, root, path)
    }

    fn route_with(
        &self,
        provider: Arc<dyn Provider>,
        root: Lead,
        path: String,
    ) -> Result<Route, RouteError> {
        let is_flat = provider.facts().places_are_flat;
        let (root, path) = match is_flat.then(|| path.rsplit_once('/')).flatten() {
            Some((folder, leaf)) => (inside(&root, folder)?, leaf.to_owned()),
            None => (root, path),
        };
        let mut location = Location::new(root, path);
        location.insecure = self.allow_insecure;
        location.dates = self.dates;
        Ok(Route { provider, location, tried: Vec::new() })
    }

    /// A scheme that is unambiguous, of a reference whose place was checked when it was recorded.
    fn explicit(
        &self,
        id: &PackageId,
        protocol: &Protocol,
        hint: &Hint,
        path: &str,
    ) -> Result<Option<Route>, RouteError> {
        let base = id.base();
        let host = match &hint.user {
            Some(user) => format!("{user}@{}", base.host_port()),
            None => base.host_port().to_owned(),
        };
        if let Protocol::Plugin(scheme) = protocol {
            // The hub in a bucket has to be found first.
            if is_bucket_scheme(scheme) {
                return Ok(None);
            }
            let root = Lead::of_workspace(parse(&format!("{scheme}://{host}/"))?);
            return self.route(scheme, root, path.to_owned()).map(Some);
        }
        let Some(provider) = protocol.provider() else { return Ok(None) };
        let root = match protocol.transport() {
            "file" => "file:///".to_owned(),
            "oci" => format!("https://{host}/"),
            transport => format!("{transport}://{host}/"),
        };
        self.as_allowed(id, provider, Lead::of_workspace(parse(&root)?), path).map(Some)
    }

    /// A route that a reference states, with what the settings say of its base besides the place: whether plain http is
    /// allowed, and how versions are read.
    fn as_allowed(
        &self,
        id: &PackageId,
        provider: &str,
        root: Lead,
        path: &str,
    ) -> Result<Route, RouteError> {
        let mut route = self.route(provider, root, path.to_owned())?;
        if let Some((registry, _)) = self.registry(id) {
            route.location.insecure |= registry.insecure;
            route.location.lenient = registry.lenient;
        }
        Ok(route)
    }

    fn web_root(&self, host_port: &str) -> Result<SafeUrl, RouteError> {
        let base = format!("{host_port}/");
        let scheme = if lock(&self.plain).contains(&base) { "http" } else { "https" };
        parse(&format!("{scheme}://{base}"))
    }
}

/// Whether a protocol is close to a known one: then it is a typo, whatever registry has the package.
fn is_misspelt(protocol: &Protocol) -> bool {
    let Protocol::Plugin(scheme) = protocol else { return false };
    crate::manifest::source::nearest(scheme, ["https", "http", "git+https", "git+ssh"]).is_some()
}

/// The folder inside a place, whatever its name contains.
fn inside(root: &Lead, folder: &str) -> Result<Lead, RouteError> {
    let mut url = root.with_trailing_slash().as_url().clone();
    let wrong = || RouteError::Url { text: format!("{root}{folder}") };
    let mut segments = url.path_segments_mut().map_err(|()| wrong())?;
    segments.pop_if_empty().extend(folder.split('/')).push("");
    drop(segments);
    Ok(root.within(url.into())?)
}

fn parse(text: &str) -> Result<SafeUrl, RouteError> {
    SafeUrl::parse(text).map_err(|_| RouteError::Url { text: text.to_owned() })
}

impl Route {
    /// How near to this machine something may be that a package of this place depends on.
    fn reach(&self) -> Reach {
        let facts = self.provider.facts();
        match Reach::of(&self.location.root) {
            // A registry in a folder has what others have published.
            Reach::Files
                if facts.kind != PlaceKind::Folder && facts.kind != PlaceKind::Repository =>
            {
                Reach::Machine
            }
            reach => reach,
        }
    }
}

/// Whether a reference leads to files of this machine, whatever host it names.
fn leads_to_files(reference: &Reference) -> bool {
    reference.protocol().is_some_and(Protocol::is_file) || reference.local().is_some()
}

/// Why a package at `from` may not depend on what `reference` names; `None` if it may.
pub(crate) fn objection(
    from: &Route,
    id: &PackageId,
    reference: &Reference,
) -> Option<&'static str> {
    let reach = match leads_to_files(reference) {
        true => Reach::Files,
        false => Reach::of_host(id.base().host_port()),
    };
    reach.objection(from.reach())
}

impl Routes {
    /// Lets a base be asked although it is near to this machine, because somebody named it who may.
    pub(super) fn let_in_base(&self, base: &str) {
        let mut near = lock(&self.near);
        if !near.contains(base) {
            near.insert(base.into());
        }
    }

    /// How near to this machine a reference leads, if no setting has its place.
    fn reach_of(&self, id: &PackageId, reference: &Reference) -> Reach {
        if leads_to_files(reference) {
            return Reach::Files;
        }
        let (mut reaches, base) = (lock(&self.reaches), id.base_str());
        if let Some(known) = reaches.get(base) {
            return *known;
        }
        let reach = Reach::of_host(id.base().host_port());
        reaches.insert(base.into(), reach);
        reach
    }

    /// Lets `id` be asked where `reference` says, which is a dependency of a package at `from`.
    pub(super) fn let_in_dependency(
        &self,
        from: &Route,
        id: &PackageId,
        reference: &Reference,
    ) -> Result<(), &'static str> {
        if self.reach_of(id, reference) == Reach::Network {
            return Ok(());
        }
        let protocol = reference.protocol();
        // The settings have its place, whatever the reference says.
        let is_placed = match protocol {
            Some(protocol) if is_misspelt(protocol) => false,
            Some(Protocol::Https | Protocol::Http) | None => {
                self.registry(id).is_some_and(|(registry, _)| registry.url.is_some())
            }
            Some(protocol) => self.has_registry_place(id, protocol),
        };
        // Without a base it is where the package itself is.
        let is_beside = reference.base().is_none();
        if !is_placed
            && !is_beside
            && let Some(why) = objection(from, id, reference)
        {
            return Err(why);
        }
        self.let_in_base(id.base_str());
        Ok(())
    }

    /// The place that an id alone names.
    fn lead(&self, id: &PackageId, url: SafeUrl) -> Result<Lead, RouteError> {
        if lock(&self.near).contains(id.base_str()) {
            return Ok(Lead::of_workspace(url));
        }
        Ok(Lead::of_content(url)?)
    }
}
