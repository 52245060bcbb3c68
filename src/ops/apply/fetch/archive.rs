//! The archive of a locked package in the form of its own ecosystem, for `mu vendor --for` and mirrors, and what is beside it.

use crate::lock::LockedPackage;
use crate::ops::apply::fetch::content_differs;
use crate::ops::apply::fetch::route::{LockedRoots, locked_release, way_of};
use crate::ops::session::events::Work;
use crate::ops::{CommandError, Session};

/// Fetches the archive of a locked package from where the settings lead it, and checks that it has the locked
/// content. `None` if it is not an archive of another ecosystem.
///
/// # Errors
///
/// When it cannot be fetched, or has other content.
pub(crate) fn fetch_archive(
    session: &Session,
    package: &LockedPackage,
) -> Result<Option<Vec<u8>>, CommandError> {
    let way = way_of(session, package, &LockedRoots::default())?;
    let release = locked_release(session, package, &way)?;
    let location = &way.route.location;
    let what = format!("{} {}", package.id, package.version);
    let progress = Work::begin(&session.events, what.as_str());
    let _store = session.use_store()?;
    let mut archive = None;
    let tree = session.store.inspect(|tree| {
        tree.keeps_archive = true;
        way.route.provider.fetch(location, &release, tree, &progress)?;
        archive = tree.archive.take();
        Ok(())
    });
    let tree = tree.map_err(|error| {
        CommandError::from(error).while_doing(format!("cannot fetch the archive of `{what}`"))
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
///
/// # Errors
///
/// When it cannot be fetched.
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
        CommandError::from(error).while_doing(format!("cannot fetch the provenance of `{what}`"))
    })
}
