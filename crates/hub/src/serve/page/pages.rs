//! What the pages remember between requests.

use std::sync::Arc;

use super::readme::Readmes;
use super::recent::Recent;
use super::relations::Relations;

/// What the pages remember between requests.
#[derive(Debug, Default)]
pub(in crate::serve) struct Pages {
    pub(super) relations: Arc<Relations>,
    pub(super) readmes: Readmes,
    pub(super) recent: Recent,
}
