//! What people see of a hub in a browser: pages that are whole as the server sends them.
//!
//! `home.rs` has the first page and the search, `package.rs` a package, whose `notices.rs` say what to know before one
//! depends on it; `readme/` reads its readme, `relations.rs` knows who depends on whom,
//! `graph.rs` draws it. `assets.rs` has style and script,
//! `answer.rs` how pages are sent, `address.rs` and `target.rs` what references look like. The templates are in
//! `crates/hub/templates/`. Nothing here changes a hub.
//!
//! All links are relative, so that the pages work wherever a proxy puts them.

mod address;
mod answer;
mod assets;
mod graph;
mod home;
mod notices;
mod package;
mod pages;
mod readme;
mod recent;
mod relations;
mod target;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::get;

pub(super) use self::pages::Pages;

use self::address::Address;
use self::answer::Keeping;
use self::assets::Assets;
use super::problem::Problem;
use super::server::Server;

/// Where the pages of packages are.
const PACKAGES: &str = "packages/";

/// The pages, and what belongs to them.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/", get(home::first))
        .route("/search", get(home::search))
        .route("/packages/{*name}", get(package::answer))
        .route("/assets/{name}", get(assets::answer))
}

/// What pages need to know of a request.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    headers: HeaderMap,
    path: String,
    query: String,
    address: Address,
}

impl Asked {
    pub(super) fn of(server: &Server, request: &Request) -> Self {
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
    pub(super) fn of_person(server: &Server, request: &Request) -> Option<Self> {
        let accepted = request.headers().get_all(header::ACCEPT).iter();
        let mut accepted = accepted.filter_map(|one| one.to_str().ok());
        let is_person = accepted.any(|one| one.contains("text/html"));
        (is_person && !request.uri().path().starts_with("/api/")).then(|| Self::of(server, request))
    }

    /// A value of the query; empty if there is none.
    fn query(&self, key: &str) -> String {
        let mut pairs = url::form_urlencoded::parse(self.query.as_bytes());
        let found = pairs.find(|(name, _)| name == key);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    }

    /// What is around the content of a page.
    fn frame(&self) -> Frame<'_> {
        let below = self.path.matches('/').count().saturating_sub(1);
        Frame {
            root: if below == 0 { "./".to_owned() } else { "../".repeat(below) },
            hub: self.address.base.trim_end_matches('/'),
            words: String::new(),
            assets: Assets::shared(),
        }
    }

    /// Sends a page.
    fn page(&self, keeping: Keeping, page: &impl Template) -> Result<Response, Problem> {
        let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made");
        Ok(answer::html(&self.headers, StatusCode::OK, keeping, &page.render().map_err(failed)?))
    }
}

/// What is around the content of a page.
#[derive(Debug)]
struct Frame<'asked> {
    /// The way to the hub's root, relative to the page.
    root: String,
    /// What the hub is called; empty if it is not known.
    hub: &'asked str,
    /// What is searched for.
    words: String,
    assets: &'static Assets,
}

impl Frame<'_> {
    /// The page of a package of this hub.
    fn package(&self, name: &str) -> String {
        format!("{}{PACKAGES}{name}", self.root)
    }
}

/// Tells a problem to people.
#[derive(Debug, Template)]
#[template(path = "problem.html")]
struct ProblemPage<'asked> {
    frame: Frame<'asked>,
    heading: String,
    detail: String,
}

/// Makes a page of a problem; all other answers stay as they are.
pub(super) fn for_people(asked: &Asked, response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let status = problem.status();
    let heading = sentence(&status.canonical_reason().unwrap_or("Error").to_lowercase());
    let detail = format!("{}.", sentence(problem.detail()));
    let page = ProblemPage { frame: asked.frame(), heading, detail };
    let Ok(text) = page.render() else { return response };
    let (mut parts, _) = response.into_parts();
    let (page, body) = answer::html(&asked.headers, status, Keeping::Never, &text).into_parts();
    parts.headers.extend(page.headers);
    Response::from_parts(parts, body)
}

/// A text that begins with a capital letter.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().into_iter().flat_map(char::to_uppercase).chain(characters).collect()
}
