//! One package on its way into the store, a locked one or one that no lock names. `error.rs` has the errors about what arrives.
//!
//! An archive whose content no listing has the digest of may have been unpacked on this machine before: then it is not
//! fetched. [`work_at_once`] sets how many threads fetch packages: few if the processors are the limit, many if the
//! network is. The caller defines the work and shares it out. `route.rs` says where a package comes from.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use mu_provider::threads::{on_threads, start_in};
use mu_provider::{Digest, Entry, Release, Silent, Tree, TreeWriter};

use crate::index::Route;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::fetch::error::{folder_has_changed, not_fetched};
use crate::ops::apply::fetch::fetch;
use crate::ops::apply::fetch::here::tree_of;
#[cfg(feature = "publish")]
use crate::ops::apply::fetch::route::{LockedRoots, locked_release, way_of};
use crate::ops::explain::unserved::with_requirer;
use crate::ops::session::events::Work;
use crate::ops::solve::record::Resolved;
use crate::ops::{CommandError, Session};
use crate::reference::PackageId;
use crate::store::{Stored, TreeStoreError, Unpacking};

/// Brings one locked package into the store, from where the settings lead it.
#[cfg(feature = "publish")]
pub(crate) fn fetch_locked(
    session: &Session,
    package: &LockedPackage,
) -> Result<Stored, CommandError> {
    let way = way_of(session, package, &LockedRoots::default())?;
    if let Some(digest) = &package.digest
        && let Some(stored) = session.store.find(digest)?
    {
        return Ok(stored);
    }
    let release = locked_release(session, package, &way)?;
    store_release(session, &package.id, &way.route, &release)
}

/// Brings one locked package into the store, as it was published.
pub(crate) fn bring_locked(
    session: &Session,
    package: &LockedPackage,
) -> Result<Stored, CommandError> {
    let package = LockedPackage { patch: None, patched: None, ..package.clone() };
    let lock = Arc::new(Lockfile { packages: vec![package], ..Lockfile::default() });
    let mut resolved = Resolved::keeping_lock(lock);
    fetch(session, &mut resolved)?;
    let digest = resolved.lock.packages[0].digest.expect("what was fetched was hashed");
    let path = session.store.tree_path(&digest);
    Ok(session.store.find(&digest)?.ok_or(TreeStoreError::Corrupt { path })?)
}

/// Brings one release into the store, whatever a lock says about it.
pub(crate) fn store_release(
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
        .map_err(|error| with_requirer(session, id, not_fetched(error, &what)))
}

/// The tree of a release of which only the archive is known, if that was unpacked on this machine before.
pub(super) fn unpacked_before(
    session: &Session,
    route: &Route,
    release: &Release,
) -> Option<Stored> {
    session.store.find(&unpacked_tree(session, route, release)?).ok().flatten()
}

/// The digest of what the archive of a release contained, if it was unpacked on this machine before.
pub(super) fn unpacked_tree(session: &Session, route: &Route, release: &Release) -> Option<Digest> {
    session.store.unpacked(unpacking(route, release)?)
}

/// Notes what the archive of a release contained.
pub(super) fn note_release_archive(
    session: &Session,
    route: &Route,
    release: &Release,
    stored: &Stored,
) {
    if let Some(archive) = unpacking(route, release) {
        // Without the note, it is fetched again one day.
        let _ = session.store.note_unpacked(archive, &stored.digest);
    }
}

/// The archive of a release, if its digest says what is in it.
fn unpacking<'a>(route: &'a Route, release: &'a Release) -> Option<Unpacking<'a>> {
    let is_content = route.provider.facts().archives_are_content;
    let archive = release.archive.as_deref().filter(|_| is_content)?;
    let provider = route.provider.name();
    Some(Unpacking { provider, archive, locator: release.locator.as_deref() })
}

/// How long packages are counted before more threads start. If each of the first threads fetches a package in
/// that time, they are not waiting for the network; more threads would only make each one slower.
const COUNTED: Duration = Duration::from_millis(10);

/// Runs `work` on `few` threads, and on up to `most` if it takes long.
///
/// `done` counts what was done. If packages arrive quickly, more threads than processors would only get in
/// each other's way.
pub(crate) fn work_at_once(few: usize, most: usize, done: &AtomicUsize, work: &(dyn Fn() + Sync)) {
    let few = few.min(most);
    let (end, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        if few < most {
            // Without this thread, those that work are enough.
            let _ = start_in(scope, move || {
                let mut threads = few;
                while threads < most {
                    let before = done.load(Ordering::Relaxed);
                    if ended.recv_timeout(COUNTED).is_ok() {
                        return;
                    }
                    if done.load(Ordering::Relaxed) - before < few {
                        let more = threads.min(most - threads);
                        if !(0..more).all(|_| start_in(scope, work).is_ok()) {
                            return;
                        }
                        threads += more;
                    }
                }
            });
        }
        on_threads(few, &|| {
            work();
            // The receiver has gone if there are enough threads.
            let _ = end.send(());
        });
    });
}

/// The error about a locked folder that no longer has the content `expected`.
pub(super) fn changed_folder(
    session: &Session,
    lock: &Lockfile,
    index: usize,
    expected: &Digest,
    route: &Route,
) -> CommandError {
    let before = tree_of(session, lock, index, expected);
    let change = before.and_then(|before| change(session, &before, route));
    folder_has_changed(&lock.packages[index], change)
}

/// The first file that a folder has now, or lacks, other than `before`, in words.
fn change(session: &Session, before: &Tree, route: &Route) -> Option<String> {
    let release = Release::default();
    let fill =
        |tree: &mut TreeWriter| route.provider.fetch(&route.location, &release, tree, &Silent);
    let now = &session.store.inspect(fill).ok()?;
    let of = |tree: &Tree, path: &str| {
        tree.entries().iter().find(|entry| entry.path == path).map(Entry::line)
    };
    let all = before.entries().iter().chain(now.entries());
    let changed = all.filter(|entry| of(before, &entry.path) != of(now, &entry.path));
    let path = &changed.min_by(|one, other| one.path.cmp(&other.path))?.path;
    Some(match (of(before, path), of(now, path)) {
        (None, _) => format!("`{path}` is new"),
        (_, None) => format!("`{path}` is gone"),
        _ => format!("`{path}` has other content"),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn there_are_more_threads_where_the_first_ones_wait() {
        // Nobody continues before all of them are there.
        let all = Barrier::new(7);
        let came = AtomicUsize::new(0);
        work_at_once(2, 7, &AtomicUsize::new(0), &|| {
            all.wait();
            came.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(came.into_inner(), 7);
    }

    #[test]
    fn there_are_no_more_threads_than_asked_for() {
        for (few, most, expected) in [(2, 0, 1), (0, 0, 1), (2, 1, 1), (4, 3, 3), (3, 3, 3)] {
            let came = AtomicUsize::new(0);
            work_at_once(few, most, &AtomicUsize::new(0), &|| {
                came.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(came.into_inner(), expected, "{few} {most}");
        }
    }
}
