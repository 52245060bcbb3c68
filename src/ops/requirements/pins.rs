//! Pins in manifests: what they pin to, and how the comment behind one keeps what was written before.

use crate::lock::LockedPackage;
use crate::ops::CommandError;
use crate::reference::VersionSpec;

/// What the comment behind a pinned entry begins with.
pub(crate) const MARK: &str = "pinned from";

/// What the comment says where no version was written.
pub(crate) const NOTHING: &str = "no version";

/// The pin for what is locked: its version, or its commit where that says more.
pub(crate) fn pin_of(package: &LockedPackage, commits: bool) -> Result<VersionSpec, CommandError> {
    let names_version = package.commit.is_none()
        || (!commits && package.reference.is_none() && package.version != "0.0.0");
    let text = match &package.commit {
        Some(commit) if !names_version => commit,
        _ => &package.version,
    };
    Ok(VersionSpec::parse(text)?)
}
