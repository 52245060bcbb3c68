//! The first page, and what a search finds.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use mu_provider::catalog::CatalogLine;

use super::answer::Keeping;
use super::frame::{Asked, Frame};
use super::recent::Changed;
use crate::root::Root;
use crate::serve::problem::Problem;
use crate::serve::search as found;
use crate::serve::server::Server;

/// How many packages a search shows, and how many where more are wanted.
const SHOWN: [usize; 2] = [50, 500];

#[derive(Debug, Template)]
#[template(path = "home.html")]
struct Home<'asked> {
    frame: Frame<'asked>,
    /// How many packages there are, if that is known.
    packages: Option<usize>,
    recent: Arc<Vec<Changed>>,
}

/// Answers with the first page.
pub(super) async fn first(
    State(server): State<Arc<Server>>,
    request: Request,
) -> Result<Response, Problem> {
    let asked = Asked::of(&server, &request);
    let root = Root::read(&server.files).await?;
    let relations = &server.pages.relations;
    let is_known = relations.refresh(&server.files, &root).await;
    let recent = server.pages.recent.read(&server.files, &root).await?;
    let packages = is_known.then(|| relations.look(|known| known.len()));
    asked.page(Keeping::AskAgain, &Home { frame: asked.frame(), packages, recent })
}

#[derive(Debug, Template)]
#[template(path = "search.html")]
struct Results<'asked> {
    frame: Frame<'asked>,
    packages: Vec<CatalogLine>,
    total: usize,
    /// The query of the page that shows more.
    more: Option<String>,
}

/// Answers with what a search finds.
pub(super) async fn search(
    State(server): State<Arc<Server>>,
    request: Request,
) -> Result<Response, Problem> {
    let asked = Asked::of(&server, &request);
    let words = asked.query("q");
    let [usual, most] = SHOWN;
    let limit = asked.query("limit").parse().unwrap_or(usual).clamp(1, most);
    let query = |limit: usize| {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("q", &words).append_pair("limit", &limit.to_string()).finish()
    };
    let answer = found::search(server, &query(limit)).await?;
    let total = answer.total.unwrap_or(answer.packages.len());
    let more = (limit < most && answer.packages.len() < total).then(|| query(most));
    let frame = Frame { words, ..asked.frame() };
    asked.page(Keeping::AskAgain, &Results { frame, packages: answer.packages, total, more })
}
