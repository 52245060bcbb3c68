//! Where a locked package comes from: wherever the settings lead its id now.
//!
//! The lock says what a package is, by version and digest; the settings say where it is. The source in the lock counts
//! only if the settings lead to the same place: then it saves requests for what was looked up before. [`LockedRoute`]
//! is the result. For `mu vendor --for` and mirrors, there is also the archive of a locked package in the form of its
//! own ecosystem, and what is beside it. Nothing here puts a package into the store.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mu_provider::threads::lock;
use mu_provider::{KeptArchives, Lead, LineTrust, Location, PlaceKind, Release, SafeUrl};
use rustc_hash::FxHashMap;
use url::Url;

use crate::index::{Candidate, Route};
use crate::lock::{LockedPackage, Lockfile, Source};
use crate::ops::apply::fetch::error::content_differs;
use crate::ops::explain::unavailable_error;
use crate::ops::explain::unserved::with_requirer;
use crate::ops::session::edits::ChangedManifests;
use crate::ops::session::events::Work;
use crate::ops::session::source::source_beside;
use crate::ops::solve::trusted::as_locked;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{ArtifactDigest, PackageId};

/// The roots of registries and repositories, by their text in the lock, each read once.
#[derive(Debug, Default)]
pub(super) struct LockedRoots(Mutex<HashMap<String, SafeUrl>>);

impl LockedRoots {
    /// The root that `text` names: a URL, or a path as seen from `folder`.
    fn find(&self, text: &str, folder: &Path) -> Option<SafeUrl> {
        let mut roots = lock(&self.0);
        if let Some(root) = roots.get(text) {
            return Some(root.clone());
        }
        let root = read_root(text, folder)?;
        roots.insert(text.to_owned(), root.clone());
        Some(root)
    }
}

fn read_root(text: &str, folder: &Path) -> Option<SafeUrl> {
    if text.contains("://") {
        return SafeUrl::parse(text).ok();
    }
    let path = crate::env::absolute(folder, text.as_ref());
    let url = if text.ends_with('/') {
        Url::from_directory_path(path)
    } else {
        Url::from_file_path(path)
    };
    Some(url.ok()?.into())
}

/// Where a locked package comes from.
#[derive(Debug)]
pub(super) struct LockedRoute {
    /// Its provider and place.
    pub(super) route: Route,
    /// Whether the place differs from the one in the lock.
    pub(super) is_moved: bool,
}

/// Where the settings lead a locked package now.
pub(super) fn way_of(
    session: &Session,
    package: &LockedPackage,
    roots: &LockedRoots,
) -> Result<LockedRoute, CommandError> {
    if package.source.is_outside_folder() {
        return Ok(LockedRoute { route: folder_route(session, package)?, is_moved: false });
    }
    let index = session.index();
    // With an override, the place of the other package counts. The pack keeps the name under which it is required.
    let id = used_instead(session, &package.id);
    let known = index.known_route(&id);
    if let Some(route) = in_lock(session, package, &id, known.as_ref(), roots)? {
        return Ok(LockedRoute { route, is_moved: false });
    }
    // The settings lead elsewhere than the lock says. Where exactly may have to be found out, with a request.
    let route = match known {
        Some(route) => route,
        None => {
            Route::clone(&*index.route(&id).map_err(|error| unavailable_error(session, error))?)
        }
    };
    Ok(LockedRoute { route, is_moved: true })
}

/// Where the settings lead a locked package that is not in a folder, as far as it is known without a request.
pub(super) fn known_way(
    session: &Session,
    package: &LockedPackage,
    roots: &LockedRoots,
) -> Option<LockedRoute> {
    let id = used_instead(session, &package.id);
    let known = session.index().known_route(&id);
    Some(match in_lock(session, package, &id, known.as_ref(), roots).ok()? {
        Some(route) => LockedRoute { route, is_moved: false },
        None => LockedRoute { route: known?, is_moved: true },
    })
}

/// Whether the settings lead a locked package elsewhere than the lock says, as far as that is known without a request. There, its
/// content is the same, and its archive may be another one.
pub(crate) fn is_led_elsewhere(session: &Session, package: &LockedPackage) -> bool {
    known_way(session, package, &LockedRoots::default()).is_some_and(|way| way.is_moved)
}

