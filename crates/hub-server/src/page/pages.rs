//! What the pages know: the hub's data, and what they remember between requests, such as the packages that changed most recently,
//! for the first page.

use std::sync::{Arc, Mutex};

use futures_util::{StreamExt as _, TryStreamExt as _};
use mu_hub::lines::Lines;
use mu_hub::root::Root;
use mu_hub::tokens::Scope;
use mu_hub::{HubError, derived, log};
use mu_provider::threads::lock;

use super::content::Contents;
use super::found::Found;
use super::relations::Relations;
use super::words::published;
use crate::reading::Data;

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
        let (contents, recent) = Default::default();
        let relations = Arc::new(Relations::new(Arc::clone(&data.own_catalog)));
        Self { data, relations, contents, recent }
    }
}

/// How many packages the first page names.
const NEWEST: usize = 12;

/// The packages that changed last, as of a generation.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Option<(u64, Arc<Vec<Found>>)>>);

impl Recent {
    /// Those in `scope`, read again if anything has changed.
    pub(super) async fn read(
        &self,
        data: &Data,
        root: &Root,
        scope: &Scope,
    ) -> Result<Arc<Vec<Found>>, HubError> {
        let known = lock(&self.0).clone().filter(|_| scope.is_whole());
        if let Some((generation, changed)) = known
            && generation == root.generation()
        {
            return Ok(changed);
        }
        let names = log::newest(&data.files, root, NEWEST, |name| scope.has(name)).await?;
        let reading = futures_util::stream::iter(names).map(|name| async move {
            let lines = data.own_catalog.index_unless_broken(&data.files, root, &name).await?;
            let found = |lines: &Lines| {
                let line = serde_json::from_str(&derived::catalog_line_text(lines)?).ok()?;
                Some(Found { line, published: published(lines.latest()?) })
            };
            Ok::<_, HubError>(lines.as_ref().and_then(found))
        });
        let changed: Vec<Option<Found>> = reading.buffered(NEWEST).try_collect().await?;
        let changed = Arc::new(changed.into_iter().flatten().collect::<Vec<_>>());
        // What is remembered is for readers of the whole hub.
        if scope.is_whole() {
            *lock(&self.0) = Some((root.generation(), Arc::clone(&changed)));
        }
        Ok(changed)
    }
}
