//! What the pages remember between requests.

use std::sync::Arc;

use super::content::Contents;
use super::recent::Recent;
use super::relations::Relations;

/// What the pages remember between requests.
#[derive(Debug, Default)]
pub(in crate::serve) struct Pages {
    pub(super) relations: Arc<Relations>,
    pub(super) contents: Contents,
    pub(super) recent: Recent,
}
