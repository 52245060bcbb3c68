//! A hub's server: static files for everyone, and changes for those who have a token.
//!
//! It keeps no important state between requests: all state is in the place, so any number of servers can share one.
//! `connection.rs` has sockets and TLS, `forwarded.rs` says which client asks through a proxy, `limits.rs` what one client gets at most, and `uploads.rs` the memory for archives.
//! `routes.rs` dispatches requests and writes the access log, and `server.rs` has what requests share, and counts them.
//! `readers.rs` decides who may read, `reading.rs` serves the files, `upstream.rs` brings from another hub what this one has not, `writing.rs` makes changes, `search.rs` searches the
//! catalog, which `own_catalog/` keeps of a hub that is too large to have one, and `page/` has the web pages. `problem.rs` has the errors, and `unbound.rs` is the server without a socket.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]

mod connection;
mod forwarded;
mod limits;
mod own_catalog;
mod page;
mod problem;
mod readers;
mod reading;
mod routes;
mod search;
mod server;
mod unbound;
mod uploads;
mod upstream;
mod writing;

use std::net::SocketAddr;
use std::sync::Arc;

use self::server::Server;
pub use self::unbound::Unbound;
use mu_hub::{HubError, Place, Serving};

/// Serves the hub at `place` until the process is asked to stop. Then requests in progress are finished.
///
/// `started` is called with the address once the server listens.
///
/// # Errors
///
/// When there is no hub, the server cannot listen at the address, or a TLS file cannot be used.
pub fn serve(
    place: &Place,
    serving: Serving,
    started: &mut dyn FnMut(SocketAddr),
) -> Result<(), HubError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| HubError::Io { action: "begin to work".to_owned(), source })?;
    let tls = serving.tls.as_ref().map(|(chain, key)| connection::tls(chain, key)).transpose()?;
    let server = runtime.block_on(Server::open(place, serving))?;
    runtime.block_on(connection::listen(Arc::new(server), tls, started))
}
