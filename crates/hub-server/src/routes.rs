//! Dispatches requests that name one host, as HTTP requires, and writes a line in the access log for each.
//!
//! Source of the rules for hosts: RFC 9112, 3.2. `page/address.rs` decides what comes before the names of packages.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version, header};
use axum::middleware::from_fn;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::service::TowerToHyperService;
use mu_hub::tokens::Scope;
use serde::Serialize;

use super::connection::Peer;
use super::forwarded::Client;
use super::problem::Problem;
use super::reading::{
    Asker, ServedRoute, Shows, answer_file, json, only_read, only_whole, scope_of, serve_file,
    too_many,
};
use super::server::{Server, Shared, count, write_log};
use super::{page, readers, search, writing};

/// The longest part of a client's text that is logged, in characters.
const LOGGED: usize = 300;

/// The longest error that is logged, in characters. It may contain text from the request.
const LOGGED_ERROR: usize = 1_000;

/// All requests that the server answers.
pub(super) struct Dispatcher {
    server: Arc<Server>,
    router: TowerToHyperService<Router>,
    /// What paths that are no files begin with.
    prefixes: Vec<&'static str>,
}

impl Dispatcher {
    pub(super) fn new(server: Arc<Server>) -> Self {
        let (mut router, mut prefixes) = (Router::new(), Vec::new());
        for (path, shows, answers) in all_routes() {
            let answers = match shows {
                Shows::All => answers.layer(from_fn(only_whole)),
                Shows::Readable | Shows::None => answers,
            };
            router = router.route(path, answers);
            prefixes.extend(path.split('{').next().filter(|prefix| *prefix != "/"));
        }
        let router = router.fallback(answer_file).method_not_allowed_fallback(only_read);
        let router = TowerToHyperService::new(router.with_state(Shared(Arc::clone(&server))));
        Self { server, router, prefixes }
    }

    /// Answers the requests of one connection.
    pub(super) fn connection_service(
        self: Arc<Self>,
        peer: Peer,
    ) -> impl Service<hyper::Request<Incoming>, Response = Response, Error = Infallible, Future: Send>
    {
        service_fn(move |request: hyper::Request<Incoming>| {
            let (dispatcher, peer) = (Arc::clone(&self), peer.clone());
            async move { Ok(dispatcher.answer_request(peer, request.map(Body::new)).await) }
        })
    }

    /// Answers a request that a reader with this scope may send.
    async fn dispatch(
        &self,
        request: Request,
        scope: Scope,
        client: Client,
        peer: &Peer,
    ) -> Response {
        let path = request.uri().path();
        // Most requests are for files, and the router would make more of them than reading a file takes.
        let is_route = |prefix: &&str| path.starts_with(prefix);
        if path != "/" && !self.prefixes.iter().any(is_route) {
            let (method, headers) = (request.method(), request.headers());
            let read = serve_file(&self.server.data, &scope, method, path, headers).await;
            return read.into_response();
        }
        let mut request = request;
        let extensions = request.extensions_mut();
        extensions.insert(scope);
        extensions.insert(client);
        extensions.insert(peer.clone());
        self.router.call(request).await.unwrap_or_else(|never| match never {})
    }

    /// Limits, counts and logs a request, and answers it.
    pub(super) async fn answer_request(&self, peer: Peer, request: Request) -> Response {
        let server = &*self.server;
        let begin = Instant::now();
        peer.asks();
        let client = Client::of(peer.address, request.headers(), &server.serving.trusted_proxies);
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let agent = request.headers().get(header::USER_AGENT).cloned();
        let person = page::PageRequest::of_person(&server.data, &request);
        server.metrics.open.fetch_add(1, Ordering::Relaxed);
        let needs = readers::Needs::of(server, &request);
        let refused = check_host(&request).err().or_else(|| limited(server, client));
        let mut response = match refused {
            Some(problem) => problem.into_response(),
            None => match readers::check(server, needs).await {
                Ok((reader, scope)) => {
                    let response = self.dispatch(request, scope, client, &peer).await;
                    match reader {
                        None => response,
                        Some(reader) => readers::kept_apart(reader, response),
                    }
                }
                Err(problem) => {
                    count(&server.metrics.unauthorized);
                    problem.into_response()
                }
            },
        };
        if let Some(asked) = person {
            response = readers::ask_people(server, page::for_people(&asked, response));
        }
        server.metrics.open.fetch_sub(1, Ordering::Relaxed);
        let took = begin.elapsed();
        server.metrics.count_answer(response.status().as_u16(), took);
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

        let peer = peer.address.to_canonical();
        let length = response.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let agent = agent.as_ref().and_then(|agent| agent.to_str().ok());
        let token = response.extensions().get::<Asker>();
        let error =
            response.extensions().get::<Problem>().and_then(|problem| problem.cause.as_deref());
        let line = AccessLine {
            time: jiff::Timestamp::now(),
            client: client.0,
            proxy: Some(peer).filter(|peer| *peer != client.0),
            method: method.as_str(),
            path: shortened(uri.path(), LOGGED),
            status: response.status().as_u16(),
            bytes: length.or_else(|| response.body().size_hint().exact()),
            milliseconds: took.as_micros() as f64 / 1_000.0,
            agent: agent.map(|agent| shortened(agent, LOGGED)),
            token: token.map(|Asker(name)| name.as_str()),
            error: error.map(|error| shortened(error, LOGGED_ERROR)),
        };
        write_log(&server.serving.log, &line);
        response
    }
}

