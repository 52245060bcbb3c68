//! `versions`: the versions of one package in ascending order, with what is known about each.

use schemars::JsonSchema;
use serde::Serialize;

use crate::index::LeftOut;
use crate::index::releases::Position;
use crate::lock::Source;
use crate::ops::explain::failure::unavailable_error;
use crate::ops::lookup::chosen::{PublishedPackage, published};
use crate::ops::lookup::filter::VersionFilter;
use crate::ops::lookup::here::Here;
pub use crate::ops::lookup::listing::ListedVersion;
use crate::ops::lookup::listing::Listing;
use crate::ops::session::source::source_of;
use crate::ops::{CommandError, Session};
use crate::reference::PackageId;

/// The versions of a package.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VersionList {
    /// The package.
    pub id: PackageId,
    /// Their source, if there are any.
    pub source: Option<Source>,
    /// Those that the filter shows, ascending.
    #[serde(rename = "versions")]
    pub shown: Vec<ListedVersion>,
    /// How many there are.
    pub total: usize,
    /// What the registry lists besides, and cannot be read as a version.
    #[serde(rename = "leftOut", skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The packages in folders of the repository that have version tags of their own, if it is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageId>,
    /// Whether there are also commits and branches.
    #[serde(skip)]
    pub is_repository: bool,
}

/// Lists the versions of the package that `text` names that match the version in `text` and `filter`.
///
/// # Errors
///
/// When the reference or the filter cannot be read, or the registry cannot be reached or has no such package.
pub fn versions(
    session: &Session,
    text: &str,
    filter: &VersionFilter,
) -> Result<VersionList, CommandError> {
    let sieve = filter.read()?;
    let PublishedPackage { reference, id, releases } = published(session, text)?;
    let here = Here::new(session, filter)?;
    let listing = Listing { session, id: &id, releases: &releases, here };
    let wanted = reference.version();
    let is_wanted = |position: &Position| {
        sieve.passes(&releases.version(*position))
            && wanted.is_none_or(|wanted| listing.is_named(*position, wanted))
    };
    // Conditions on versions first, which cost nothing: the others may need each version's manifest.
    let positions: Vec<Position> = (0..releases.len()).filter(is_wanted).collect();
    let shown = listing.through(&sieve, &positions)?;
    let failed = |error| unavailable_error(session, error);
    let source = match releases.len() {
        0 => None,
        _ => Some(source_of(session, &*session.index().route(&id).map_err(failed)?)),
    };
    let left_out = session.index().left_out(&id).map_err(failed)?;
    let folders = session.index().folders_with_versions(&id).map_err(failed)?;
    let inside = |folder: String| PackageId::parse(&format!("{id}/{folder}")).ok();
    let packages = folders.into_iter().filter_map(inside).collect();
    session.save_index();
    Ok(VersionList {
        id: id.clone(),
        source,
        shown,
        total: releases.len() as usize,
        left_out,
        packages,
        is_repository: releases.has_commits(),
    })
}
