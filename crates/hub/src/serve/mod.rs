//! A hub's server: the static files for everybody, and changes for whoever has a token.
//!
//! It keeps nothing between requests that matters: all state is in the place, so any number of servers can
//! stand in front of one. `connection.rs` has sockets, TLS and their limits, `patience.rs` clients that dawdle,
//! `host.rs` which host they ask for, `routes.rs` which request goes where and the access log, `reading.rs` the files, `writing.rs` the changes, `search.rs` the catalog, `page/`
//! what people see in a browser, `unbound.rs` the server without a socket, `uploads.rs` the room for archives, `limits.rs` and `metrics.rs` what their names say, `problem.rs` the errors.

mod connection;
mod host;
mod limits;
mod metrics;
mod page;
mod patience;
mod problem;
mod reading;
mod routes;
mod search;
mod unbound;
mod uploads;
mod writing;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use self::limits::Buckets;
use self::metrics::Metrics;
use self::page::Pages;
use self::search::Catalog;
pub use self::unbound::Unbound;
use self::uploads::Uploads;
use crate::files::Files;
use crate::root::Root;
use crate::writer::Writer;
use crate::{HubError, Place};

/// Takes a line of the access log, which is a JSON object.
pub type WriteLog = Arc<dyn Fn(&str) + Send + Sync>;

/// How a hub is served.
#[derive(Clone)]
pub struct Serving {
    /// Where to listen; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// The files with certificate chain and private key, in PEM; without them plain HTTP is spoken.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// What references to the hub's packages begin with, such as `hub.acme.co/`; without it pages show the host that
    /// they were asked for at.
    pub base: Option<String>,
    /// The largest archive that is taken, in bytes.
    pub largest_archive: u64,
    /// How many changes one client address may ask for in a minute.
    pub changes_per_minute: u32,
    /// How many requests one client address may make in a second; 0 for any number.
    pub requests_per_second: u32,
    /// Whether everybody may read the counters; without it only programs of this machine may.
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
struct Server {
    files: Files,
    writer: Writer,
    /// The hub's folders, which never change.
    root: Root,
    catalog: Catalog,
    pages: Pages,
    uploads: Uploads,
    changes: Buckets,
    requests: Option<Buckets>,
    metrics: Metrics,
    serving: Serving,
}

/// Serves the hub at `place` until the process is asked to end; then requests that are under way are
/// finished.
///
/// `started` is called with the address once the server listens.
///
/// # Errors
///
/// When there is no hub, the address cannot be listened at, or a TLS file cannot be used.
pub fn serve(
    place: &Place,
    serving: Serving,
    started: impl FnOnce(SocketAddr),
) -> Result<(), HubError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| HubError::Io { action: "begin to work".to_owned(), source })?;
    let tls = serving.tls.as_ref().map(|(chain, key)| connection::tls(chain, key)).transpose()?;
    let server = runtime.block_on(Server::open(place, serving))?;
    runtime.block_on(connection::listen(Arc::new(server), tls, started))
}

impl Server {
    async fn open(place: &Place, serving: Serving) -> Result<Self, HubError> {
        let files = Files::open(place, false)?;
        files.keep_private();
        Ok(Self {
            root: Root::read(&files).await?,
            writer: Writer { files: files.clone() },
            files,
            catalog: Catalog::default(),
            pages: Pages::default(),
            uploads: Uploads::new(serving.largest_archive),
            changes: Buckets::per_minute(serving.changes_per_minute),
            requests: (serving.requests_per_second > 0)
                .then(|| Buckets::per_second(serving.requests_per_second)),
            metrics: Metrics::default(),
            serving,
        })
    }
}
