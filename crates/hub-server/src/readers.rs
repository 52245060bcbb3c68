//! Who may read a private hub: everyone with one of the hub's tokens, whatever else the token allows, and as far as its scope reaches.
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
use mu_hub::HubError;
use mu_hub::files::Files;
use mu_hub::tokens::{Scope, Token, Tokens};
use mu_provider::threads::lock;

use super::problem::Problem;
use super::reading::Asker;
use super::server::Server;

/// How long a bucket is not asked again whether the hub's tokens have changed: a revoked token can read for so long. In a folder,
/// looking costs nothing, so each request does.
const REMEMBERED: Duration = Duration::from_secs(1);

/// The tokens as they were read last.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<Option<Remembered>>);

#[derive(Debug, Clone)]
struct Remembered {
    /// When it was last found that they are so.
    looked: Instant,
    /// The mark of their file; none if there is none.
    e_tag: Option<String>,
    tokens: Arc<Tokens>,
}

impl Readers {
    /// The tokens of the hub. Their file is read only if it has changed, whatever token is shown.
    async fn tokens(&self, files: &Files) -> Result<Arc<Tokens>, HubError> {
        let known = lock(&self.0).clone();
        if let Some(known) = &known
            && !files.is_folder()
            && known.looked.elapsed() < REMEMBERED
        {
            return Ok(Arc::clone(&known.tokens));
        }
        let looked = Instant::now();
        let (e_tag, tokens) = known.map(|known| (known.e_tag, known.tokens)).unwrap_or_default();
        let (e_tag, tokens) = match Tokens::read_unless(files, e_tag.clone()).await? {
            None => (e_tag, tokens),
            Some((e_tag, tokens)) => (e_tag, Arc::new(tokens)),
        };
        *lock(&self.0) = Some(Remembered { looked, e_tag, tokens: Arc::clone(&tokens) });
        Ok(tokens)
    }
}

/// What a request needs to be answered.
pub(super) enum Needs {
    /// No token, because everybody may read everything.
    Nothing,
    /// No token here: it reads nothing of the hub, or it is a change, which has its own rules.
    NothingToRead,
    /// A token: the one that it shows.
    Token(Option<String>),
}

impl Needs {
    /// What a request needs.
    pub(super) fn of(server: &Server, request: &Request) -> Self {
        let (path, method) = (request.uri().path(), request.method());
        // Style and script are the same everywhere, and monitoring asks without a token whether a server
        // works.
        let is_open = path == "/healthz" || path.starts_with("/assets/");
        let is_change =
            matches!(*method, Method::PUT | Method::PATCH) && path.starts_with("/api/v1/packages/");
        match server.serving.private {
            false => Self::Nothing,
            true if is_open || is_change => Self::NothingToRead,
            true => Self::Token(secret(request.headers())),
        }
    }
}

/// The reader, if a token is needed, and what he may read.
///
/// # Errors
///
/// When the hub is private, and the request shows no token that the hub knows.
pub(super) async fn check(
    server: &Server,
    needs: Needs,
) -> Result<(Option<Asker>, Scope), Problem> {
    let secret = match needs {
        Needs::Nothing => return Ok((None, Scope::Everything)),
        Needs::NothingToRead => return Ok((None, Scope::of_nothing())),
        Needs::Token(secret) => secret,
    };
    let Some(secret) = secret else {
        let detail = "this hub is private; reading needs a token: `mu login HOST` stores one";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, detail));
    };
    let tokens = server.readers.tokens(&server.data.files).await?;
    let token = known(&tokens, &secret)?;
    Ok((Some(Asker(token.name.clone())), token.scope()))
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
