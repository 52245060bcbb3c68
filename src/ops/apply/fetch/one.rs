//! One package on its way into the store: a locked one, or one that no lock names.

use std::sync::Arc;

use mu_provider::Release;

use crate::index::Route;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::fetch::differs::not_fetched;
use crate::ops::apply::fetch::fetch;
#[cfg(feature = "publish")]
use crate::ops::apply::fetch::route::{Roots, release_of, way_of};
use crate::ops::session::events::Work;
use crate::ops::solve::resolved::Resolved;
use crate::ops::{CommandError, Session};
use crate::reference::PackageId;
use crate::store::{StoreError, Stored};

/// Brings one locked package into the store, from where the settings lead it.
///
/// # Errors
///
/// When it cannot be fetched, or is not what the lock says.
#[cfg(feature = "publish")]
pub(crate) fn fetch_locked(
    session: &Session,
    package: &LockedPackage,
) -> Result<Stored, CommandError> {
    let way = way_of(session, package, &Roots::default())?;
    if let Some(digest) = &package.digest
        && let Some(stored) = session.store.find(digest)?
    {
        return Ok(stored);
    }
    let release = release_of(session, package, &way)?;
    fetch_release(session, &package.id, &way.route, &release)
}

/// Brings one locked package into the store, as it was published.
///
/// # Errors
///
/// As [`Fetching::finish`](super::Fetching::finish).
pub(crate) fn bring_locked(
    session: &Session,
    package: &LockedPackage,
) -> Result<Stored, CommandError> {
    let package = LockedPackage { patch: None, patched: None, ..package.clone() };
    let lock = Arc::new(Lockfile { packages: vec![package], ..Lockfile::default() });
    let mut resolved = Resolved { previous: Arc::clone(&lock), lock, ..Resolved::default() };
    fetch(session, &mut resolved)?;
    let digest = resolved.lock.packages[0].digest.expect("what was fetched was hashed");
    let path = session.store.tree_path(&digest);
    Ok(session.store.find(&digest)?.ok_or(StoreError::Corrupt { path })?)
}

/// Brings one release into the store, whatever a lock says about it.
pub(crate) fn fetch_release(
    session: &Session,
    id: &PackageId,
    route: &Route,
    release: &Release,
) -> Result<Stored, CommandError> {
    let what = format!("{id} {}", release.version);
    let progress = Work::begin(&session.events, what.as_str());
    let expected = release.digest.as_deref().and_then(|text| text.parse().ok());
    session
        .store
        .add(expected.as_ref(), |tree| {
            route.provider.fetch(&route.location, release, tree, &progress)?;
            Ok(String::new())
        })
        .map_err(|error| not_fetched(error, &what))
}
