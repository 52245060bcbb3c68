//! A hub's server: the static files for everybody, and changes for whoever has a token.
//!
//! It keeps nothing between requests that matters: all state is in the place, so any number of servers can
//! stand in front of one. `connection.rs` has sockets, TLS and their limits, `patience.rs` clients that dawdle,
//! `host.rs` which host they ask for, `routes.rs` which request goes where and the access log, `server.rs` what requests share, `answers.rs` answers that several of them give, `readers.rs` who may read, `reading.rs` the files, `writing.rs` the changes, `search.rs` the catalog, `page/`
//! what people see in a browser, `unbound.rs` the server without a socket, `uploads.rs` the room for archives, `limits.rs` and `metrics.rs` what their names say, `problem.rs` the errors.

mod answers;
mod catalog;
mod connection;
mod host;
mod limits;
mod metrics;
mod page;
mod patience;
mod problem;
mod readers;
mod reading;
mod routes;
mod search;
mod server;
mod unbound;
mod uploads;
mod writing;

use std::net::SocketAddr;
use std::sync::Arc;

use self::server::Server;
pub use self::server::{Serving, WriteLog};
pub use self::unbound::Unbound;
use crate::{HubError, Place};

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
