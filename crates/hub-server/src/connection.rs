//! Sockets and TLS: who may connect, how long they may take, and how the server ends.
//!
//! This file does not know requests and answers. `axum-server` is not used: it has TLS and an end that waits,
//! but accepts any number of connections, and sets no time for the first request.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use mu_hub::HubError;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::forwarded::is_any_proxy;
use super::limits::{Crowd, Patient};
use super::routes::Dispatcher;
use super::server::Server;

/// How many connections are open at the same time. More of them wait to be accepted.
const CONNECTIONS: usize = 4_096;

/// How many connections one address may have, unless it is a trusted proxy. More of them are refused.
const CONNECTIONS_OF_ONE: usize = 512;

/// How long a client may take for a TLS handshake, for its first request, and for the head of each request.
const HEAD: Duration = Duration::from_secs(10);

/// How long a client may read nothing of an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many requests of one HTTP/2 connection are answered at the same time.
const STREAMS: u32 = 256;

/// How long requests may continue after the server was asked to stop.
const ENDING: Duration = Duration::from_secs(30);

/// Who has connected: a client, or a proxy.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    /// Set with its first request.
    has_asked: Arc<AtomicBool>,
}

impl Peer {
    pub(super) fn new(address: IpAddr) -> Self {
        Self { address, has_asked: Arc::default() }
    }

    /// Notes that a request has arrived.
    pub(super) fn asks(&self) {
        self.has_asked.store(true, Ordering::Relaxed);
    }

    /// Ends when the client's time is over without a request.
    async fn asks_nothing(&self) {
        tokio::time::sleep(HEAD).await;
        if self.has_asked.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }
}

/// What TLS needs, from its files.
pub(super) fn tls(chain: &Path, key: &Path) -> Result<TlsAcceptor, HubError> {
    let failed = |path: &Path, reason: String| HubError::Io {
        action: format!("use `{}` for TLS", path.display()),
        source: io::Error::new(io::ErrorKind::InvalidData, reason),
    };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect)
        .map_err(|error| failed(chain, in_words(&error)))?;
    if certificates.is_empty() {
        return Err(failed(chain, "it contains no PEM certificate".to_owned()));
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, in_words(&error)))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, private))
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => failed(
                key,
                format!("it is not the key of the certificate in `{}`", chain.display()),
            ),
            error => failed(chain, error.to_string()),
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The problem with a file of certificates or keys.
fn in_words(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "it contains no PEM private key".to_owned(),
        error => format!("it is not PEM: {error}"),
    }
}

/// Accepts connections until the process is asked to stop.
pub(super) async fn listen(
    server: Arc<Server>,
    tls: Option<TlsAcceptor>,
    started: &mut dyn FnMut(SocketAddr),
) -> Result<(), HubError> {
    let address = server.serving.listen;
    let failed = |source| HubError::Io { action: format!("listen at {address}"), source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let mut end = ending().map_err(failed)?;
    started(listener.local_addr().map_err(failed)?);
    let dispatcher = Arc::new(Dispatcher::new(Arc::clone(&server)));
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let crowd = Crowd::new(CONNECTIONS_OF_ONE);
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { break };
        let (socket, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                // The client has already gone, or this process has no file descriptors left for now.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            _ = end.changed() => break,
        };
        // All clients of a proxy have its address here.
        let is_proxy = is_any_proxy(&server.serving.trusted_proxies, peer.ip());
        let share = if is_proxy { None } else { crowd.enter(peer.ip()) };
        if share.is_none() && !is_proxy {
            continue;
        }
        let _ = socket.set_nodelay(true);
        let (socket, peer) = (Patient::new(socket, PATIENCE), Peer::new(peer.ip()));
        let (dispatcher, tls, watcher) = (Arc::clone(&dispatcher), tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            let (_place, _share) = (place, share);
            match tls {
                None => speak(dispatcher, TokioIo::new(socket), peer, watcher).await,
                Some(tls) => {
                    let accepted = tokio::time::timeout(HEAD, tls.accept(socket)).await;
                    if let Ok(Ok(socket)) = accepted {
                        speak(dispatcher, TokioIo::new(socket), peer, watcher).await;
                    }
                }
            }
        });
    }
    drop(listener);
    tokio::select! {
        _ = tokio::time::timeout(ENDING, graceful.shutdown()) => {}
        // A second signal means that the user does not want to wait.
        _ = end.changed() => {}
    }
    Ok(())
}

/// The protocols, and how long a client may take.
pub(super) fn protocols() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(HEAD)
        .keep_alive_timeout(HEAD);
    builder
}

/// Answers the requests of one connection.
async fn speak<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    dispatcher: Arc<Dispatcher>,
    socket: TokioIo<S>,
    peer: Peer,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let builder = protocols();
    let connection = builder.serve_connection(socket, dispatcher.connection_service(peer.clone()));
    tokio::select! {
        // A client that disconnects is not an error of the server.
        _ = watcher.watch(connection.into_owned()) => {}
        // The protocols' own limits begin only once it is clear which protocol the client uses.
        () = peer.asks_nothing() => {}
    }
}

/// Changes when the process is asked to stop.
#[cfg(unix)]
fn ending() -> io::Result<tokio::sync::watch::Receiver<u32>> {
    use signal_hook::consts::{SIGINT, SIGTERM};

    let (sender, receiver) = tokio::sync::watch::channel(0);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    mu_provider::threads::start(move || {
        for _ in signals.forever() {
            sender.send_modify(|times| *times += 1);
        }
    })?;
    Ok(receiver)
}

/// Never changes: here the system ends a process without asking it.
#[cfg(not(unix))]
fn ending() -> io::Result<tokio::sync::watch::Receiver<u32>> {
    let (sender, receiver) = tokio::sync::watch::channel(0);
    std::mem::forget(sender);
    Ok(receiver)
}