/// The place that the settings lead a locked package to now.
#[cfg(feature = "git")]
pub(crate) fn location_in_settings(
    session: &Session,
    package: &LockedPackage,
) -> Result<Location, CommandError> {
    let way = way_of(session, package, &LockedRoots::default())?;
    if !way.is_moved || way.route.location.folder.is_some() {
        return Ok(way.route.location);
    }
    // The end of the repository's path is known once its versions were listed.
    let id = used_instead(session, &package.id);
    session.index().published(&id).map_err(|error| unavailable_error(session, error))?;
    Ok(session.index().known_route(&id).map_or(way.route.location, |route| route.location))
}

/// The package that is used for `id`: another one, if an override says so.
pub(crate) fn used_instead(session: &Session, id: &PackageId) -> PackageId {
    let workspace = &session.workspace;
    let Some(reference) = workspace.settings.overrides.get(id) else { return id.clone() };
    let (root, defaults) = (&workspace.root, session.reference_defaults());
    let instead = session.places.id_of(reference, &defaults, root, workspace);
    session.index().declare(&instead, reference, root);
    instead
}

/// The route to the place that the lock names, if `known`, where the settings lead `id`, is the same place.
fn in_lock(
    session: &Session,
    package: &LockedPackage,
    id: &PackageId,
    known: Option<&Route>,
    roots: &LockedRoots,
) -> Result<Option<Route>, CommandError> {
    let index = session.index();
    // The lock may come from a colleague with a plugin that is missing here. That matters only if the settings lead to
    // no other place.
    let provider = match (known, index.providers().get(&package.source.provider)) {
        (_, Ok(provider)) => provider,
        (Some(_), Err(_)) => return Ok(None),
        (None, Err(error)) => return Err(CommandError::from_error(Code::NotFound, error)),
    };
    let Some(root) = roots.find(&package.source.place, session.lock_folder()) else {
        return Ok(None);
    };
    let is_repository = provider.facts().kind == PlaceKind::Repository;
    let folder = package.folder.as_deref().unwrap_or_default();
    // Places are compared as the id of a package would spell them:
    //
    //     https://github.com/acme/mono.git, folder charts/db  ->  github.com/acme/mono/charts/db
    //     oci://registry.acme.com/team                        ->  registry.acme.com/team
    let there = || if is_repository { spelled(&root, folder) } else { spelled(&root, "") };
    // A package that no registry covers is where its id says, however a reference reached it.
    let is_there = match known.filter(|_| index.registry(id).is_some()) {
        // A registry covers it: the same provider, and the same root, or in a repository the same folder.
        Some(route) if !Arc::ptr_eq(&route.provider, &provider) => false,
        Some(Route { location, .. }) if is_repository => {
            let inside = location.folder.as_deref().unwrap_or(&location.path);
            spelled(&location.root, inside) == there()
        }
        Some(Route { location, .. }) => {
            *location.root == root || spelled(&location.root, "") == there()
        }
        // No registry does: the id itself must spell the place. Of a repository, that is root and folder; where places
        // are flat, root and name; else only the host.
        None if is_repository => {
            there() == marks_dropped(id.as_str()) || local_id(&root, folder).as_ref() == Some(id)
        }
        None if provider.facts().places_are_flat => holds(&root, leaf(id.name_str()), id),
        None => there() == id.base().host_port(),
    };
    if !is_there {
        return Ok(None);
    }
    // A registry of the settings may serve only what is below a prefix of the id.
    let path = match known {
        Some(route) => &route.location.path,
        None if provider.facts().places_are_flat => leaf(id.name_str()),
        None => id.name_str(),
    };
    // It is where the settings or the id lead.
    let root = Lead::of_workspace(root);
    let mut location = Location::new(root, if is_repository { "" } else { path });
    if is_repository {
        location.folder = Some(folder.to_owned());
    }
    let registry = index.registry(id);
    location.insecure =
        session.options.allow_insecure || registry.is_some_and(|(registry, _)| registry.insecure);
    location.lenient = registry.is_some_and(|(registry, _)| registry.lenient);
    Ok(Some(Route { provider, location, tried: Vec::new() }))
}

