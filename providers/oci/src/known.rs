//! What is known of a listing since the last time. Nothing here makes requests.

use serde::{Deserialize, Serialize};

/// A value for finding out whether a listing is unchanged. The caller stores it as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    /// The digest of the tags.
    pub(crate) tags: String,
    /// The digest of the index with a tag, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<String>,
    /// The registry's ETag for the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    /// The digest of the registry's list of referrers, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) referrers: Option<String>,
}
