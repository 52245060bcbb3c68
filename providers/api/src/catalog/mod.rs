//! Catalogs: one line for each package of a registry, for searching.
//!
//! Static hubs store a catalog as a file; servers search theirs. Both rank with [`Query`], so they give the
//! same answer. The index has the versions, not the catalog.

mod search;

use serde::{Deserialize, Serialize};

use crate::yanked::Yanked;

pub use self::search::{Hits, LONGEST_LINE, Query, Rank, capabilities};

/// One package, as a catalog has it. Keys that are empty are left out, unknown ones ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CatalogLine {
    /// The package's name in its registry.
    pub name: String,
    /// Its newest release: one that is neither withdrawn nor a prerelease, if there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub latest: String,
    /// What it is, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// The version of the software in its newest release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// The package that took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// Capabilities that its newest release provides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
    /// Whether its newest release was withdrawn, as all its releases were, and why.
    #[serde(skip_serializing_if = "Yanked::is_no")]
    pub yanked: Yanked,
    /// Whether its authors no longer maintain its newest release, and why.
    #[serde(skip_serializing_if = "Yanked::is_no")]
    pub deprecated: Yanked,
}

/// What `GET api/v1/search?q=` answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchAnswer {
    /// The packages, best first.
    pub packages: Vec<CatalogLine>,
    /// How many there are. If it is left out, there are as many as are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
}
