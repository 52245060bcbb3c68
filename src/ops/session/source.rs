//! Where a package comes from, as the lock writes it.
//!
//! And how packages are reached that the lock names: as they were reached when they were locked. That counts if neither a
//! reference nor the settings say anything else.

use std::path::{Path, PathBuf};

use mu_provider::{PlaceKind, SafeUrl};

use crate::index::{Providers, Route};
use crate::lock::{LockedPackage, Source};
use crate::manifest::Manifest;
use crate::ops::session::edits::ChangedManifests;
use crate::ops::session::shown::relative_folder;
use crate::ops::{OperationScope, Session};
use crate::reference::{Defaults, Reference};

/// The source of `route`, as written in the lock.
pub(crate) fn source_of(session: &Session, route: &Route) -> Source {
    source_beside(session, &ChangedManifests::default(), route)
}

/// The source of `route`, as written in the lock beside these manifests.
pub(crate) fn source_beside(
    session: &Session,
    changed: &ChangedManifests,
    route: &Route,
) -> Source {
    Source::new(route.provider.name(), place_of(session, changed, route))
}

/// The place of a registry, a repository or a folder, for the lock: a folder is written relative to the
/// workspace, so that the lock is valid in every checkout, unless the settings or a manifest name it by its
/// absolute path.
fn place_of(session: &Session, changed: &ChangedManifests, route: &Route) -> String {
    let (from, root) = (session.lock_folder(), &route.location.root);
    let Ok(folder) = root.as_url().to_file_path() else {
        return root.to_string();
    };
    if route.provider.facts().kind == PlaceKind::Folder {
        if is_written_in_full(session, changed, &folder) {
            return folder.components().collect::<PathBuf>().display().to_string();
        }
        return relative(from, &folder);
    }
    // A registry elsewhere on this machine stays a `file:` URL: a path from here would be wrong in another checkout.
    if !folder.starts_with(from) && !is_in_relative_registry(session, &folder) {
        return root.to_string();
    }
    // A slash at the end says whether a URL continues below it or beside it, so the lock keeps it.
    let slash = if root.as_url().path().ends_with('/') { "/" } else { "" };
    match relative(from, &folder) {
        here if here == "." => "./".to_owned(),
        above if above.starts_with("..") => format!("{above}{slash}"),
        inside => format!("./{inside}{slash}"),
    }
}

/// Whether a registry with a relative path in the workspace's settings contains `folder`. Global packs keep
/// their place on this machine, whatever happens to the enclosing workspace.
fn is_in_relative_registry(session: &Session, folder: &Path) -> bool {
    let registries = &session.workspace.settings.registries;
    session.scope == OperationScope::Workspace
        && registries.iter().filter(|registry| registry.is_relative).any(|registry| {
            let url = registry.url.as_ref().and_then(|url| url.as_url().to_file_path().ok());
            url.is_some_and(|path| folder.starts_with(path))
        })
}

/// Whether an override or a manifest names a folder by its absolute path.
fn is_written_in_full(session: &Session, changed: &ChangedManifests, folder: &Path) -> bool {
    let workspace = &session.workspace;
    let overrides = workspace.settings.overrides.values();
    let own = (0..workspace.members.len()).flat_map(|index| {
        let Manifest { dependencies, dev_dependencies, .. } =
            changed.manifest(&session.workspace, index);
        dependencies.iter().chain(dev_dependencies).map(|dependency| &dependency.reference)
    });
    overrides.chain(own).filter_map(Reference::local).any(|path| {
        let path = Path::new(path);
        path.is_absolute() && crate::env::absolute(path, Path::new("")) == folder
    })
}

/// `folder` as seen from `from`, with `/` between names.
pub(crate) fn relative(from: &Path, folder: &Path) -> String {
    let parts = |path: &Path| -> Vec<String> {
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    };
    relative_folder(parts(from), parts(folder))
}

/// The reference that leads to a locked package again, if the lock says more about its place than its id.
pub(super) fn stated_reference(
    providers: &Providers,
    package: &LockedPackage,
    defaults: &Defaults,
) -> Option<Reference> {
    let LockedPackage { id, source, folder, .. } = package;
    if source.is_authored_folder() || source.is_pack() {
        return None;
    }
    let provider = providers.get(&source.provider);
    let (scheme, place) = source.place.split_once("://")?;
    let says_where = place.starts_with(id.base().as_str());
    let is_hub = provider.as_ref().is_ok_and(|one| one.facts().kind == PlaceKind::Hub);
    // Its id says where a hub is, and the settings may. Only on this machine, plain http is what was meant.
    let is_here = || SafeUrl::parse(&source.place).is_ok_and(|url| url.is_loopback());
    if is_hub && !(scheme == "http" && says_where && is_here()) {
        return None;
    }
    let (is_flat, is_oci) = provider.map_or((false, false), |one| {
        (one.facts().places_are_flat, one.facts().kind == PlaceKind::OciRegistry)
    });
    let inside = match folder {
        Some(folder) => folder,
        None if is_flat => id.name_str().rsplit('/').next().unwrap_or_default(),
        None => "",
    };
    let below = source.place.trim_end_matches('/');
    let text = match is_oci && says_where {
        // Its id says where it is.
        true => format!("oci://{id}"),
        false if is_hub => format!("{scheme}://{id}"),
        // A plugin serves the scheme that it is called by.
        false if says_where && scheme == source.provider => format!("{scheme}://{id}"),
        false if source.is_url_archive() => format!("{below}/{inside}"),
        false => format!("{}+{below}/{inside}", source.provider),
    };
    let reference = Reference::parse(text.trim_end_matches('/')).ok();
    reference.filter(|one| one.id(defaults) == *id)
}
