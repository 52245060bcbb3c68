//! Recognizes packs of which mu has no record, such as those of an earlier checkout after the cache was cleaned: what their registry
//! has published is nobody's own work, so it may be replaced.

use std::path::Path;

use mu_provider::Digest;

use crate::formats;
use crate::index::Candidate;
use crate::ops::Session;
use crate::ops::apply::fetch::fetch_release;
use crate::reference::PackageId;

/// The published version of a package that is in `folder`, where content with the digest `found` is.
///
/// Where a listing has no digests, the version that the folder's own manifest names is fetched and compared. What cannot be looked up is
/// no version.
pub(super) fn version_in(
    session: &Session,
    id: &PackageId,
    folder: &Path,
    found: &Digest,
) -> Option<String> {
    let named = formats::load_head(folder).ok().flatten().and_then(|head| head.version);
    let releases = session.index().published(id).ok()?;
    (0..releases.len()).rev().find_map(|position| {
        let version = releases.version(position);
        let candidate = Candidate::Release(position);
        let (route, release) = session.index().release(id, candidate).ok()?;
        let stated: Option<Digest> = release.digest.as_deref().and_then(|text| text.parse().ok());
        let is_it = match stated {
            Some(stated) => stated == *found,
            None => {
                named.as_ref() == Some(&version)
                    && fetch_release(session, id, &route, &release)
                        .is_ok_and(|stored| stored.digest == *found)
            }
        };
        is_it.then(|| version.to_string())
    })
}
