//! What all requests share.

use std::sync::Arc;

use axum::extract::FromRef;
use mu_hub::files::Files;
use mu_hub::root::Root;
use mu_hub::{HubError, Place, Serving};

use super::data::Data;
use super::limits::ClientBuckets;
use super::metrics::Metrics;
use super::page::Pages;
use super::readers::Readers;
use super::uploads::Uploads;

/// What all requests share.
pub(super) struct Server {
    pub(super) data: Arc<Data>,
    pages: Arc<Pages>,
    pub(super) uploads: Uploads,
    pub(super) changes: ClientBuckets,
    pub(super) requests: Option<ClientBuckets>,
    pub(super) metrics: Metrics,
    pub(super) readers: Readers,
    pub(super) serving: Serving,
}

impl Server {
    /// Opens the hub at `place`, which is there.
    pub(super) async fn open(place: &Place, serving: Serving) -> Result<Self, HubError> {
        let files = Files::open(place, false)?;
        files.keep_private();
        let root = Root::read(&files).await?;
        let (base, is_https) = (serving.base.clone(), serving.tls.is_some());
        let data = Arc::new(Data::new(files, root, base, is_https));
        Ok(Self {
            pages: Arc::new(Pages::new(Arc::clone(&data))),
            data,
            uploads: Uploads::new(serving.largest_archive),
            changes: ClientBuckets::per_minute(serving.changes_per_minute),
            requests: (serving.requests_per_second > 0)
                .then(|| ClientBuckets::per_second(serving.requests_per_second)),
            metrics: Metrics::default(),
            readers: Readers::default(),
            serving,
        })
    }
}

/// The server, of which each handler takes the part that it needs.
#[derive(Clone)]
pub(super) struct Shared(pub(super) Arc<Server>);

impl FromRef<Shared> for Arc<Server> {
    fn from_ref(shared: &Shared) -> Self {
        Arc::clone(&shared.0)
    }
}

impl FromRef<Shared> for Arc<Data> {
    fn from_ref(shared: &Shared) -> Self {
        Arc::clone(&shared.0.data)
    }
}

impl FromRef<Shared> for Arc<Pages> {
    fn from_ref(shared: &Shared) -> Self {
        Arc::clone(&shared.0.pages)
    }
}
