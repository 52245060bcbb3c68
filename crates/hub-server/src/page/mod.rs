//! The web pages of a hub, which the server renders completely.
//!
//! `frame.rs` has the frame of every page, with style and script, and sends pages. `home.rs` has the first page, the search, and the
//! pages of namespaces and capabilities. `package.rs` has the page of a package, and those of its versions and of their files, and
//! `about.rs` what both show, and what to know before you depend on one. `found.rs` has the packages in lists, and what the pages know
//! and remember between requests. `feed.rs` has the feeds. `content/` reads archives, `relations.rs` knows dependents and where
//! references lead, and `graph.rs` draws them. `address.rs` says what is before the names in references, and `words.rs` formats times
//! and sizes. The templates are in `templates/`. Nothing here changes a hub.
//!
//! All links are relative, so the pages work at any path of a proxy.

mod about;
mod address;
mod content;
mod feed;
mod found;
mod frame;
mod graph;
mod home;
mod package;
mod relations;
mod words;

use std::sync::Arc;

use askama::Template;
use axum::extract::FromRef;
use axum::response::Response;
use axum::routing::get;

pub(super) use self::found::Pages;
pub(super) use self::frame::PageRequest;

use self::frame::Frame;
use super::problem::Problem;
use super::reading::{Data, NEVER, ServedRoute, Shows};

/// The pages, and what belongs to them.
pub(super) fn routes<State>() -> [ServedRoute<State>; 8]
where
    State: Clone + Send + Sync + 'static,
    Arc<Pages>: FromRef<State>,
    Arc<Data>: FromRef<State>,
{
    [
        ("/", Shows::Readable, get(home::first)),
        ("/search", Shows::Readable, get(home::search)),
        ("/packages/{*name}", Shows::Readable, get(package::answer)),
        ("/namespaces/{*name}", Shows::Readable, get(home::namespace)),
        ("/capabilities/{*name}", Shows::Readable, get(home::capability)),
        ("/feed.atom", Shows::Readable, get(feed::hub)),
        ("/feeds/{*name}", Shows::Readable, get(feed::package)),
        ("/assets/{name}", Shows::None, get(frame::asset)),
    ]
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
    let (page, body) = frame::html(&asked.headers, status, NEVER, &text).into_parts();
    parts.headers.extend(page.headers);
    Response::from_parts(parts, body)
}

/// A text that begins with a capital letter.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().into_iter().flat_map(char::to_uppercase).chain(characters).collect()
}
