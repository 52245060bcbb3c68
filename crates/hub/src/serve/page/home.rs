//! The first page, and what a search finds.

use std::sync::{Arc, Mutex, PoisonError};

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::StreamExt as _;
use mu_provider::catalog::CatalogLine;

use super::answer::Keeping;
use super::package::day;
use super::{Asked, Frame};
use crate::HubError;
use crate::derived;
use crate::files::Files;
use crate::log;
use crate::root::Root;
use crate::serve::problem::Problem;
use crate::serve::search as found;
use crate::serve::server::Server;

/// How many packages the first page names.
const NEWEST: usize = 12;

/// How many packages a search shows, and how many where more are wanted.
const SHOWN: [usize; 2] = [50, 500];

/// The packages that changed last, as of a generation.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Option<(u64, Arc<Vec<Changed>>)>>);

/// A package that changed.
#[derive(Debug)]
struct Changed {
    line: CatalogLine,
    day: Option<String>,
}

impl Recent {
    async fn read(&self, files: &Files, root: &Root) -> Result<Arc<Vec<Changed>>, HubError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((generation, changed)) = known
            && generation == root.generation()
        {
            return Ok(changed);
        }
        let names = log::newest(files, root, NEWEST).await?;
        let reading = futures_util::stream::iter(names).map(|name| async move {
            let lines = derived::index(files, root, &name).await.ok()?;
            let line = serde_json::from_str(&derived::catalog_line(&lines)?).ok()?;
            Some(Changed { line, day: day(lines.latest()?) })
        });
        let changed: Vec<Option<Changed>> = reading.buffered(NEWEST).collect().await;
        let changed = Arc::new(changed.into_iter().flatten().collect::<Vec<_>>());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((root.generation(), Arc::clone(&changed)));
        Ok(changed)
    }
}

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
