//! What pages need from a request, the frame around their content, and the style, script and icon that the frame names. Each of
//! these has the digest of its content in its name, so it may be cached for ever. And how pages are sent: with a policy for the browser, only
//! if they have changed, and compressed.

use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use askama::Template;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use mu_hub::archive::hex;
use mu_hub::names;
use mu_hub::tokens::Scope;
use sha2::{Digest as _, Sha256};

use super::address::Address;
use super::content::escaped;
use super::found::Pages;
use crate::problem::Problem;
use crate::reading::{ASK_AGAIN, Data, FOREVER, NEVER, answer_file, scope_of};
use crate::upstream::Upstream;

/// The path of the pages of packages.
pub(super) const PACKAGES: &str = "packages/";

/// The path of the pages of namespaces.
pub(super) const NAMESPACES: &str = "namespaces/";

/// The path of the pages of capabilities, beside the files that list their providers.
pub(super) const CAPABILITIES: &str = "capabilities/";

/// The path of the feeds of packages.
pub(super) const FEEDS: &str = "feeds/";

/// The ending of a feed.
pub(super) const FEED: &str = ".atom";

/// What pages need from a request.
#[derive(Debug, Clone)]
pub(crate) struct PageRequest {
    pub(super) headers: HeaderMap,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) address: Address,
    /// What the reader may read.
    pub(super) scope: Scope,
    /// The hub from which this one brings what it has not.
    pub(super) upstream: Option<String>,
}

impl PageRequest {
    pub(crate) fn of(data: &Data, request: &Request) -> Self {
        let (uri, headers) = (request.uri(), request.headers());
        Self {
            address: Address::of(headers, uri, data.base.as_deref(), data.is_https),
            headers: headers.clone(),
            path: uri.path().to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            scope: scope_of(request),
            upstream: data.upstream.as_ref().map(Upstream::upstream_place),
        }
    }

    /// What pages need from a request of a browser: the client accepts HTML, and does not call the API.
    /// `None` for other requests.
    pub(crate) fn of_person(data: &Data, request: &Request) -> Option<Self> {
        let is_person = takes_html(request.headers());
        (is_person && !request.uri().path().starts_with("/api/")).then(|| Self::of(data, request))
    }

    /// Whether a browser requests a page.
    pub(super) fn is_of_person(&self) -> bool {
        takes_html(&self.headers)
    }

    /// A value of the query; empty if there is none.
    pub(super) fn query(&self, key: &str) -> String {
        let mut pairs = url::form_urlencoded::parse(self.query.as_bytes());
        let found = pairs.find(|(name, _)| name == key);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    }

    /// The frame around the content of a page.
    pub(super) fn frame(&self) -> Frame<'_> {
        let below = self.path.matches('/').count().saturating_sub(1);
        Frame {
            root: if below == 0 { "./".to_owned() } else { "../".repeat(below) },
            hub: self.address.base.trim_end_matches('/'),
            is_usual: self.address.is_usual(),
            words: String::new(),
            upstream: self.upstream.as_deref(),
            assets: Assets::shared(),
        }
    }

    /// Sends a page.
    pub(super) fn page(
        &self,
        caching: &'static str,
        page: &impl Template,
    ) -> Result<Response, Problem> {
        let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made");
        Ok(html(&self.headers, StatusCode::OK, caching, &page.render().map_err(failed)?))
    }
}

/// The frame around the content of a page.
#[derive(Debug)]
pub(super) struct Frame<'asked> {
    /// The hub's root, relative to the page.
    pub(super) root: String,
    /// The name of the hub; empty if it is not known.
    pub(super) hub: &'asked str,
    /// Whether references without a host lead to it.
    pub(super) is_usual: bool,
    /// What is searched for.
    pub(super) words: String,
    /// The hub whose packages it brings, and does not list.
    pub(super) upstream: Option<&'asked str>,
    pub(super) assets: &'static Assets,
}

impl Frame<'_> {
    /// The page of a package of this hub.
    pub(super) fn package(&self, name: &str) -> String {
        format!("{}{PACKAGES}{name}", self.root)
    }

    /// The last segment of a name.
    pub(super) fn leaf<'name>(&self, name: &'name str) -> &'name str {
        name.rsplit('/').next().unwrap_or(name)
    }

    /// Each segment of a name's namespace, with the page of the namespace that ends there.
    pub(super) fn namespaces<'name>(&self, name: &'name str) -> Vec<(&'name str, String)> {
        let ends = name.match_indices('/').map(|(end, _)| &name[..end]);
        ends.map(|namespace| (self.leaf(namespace), self.namespace(namespace))).collect()
    }

    /// The page of a namespace.
    pub(super) fn namespace(&self, namespace: &str) -> String {
        format!("{}{NAMESPACES}{namespace}", self.root)
    }

    /// The page of a capability; none if the text is not a valid capability.
    pub(super) fn capability(&self, capability: &str) -> Option<String> {
        names::capability_path(capability)?;
        Some(format!("{}{CAPABILITIES}{capability}", self.root))
    }

    /// The feed of a package.
    pub(super) fn feed(&self, name: &str) -> String {
        format!("{}{FEEDS}{name}{FEED}", self.root)
    }

    /// The search for some words.
    pub(super) fn search(&self, words: &str) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        format!("{}search?{}", self.root, query.append_pair("q", words).finish())
    }

    /// The page of a version.
    pub(super) fn version(&self, name: &str, version: &str) -> String {
        format!("{}@{}", self.package(name), escaped(version))
    }

    /// The page of a file of a version, or the file itself if it is a picture.
    pub(super) fn file(&self, name: &str, version: &str, path: &str) -> String {
        format!("{}/{}", self.version(name, version), escaped(path))
    }
}

fn takes_html(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|one| one.to_str().ok());
    accepted.any(|one| one.contains("text/html"))
}

const STYLE: &str = include_str!("../../assets/page.css");
const SCRIPT: &str = include_str!("../../assets/page.js");
const ICON: &str = include_str!("../../assets/icon.svg");

/// The names of the files.
#[derive(Debug)]
pub(super) struct Assets {
    pub(super) style: String,
    pub(super) script: String,
    pub(super) icon: String,
}

static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
    let name = |text: &str, ending: &str| format!("page-{}.{ending}", digest(text.as_bytes()));
    Assets { style: name(STYLE, "css"), script: name(SCRIPT, "js"), icon: name(ICON, "svg") }
});

impl Assets {
    pub(super) fn shared() -> &'static Self {
        &ASSETS
    }
}

/// Answers with one of the files.
pub(super) async fn asset(
    State(pages): State<Arc<Pages>>,
    request: Request,
) -> Result<Response, Problem> {
    let assets = Assets::shared();
    let name = request.uri().path().rsplit('/').next().unwrap_or_default();
    let (kind, text) = match () {
        () if name == assets.style => ("text/css; charset=utf-8", STYLE),
        () if name == assets.script => ("text/javascript; charset=utf-8", SCRIPT),
        () if name == assets.icon => ("image/svg+xml", ICON),
        // A file of another server's version, or of a hub with a folder of this name.
        () => return answer_file(State(Arc::clone(&pages.data)), request).await,
    };
    Ok(send(request.headers(), StatusCode::OK, FOREVER, kind, text.as_bytes()))
}

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
