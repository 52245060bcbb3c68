//! What all requests share, and how to serve a hub.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::catalog::Catalog;
use super::limits::Buckets;
use super::metrics::Metrics;
use super::page::Pages;
use super::readers::Readers;
use super::uploads::Uploads;
use crate::files::Files;
use crate::root::Root;
use crate::{HubError, Place};

/// Takes a line of the access log, which is a JSON object.
pub type WriteLog = Arc<dyn Fn(&str) + Send + Sync>;

/// How a hub is served.
#[derive(Clone)]
pub struct Serving {
    /// The address to listen at; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The files with certificate chain and private key, in PEM; without them, the server uses plain HTTP.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// What references to the hub's packages begin with, such as `hub.acme.co/`; without it, pages show the
    /// host that the browser asked for.
    pub base: Option<String>,
    /// The largest archive that is taken, in bytes.
    pub largest_archive: u64,
    /// How many files and links an archive that is taken may have.
    pub most_entries: usize,
    /// How many changes one client address may make in a minute.
    pub changes_per_minute: u32,
    /// How many requests one client address may make in a second; 0 for any number.
    pub requests_per_second: u32,
    /// Whether reading needs a token, too.
    pub private: bool,
    /// Whether everyone may read the counters; otherwise only programs on this machine may.
    pub public_metrics: bool,
    /// Where the access log goes.
    pub log: WriteLog,
}

impl fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Serving").field("listen", &self.listen).finish_non_exhaustive()
    }
}

/// What all requests share.
pub(super) struct Server {
    pub(super) files: Files,
    /// The hub's folders, which never change.
    pub(super) root: Root,
    pub(super) catalog: Catalog,
    pub(super) pages: Pages,
    pub(super) uploads: Uploads,
    pub(super) changes: Buckets,
    pub(super) requests: Option<Buckets>,
    pub(super) metrics: Metrics,
    pub(super) readers: Readers,
    pub(super) serving: Serving,
}

impl Server {
    /// Opens the hub at `place`, which is there.
    pub(super) async fn open(place: &Place, serving: Serving) -> Result<Self, HubError> {
        let files = Files::open(place, false)?;
        files.keep_private();
        Ok(Self {
            root: Root::read(&files).await?,
            files,
            catalog: Catalog::default(),
            pages: Pages::default(),
            uploads: Uploads::new(serving.largest_archive),
            changes: Buckets::per_minute(serving.changes_per_minute),
            requests: (serving.requests_per_second > 0)
                .then(|| Buckets::per_second(serving.requests_per_second)),
            metrics: Metrics::default(),
            readers: Readers::default(),
            serving,
        })
    }
}
