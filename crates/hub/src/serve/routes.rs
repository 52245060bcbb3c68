//! Which request goes where, and the line in the access log for each.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use serde::Serialize;
use serde_json::{Map, Value};

use super::connection::Peer;
use super::metrics::count;
use super::problem::{Cause, Problem};
use super::{Server, host, page, reading, search, writing};

/// The longest part of a client's text that is logged, in characters.
const LOGGED: usize = 300;

/// The longest error that is logged, in characters. It may name what a client asked for.
const LOGGED_ERROR: usize = 1_000;

/// Who asked: the name of the token, for the log.
#[derive(Debug, Clone)]
pub(super) struct Asker(pub(super) String);

/// All requests that the server answers.
pub(super) fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/healthz", get(healthy))
        .route("/metrics", get(metrics))
        .route("/api/v1/search", get(answer_search))
        .route("/api/{*path}", any(writing::answer))
        .merge(page::routes())
        .fallback(answer_file)
        .method_not_allowed_fallback(only_read)
        .layer(from_fn_with_state(Arc::clone(&server), observe))
        .with_state(server)
}

/// Whether the server can read the hub.
async fn healthy(State(server): State<Arc<Server>>) -> Result<&'static str, Problem> {
    match server.files.head(crate::root::HUB_FILE).await? {
        Some(_) => Ok("ok\n"),
        None => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the hub is gone")),
    }
}

/// The headers by which a proxy says that it asks for somebody else.
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
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], server.metrics.render()).into_response())
}

async fn answer_search(State(server): State<Arc<Server>>, uri: Uri) -> Result<Response, Problem> {
    let found = search::search(server, uri.query().unwrap_or_default()).await?;
    Ok(json(StatusCode::OK, &found))
}

/// Answers with a file of the hub.
pub(super) async fn answer_file(
    State(server): State<Arc<Server>>,
    request: Request,
) -> Result<Response, Problem> {
    let (method, path) = (request.method(), request.uri().path());
    if method != Method::GET && method != Method::HEAD {
        return Err(only_read().await);
    }
    let path = decoded(path).ok_or_else(Problem::not_found)?;
    reading::file(&server, method, request.headers(), path.trim_start_matches('/')).await
}

/// What whoever tries to change something here is told.
async fn only_read() -> Problem {
    let detail = "this is only read; changes go to `api/v1/packages/NAME/VERSION`";
    Problem::method("GET, HEAD", detail)
}

/// An answer in JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_string(value).unwrap_or_default();
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], format!("{text}\n")).into_response()
}

/// A path with its `%XX` replaced; none if that is no text.
pub(super) fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

/// Limits, counts and logs a request.
async fn observe(
    State(server): State<Arc<Server>>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let begin = Instant::now();
    peer.asks();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let agent = request.headers().get(header::USER_AGENT).cloned();
    let person = page::Asked::of_person(&server, &request);
    server.metrics.open.fetch_add(1, Ordering::Relaxed);
    let refused = host::check(&request).err().or_else(|| limited(&server, peer.address));
    let mut response = match refused {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    };
    if let Some(asked) = person {
        response = page::for_people(&asked, response);
    }
    server.metrics.open.fetch_sub(1, Ordering::Relaxed);
    let took = begin.elapsed();
    server.metrics.answered(response.status().as_u16(), took);
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

    let mut line = Map::new();
    let mut put = |key: &str, value: Value| line.insert(key.to_owned(), value);
    put("time", jiff::Timestamp::now().to_string().into());
    put("client", peer.address.to_string().into());
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
    if let Some(Cause(cause)) = response.extensions().get() {
        put("error", cause.chars().take(LOGGED_ERROR).collect::<String>().into());
    }
    (server.serving.log)(&printed(&Value::Object(line)));
    response
}

fn limited(server: &Server, address: IpAddr) -> Option<Problem> {
    let wait = server.requests.as_ref()?.take(address, Instant::now()).err()?;
    count(&server.metrics.limited);
    Some(too_many(wait))
}

/// The answer to whoever asks for too much.
pub(super) fn too_many(wait: std::time::Duration) -> Problem {
    let detail = "this address asks for too much in too short a time";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(wait.as_secs() + 1)
}

fn shortened(text: &str) -> String {
    text.chars().take(LOGGED).collect()
}

/// A JSON document without any control character: JSON lets some stand in texts, and terminals obey them.
fn printed(value: &Value) -> String {
    let mut printed = String::new();
    for character in value.to_string().chars() {
        if character.is_control() {
            printed.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            printed.push(character);
        }
    }
    printed
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{decoded, printed};

    #[test]
    fn logs_hold_no_control_characters() {
        let value = json!({ "path": "/a\u{9b}31m\u{7f}\u{85}\n\u{1b}ä" });
        let line = printed(&value);
        assert_eq!(line, "{\"path\":\"/a\\u009b31m\\u007f\\u0085\\n\\u001bä\"}");
        assert_eq!(serde_json::from_str::<Value>(&line).expect("is JSON"), value);
    }

    #[test]
    fn percent_signs_are_decoded_or_refused() {
        assert_eq!(decoded("/a/1.0.0%2Bx").as_deref(), Some("/a/1.0.0+x"));
        assert_eq!(decoded("/%2e%2E/x").as_deref(), Some("/../x"));
        for wrong in ["/%", "/%2", "/%zz", "/%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
