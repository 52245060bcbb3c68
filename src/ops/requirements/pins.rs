//! Pins in manifests: what they pin to, and the comment after a pin that keeps what was written before.
//!
//! A version that a manifest states in a Git repository, at a commit without a tag, is no release: no requirement on a version
//! leads there again, so nothing is written that names it.

use crate::index::Requirement;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::requirements::Requirements;
use crate::ops::{CommandError, Session};
use crate::reference::{PackageId, Reference, VersionSpec};

/// The start of the comment after a pinned entry.
pub(crate) const MARK: &str = "pinned from";

/// The text of the comment if no version was written.
pub(crate) const NO_VERSION_TEXT: &str = "no version";

/// The locked package that a reference means. Of several majors, it is the highest that the reference accepts.
pub(crate) fn locked_for<'lock>(
    lock: &'lock Lockfile,
    id: &PackageId,
    reference: &Reference,
) -> Option<&'lock LockedPackage> {
    let spec = reference.spec();
    let is_accepted = |package: &&LockedPackage| {
        package.parsed_version().is_some_and(|version| spec.accepts(&version, true))
    };
    lock.find(id).filter(is_accepted).last().or_else(|| lock.find(id).last())
}

/// The pin for a locked package: its version, or its commit or digest if that is more exact.
pub(crate) fn pin_of(
    session: &Session,
    package: &LockedPackage,
    commits: bool,
) -> Result<VersionSpec, CommandError> {
    let is_archive = package.source.is_url_archive() || package.artifact.is_some();
    if let (true, Some(digest)) = (is_archive, package.revision()) {
        return Ok(VersionSpec::parse(&digest)?);
    }
    match (&package.commit, package.parsed_version()) {
        // A version that only the manifest of a commit states cannot be required again, so the commit is pinned.
        (Some(commit), _) if commits || !is_release(session, package) => {
            Ok(VersionSpec::parse(commit)?)
        }
        (_, Some(version)) => Ok(VersionSpec::exactly(&version)),
        (_, None) => Ok(VersionSpec::parse(&package.version)?),
    }
}

/// Whether a locked package can be found again by its version: not what was asked for by a tag or a branch, nor the content of
/// a URL, nor a commit whose version only its manifest knows. If its repository cannot be asked, a commit is none.
pub(crate) fn is_release(session: &Session, package: &LockedPackage) -> bool {
    // What is at the URL of an archive may be any version later.
    if package.reference.is_some() || package.source.is_url_archive() {
        return false;
    }
    let Some(commit) = &package.commit else { return true };
    let Some(version) = package.parsed_version().filter(|_| package.is_versioned()) else {
        return false;
    };
    // Only what names a commit leads to one that is no release.
    let is_by_version = |text: &str| {
        let requirement = Requirement::parse(package.id.clone(), text);
        let spec = requirement.map(|requirement| requirement.spec);
        matches!(spec, Some(VersionSpec::Pin(_) | VersionSpec::Range(_)))
    };
    if package.requested.iter().all(|requested| is_by_version(&requested.spec)) {
        return true;
    }
    // Manifests say more about the way to a package than its id.
    let extra = session.lockfile().ok().flatten().map(|lock| lock.extra.clone());
    if let Ok(all) = Requirements::collect(session, extra.unwrap_or_default()) {
        all.declare(session);
    }
    let Ok(releases) = session.index().listed_releases(&package.id) else { return false };
    let listed = releases.position_of_version(&version);
    listed.is_some_and(|at| releases.commit(at).is_none_or(|known| **known == *commit.as_str()))
}

/// Requires a locked package in its version and compatible ones; `None` if it is no release.
pub(crate) fn compatible_with_locked(
    session: &Session,
    package: &LockedPackage,
) -> Option<VersionSpec> {
    let version = package.parsed_version().filter(|_| is_release(session, package))?;
    Some(VersionSpec::compatible_with(&version))
}
