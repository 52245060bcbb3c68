//! The settings of the provider, and their usual values. Nothing here contacts a registry.

use std::path::PathBuf;
use std::sync::Arc;

use mu_provider::http::Http;

use crate::auth::Stores;
use crate::kept::Kept;
use crate::without_lists::WithoutLists;

/// The settings of the provider.
#[derive(Debug, Clone)]
pub struct OciOptions {
    /// The client, which also knows whether mu is offline.
    pub http: Arc<Http>,
    /// A folder for incomplete downloads; created when needed.
    pub downloads: PathBuf,
    /// Where to look for passwords, besides mu's own.
    pub stores: Stores,
    /// What earlier runs have learned about registries.
    pub without_lists: WithoutLists,
    /// What earlier runs have read of blobs.
    pub kept: Kept,
}

impl OciOptions {
    /// Creates options without passwords of other tools, and without anything from earlier runs.
    pub fn new(http: Arc<Http>, downloads: impl Into<PathBuf>) -> Self {
        let (stores, without_lists) = (Stores::default(), WithoutLists::default());
        let (downloads, kept) = (downloads.into(), Kept::default());
        Self { http, downloads, stores, without_lists, kept }
    }
}
