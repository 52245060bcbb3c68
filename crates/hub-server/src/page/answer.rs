//! How pages are sent: with a policy for the browser, only if they have changed, and compressed.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use crate::reading::{ASK_AGAIN, NEVER};
use mu_hub::archive::hex;

/// What a page may load and do: its own style, script and icon, and requests to its own server.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Below this size, in bytes, a text is not worth packing.
const SMALL: usize = 512;

/// A page of HTML; `caching` says whether it may be cached.
pub(super) fn html(
    asked: &HeaderMap,
    status: StatusCode,
    caching: &'static str,
    text: &str,
) -> Response {
    let mut response = send(asked, status, caching, "text/html; charset=utf-8", text.as_bytes());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    let policy = header::HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(policy, HeaderValue::from_static("same-origin"));
    response
}

/// A text of any type.
pub(super) fn send(
    asked: &HeaderMap,
    status: StatusCode,
    caching: &'static str,
    kind: &'static str,
    text: &[u8],
) -> Response {
    let is_packed = text.len() >= SMALL && takes_gzip(asked);
    let e_tag = format!("\"{}{}\"", digest(text), if is_packed { "-gz" } else { "" });
    let known = asked.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let is_known = status == StatusCode::OK
        && known.is_some_and(|known| {
            known.split(',').any(|one| one.trim().trim_start_matches("W/") == e_tag)
        });
    let bytes = match (is_known, is_packed) {
        (true, _) => Vec::new(),
        (false, true) => packed(text),
        (false, false) => text.to_vec(),
    };
    let length = bytes.len();
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = if is_known { StatusCode::NOT_MODIFIED } else { status };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(header::VARY, HeaderValue::from_static("accept, accept-encoding"));
    if status == StatusCode::OK && caching != NEVER {
        headers.insert(header::ETAG, HeaderValue::try_from(e_tag).expect("are hexadecimal digits"));
    }
    if !is_known {
        headers.insert(header::CONTENT_LENGTH, length.into());
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        if is_packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
    response
}

/// Redirects to another page for now; `None` if its address does not fit a header.
pub(super) fn redirect(page: &str) -> Option<Response> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::try_from(page).ok()?);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(ASK_AGAIN));
    Some(response)
}

/// The beginning of a text's SHA-256: enough to distinguish it from others.
pub(super) fn digest(text: &[u8]) -> String {
    hex(&Sha256::digest(text)[..12])
}

fn takes_gzip(asked: &HeaderMap) -> bool {
    let codings = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|one| one.to_str().ok());
    codings.flat_map(|codings| codings.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight == 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}