/// The id of the package in `folder` of a repository on this machine; its path can have characters that names cannot have.
fn local_id(root: &SafeUrl, folder: &str) -> Option<PackageId> {
    let repository = root.as_url().to_file_path().ok().filter(|_| root.scheme() == "file")?;
    let path = marks_dropped(repository.join(folder).to_str()?);
    Some(PackageId::local(&Path::new("/").join(path)))
}

/// Whether `id` is the package `name` at `root`, however that is reached.
fn holds(root: &SafeUrl, name: &str, id: &PackageId) -> bool {
    let folder = root.as_url().to_file_path().ok().filter(|_| root.scheme() == "file");
    match folder {
        Some(folder) => PackageId::local(&folder.join(name)) == *id,
        None => spelled(root, name) == marks_dropped(id.as_str()),
    }
}

/// The last segment of a name.
fn leaf(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, leaf)| leaf)
}

/// The host and the path of `path` below `root`, however it is reached and however its repository is marked.
fn spelled(root: &SafeUrl, path: &str) -> String {
    let url = root.as_url();
    let host = url.host_str().filter(|host| !host.is_empty()).unwrap_or("localhost");
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    marks_dropped(&format!("{host}{port}/{}/{path}", url.path()))
}

/// A path without `.git` at the end of its segments, and without empty ones.
fn marks_dropped(path: &str) -> String {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let plain = segments.map(|segment| segment.strip_suffix(".git").unwrap_or(segment));
    plain.collect::<Vec<_>>().join("/")
}

/// The route to a package that is a folder outside of the workspace.
fn folder_route(session: &Session, package: &LockedPackage) -> Result<Route, CommandError> {
    let provider = session.index().providers().get(&package.source.provider);
    let provider = provider.map_err(|error| CommandError::from_error(Code::NotFound, error))?;
    let locked = crate::env::absolute(session.lock_folder(), package.source.place.as_ref());
    let Some(folder) = folder_meant(session, &package.id, &locked) else {
        // Only the settings, or an id that is a path, may lead to a folder. A checkout could otherwise have any folder
        // of this machine copied into its packs, by a line in its lock.
        let message = format!(
            "Mu.lock takes `{}` from the folder `{}`, and no override in the settings does",
            package.id,
            locked.display()
        );
        return Err(CommandError::new(Code::Integrity, message)
            .hint("run `mu get` without --frozen, which corrects Mu.lock, or restore it"));
    };
    session.folders.check(&folder)?;
    let root = Url::from_directory_path(folder).map_err(|()| {
        let text = format!(
            "the source `{}` of `{}` in Mu.lock is not a folder",
            package.source, package.id
        );
        CommandError::new(Code::Workspace, text)
    })?;
    let mut location = Location::new(Lead::of_workspace(root.into()), "");
    location.insecure = session.options.allow_insecure;
    Ok(Route { provider, location, tried: Vec::new() })
}

/// The folder outside of the workspace that is used for `id`: one whose path is the id, or one that an
/// override names. A lock alone, which anyone may have changed, is not enough.
fn folder_meant(session: &Session, id: &PackageId, locked: &Path) -> Option<PathBuf> {
    if *id == PackageId::local(locked) {
        return Some(locked.to_owned());
    }
    let root = &session.workspace.root;
    if let Some(reference) = session.workspace.settings.overrides.get(id) {
        return reference.local().map(|path| crate::env::absolute(root, path.as_ref()));
    }
    let (registry, rest) = session.index().registry(id)?;
    let provider = session.index().providers().get(registry.provider.as_deref()?).ok()?;
    let url = registry.url.as_ref().filter(|_| provider.facts().kind == PlaceKind::Folder)?;
    Some(url.as_url().to_file_path().ok()?.join(rest))
}

