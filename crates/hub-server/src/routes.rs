//! Dispatches requests that name one host, as HTTP requires, and writes a line in the access log for each.
//!
//! Source of the rules for hosts: RFC 9112, 3.2. `page/address.rs` decides what comes before the names of packages.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use serde_json::{Map, Value};

use super::connection::Peer;
use super::forwarded::Client;
use super::problem::Problem;
use super::reading::{
    Asker, ServedRoute, Shows, answer_file, json, only_read, only_whole, scope_of, too_many,
};
use super::server::{Server, Shared, count, write_log};
use super::{page, readers, search, writing};

/// The longest part of a client's text that is logged, in characters.
const LOGGED: usize = 300;

/// The longest error that is logged, in characters. It may contain text from the request.
const LOGGED_ERROR: usize = 1_000;

/// All requests that the server answers.
pub(super) fn router(server: Arc<Server>) -> Router {
    let mut router = Router::new();
    for (path, shows, answers) in all_routes() {
        let answers = match shows {
            Shows::All => answers.layer(from_fn(only_whole)),
            Shows::Readable | Shows::None => answers,
        };
        router = router.route(path, answers);
    }
    router
        .fallback(answer_file)
        .method_not_allowed_fallback(only_read)
        .layer(from_fn_with_state(Arc::clone(&server), observe))
        .with_state(Shared(server))
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

/// Limits, counts and logs a request.
async fn observe(
    State(server): State<Arc<Server>>,
    Extension(peer): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let begin = Instant::now();
    peer.asks();
    let client = Client::of(peer.address, request.headers(), &server.serving.trusted_proxies);
    request.extensions_mut().insert(client);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let agent = request.headers().get(header::USER_AGENT).cloned();
    let person = page::PageRequest::of_person(&server.data, &request);
    server.metrics.open.fetch_add(1, Ordering::Relaxed);
    let needs = readers::Needs::of(&server, &request);
    let refused = check_host(&request).err().or_else(|| limited(&server, client));
    let mut response = match refused {
        Some(problem) => problem.into_response(),
        None => match readers::check(&server, needs).await {
            Ok((reader, scope)) => {
                request.extensions_mut().insert(scope);
                let response = next.run(request).await;
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
        response = readers::ask_people(&server, page::for_people(&asked, response));
    }
    server.metrics.open.fetch_sub(1, Ordering::Relaxed);
    let took = begin.elapsed();
    server.metrics.count_answer(response.status().as_u16(), took);
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

    let mut line = Map::new();
    let mut put = |key: &str, value: Value| line.insert(key.to_owned(), value);
    put("time", jiff::Timestamp::now().to_string().into());
    put("client", client.0.to_string().into());
    let peer = peer.address.to_canonical();
    if peer != client.0 {
        put("proxy", peer.to_string().into());
    }
    put("method", method.as_str().into());
    put("path", shortened(&path).into());
    put("status", response.status().as_u16().into());
    let length = response.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    put("bytes", length.into());
    put("milliseconds", (took.as_micros() as f64 / 1_000.0).into());
    if let Some(agent) = agent.as_ref().and_then(|agent| agent.to_str().ok()) {
        put("agent", shortened(agent).into());
    }
    if let Some(Asker(name)) = response.extensions().get() {
        put("token", name.as_str().into());
    }
    if let Some(Problem { cause: Some(cause), .. }) = response.extensions().get() {
        put("error", cause.chars().take(LOGGED_ERROR).collect::<String>().into());
    }
    write_log(&server.serving.log, &Value::Object(line));
    response
}

fn limited(server: &Server, client: Client) -> Option<Problem> {
    let wait = server.requests.as_ref()?.take(client.0, Instant::now()).err()?;
    count(&server.metrics.limited);
    Some(too_many(wait))
}

fn shortened(text: &str) -> String {
    text.chars().take(LOGGED).collect()
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
