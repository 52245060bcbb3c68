//! Who may read a private hub: everyone with one of the hub's tokens, whatever else the token allows.
//!
//! Programs send the token as `Bearer`, and browsers as the password of `Basic`, with any user name.
//! `writing.rs` has the rules for changes.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_provider::threads::lock;

use super::answers::Asker;
use super::problem::Problem;
use super::server::Server;
use crate::tokens::{Token, Tokens};

/// How long the hub's tokens are cached: a revoked token can read for so long.
const REMEMBERED: Duration = Duration::from_secs(5);

/// The tokens as they were read last, and when that was.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<Option<(Instant, Arc<Tokens>)>>);

/// The token that a request shows, if reading needs one.
pub(super) struct Shown(Option<String>);

impl Shown {
    /// The token that a request shows; `None` if the request needs no token.
    pub(super) fn of(server: &Server, request: &Request) -> Option<Self> {
        let (path, method) = (request.uri().path(), request.method());
        // Style and script are the same everywhere, and monitoring asks without a token whether a server
        // works.
        let is_open = path == "/healthz" || path.starts_with("/assets/");
        let is_change =
            matches!(*method, Method::PUT | Method::PATCH) && path.starts_with("/api/v1/packages/");
        let is_needed = server.serving.private && !is_open && !is_change;
        is_needed.then(|| Self(secret(request.headers())))
    }
}

/// The reader; `None` if reading needs no token.
///
/// # Errors
///
/// When the hub is private, and the request shows no token that the hub knows.
pub(super) async fn check(server: &Server, shown: Option<Shown>) -> Result<Option<Asker>, Problem> {
    let Some(Shown(secret)) = shown else { return Ok(None) };
    let Some(secret) = secret else {
        let detail = "this hub is private; reading needs a token: `mu login HOST` stores one";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, detail));
    };
    let remembered = lock(&server.readers.0).clone();
    let fresh = remembered.filter(|(read, _)| read.elapsed() < REMEMBERED);
    let tokens = match fresh.filter(|(_, tokens)| tokens.find(&secret).is_some()) {
        Some((_, tokens)) => tokens,
        // The token may be new.
        None => {
            let tokens = Arc::new(Tokens::read(&server.files).await?);
            *lock(&server.readers.0) = Some((Instant::now(), Arc::clone(&tokens)));
            tokens
        }
    };
    Ok(Some(Asker(known(&tokens, &secret)?.name.clone())))
}

/// The token that `secret` is, which has not ended.
pub(super) fn known<'tokens>(
    tokens: &'tokens Tokens,
    secret: &str,
) -> Result<&'tokens Token, Problem> {
    let refuse = |detail| Err(Problem::new(StatusCode::UNAUTHORIZED, detail));
    match tokens.find(secret) {
        None => refuse("this hub does not know the token; it may have been revoked"),
        Some(token) if token.has_ended(jiff::Timestamp::now()) => refuse("the token has expired"),
        Some(token) => Ok(token),
    }
}

/// The token that a request shows.
fn secret(headers: &HeaderMap) -> Option<String> {
    let (scheme, value) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().to_owned());
    }
    let pair =
        scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(value.trim()).ok())??;
    let (_, password) = std::str::from_utf8(&pair).ok()?.split_once(':')?;
    Some(password.to_owned())
}

/// Keeps private answers out of shared caches, and tells the log who read them.
pub(super) fn kept_apart(reader: Asker, mut response: Response) -> Response {
    let headers = response.headers_mut();
    let caching = headers.get(header::CACHE_CONTROL).and_then(|caching| caching.to_str().ok());
    let caching = match caching.map(|caching| caching.trim_start_matches("public, ")) {
        None | Some("no-store") => "no-store".to_owned(),
        Some(caching) => format!("private, {caching}"),
    };
    if let Ok(caching) = HeaderValue::try_from(caching) {
        headers.insert(header::CACHE_CONTROL, caching);
    }
    headers.append(header::VARY, HeaderValue::from_static("authorization"));
    response.extensions_mut().insert(reader);
    response
}

/// Makes a browser ask for the token if a page was refused without one.
pub(super) fn ask_people(server: &Server, mut response: Response) -> Response {
    if server.serving.private && response.status() == StatusCode::UNAUTHORIZED {
        let basic =
            HeaderValue::from_static("Basic realm=\"the token of this hub, as the password\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, basic);
    }
    response
}