/// What is known about a locked package's release; `way` is the route to it.
pub(super) fn locked_release(
    session: &Session,
    package: &LockedPackage,
    way: &LockedRoute,
) -> Result<Arc<Release>, CommandError> {
    let release = Release {
        version: package.version.clone(),
        app_version: package.app_version.clone(),
        digest: package.digest.map(|digest| digest.to_string()),
        commit: package.commit.clone(),
        // A copy of an artifact is found by the digest that it is pinned to.
        reference: package
            .revision()
            .filter(|text| {
                ArtifactDigest::is_artifact_digest(text) && !package.source.is_url_archive()
            })
            .map(Cow::into_owned),
        ..Release::default()
    };
    if !way.is_moved {
        // The same place as in the lock: what was looked up there then is still right, and saves requests.
        return Ok(Arc::new(Release {
            archive: package.archive.map(|digest| digest.to_string()),
            urls: package.url.clone().into_iter().collect(),
            locator: package.locator.clone(),
            ..release
        }));
    }
    // Another place. Version and digest say what it has to be; how it is called there is asked for only where it cannot
    // be guessed.
    let id = used_instead(session, &package.id);
    let index = session.index();
    let failed = |error| unavailable_error(session, error);
    let facts = way.route.provider.facts();
    let is_repository = facts.kind == PlaceKind::Repository;
    // A hub has the archives of other tools as they are, and its line says how they are laid out.
    if facts.kind == PlaceKind::Hub
        && package.commit.is_none()
        && !index
            .providers()
            .get(&package.source.provider)
            .is_ok_and(|one| one.facts().kind == PlaceKind::Hub)
        && let Ok(releases) = index.published(&id)
        && let Some(position) =
            package.parsed_version().and_then(|one| releases.position_of_version(&one))
        && let Ok((_, listed)) = index.release(&id, Candidate::Release(position))
        && listed.locator.is_some()
        && listed.digest == release.digest
    {
        return Ok(listed);
    }
    if let (Some(_), false, Some(digest)) = (&package.commit, is_repository, &release.digest) {
        // A registry with a copy may give a commit another name than Git does, but it has the same content.
        let releases = index.published(&id).map_err(failed)?;
        for position in (0..releases.len()).rev() {
            let (_, listed) = index.release(&id, Candidate::Release(position)).map_err(failed)?;
            if listed.digest.as_ref() == Some(digest) {
                return Ok(listed);
            }
        }
    }
    // Another place has its own archive of the same content.
    if package.commit.is_some() || !is_repository {
        return Ok(Arc::new(release));
    }
    // From a hub into a repository: the lock has no commit, and the tag of the version leads to it.
    let releases = index.published(&id).map_err(failed)?;
    let at = package.parsed_version().and_then(|version| releases.position_of_version(&version));
    match at {
        Some(at) => Ok(index.release(&id, Candidate::Release(at)).map_err(failed)?.1),
        None => Ok(Arc::new(release)),
    }
}

/// The URLs of the archives of locked packages as they are shown, by their place in the lock, as far as that is known without a request. `looked_up` has
/// those that were looked up in this run.
///
/// Nothing where the answer does not say it.
pub(crate) fn archive_urls(
    session: &Session,
    lock: &Lockfile,
    looked_up: &FxHashMap<usize, (Arc<Route>, Arc<Release>)>,
) -> BTreeMap<usize, String> {
    if !session.options.tells_archives {
        return BTreeMap::new();
    }
    let roots = LockedRoots::default();
    let urls = lock.packages.iter().enumerate().filter_map(|(at, package)| {
        let source = &package.source;
        if source.is_workspace_folder()
            || source.is_pack()
            || source.is_outside_folder()
            || package.commit.is_some()
        {
            return None;
        }
        // The settings lead to where it was found a moment ago. Without a place of its own, the archive is where its hub has all of them.
        let is_usual = |(route, release): &&(Arc<Route>, Arc<Release>)| {
            route.provider.facts().kind == PlaceKind::Hub && release.urls.is_empty()
        };
        match looked_up.get(&at).filter(is_usual) {
            Some((route, release)) => route.provider.archive(&route.location, release),
            None => archive(session, package, &roots),
        }
        .map(|url| (at, url))
    });
    urls.collect()
}

fn archive(session: &Session, package: &LockedPackage, roots: &LockedRoots) -> Option<String> {
    let way = known_way(session, package, roots)?;
    let release = locked_release(session, package, &way).ok()?;
    let archive = way.route.provider.archive(&way.route.location, &release);
    // The bundle of an operator is an image elsewhere.
    let image = || release.urls.first().filter(|url| url.starts_with("oci://"));
    archive.or_else(|| SafeUrl::parse(image()?).ok().map(|url| url.to_string()))
}

