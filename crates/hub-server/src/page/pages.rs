//! What the pages know: the hub's data, and what they remember between requests.

use std::sync::Arc;

use super::content::Contents;
use super::recent::Recent;
use super::relations::Relations;
use crate::data::Data;

/// What the pages know, which is all that they see of the server.
pub(crate) struct Pages {
    pub(super) data: Arc<Data>,
    pub(super) relations: Arc<Relations>,
    pub(super) contents: Contents,
    pub(super) recent: Recent,
}

impl Pages {
    /// The pages of a hub, which remember nothing yet.
    pub(crate) fn new(data: Arc<Data>) -> Self {
        let (relations, contents, recent) = Default::default();
        Self { data, relations, contents, recent }
    }
}
