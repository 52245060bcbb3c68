//! The interface between selection and the index: the one trait that both know.
//!
//! Calls block, and implementations cache answers: a second call is cheap. A missing package or revision is
//! an answer; only a failed lookup is an error.

#![deny(clippy::indexing_slicing)]

use std::cmp::Ordering;
use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use mu_manifest::reference::{PackageId, Version, VersionSpec};
use thiserror::Error;

use crate::releases::{Details, Position, Releases};

/// All packages that selection can reach.
pub trait Universe: Sync {
    /// The releases of a package; [`Releases::absent`] if there is no such package.
    ///
    /// # Errors
    ///
    /// When it could not be looked up.
    fn releases(&self, id: &PackageId) -> Result<Arc<Releases>, Unavailable>;

    /// Resolves a name in the place of `releases`: `tip`, a tag or a branch ([`VersionSpec::as_tag`], which
    /// comes first), or a commit.
    ///
    /// # Errors
    ///
    /// When it could not be looked up. An unknown name is `None`.
    fn revision(
        &self,
        releases: &Releases,
        name: &VersionSpec,
    ) -> Result<Option<Revision>, Unavailable>;

    /// What a candidate of `releases` requires; repeated requirements should be shared.
    ///
    /// # Errors
    ///
    /// When it could not be looked up.
    fn requirements(
        &self,
        releases: &Releases,
        candidate: Candidate<'_>,
    ) -> Result<Arc<[Arc<Requirement>]>, Unavailable>;

    /// The data of a candidate's manifest that `releases` does not have, as in repositories.
    ///
    /// # Errors
    ///
    /// When it could not be looked up.
    fn declared(
        &self,
        _id: &PackageId,
        _candidate: Candidate<'_>,
    ) -> Result<Option<Arc<Details>>, Unavailable> {
        Ok(None)
    }

    /// The packages that the registry of `near` lists as providers of a capability, in its order.
    ///
    /// # Errors
    ///
    /// When it could not be looked up. An empty list is an answer.
    fn providing(
        &self,
        _capability: &str,
        _near: &PackageId,
    ) -> Result<Arc<[PackageId]>, Unavailable> {
        Ok(Arc::from([]))
    }

    /// Announces a level of the graph that will be needed soon, so that all of it can be fetched at once.
    fn expect(&self, _level: GraphLevel<'_>) {}

    /// Whether a version of a package carries a copy of another package that it depends on, and can be used with that.
    fn carries_copy(&self, _by: &PackageId, _version: &str, _of: &PackageId) -> bool {
        false
    }

    /// Existing packages with names like that of `id`, best first: only for messages.
    fn similar(&self, _id: &PackageId) -> Vec<PackageId> {
        Vec::new()
    }
}

/// A level of the graph that will be needed soon.
#[derive(Debug, Clone, Copy)]
pub enum GraphLevel<'a> {
    /// The releases of these packages, in the order in which they will be needed.
    Releases(&'a [PackageId]),
    /// What these versions require.
    Requirements(&'a [(Arc<Releases>, Position)]),
    /// All that is known of these versions: they were chosen.
    Chosen(&'a [(Arc<Releases>, Position)]),
}

/// One candidate of a package.
#[derive(Debug, Clone, Copy)]
pub enum Candidate<'a> {
    /// A published version.
    Release(Position),
    /// A revision that has no version tag.
    Revision(&'a Untagged),
}

/// What a commit, a tag or a branch resolved to.
#[derive(Debug, Clone, PartialEq)]
pub enum Revision {
    /// A published version.
    Release(Position),
    /// A revision that has no version tag.
    Untagged(Untagged),
}

/// A revision that has no version tag.
#[derive(Debug, Clone, PartialEq)]
pub struct Untagged {
    /// The commit, 40 hex digits.
    pub commit: Arc<str>,
    /// The version in its manifest.
    pub version: Option<Version>,
    /// The other data of its manifest.
    pub details: Option<Arc<Details>>,
}

/// What one package requires of another. Ordered and compared by what was written.
#[derive(Debug, Clone)]
pub struct Requirement {
    /// The required package.
    pub id: PackageId,
    /// The versions it accepts; keeps what was written.
    pub spec: VersionSpec,
    /// Whether prereleases are accepted too.
    pub prerelease: bool,
    /// Only versions in this channel.
    pub channel: Option<String>,
    /// Only versions of this app version.
    pub app_version: Option<String>,
}

impl Requirement {
    /// Requires versions of a package, and nothing else.
    pub fn new(id: PackageId, spec: VersionSpec) -> Self {
        Self { id, spec, prerelease: false, channel: None, app_version: None }
    }

    /// Parses the printed form of a requirement; `None` for any other text.
    pub fn parse(id: PackageId, text: &str) -> Option<Self> {
        let prerelease = text.ends_with(PRERELEASES);
        let text = text.strip_suffix(PRERELEASES).unwrap_or(text);
        let (text, channel) = match text.rsplit_once(CHANNEL) {
            Some((rest, channel)) => (rest, Some(channel.to_owned())),
            None => (text, None),
        };
        let (text, app_version) = match text.rsplit_once(APP_VERSION) {
            Some((rest, app_version)) => (rest, Some(app_version.to_owned())),
            None => (text, None),
        };
        let spec = VersionSpec::parse(text).ok()?;
        Some(Self { id, spec, prerelease, channel, app_version })
    }
}

const APP_VERSION: &str = " of app version ";
const CHANNEL: &str = " in channel ";
const PRERELEASES: &str = " with prereleases";

impl Requirement {
    /// The key that distinguishes requirements.
    fn key(&self) -> (&PackageId, &str, bool, Option<&str>, Option<&str>) {
        let channel = self.channel.as_deref();
        (&self.id, self.spec.as_str(), self.prerelease, channel, self.app_version.as_deref())
    }
}

impl PartialEq for Requirement {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Requirement {}

impl Hash for Requirement {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Ord for Requirement {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Requirement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Prints the requirement, without the package: `~1.5`, `3.x in channel stable`.
impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(formatter)?;
        if let Some(app_version) = &self.app_version {
            write!(formatter, "{APP_VERSION}{app_version}")?;
        }
        if let Some(channel) = &self.channel {
            write!(formatter, "{CHANNEL}{channel}")?;
        }
        if self.prerelease { formatter.write_str(PRERELEASES) } else { Ok(()) }
    }
}

/// Says that something about a package could not be looked up.
#[derive(Debug, Error)]
#[error("could not look up `{id}`")]
pub struct Unavailable {
    /// The package.
    pub id: PackageId,
    /// The error of the provider or the cache.
    pub source: Box<dyn Error + Send + Sync>,
}

impl Unavailable {
    /// Says that something about a package could not be looked up, and why.
    pub fn new(id: &PackageId, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { id: id.clone(), source: source.into() }
    }
}
