//! Why something about a package is not known: for messages, and for callers that can react to it.

use std::sync::Arc;

use mu_provider::{ErrorKind, ProviderError};

use crate::fs::FileError;
use crate::index::routes::RouteError;
use crate::manifest::source::SourceError;
use crate::reference::{PackageId, ReferenceError, Version};
use crate::select::Unavailable;

/// Why something about a package is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackageError {
    #[error(transparent)]
    Route(#[from] RouteError),
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error("cannot read the index cache")]
    Cache(#[source] Arc<FileError>),
    #[error("{0} says that nothing changed, although it was never asked before")]
    Unasked(String),
    #[error("the index line of `{id}` {version} cannot be read")]
    Line { id: PackageId, version: String, source: serde_json::Error },
    #[error("the manifest of `{id}` {version} cannot be read")]
    Manifest { id: PackageId, version: String, source: SourceError },
    #[error("the manifest of `{id}` cannot be read")]
    ManifestInFolder { id: PackageId, source: SourceError },
    #[error("`{id}` {version} depends on something that is not a reference")]
    Dependency { id: PackageId, version: String, source: ReferenceError },
    #[error("`{id}` {version} cannot be used, because of one of its dependencies")]
    DependencyInFile { id: PackageId, version: String, source: SourceError },
    #[error(
        "`{id}` {version} depends on the folder `{folder}`, which {why}; its manifest must {remedy}"
    )]
    Folder {
        id: PackageId,
        version: String,
        folder: String,
        why: &'static str,
        remedy: &'static str,
    },
    #[error("`{id}` {version} depends on `{place}`, which is refused: {why}")]
    Lead {
        id: PackageId,
        version: String,
        place: String,
        why: &'static str,
        source: Option<Box<SourceError>>,
    },
    #[error(
        "`{id}` cannot be pinned to `{digest}`: only artifacts in OCI registries and archives by URL can be, and it comes from `{place}`"
    )]
    NoDigests { id: PackageId, digest: String, place: String },
    #[error("more packages were requested than {most}; the last one was `{id}`{way}")]
    TooMany {
        id: PackageId,
        most: usize,
        /// The path to it, in words.
        way: String,
    },
    #[error(transparent)]
    Other(#[from] Arc<PackageError>),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why something is not known, as far as a caller can react to it.
#[derive(Debug)]
pub enum Cause<'error> {
    /// A provider said so.
    Provider(&'error ProviderError),
    /// No provider serves the place.
    Route,
    /// Packages of its place cannot be pinned to a digest.
    NoDigests,
    /// What was fetched names a place that it may not name.
    Refused,
    /// The data of the package is not valid.
    Package,
    /// The cache cannot be read.
    Cache,
    /// A run requested too many packages; says so, and what led there.
    TooMany(String),
}

/// Why something is not known.
pub fn cause(error: &Unavailable) -> Cause<'_> {
    package_error(error).map_or(Cause::Package, PackageError::cause)
}

fn package_error(error: &Unavailable) -> Option<&PackageError> {
    let source = &*error.source;
    let shared = source.downcast_ref::<Arc<PackageError>>().map(|shared| &**shared);
    source.downcast_ref::<PackageError>().or(shared)
}

/// The version that cannot be used because what was published as it cannot be read; `None` if that is not the reason, or
/// if it is a commit.
pub fn unreadable_version(error: &Unavailable) -> Option<&str> {
    let version = match package_error(error)? {
        PackageError::Line { version, .. }
        | PackageError::Manifest { version, .. }
        | PackageError::Dependency { version, .. }
        | PackageError::DependencyInFile { version, .. }
        | PackageError::Lead { version, .. }
        | PackageError::Folder { version, .. } => version,
        _ => return None,
    };
    Version::parse(version).is_ok().then_some(version)
}

impl PackageError {
    /// Whether it is not known because mu is offline.
    pub(super) fn is_offline(&self) -> bool {
        matches!(self.cause(), Cause::Provider(error) if error.kind() == ErrorKind::Offline)
    }

    fn cause(&self) -> Cause<'_> {
        match self {
            Self::Provider(error) | Self::Route(RouteError::Provider(error)) => {
                Cause::Provider(error)
            }
            Self::Route(_) => Cause::Route,
            Self::NoDigests { .. } => Cause::NoDigests,
            Self::Lead { .. } => Cause::Refused,
            Self::Cache(_) => Cause::Cache,
            Self::TooMany { .. } => Cause::TooMany(self.to_string()),
            Self::Other(error) => error.cause(),
            Self::Unavailable(error) => cause(error),
            _ => Cause::Package,
        }
    }
}
