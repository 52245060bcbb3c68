//! The one version that a reference of the command line means, for questions about packages that need not be
//! installed.

use std::sync::Arc;

use mu_provider::Release;

use crate::index::releases::{Position, Releases};
use crate::index::{Candidate, Revision, Universe as _};
use crate::ops::apply::fetch::fetch_release;
use crate::ops::explain::failure::unavailable;
use crate::ops::lookup::filter::VersionFilter;
use crate::ops::lookup::here::Here;
use crate::ops::lookup::listing::Listing;
use crate::ops::lookup::package::{Published, published};
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, VersionSpec};
use crate::store::Stored;

/// The newest version that is accepted: preferably not a prerelease, and a withdrawn one only if all are. For
/// a repository without version tags, the tip of its default branch.
pub(super) fn choose(
    listing: &Listing<'_>,
    wanted: Option<&VersionSpec>,
) -> Result<Revision, CommandError> {
    let Listing { session, id, releases, .. } = listing;
    let filter = VersionFilter::default();
    if wanted.is_none()
        && let Some(newest) = filter.read()?.newest(releases)
    {
        return Ok(Revision::Release(newest));
    }
    // Here a withdrawn version may be shown, unlike in selection: who asks for `#^1` of which all are withdrawn wants
    // to know of it.
    let accepted = (0..releases.len())
        .filter(|&position| wanted.is_none_or(|wanted| listing.is_named(position, wanted)));
    let standing = |position: Position| {
        let details = releases.details(position);
        details.is_none_or(|details| details.yanked.is_none())
    };
    let is_release = |position: Position| !releases.version(position).is_prerelease();
    let best =
        accepted.max_by_key(|&position| (standing(position), is_release(position), position));
    if let Some(position) = best {
        return Ok(Revision::Release(position));
    }
    // No version is meant. Where there are commits and branches, the name may be one of these.
    let name = wanted.unwrap_or(&VersionSpec::Tip);
    let name = if *name == VersionSpec::Latest { &VersionSpec::Tip } else { name };
    let is_name =
        name.as_tag().is_some() || matches!(name, VersionSpec::Tip | VersionSpec::Commit(_));
    if releases.has_revisions() && is_name {
        let found = session.index().revision(releases, name);
        if let Some(revision) = found.map_err(|error| unavailable(session, error))? {
            return Ok(revision);
        }
    }
    Err(missing(session, id, releases, wanted))
}

/// What the index is asked about a version.
pub(super) fn candidate_of(chosen: &Revision) -> Candidate<'_> {
    match chosen {
        Revision::Release(position) => Candidate::Release(*position),
        Revision::Untagged(untagged) => Candidate::Revision(untagged),
    }
}

/// The version that `text` names in its registry, brought into the store.
///
/// # Errors
///
/// When there is no such version, or the package cannot be fetched.
pub(super) fn fetched(
    session: &Session,
    text: &str,
) -> Result<(PackageId, Arc<Release>, Stored), CommandError> {
    let Published { reference, id, releases } = published(session, text)?;
    let listing = Listing { session, id: &id, releases: &releases, here: Here::default() };
    let chosen = choose(&listing, reference.version())?;
    let found = session.index().release(&id, candidate_of(&chosen));
    let (route, release) = found.map_err(|error| unavailable(session, error))?;
    let stored = fetch_release(session, &id, &route, &release)?;
    Ok((id, release, stored))
}

/// The error about a package without any requested version.
fn missing(
    session: &Session,
    id: &PackageId,
    releases: &Releases,
    wanted: Option<&VersionSpec>,
) -> CommandError {
    let message = match wanted {
        Some(wanted) if !releases.is_empty() => format!("`{id}` has no version {wanted}"),
        _ => format!("`{id}` has no versions"),
    };
    let error = CommandError::new(Code::NotFound, message);
    let has_others = session.index().left_out(id).is_ok_and(|left_out| !left_out.is_empty());
    match releases.is_empty() && !has_others {
        true => error,
        false if releases.is_empty() => error.hint(format!(
            "`mu versions {}` says which entries of its registry are not versions",
            session.short_name(id)
        )),
        false => error.hint(format!("`mu versions {}` lists its versions", session.short_name(id))),
    }
}