/// The paths that are no files of the hub, and what each shows of a private one.
pub(super) fn all_routes() -> Vec<ServedRoute<Shared>> {
    let mut routes = vec![
        ("/healthz", Shows::None, get(healthy)),
        ("/metrics", Shows::All, get(metrics)),
        ("/api/v1/search", Shows::Readable, get(answer_search)),
        ("/api/v1/whoami", Shows::None, get(writing::whose)),
        ("/api/{*path}", Shows::None, any(writing::answer)),
    ];
    routes.extend(page::routes());
    routes
}

/// Whether the server can read the hub.
async fn healthy(State(server): State<Arc<Server>>) -> Result<&'static str, Problem> {
    match server.data.files.head(mu_hub::file::HUB_FILE).await? {
        Some(_) => Ok("ok\n"),
        None => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the hub is gone")),
    }
}

/// The headers in which a proxy says that it asks for somebody else.
const FORWARDED: [&str; 4] = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

async fn metrics(
    State(server): State<Arc<Server>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let is_for_another = FORWARDED.iter().any(|name| headers.contains_key(*name));
    let is_here = peer.address.to_canonical().is_loopback() && !is_for_another;
    if !is_here && !server.serving.public_metrics {
        let detail = "the counters are for programs of this machine; with `--public-metrics` the \
                      server shows them to everybody";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let text = server.metrics.render(server.data.files.room().await?);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

async fn answer_search(
    State(server): State<Arc<Server>>,
    request: Request,
) -> Result<Response, Problem> {
    let query = request.uri().query().unwrap_or_default();
    let found = search::answer(&server.data, &scope_of(&request), query).await?;
    Ok(json(StatusCode::OK, &found))
}

/// A line of the access log.
#[derive(Serialize)]
struct AccessLine<'request> {
    time: jiff::Timestamp,
    client: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy: Option<IpAddr>,
    method: &'request str,
    path: &'request str,
    status: u16,
    bytes: Option<u64>,
    milliseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'request str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'request str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'request str>,
}

fn limited(server: &Server, client: Client) -> Option<Problem> {
    let wait = server.requests.as_ref()?.take(client.0, Instant::now()).err()?;
    count(&server.metrics.limited);
    Some(too_many(wait))
}

/// At most so many characters of a text.
fn shortened(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// Checks that a request names one host. If it does not, a proxy in front may have read it differently.
fn check_host(request: &Request) -> Result<(), Problem> {
    let refuse = |detail: &str| Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    let mut named = request.headers().get_all(header::HOST).iter();
    match (named.next(), named.next()) {
        (_, Some(_)) => refuse("the request has more than one `Host`"),
        (None, None) if request.version() == Version::HTTP_11 => {
            refuse("the request has no `Host`, which HTTP/1.1 requires")
        }
        (Some(host), None) if !is_host(host.as_bytes()) => {
            refuse("the `Host` of the request is not a host with or without a port")
        }
        _ => Ok(()),
    }
}

/// Whether a text is a host, with or without a port. It may be empty.
fn is_host(host: &[u8]) -> bool {
    let (name, port) = match host.iter().rposition(|byte| *byte == b':') {
        Some(colon) if !host[colon..].contains(&b']') => (&host[..colon], &host[colon + 1..]),
        _ => (host, &[][..]),
    };
    let inside = name.strip_prefix(b"[").map(|rest| rest.strip_suffix(b"]"));
    let is_name = match inside {
        None => name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(byte)),
        Some(Some(address)) => {
            address.iter().all(|byte| byte.is_ascii_alphanumeric() || b":.".contains(byte))
        }
        Some(None) => false,
    };
    is_name && port.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::is_host;

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        for fine in ["", "hub.acme.co", "HUB:8080", "my_hub:80", "10.0.0.1:1", "[::1]", "[::1]:80"]
        {
            assert!(is_host(fine.as_bytes()), "{fine}");
        }
        for wrong in
            ["a b", "a, b", "a/b", "x\"><script>", "u@h", "a:b", "::1", "[::1", "a]", "\u{e4}"]
        {
            assert!(!is_host(wrong.as_bytes()), "{wrong}");
        }
    }
}
