//! Whether a folder's package is one of the requested versions.

use std::fmt;
use std::path::PathBuf;

use super::Query;
use crate::manifest::source::printable;
use crate::reference::{PackageId, Version, VersionSpec};
use crate::workspace::Why;

/// What is known about an installed pack in addition to its manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// The version that was chosen; it takes precedence over the manifest's.
    pub version: Option<Version>,
    /// The commit that it came from, or the digest that it is known by.
    pub commit: Option<String>,
    /// The tag or branch that it came from.
    pub reference: Option<String>,
}

/// Why a folder with a manifest does not satisfy a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It is another version.
    Version {
        /// The one that is there.
        found: Version,
        /// The requested package or version.
        wanted: VersionSpec,
    },
    /// Its manifest has no version.
    NoVersion {
        /// The requested package or version.
        wanted: VersionSpec,
    },
    /// It came from another commit, tag or branch.
    Revision {
        /// The one that it came from.
        found: String,
        /// The requested package or version.
        wanted: VersionSpec,
    },
    /// Its commit, tag or branch is unknown.
    UnknownRevision {
        /// The requested package or version.
        wanted: VersionSpec,
    },
    /// Another package took its place.
    Replaced {
        /// The other package.
        by: PackageId,
    },
    /// It is in a folder of the workspace where mu does not look for packages.
    LeftOut {
        /// Why not.
        why: Why,
    },
    /// It is behind a symbolic link in the packs of the workspace.
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Its manifest cannot be read.
    Broken {
        /// Why not.
        message: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { found, wanted } => {
                write!(formatter, "version {found} does not satisfy `{wanted}`")
            }
            Self::NoVersion { wanted } => {
                write!(formatter, "it has no version that could satisfy `{wanted}`")
            }
            Self::Revision { found, wanted } => {
                write!(formatter, "it came from `{}`, not from `{wanted}`", printable(found))
            }
            Self::UnknownRevision { wanted } => {
                write!(formatter, "it is not known to come from `{wanted}`")
            }
            Self::Replaced { by } => write!(formatter, "replaced by `{by}`"),
            Self::LeftOut { why } => why.fmt(formatter),
            Self::Link { path } => {
                write!(formatter, "`{}` is a link, which is not followed", path.display())
            }
            Self::Broken { message } => {
                write!(formatter, "its manifest cannot be read: {message}")
            }
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
    installed: &Installed,
) -> Option<Reason> {
    let spec = &wanted.spec;
    let version = installed.version.as_ref().or(version);
    let has_version = || version.is_some_and(|version| spec.accepts(version, wanted.prereleases));
    let has_tag = || spec.as_tag().is_some() && spec.as_tag() == installed.reference.as_deref();
    let wanted = spec.clone();
    match spec {
        VersionSpec::Latest | VersionSpec::Tip => None,
        VersionSpec::Pin(_) | VersionSpec::Range(_) if has_version() || has_tag() => None,
        VersionSpec::Pin(_) | VersionSpec::Range(_) => Some(match version {
            Some(found) => Reason::Version { found: found.clone(), wanted },
            None => Reason::NoVersion { wanted },
        }),
        VersionSpec::Tag(_) if has_tag() || has_version() => None,
        VersionSpec::Tag(_) => Some(revision(installed.reference.as_deref(), wanted)),
        VersionSpec::Digest(digest) => {
            let found = installed.commit.as_deref();
            let objects = found != Some(digest.as_str()) && !has_tag();
            objects.then(|| revision(found, wanted))
        }
        VersionSpec::Commit(commit) => {
            let found = installed.commit.as_deref();
            let is_commit = || found.is_some_and(|found| commit.matches(found));
            let is_version = || {
                let range = commit.as_range();
                range.zip(version).is_some_and(|(range, version)| range.matches(version, false))
            };
            let objects = !is_commit() && !has_tag() && !is_version();
            objects.then(|| revision(found, wanted))
        }
    }
}

fn revision(found: Option<&str>, wanted: VersionSpec) -> Reason {
    match found {
        Some(found) => Reason::Revision { found: found.to_owned(), wanted },
        None => Reason::UnknownRevision { wanted },
    }
}
