//! The web pages of a hub, which the server renders completely.
//!
//! `frame.rs` has the frame of every page, and `pages.rs` what is remembered between requests. `home.rs` has
//! the first page and the search, and `recent.rs` its list of packages. `package.rs` has the page of a
//! package, `version.rs` those of a version and of its files, `about.rs` what both show, and `notices.rs`
//! what to know before you depend on one. `browse.rs` has the pages of namespaces and capabilities,
//! `found.rs` the packages in lists, and `feed.rs` the feeds. `content/` reads archives, `relations.rs` knows
//! dependents, and `graph.rs` draws them. `assets.rs` has style and script, `answer.rs` how pages are sent,
//! `address.rs` and `target.rs` handle references, and `words.rs` formats times and sizes. The templates are
//! in `templates/`. Nothing here changes a hub.
//!
//! All links are relative, so the pages work at any path of a proxy.

mod about;
mod address;
mod answer;
mod assets;
mod browse;
mod content;
mod feed;
mod found;
mod frame;
mod graph;
mod home;
mod notices;
mod package;
mod pages;
mod recent;
mod relations;
mod target;
mod version;
mod words;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::FromRef;
use axum::response::Response;
use axum::routing::get;

pub(super) use self::frame::PageRequest;
pub(super) use self::pages::Pages;

use self::frame::Frame;
use super::data::Data;
use super::problem::Problem;
use super::reading::NEVER;

/// The pages, and what belongs to them.
pub(super) fn routes<State>() -> Router<State>
where
    State: Clone + Send + Sync + 'static,
    Arc<Pages>: FromRef<State>,
    Arc<Data>: FromRef<State>,
{
    Router::new()
        .route("/", get(home::first))
        .route("/search", get(home::search))
        .route("/packages/{*name}", get(package::answer))
        .route("/namespaces/{*name}", get(browse::namespace))
        .route("/capabilities/{*name}", get(browse::capability))
        .route("/feed.atom", get(feed::hub))
        .route("/feeds/{*name}", get(feed::package))
        .route("/assets/{name}", get(assets::answer))
}

/// Shows a problem to people.
#[derive(Debug, Template)]
#[template(path = "problem.html")]
struct ProblemPage<'asked> {
    frame: Frame<'asked>,
    heading: String,
    detail: String,
    similar: &'asked [String],
}

/// Converts a problem to a page; all other answers stay as they are.
pub(super) fn for_people(asked: &PageRequest, response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let status = problem.status;
    let heading = sentence(&status.canonical_reason().unwrap_or("Error").to_lowercase());
    let detail = format!("{}.", sentence(&problem.detail));
    let page = ProblemPage { frame: asked.frame(), heading, detail, similar: &problem.similar };
    let Ok(text) = page.render() else { return response };
    let (mut parts, _) = response.into_parts();
    let (page, body) = answer::html(&asked.headers, status, NEVER, &text).into_parts();
    parts.headers.extend(page.headers);
    Response::from_parts(parts, body)
}

/// A text that begins with a capital letter.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().into_iter().flat_map(char::to_uppercase).chain(characters).collect()
}
