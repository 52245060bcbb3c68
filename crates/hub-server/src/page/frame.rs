//! What pages need from a request, the frame around their content, and the style, script and icon that the frame names. Each of
//! these has the digest of its content in its name, so it may be cached for ever.

use std::sync::{Arc, LazyLock};

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use mu_hub::names;
use mu_hub::tokens::Scope;

use super::address::Address;
use super::answer;
use super::content::escaped;
use super::pages::Pages;
use crate::problem::Problem;
use crate::reading::{Data, FOREVER, answer_file, scope_of};
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
        Ok(answer::html(&self.headers, StatusCode::OK, caching, &page.render().map_err(failed)?))
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
    let name =
        |text: &str, ending: &str| format!("page-{}.{ending}", answer::digest(text.as_bytes()));
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
    Ok(answer::send(request.headers(), StatusCode::OK, FOREVER, kind, text.as_bytes()))
}
