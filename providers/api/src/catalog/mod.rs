//! Catalogs: what a registry says of its packages so that they can be found, a line for each.
//!
//! Static hubs hold one as a file, servers search theirs. Both rank by [`Query`], so that the answer is
//! the same. Which versions there are is not here but in the index.

mod search;

use serde::{Deserialize, Serialize};

pub use self::search::{Hits, LONGEST_LINE, Query, Rank};

/// One package, as a catalog has it. Keys that are empty are left out, unknown ones ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CatalogLine {
    /// The package's name in its registry.
    pub name: String,
    /// Its newest release, neither withdrawn nor a prerelease if there is such a one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub latest: String,
    /// What it is, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// The version of what its newest release packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// The package that took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// Capabilities that its newest release provides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
}

/// What `GET api/v1/search?q=` answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchAnswer {
    /// The packages, best first.
    pub packages: Vec<CatalogLine>,
    /// How many there are; as many as are listed where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
}
