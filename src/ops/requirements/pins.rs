//! Pins in manifests: what they pin to, and the comment after a pin that keeps what was written before.

use crate::lock::{LockedPackage, Lockfile};
use crate::ops::CommandError;
use crate::reference::{PackageId, Reference, VersionSpec};

/// The start of the comment after a pinned entry.
pub(crate) const MARK: &str = "pinned from";

/// The text of the comment if no version was written.
pub(crate) const NOTHING: &str = "no version";

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
pub(crate) fn pin_of(package: &LockedPackage, commits: bool) -> Result<VersionSpec, CommandError> {
    let is_archive = package.source.is_archive() || package.artifact.is_some();
    if let (true, Some(digest)) = (is_archive, package.revision()) {
        return Ok(VersionSpec::parse(&digest)?);
    }
    let names_version = package.commit.is_none()
        || (!commits && package.reference.is_none() && package.has_version());
    let text = match &package.commit {
        Some(commit) if !names_version => commit,
        _ => &package.version,
    };
    // A version that leaves numbers out means a range in a requirement.
    let whole = package.parsed_version().filter(|version| names_version && version.is_spelt());
    match whole {
        Some(version) => Ok(VersionSpec::parse(&version.in_full().to_string())?),
        None => Ok(VersionSpec::parse(text)?),
    }
}
