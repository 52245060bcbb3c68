//! Where a lock's entry comes from: its provider, its place there, and what the lock knows of its release.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use mu_provider::{Location, Release, SafeUrl};

use crate::index::Route;
use crate::lock::LockedPackage;
use crate::ops::{Code, CommandError, Session};
use crate::reference::PackageId;
use mu_provider::threads::lock;

/// The roots of registries and repositories, by their text in the lock, each read once.
#[derive(Debug, Default)]
pub(super) struct Roots(Mutex<HashMap<String, SafeUrl>>);

impl Roots {
    /// The root that `text` names.
    fn find(&self, text: &str) -> Result<SafeUrl, url::ParseError> {
        let mut roots = lock(&self.0);
        if let Some(root) = roots.get(text) {
            return Ok(root.clone());
        }
        let root = SafeUrl::parse(text)?;
        roots.insert(text.to_owned(), root.clone());
        Ok(root)
    }
}

/// The provider and place that a lock's entry names.
pub(super) fn route_of(
    session: &Session,
    package: &LockedPackage,
    roots: &Roots,
) -> Result<Route, CommandError> {
    let provider = session
        .index()
        .providers()
        .get(&package.source.provider)
        .map_err(|error| CommandError::from_error(Code::NotFound, error))?;
    let damaged = || {
        CommandError::new(
            Code::Workspace,
            format!("the source `{}` of `{}` in Mu.lock is no place", package.source, package.id),
        )
    };
    let is_repository = provider.is_repository();
    let registry = session.index().registry(&package.id);
    let mut location = if package.source.is_folder() {
        let folder = crate::env::absolute(&session.lock_folder(), package.source.place.as_ref());
        if !may_be_folder(session, &package.id, &folder) {
            let message = format!(
                "Mu.lock takes `{}` from the folder `{}`, and no override in the settings does",
                package.id,
                folder.display()
            );
            return Err(CommandError::new(Code::Integrity, message)
                .hint("run `mu get` without --frozen, which mends Mu.lock, or restore it"));
        }
        let root = url::Url::from_directory_path(folder).map_err(|()| damaged())?;
        Location::new(root.into(), "")
    } else {
        let root = match package.source.place.strip_prefix("./") {
            Some(inside) => {
                let path = session.lock_folder().join(inside);
                let is_folder = inside.ends_with('/');
                let url = if is_folder {
                    url::Url::from_directory_path(path)
                } else {
                    url::Url::from_file_path(path)
                };
                SafeUrl::from(url.map_err(|()| damaged())?)
            }
            None => roots.find(&package.source.place).map_err(|_| damaged())?,
        };
        // A registry of the settings may serve only what is below a prefix of the id.
        let path = registry.map_or_else(|| package.id.name_str(), |(_, rest)| rest);
        Location::new(root, if is_repository { "" } else { path })
    };
    if is_repository {
        location.folder = Some(package.folder.clone().unwrap_or_default());
    }
    location.insecure =
        session.options.allow_insecure || registry.is_some_and(|(registry, _)| registry.insecure);
    Ok(Route { provider, location })
}

/// Whether a folder outside of the workspace may be used for `id`: one that is called by its path, or that the settings put
/// in the place of the package. A lock alone, which anybody may have changed, is not enough.
fn may_be_folder(session: &Session, id: &PackageId, folder: &Path) -> bool {
    let root = &session.workspace.root;
    let is_it = |path: &str| crate::env::absolute(root, path.as_ref()) == folder;
    let overridden = session.workspace.settings.overrides.get(id);
    let is_registered = || {
        let (registry, _) = session.index().registry(id)?;
        let url = registry.url.as_ref().filter(|_| registry.provider.as_deref() == Some("path"))?;
        Some(folder.starts_with(url.as_url().to_file_path().ok()?))
    };
    *id == PackageId::local(folder)
        || overridden.and_then(|reference| reference.local()).is_some_and(is_it)
        || is_registered() == Some(true)
}

/// What a lock's entry knows of its release.
pub(super) fn release_of(package: &LockedPackage) -> Release {
    Release {
        version: package.version.clone(),
        app_version: package.app_version.clone(),
        archive: package.archive.map(|digest| digest.to_string()),
        digest: package.digest.map(|digest| digest.to_string()),
        urls: package.url.clone().into_iter().collect(),
        commit: package.commit.clone(),
        ..Release::default()
    }
}
