//! What pages need to know of a request, and what is around their content.

use askama::Template;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;

use super::address::Address;
use super::answer::{self, Keeping};
use super::assets::Assets;
use crate::serve::problem::Problem;
use crate::serve::server::Server;

/// Where the pages of packages are.
pub(super) const PACKAGES: &str = "packages/";

/// What pages need to know of a request.
#[derive(Debug, Clone)]
pub(in crate::serve) struct Asked {
    pub(super) headers: HeaderMap,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) address: Address,
}

impl Asked {
    pub(in crate::serve) fn of(server: &Server, request: &Request) -> Self {
        let (uri, headers) = (request.uri(), request.headers());
        let serving = &server.serving;
        Self {
            address: Address::of(headers, uri, serving.base.as_deref(), serving.tls.is_some()),
            headers: headers.clone(),
            path: uri.path().to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
        }
    }

    /// The same, if a browser asks for a page: whoever takes HTML, and does not ask the API.
    pub(in crate::serve) fn of_person(server: &Server, request: &Request) -> Option<Self> {
        let accepted = request.headers().get_all(header::ACCEPT).iter();
        let mut accepted = accepted.filter_map(|one| one.to_str().ok());
        let is_person = accepted.any(|one| one.contains("text/html"));
        (is_person && !request.uri().path().starts_with("/api/")).then(|| Self::of(server, request))
    }

    /// A value of the query; empty if there is none.
    pub(super) fn query(&self, key: &str) -> String {
        let mut pairs = url::form_urlencoded::parse(self.query.as_bytes());
        let found = pairs.find(|(name, _)| name == key);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    }

    /// What is around the content of a page.
    pub(super) fn frame(&self) -> Frame<'_> {
        let below = self.path.matches('/').count().saturating_sub(1);
        Frame {
            root: if below == 0 { "./".to_owned() } else { "../".repeat(below) },
            hub: self.address.base.trim_end_matches('/'),
            words: String::new(),
            assets: Assets::shared(),
        }
    }

    /// Sends a page.
    pub(super) fn page(&self, keeping: Keeping, page: &impl Template) -> Result<Response, Problem> {
        let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made");
        Ok(answer::html(&self.headers, StatusCode::OK, keeping, &page.render().map_err(failed)?))
    }
}

/// What is around the content of a page.
#[derive(Debug)]
pub(super) struct Frame<'asked> {
    /// The way to the hub's root, relative to the page.
    pub(super) root: String,
    /// What the hub is called; empty if it is not known.
    pub(super) hub: &'asked str,
    /// What is searched for.
    pub(super) words: String,
    pub(super) assets: &'static Assets,
}

impl Frame<'_> {
    /// The page of a package of this hub.
    pub(super) fn package(&self, name: &str) -> String {
        format!("{}{PACKAGES}{name}", self.root)
    }
}
