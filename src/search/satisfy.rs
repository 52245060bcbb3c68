//! Whether a folder's package is one of the requested versions.

use std::fmt;
use std::path::PathBuf;

use super::Query;
use crate::manifest::source::printable;
use crate::reference::{PackageId, Version, VersionSpec};
use crate::workspace::LeftOutReason;

/// What is known about an installed pack in addition to its manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstalledPack {
    /// The version that was chosen; it takes precedence over the manifest's.
    pub version: Option<Version>,
    /// The commit that it came from, or the digest that it is known by.
    pub commit: Option<String>,
    /// The tag or branch that it came from.
    pub reference: Option<String>,
}

/// Why a folder with a manifest does not satisfy a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnsatisfiedReason {
    /// It is another version.
    Version {
        /// The version that is there, if its manifest has one.
        found: Option<Version>,
        /// The requested package or version.
        wanted: VersionSpec,
    },
    /// It came from another commit, tag or branch.
    Revision {
        /// The commit, tag or branch that it came from, if that is known.
        found: Option<String>,
        /// The requested package or version.
        wanted: VersionSpec,
    },
    /// Another package, this one, took its place.
    Replaced(PackageId),
    /// It is in a folder of the workspace where mu does not look for packages, and why not.
    LeftOut(LeftOutReason),
    /// It is behind this symbolic link in the packs of the workspace.
    Link(PathBuf),
    /// Its manifest cannot be read, and why not.
    Broken(String),
}

impl fmt::Display for UnsatisfiedReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { found: Some(found), wanted } => {
                write!(formatter, "version {found} does not satisfy `{wanted}`")
            }
            Self::Version { found: None, wanted } => {
                write!(formatter, "it has no version that could satisfy `{wanted}`")
            }
            Self::Revision { found: Some(found), wanted } => {
                write!(formatter, "it came from `{}`, not from `{wanted}`", printable(found))
            }
            Self::Revision { found: None, wanted } => {
                write!(formatter, "it is not known to come from `{wanted}`")
            }
            Self::Replaced(by) => write!(formatter, "replaced by `{by}`"),
            Self::LeftOut(why) => why.fmt(formatter),
            Self::Link(path) => {
                write!(formatter, "`{}` is a link, which is not followed", path.display())
            }
            Self::Broken(message) => write!(formatter, "its manifest cannot be read: {message}"),
        }
    }
}

/// Why the package with this version, and with what is known about its installation, does not satisfy the
/// request.
///
/// If no particular version was requested, any version does.
pub(super) fn objection(
    wanted: &Query,
    version: Option<&Version>,
    installed: &InstalledPack,
) -> Option<UnsatisfiedReason> {
    let spec = &wanted.spec;
    let version = installed.version.as_ref().or(version);
    let has_version = || version.is_some_and(|version| spec.accepts(version, wanted.prereleases));
    let has_tag = || spec.as_tag().is_some() && spec.as_tag() == installed.reference.as_deref();
    let commit = installed.commit.as_deref();
    let fits = match spec {
        VersionSpec::Latest | VersionSpec::Tip => true,
        VersionSpec::Pin(_) | VersionSpec::Range(_) | VersionSpec::Tag(_) => {
            has_version() || has_tag()
        }
        VersionSpec::Digest(digest) => commit == Some(digest.as_str()) || has_tag(),
        VersionSpec::Commit(wanted) => {
            let is_version = || {
                let range = wanted.as_range();
                range.zip(version).is_some_and(|(range, version)| range.matches(version, false))
            };
            commit.is_some_and(|found| wanted.matches(found)) || has_tag() || is_version()
        }
    };
    if fits {
        return None;
    }
    let wanted = spec.clone();
    Some(match spec {
        VersionSpec::Pin(_) | VersionSpec::Range(_) => {
            UnsatisfiedReason::Version { found: version.cloned(), wanted }
        }
        VersionSpec::Tag(_) => {
            UnsatisfiedReason::Revision { found: installed.reference.clone(), wanted }
        }
        _ => UnsatisfiedReason::Revision { found: installed.commit.clone(), wanted },
    })
}