/// The source to write into the lock: where the settings lead the package now, if that is known without a
/// request.
pub(crate) fn source_now(
    session: &Session,
    changed: &ChangedManifests,
    package: &LockedPackage,
) -> Option<Source> {
    if package.source.is_workspace_folder() || package.source.is_pack() {
        return None;
    }
    if package.source.is_outside_folder() {
        return Some(source_beside(session, changed, &folder_route(session, package).ok()?));
    }
    let mut route = known_way(session, package, &LockedRoots::default())?.route;
    if route.provider.facts().kind == PlaceKind::Repository && route.location.folder.is_none() {
        // The end of the repository's path is known once something was fetched from it.
        let commits = [package.commit.as_ref()?.to_string()];
        let found = route.provider.recall(&route.location, &commits, &mu_provider::Silent)?;
        if found.location.folder.as_deref() != Some(package.folder.as_deref().unwrap_or_default()) {
            return None;
        }
        route.location = found.location;
    }
    Some(source_beside(session, changed, &route))
}

/// Fetches the archive of a locked package from where the settings lead it, and checks that it has the locked
/// content. `None` if it is none of those that are wanted.
pub(crate) fn fetch_archive(
    session: &Session,
    package: &LockedPackage,
    wanted: KeptArchives,
) -> Result<Option<Vec<u8>>, CommandError> {
    let way = way_of(session, package, &LockedRoots::default())?;
    let release = locked_release(session, package, &way)?;
    let location = &way.route.location;
    let what = format!("{} {}", package.id, package.version);
    let progress = Work::begin(&session.events, what.as_str());
    let _store = session.use_store()?;
    let mut archive = None;
    let tree = session.store.inspect(|tree| {
        tree.keeps_archive = wanted;
        way.route.provider.fetch(location, &release, tree, &progress)?;
        archive = tree.archive.take();
        Ok(())
    });
    let tree = tree.map_err(|error| {
        with_requirer(session, &package.id, error.into())
            .while_doing(format!("cannot fetch the archive of `{what}`"))
    })?;
    match (&archive, package.digest) {
        (Some(_), Some(expected)) if tree.digest() != expected => {
            let place = location.describe();
            Err(content_differs(package, [&expected, &tree.digest()], "Mu.lock", &place))
        }
        _ => Ok(archive),
    }
}

/// The signed statement about the archive of a locked package, which lies beside it; `None` if there is none.
#[cfg(feature = "publish")]
pub(crate) fn fetch_provenance(
    session: &Session,
    package: &LockedPackage,
) -> Result<Option<Vec<u8>>, CommandError> {
    let way = way_of(session, package, &LockedRoots::default())?;
    let release = locked_release(session, package, &way)?;
    let what = format!("{} {}", package.id, package.version);
    let progress = Work::begin(&session.events, what.as_str());
    let found = way.route.provider.provenance(&way.route.location, &release, &progress);
    found.map_err(|error| {
        with_requirer(session, &package.id, error.into())
            .while_doing(format!("cannot fetch the provenance of `{what}`"))
    })
}

/// What vouches for a locked package where the settings lead it, as the lines of a file of evidence; empty if nothing does.
#[cfg(feature = "publish")]
pub(crate) fn fetch_evidence(
    session: &Session,
    package: &LockedPackage,
) -> Result<String, CommandError> {
    let way = way_of(session, package, &LockedRoots::default())?;
    let release = locked_by_digest(session, package, &way)?;
    let what = format!("{} {}", package.id, package.version);
    let progress = Work::begin(&session.events, what.as_str());
    Ok(way.route.provider.evidence(&way.route.location, &release, &progress)?.to_evidence_text())
}

/// As [`as_locked`], for a package whose archive is fetched: where another place lays it out otherwise, that is asked how.
pub(super) fn locked_by_digest(
    session: &Session,
    package: &LockedPackage,
    way: &LockedRoute,
) -> Result<Release, CommandError> {
    let release = as_locked(package, &*locked_release(session, package, way)?);
    let (provider, location) = (&way.route.provider, &way.route.location);
    let is_known = !way.is_moved || release.locator.is_some() || release.commit.is_some();
    if is_known || provider.facts().lines != LineTrust::Hint {
        return Ok(release);
    }
    let progress = Work::begin(&session.events, format!("{} {}", package.id, package.version));
    let there = provider.confirm(location, &release, &progress)?;
    let is_it = |there: &Release| there.archive == release.archive;
    let locator = there.filter(is_it).and_then(|there| there.locator);
    Ok(Release { locator, ..release })
}
