//! Which provider serves a package, and where it really is.
//!
//! In this order: an explicit scheme (`git+https://`, `ssh://`, `oci://`, a folder), the registries of
//! the settings, well-known Git hosts, then asking: for a hub at the base, and for a Git repository.
//! What a base turned out to be is asked once a run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mu_provider::{Location, Progress, Provider, ProviderError, SafeUrl};

use crate::guard::lock;
use crate::reference::{Base, PackageId, Protocol, Reference};
use crate::workspace::Registry;

/// The providers that this program has, by name.
#[derive(Debug, Clone, Default)]
pub struct Providers(BTreeMap<String, Arc<dyn Provider>>);

impl Providers {
    /// Adds a provider under its own name.
    pub fn add(&mut self, provider: Arc<dyn Provider>) {
        self.0.insert(provider.name().to_owned(), provider);
    }

    /// The provider with this name.
    ///
    /// # Errors
    ///
    /// When this program has none; the error names those it has.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Provider>, RouteError> {
        self.0.get(name).map(Arc::clone).ok_or_else(|| RouteError::NoProvider {
            name: name.to_owned(),
            known: self.0.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}

/// Why no provider serves a package.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// No provider has that name.
    #[error("this mu has no provider for `{name}` yet, only: {known}")]
    NoProvider {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The place is no URL.
    #[error("`{text}` is not a URL that packages can come from")]
    Url {
        /// The text.
        text: String,
    },
    /// The place could not be asked.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

/// A provider, and where the package is in its terms.
#[derive(Debug, Clone)]
pub struct Route {
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// The place.
    pub location: Location,
}

/// What a reference says of where a package is, beyond its id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hint {
    protocol: Option<Protocol>,
    user: Option<String>,
    /// The name as written, `.git` marks kept.
    path: Option<String>,
    folder: Option<PathBuf>,
}

/// Finds routes, and remembers what bases turned out to be.
#[derive(Debug)]
pub(super) struct Routes {
    providers: Providers,
    registries: Vec<Registry>,
    allow_insecure: bool,
    dated: bool,
    hints: Mutex<HashMap<PackageId, Hint>>,
    /// Bases that some reference says to be served over plain http.
    plain: Mutex<HashSet<String>>,
    bases: Mutex<HashMap<String, Arc<Mutex<Option<Kind>>>>>,
}

/// What is at a base that no setting speaks of.
#[derive(Debug, Clone)]
enum Kind {
    Hub(SafeUrl),
    Git(SafeUrl),
}

/// Hosts that serve Git repositories and no hub.
const GIT_HOSTS: [&str; 4] = ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org"];

impl Routes {
    pub(super) fn new(
        providers: Providers,
        mut registries: Vec<Registry>,
        allow_insecure: bool,
        dated: bool,
    ) -> Self {
        // Longest first, so that the first match is the one that counts.
        registries.sort_by_key(|registry| std::cmp::Reverse(registry.prefix.len()));
        Self {
            providers,
            registries,
            allow_insecure,
            dated,
            hints: Mutex::default(),
            plain: Mutex::default(),
            bases: Mutex::default(),
        }
    }

    pub(super) fn providers(&self) -> &Providers {
        &self.providers
    }

    /// Remembers where `reference` says that its package is; `from` is what a local folder is relative to.
    pub(super) fn declare(&self, id: &PackageId, reference: &Reference, from: &Path) {
        let marked = reference.path() != reference.name().as_str();
        let hint = Hint {
            protocol: reference.protocol().cloned(),
            user: reference.user().map(str::to_owned),
            path: marked.then(|| reference.path().to_owned()),
            folder: reference.local().map(|path| crate::env::absolute(from, Path::new(path))),
        };
        if hint == Hint::default() {
            return;
        }
        if hint.protocol == Some(Protocol::Http) {
            lock(&self.plain).insert(id.base().as_str().to_owned());
        }
        let mut hints = lock(&self.hints);
        let known = hints.entry(id.clone()).or_default();
        // The reference that says most wins, whatever order they come in.
        if rank(&hint) > rank(known) {
            *known = hint;
        }
    }

    /// What must be written to come to `id` again, where its id alone does not lead there.
    pub(super) fn written(&self, id: &PackageId) -> Option<String> {
        let hint = lock(&self.hints).get(id).cloned()?;
        if let Some(folder) = &hint.folder {
            return Some(folder.display().to_string());
        }
        let user = hint.user.map(|user| format!("{user}@")).unwrap_or_default();
        let path = hint.path.unwrap_or_else(|| id.name_str().to_owned());
        let protocol = match hint.protocol {
            // Where a repository of this machine is says all.
            Some(Protocol::GitFile) => return Some(format!("git+file:///{path}")),
            Some(protocol) => format!("{protocol}://"),
            None => String::new(),
        };
        Some(format!("{protocol}{user}{}{path}", id.base()))
    }

    /// Whether a reference said more of where `id` is than its id does.
    pub(super) fn has_hint(&self, id: &PackageId) -> bool {
        lock(&self.hints).contains_key(id)
    }

    /// Remembers that `id` is where `from` is: a dependency without a base is reached as the package that
    /// declares it was, and comes out of the same repository if it is in it.
    pub(super) fn inherit(&self, id: &PackageId, from: &PackageId) {
        let mut hints = lock(&self.hints);
        let Some(known) = hints.get(from).filter(|_| id.base() == from.base()) else { return };
        let path = known.path.as_deref().and_then(|path| marked_alike(id.name_str(), path));
        let hint =
            Hint { protocol: known.protocol.clone(), user: known.user.clone(), path, folder: None };
        if hint != Hint::default() {
            hints.entry(id.clone()).or_insert(hint);
        }
    }

    /// The route to a package.
    ///
    /// `known` says which provider's answers about a root are in the cache, so that a base that was
    /// asked in an earlier run need not be asked what it is.
    pub(super) fn find(
        &self,
        id: &PackageId,
        known: &dyn Fn(&str, &SafeUrl) -> bool,
        progress: &dyn Progress,
    ) -> Result<Route, RouteError> {
        let route = self.look_up(id, known, Some(progress))?;
        Ok(route.expect("there is a route once everybody may be asked"))
    }

    /// The route to a package, if it is known without asking anybody.
    pub(super) fn known(
        &self,
        id: &PackageId,
        known: &dyn Fn(&str, &SafeUrl) -> bool,
    ) -> Option<Route> {
        self.look_up(id, known, None).ok().flatten()
    }

    /// The route to a package as far as it can be told without asking; a base that nobody knows is taken
    /// for a hub, which is what a bare reference means first.
    pub(super) fn presumed(
        &self,
        id: &PackageId,
        known: &dyn Fn(&str, &SafeUrl) -> bool,
    ) -> Option<Route> {
        self.known(id, known).or_else(|| {
            let root = self.web_root(id.base().host_port()).ok()?;
            self.route("hub", root, id.name_str().to_owned()).ok()
        })
    }

    /// The route to a package; `None` if somebody must be asked, and there is no `progress` to tell.
    fn look_up(
        &self,
        id: &PackageId,
        known: &dyn Fn(&str, &SafeUrl) -> bool,
        progress: Option<&dyn Progress>,
    ) -> Result<Option<Route>, RouteError> {
        let hint = lock(&self.hints).get(id).cloned().unwrap_or_default();
        if let Some(folder) = &hint.folder {
            let root = url::Url::from_directory_path(folder)
                .map_err(|()| RouteError::Url { text: folder.display().to_string() })?;
            return Ok(Some(Route {
                provider: self.providers.get("path")?,
                location: Location::new(root.into(), ""),
            }));
        }
        let path = hint.path.clone().unwrap_or_else(|| id.name_str().to_owned());
        if let Some(protocol) = &hint.protocol
            && let Some(route) = self.explicit(id, protocol, &hint, &path)?
        {
            return Ok(Some(route));
        }
        if let Some(route) = self.registered(id, &path)? {
            return Ok(Some(route));
        }
        let base = id.base();
        let root = self.web_root(base.host_port())?;
        if hint.path.is_some() || GIT_HOSTS.contains(&base.host_port()) {
            return self.route("git", root, path).map(Some);
        }
        match self.base(base.as_str(), root, &path, known, progress)? {
            Some(Kind::Hub(root)) => self.route("hub", root, id.name_str().to_owned()).map(Some),
            Some(Kind::Git(root)) => self.route("git", root, path).map(Some),
            None => Ok(None),
        }
    }

    fn route(&self, provider: &str, root: SafeUrl, path: String) -> Result<Route, RouteError> {
        let mut location = Location::new(root, path);
        location.insecure = self.allow_insecure;
        location.dated = self.dated;
        Ok(Route { provider: self.providers.get(provider)?, location })
    }

    /// A scheme that leaves no question.
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
        let root = match protocol {
            Protocol::Https | Protocol::Http | Protocol::File => return Ok(None),
            Protocol::GitHttps => format!("https://{host}/"),
            Protocol::GitHttp => format!("http://{host}/"),
            Protocol::Ssh | Protocol::GitSsh => format!("ssh://{host}/"),
            Protocol::Git => format!("git://{host}/"),
            Protocol::GitFile => "file:///".to_owned(),
            Protocol::Oci => {
                return self
                    .route("oci", parse(&format!("oci://{host}/"))?, path.to_owned())
                    .map(Some);
            }
            Protocol::Plugin(scheme) => {
                let root = parse(&format!("{scheme}://{host}/"))?;
                return self.route(scheme, root, path.to_owned()).map(Some);
            }
        };
        self.route("git", parse(&root)?, path.to_owned()).map(Some)
    }

    /// What the settings say.
    fn registered(&self, id: &PackageId, path: &str) -> Result<Option<Route>, RouteError> {
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
    pub(super) fn registries(&self, base: &Base) -> Vec<(String, Result<Route, RouteError>)> {
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
    pub(super) fn registry<'id>(&self, id: &'id PackageId) -> Option<(&Registry, &'id str)> {
        self.registries.iter().find_map(|registry| Some((registry, registry.rest_of(id)?)))
    }

    fn web_root(&self, host_port: &str) -> Result<SafeUrl, RouteError> {
        let base = format!("{host_port}/");
        let scheme = if lock(&self.plain).contains(&base) { "http" } else { "https" };
        parse(&format!("{scheme}://{base}"))
    }

    /// Finds out what is at a base, once a run; `None` if that takes asking, which may not be.
    fn base(
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
            if !is_git {
                // Treated as a hub without that package, which is what a bare reference means first;
                // not remembered, since the next package may be a repository.
                return Ok(Some(Kind::Hub(root)));
            }
            Kind::Git(root)
        };
        *found = Some(base.clone());
        Ok(Some(base))
    }
}

/// The host and port that the ids of a registry's packages begin with.
fn host_of(prefix: &str) -> &str {
    prefix.split_once('/').map_or(prefix, |(host, _)| host)
}

/// `name` with the `.git` mark of `path`, if it is in the same repository.
fn marked_alike(name: &str, path: &str) -> Option<String> {
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

/// How much a hint says.
fn rank(hint: &Hint) -> (bool, bool, bool, String) {
    (
        hint.folder.is_some(),
        hint.protocol
            .as_ref()
            .is_some_and(|protocol| !matches!(protocol, Protocol::Https | Protocol::Http)),
        hint.path.is_some(),
        // Any order will do among equals, as long as it is always the same.
        format!("{:?}{:?}{:?}{:?}", hint.protocol, hint.user, hint.path, hint.folder),
    )
}

fn parse(text: &str) -> Result<SafeUrl, RouteError> {
    SafeUrl::parse(text).map_err(|_| RouteError::Url { text: text.to_owned() })
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
