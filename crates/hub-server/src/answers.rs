//! Answers that several parts of the server use: files, JSON, and common refusals.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::data::Data;
use super::problem::Problem;
use super::reading;

/// The client: the name of the token, for the log.
#[derive(Debug, Clone)]
pub(super) struct Asker(pub(super) String);

/// Answers with a file of the hub.
pub(super) async fn answer_file(
    State(data): State<Arc<Data>>,
    request: Request,
) -> Result<Response, Problem> {
    let (method, path) = (request.method(), request.uri().path());
    if method != Method::GET && method != Method::HEAD {
        return Err(only_read().await);
    }
    let path = decoded(path).ok_or_else(Problem::not_found)?;
    reading::file(&data, method, request.headers(), path.trim_start_matches('/')).await
}

/// The answer to attempts to change something here.
pub(super) async fn only_read() -> Problem {
    let detail = "this path is read-only; changes go to `api/v1/packages/NAME/VERSION`";
    Problem::method("GET, HEAD", detail)
}

/// An answer in JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_string(value).unwrap_or_default();
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], format!("{text}\n")).into_response()
}

/// A path with its `%XX` decoded; `None` if the result is not UTF-8, or if a `%` is not followed by two
/// digits.
pub(super) fn decoded(path: &str) -> Option<String> {
    let is_whole = |rest: &str| {
        rest.as_bytes()
            .first_chunk::<2>()
            .is_some_and(|both| both.iter().all(u8::is_ascii_hexdigit))
    };
    let text = percent_decode_str(path).decode_utf8().ok()?;
    path.split('%').skip(1).all(is_whole).then(|| text.into_owned())
}

/// The answer to a client with too many requests.
pub(super) fn too_many(wait: std::time::Duration) -> Problem {
    let detail = "this address sends too many requests";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(wait.as_secs() + 1)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn percent_signs_are_decoded_or_refused() {
        assert_eq!(decoded("/a/1.0.0%2Bx").as_deref(), Some("/a/1.0.0+x"));
        assert_eq!(decoded("/%2e%2E/x").as_deref(), Some("/../x"));
        for wrong in ["/%", "/%2", "/%zz", "/%+f", "/%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
