//! Archives that were unpacked on this machine before, where no listing has the digest of their content.

use mu_provider::Release;

use crate::index::Route;
use crate::ops::Session;
use crate::store::{Stored, Unpacking};

/// The tree of a release of which only the archive is known, if that was unpacked on this machine before.
pub(super) fn unpacked(session: &Session, route: &Route, release: &Release) -> Option<Stored> {
    let digest = session.store.unpacked(unpacking(route, release)?)?;
    session.store.find(&digest).ok().flatten()
}

/// Notes what the archive of a release contained.
pub(super) fn note_unpacked(session: &Session, route: &Route, release: &Release, stored: &Stored) {
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
