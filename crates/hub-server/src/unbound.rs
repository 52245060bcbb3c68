//! A server without a socket: the caller passes in the bytes that a client sends, and gets the bytes of the
//! answer.
//!
//! It is for testing what clients may send. It has no limit on connections, and no TLS.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Extension;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;

use super::connection::Peer;
use super::server::Server;
use super::{connection, routes};
use mu_hub::{HubError, Place, Serving};

/// How many bytes can be in transit at once.
const ON_THE_WAY: usize = 64 << 10;

/// A server without a socket.
pub struct Unbound {
    runtime: Runtime,
    server: Arc<Server>,
}

mu_provider::debug_fields!(Unbound {});

impl Unbound {
    /// Serves the hub at `place`; ignores the address to listen at.
    ///
    /// # Errors
    ///
    /// When there is no hub.
    pub fn new(place: &Place, serving: Serving) -> Result<Self, HubError> {
        // One conversation at a time needs no other threads.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|source| HubError::Io { action: "begin to work".to_owned(), source })?;
        let server = Arc::new(runtime.block_on(Server::open(place, serving))?);
        Ok(Self { runtime, server })
    }

    /// The answer to a client that sends this on one connection, and nothing else.
    pub fn talk(&self, sent: &[u8]) -> Vec<u8> {
        self.runtime.block_on(async {
            let (near, far) = tokio::io::duplex(ON_THE_WAY);
            let peer = Peer::new(Ipv4Addr::LOCALHOST.into());
            let router = routes::router(Arc::clone(&self.server)).layer(Extension(peer));
            let mut protocols = connection::protocols();
            // A client that has sent everything still waits for the answer.
            protocols.http1().half_close(true);
            let speaking = tokio::spawn(async move {
                let service = TowerToHyperService::new(router);
                let _ = protocols.serve_connection(TokioIo::new(far), service).await;
            });
            let (mut answers, mut questions) = tokio::io::split(near);
            let mut answered = Vec::new();
            let asking = async {
                // The server may close the connection before it has read everything.
                let _ = questions.write_all(sent).await;
                let _ = questions.shutdown().await;
            };
            let listening = answers.read_to_end(&mut answered);
            let _ = tokio::join!(asking, listening);
            let _ = speaking.await;
            answered
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Mutex;

    use super::*;
    use mu_hub::Hub;

    #[test]
    fn what_is_sent_is_answered_and_what_breaks_off_is_no_harm() {
        let folder = tempfile::tempdir().expect("there is room");
        let place = Place::folder(folder.path());
        Hub::init(&place).expect("can be made");
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let lines = Arc::clone(&log);
        let serving = Serving {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: None,
            base: None,
            largest_archive: 10,
            most_entries: 10,
            keep_free: 0,
            changes_per_minute: 1,
            requests_per_second: 0,
            private: false,
            public_metrics: false,
            trusted_proxies: Vec::new(),
            log: Arc::new(move |line| lines.lock().expect("is whole").push(line.to_owned())),
        };
        let unbound = Unbound::new(&place, serving).expect("is a hub");
        for (sent, expected) in [
            ("GET /hub.json HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", "HTTP/1.1 200"),
            ("PUT /api/v1/packages/a/1.0.0 HTTP/1.1\r\nhost: h\r\n\r\n", "HTTP/1.1 401"),
            ("PUT /api/v1/packages/a/1.0.0 HTTP/1.1\r\nhost: h\r\n\r\n", "HTTP/1.1 429"),
            ("\0\0\0\r\n\r\n", "HTTP/1.1 400"),
            // RFC 9112, 3.2.
            ("GET /hub.json HTTP/1.1\r\nconnection: close\r\n\r\n", "HTTP/1.1 400"),
            (
                "GET /hub.json HTTP/1.1\r\nhost: h\r\nhost: i\r\nconnection: close\r\n\r\n",
                "HTTP/1.1 400",
            ),
            ("GET /hub.json HTTP/1.1\r\nhost: <h>\r\nconnection: close\r\n\r\n", "HTTP/1.1 400"),
            ("GET /hub.json HTTP/1.0\r\n\r\n", "HTTP/1.0 200"),
            ("GET /metrics HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", "HTTP/1.1 200"),
            (
                "GET /metrics HTTP/1.1\r\nhost: h\r\nx-forwarded-for: 1.2.3.4\r\nconnection: close\r\n\r\n",
                "HTTP/1.1 403",
            ),
            ("GET /hub.j", ""),
            ("", ""),
        ] {
            let answer = String::from_utf8(unbound.talk(sent.as_bytes())).expect("is text");
            assert!(answer.starts_with(expected), "{sent:?}: {answer}");
            assert_eq!(answer.is_empty(), expected.is_empty(), "{sent:?}: {answer}");
        }
        assert_eq!(log.lock().expect("is whole").len(), 9);
    }
}
