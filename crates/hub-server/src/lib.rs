//! A hub's server: static files for everyone, and changes for those who have a token.
//!
//! It keeps no important state between requests: all state is in the place, so any number of servers can share one.
//! `connection.rs` has sockets and TLS, `forwarded.rs` says which client asks through a proxy, `limits.rs` what one client gets at most, and `uploads.rs` the memory for archives.
//! `routes.rs` dispatches requests and writes the access log, and `server.rs` has what requests share, and counts them.
//! `readers.rs` decides who may read, `reading.rs` serves the files, `upstream.rs` brings from another hub what this one has not, `writing.rs` makes changes, `search.rs` searches the
//! catalog, which `own_catalog/` keeps of a hub that is too large to have one, and `page/` has the web pages. `problem.rs` has the errors. [`Unbound`] is the server without a socket.

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
mod uploads;
mod upstream;
mod writing;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;

use self::connection::Peer;
use self::routes::Dispatcher;
use self::server::Server;
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

/// How many bytes can be in transit at once.
const ON_THE_WAY: usize = 64 << 10;

/// A server without a socket: the caller passes in the bytes that a client sends, and gets the bytes of the answer. It is for testing
/// what clients may send, and has no limit on connections, and no TLS.
pub struct Unbound {
    runtime: Runtime,
    dispatcher: Arc<Dispatcher>,
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
        let server = runtime.block_on(Server::open(place, serving))?;
        Ok(Self { runtime, dispatcher: Arc::new(Dispatcher::new(Arc::new(server))) })
    }

    /// The answer to a client that sends this on one connection, and nothing else.
    pub fn talk(&self, sent: &[u8]) -> Vec<u8> {
        self.runtime.block_on(async {
            let (near, far) = tokio::io::duplex(ON_THE_WAY);
            let peer = Peer::new(Ipv4Addr::LOCALHOST.into());
            let service = Arc::clone(&self.dispatcher).connection_service(peer);
            let mut protocols = connection::protocols();
            // A client that has sent everything still waits for the answer.
            protocols.http1().half_close(true);
            let speaking = tokio::spawn(async move {
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
    use std::collections::BTreeMap;
    use std::net::SocketAddr;
    use std::path::Path;
    use std::sync::Mutex;

    use mu_hub::{Can, Hub, NewToken, Publication};
    use mu_provider::fs;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::reading::Shows;
    use crate::routes;

    /// How the tests serve a hub, and what is logged.
    fn serving() -> (Serving, Arc<Mutex<Vec<String>>>) {
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let lines = Arc::clone(&log);
        let serving = Serving {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: None,
            base: None,
            largest_archive: 10,
            most_entries: 10,
            keep_free: Some(0),
            changes_per_minute: 1,
            requests_per_second: 0,
            private: false,
            public_metrics: false,
            trusted_proxies: Vec::new(),
            upstream: None,
            state: std::env::temp_dir().join("mu-hub-catalogs"),
            log: Arc::new(move |line| lines.lock().expect("is whole").push(line.to_owned())),
        };
        (serving, log)
    }

    #[test]
    fn what_is_sent_is_answered_and_what_breaks_off_is_no_harm() {
        let folder = tempfile::tempdir().expect("there is room");
        let place = Place::folder(folder.path());
        Hub::init(&place).expect("can be made");
        let (serving, log) = serving();
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

    /// Publishes a version whose line and manifest say the same.
    fn publish(hub: &Hub, name: &str, version: &str, more: Value) {
        let mut line = Map::new();
        line.insert("name".to_owned(), name.into());
        line.insert("version".to_owned(), version.into());
        line.extend(more.as_object().cloned().unwrap_or_default());
        let manifest = serde_json::to_vec(&line).expect("prints");
        let files =
            [("Mu.json".to_owned(), ('f', manifest)), ("README.md".to_owned(), ('f', name.into()))];
        let archive = mu_testing::tar_gz(files).into();
        line.insert("published".to_owned(), "2025-02-10T12:00:00Z".into());
        hub.publish(&Publication { line, archive }).expect("is right");
    }

    /// A private hub in `folder` with packages in `open/`, of which the packages in `covert/` want something in every way; a token that
    /// reads `open/`, and one that reads everything.
    fn private(folder: &Path) -> (Unbound, [String; 2]) {
        let place = Place::folder(folder);
        let (hub, _) = Hub::init(&place).expect("can be made");
        let words = "words to search for";
        publish(
            &hub,
            "covert/secret",
            "1.0.0",
            json!({
                "description": words,
                "dependencies": ["open/web#^1"],
                "replaces": ["open/web"],
                "provides": ["net.example/v1/Server", "covert.example/v1/Thing"],
            }),
        );
        publish(&hub, "veiled/dep", "1.0.0", json!({ "dependencies": ["covert/secret#^1"] }));
        publish(
            &hub,
            "open/web",
            "1.0.0",
            json!({
                "description": words,
                "dependencies": ["veiled/dep#^1"],
                "requires": ["net.example/v1/Server"],
            }),
        );
        publish(&hub, "open/app", "1.0.0", json!({ "dependencies": ["open/web#^1"] }));
        // Enough changes for a snapshot.
        for number in 0..32 {
            publish(&hub, "open/fill", &format!("1.{number}.0"), json!({}));
        }
        let token = |name: &str, reads: Option<&str>| {
            let reads: Option<Vec<String>> = reads.map(|reads| vec![reads.to_owned()]);
            let namespaces = reads.clone().unwrap_or_else(|| vec!["*".to_owned()]);
            let created = jiff::Timestamp::UNIX_EPOCH;
            let new = NewToken {
                name: name.to_owned(),
                namespaces,
                reads,
                can: vec![Can::Read],
                created,
                expires: None,
            };
            hub.add_token(&new).expect("is new")
        };
        let tokens = [token("partner", Some("open")), token("team", None)];
        let serving = Serving { private: true, changes_per_minute: 1_000, ..serving().0 };
        (Unbound::new(&place, serving).expect("is a hub"), tokens)
    }

    /// The status and the body of an answer.
    fn ask(unbound: &Unbound, token: &str, path: &str, accept: &str) -> (String, String) {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: h\r\naccept: {accept}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        let answer = String::from_utf8_lossy(&unbound.talk(request.as_bytes())).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("has a head");
        let status = head.split(' ').nth(1).expect("has a status").to_owned();
        (status, body.to_owned())
    }

    /// Paths to ask each route for. A route that is new needs some.
    fn examples() -> BTreeMap<&'static str, &'static [&'static str]> {
        [
            ("/healthz", &["/healthz"][..]),
            ("/metrics", &["/metrics"]),
            (
                "/api/v1/search",
                &["/api/v1/search", "/api/v1/search?q=words", "/api/v1/search?q=covert"],
            ),
            ("/api/v1/whoami", &["/api/v1/whoami"]),
            (
                "/api/{*path}",
                &[
                    "/api/v1/packages/open/web/1.0.0",
                    "/api/v1/packages/covert/secret/1.0.0",
                    "/api/x",
                ],
            ),
            ("/", &["/"]),
            (
                "/search",
                &["/search", "/search?q=words", "/search?q=words&sort=newest", "/search?q=secret"],
            ),
            (
                "/packages/{*name}",
                &[
                    "/packages/open/web",
                    "/packages/open/web@1.0.0",
                    "/packages/open/web@1.0.0/README.md",
                    "/packages/open/app",
                    "/packages/covert/secret",
                    "/packages/covert/secret@1.0.0",
                    "/packages/covert/secret@1.0.0/README.md",
                    "/packages/open/secret",
                ],
            ),
            ("/namespaces/{*name}", &["/namespaces/open", "/namespaces/covert"]),
            (
                "/capabilities/{*name}",
                &[
                    "/capabilities/net.example/v1/Server",
                    "/capabilities/net.example/v1/Server.json",
                    "/capabilities/covert.example/v1/Thing",
                    "/capabilities/covert.example/v1/Thing.json",
                ],
            ),
            ("/feed.atom", &["/feed.atom"]),
            ("/feeds/{*name}", &["/feeds/open/web.atom", "/feeds/covert/secret.atom"]),
            ("/assets/{name}", &["/assets/x"]),
        ]
        .into()
    }

    /// All files below a folder, with the path of each on the server.
    fn files(folder: &Path, below: &str) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::entries(folder).expect("is there") {
            let path = format!("{below}/{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true => found.extend(files(&entry.path(), &path)),
                false => found.push(path),
            }
        }
        found
    }

    #[test]
    fn a_limited_token_learns_of_no_other_package_from_any_route_or_file() {
        let folder = tempfile::tempdir().expect("there is room");
        let (unbound, [partner, team]) = private(folder.path());
        // A route that is not in the list would not be asked.
        assert_eq!(include_str!("routes.rs").matches(".route(").count(), 1);
        let mut examples = examples();
        let mut asked = Vec::new();
        for (path, shows, _) in routes::all_routes() {
            let paths = examples.remove(path).unwrap_or_else(|| panic!("{path} has no examples"));
            // For somebody who reads everything, they show something hidden.
            let shown =
                |path: &&str| ask(&unbound, &team, path, "text/html").1.contains("covert/secret");
            assert_eq!(paths.iter().any(shown), shows == Shows::Readable, "{path}");
            if shows == Shows::All {
                assert!(
                    paths.iter().all(|path| ask(&unbound, &partner, path, "*/*").0 == "404"),
                    "{path}"
                );
            }
            asked.extend(paths.iter().map(|path| (*path).to_owned()));
        }
        assert!(examples.is_empty(), "no route answers {examples:?}");
        let on_disk = files(folder.path(), "");
        let has = |name: &str| on_disk.iter().any(|path| path.starts_with(name));
        for name in [
            "/snapshot.jsonl.gz",
            "/snapshot.digests",
            "/catalog.jsonl",
            "/log/",
            "/closures/open/web.json",
            "/private/",
        ] {
            assert!(has(name), "{name} is not in {on_disk:?}");
        }
        asked.extend(on_disk);
        for path in &asked {
            for accept in ["*/*", "text/html"] {
                let (status, body) = ask(&unbound, &partner, path, accept);
                // What is hidden is like what does not exist: the name in the question is all that an answer repeats.
                let twin = path.replace("covert", "absent");
                let twin =
                    if twin == *path { None } else { Some(ask(&unbound, &partner, &twin, accept)) };
                match twin {
                    Some(twin) => {
                        assert_eq!((status, body.replace("covert", "absent")), twin, "{path}")
                    }
                    None => assert!(!body.contains("covert"), "{path}: {body}"),
                }
                assert!(
                    !body.contains("packages/veiled"),
                    "{path} links to a hidden package: {body}"
                );
            }
        }
    }

    #[test]
    fn a_limited_token_reads_what_it_is_for() {
        let folder = tempfile::tempdir().expect("there is room");
        let (unbound, [partner, team]) = private(folder.path());
        for path in [
            "/index/open/web.jsonl",
            "/packs/open/web/web-1.0.0.tgz",
            "/packages/open/web",
            "/packages/open/web@1.0.0/README.md",
            "/feeds/open/web.atom",
            "/namespaces/open",
            "/",
        ] {
            assert_eq!(ask(&unbound, &partner, path, "*/*").0, "200", "{path}");
        }
        let document = |token: &str, path: &str| -> Map<String, Value> {
            let (status, body) = ask(&unbound, token, path, "*/*");
            assert_eq!(status, "200", "{path}");
            serde_json::from_str(&body).expect("is JSON")
        };
        let root = document(&partner, "/hub.json");
        let keys: Vec<&str> = root.keys().map(String::as_str).collect();
        assert_eq!(keys, ["hub", "index", "packs", "generation", "closures", "api"]);
        assert!(document(&team, "/hub.json").contains_key("snapshot"));
        // Neither the package that is named openly nor the one behind it.
        let whole = document(&team, "/closures/open/web.json");
        assert_eq!(whole["packages"], json!(["covert/secret", "veiled/dep"]));
        assert_eq!(document(&partner, "/closures/open/web.json")["packages"], json!([]));
        assert_eq!(document(&partner, "/closures/open/app.json")["packages"], json!(["open/web"]));
        let found = document(&partner, "/api/v1/search?q=words");
        assert_eq!(
            (&found["total"], &found["packages"][0]["name"]),
            (&json!(1), &json!("open/web"))
        );
        let (_, page) = ask(&unbound, &partner, "/packages/open/web", "text/html");
        assert!(page.contains(">open/app</a>") && page.contains("veiled/dep"), "{page}");
        assert_eq!(document(&partner, "/api/v1/whoami")["reads"], json!(["open"]));
    }
}
