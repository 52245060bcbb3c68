//! What prevents newer versions of a locked package, according to selection.

use crate::index::releases::Releases;
use crate::index::{Requirement, Unavailable};
use crate::lock::LockedPackage;
use crate::ops::Session;
use crate::ops::requirements::requester::Requester;
use crate::ops::solve::asking::meet;
use crate::reference::Version;
use crate::select::{Ceiling, Newer, RequirementByRequirer, SelectionRequest, Strategy};

/// The requirers of a locked package, and their requirements.
pub(crate) fn requirers_of_locked(package: &LockedPackage) -> Vec<RequirementByRequirer> {
    let requested = package.requested.iter().filter(|requested| !Requester::is_override(requested));
    requested
        .filter_map(|requested| {
            let requirement = Requirement::parse(package.id.clone(), &requested.spec)?;
            Some((requested.by.to_string(), requirement))
        })
        .collect()
}

/// Looks at what could be chosen, and again if a fetched package turned out to require one of the workspace's
/// own.
pub(crate) fn ask_ceiling<T>(
    session: &Session,
    request: &SelectionRequest,
    strategy: &dyn Strategy,
    mut ask: impl FnMut(&mut Ceiling<'_>) -> Result<T, Unavailable>,
) -> Result<T, Unavailable> {
    let mut request = request.clone();
    loop {
        let result = ask(&mut Ceiling::new(session.index(), &request, strategy));
        if !meet(session, &mut request) {
            return result;
        }
    }
}

/// The first thing that prevents `newest` as the version of a package; `None` if that cannot be found out.
pub(crate) fn obstacle(
    session: &Session,
    request: &SelectionRequest,
    package: &LockedPackage,
    asking: &[RequirementByRequirer],
    newest: &str,
) -> Option<Newer> {
    let version = package.parsed_version()?;
    let newer = ask_ceiling(session, request, session.strategy(), |ceiling| {
        ceiling.newer(&package.id, &version, asking)
    });
    // If it cannot be found out now, it was not an obstacle a moment ago.
    let mut newer = newer.ok().flatten().unwrap_or_default();
    let first = newer.iter().position(|newer| newer.newest == newest).unwrap_or_default();
    (first < newer.len()).then(|| newer.swap_remove(first))
}

/// The newest version that was not withdrawn, and that is not older than `current`: a release, or whatever there is if all are
/// prereleases, or if `current` is one.
pub(crate) fn newest(releases: &Releases, current: Option<&Version>) -> Option<Version> {
    let is_yanked =
        |position| releases.details(position).is_some_and(|details| details.yanked.is_some());
    let counts_all = releases.has_only_prereleases() || current.is_some_and(Version::is_prerelease);
    let mut positions = (0..releases.len()).rev();
    let newest = positions.find(|&position| {
        !is_yanked(position) && (counts_all || !releases.version(position).is_prerelease())
    });
    let newest = newest.map(|position| releases.version(position));
    newest.filter(|newest| current.is_none_or(|current| newest >= current))
}
