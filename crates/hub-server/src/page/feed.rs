//! Feeds of new versions: one for the hub, and one for each package.
//!
//! Source of the format: RFC 4287 (Atom).

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use mu_hub::derived;
use mu_hub::lines::{Lines, PublishedLine};
use mu_hub::log;
use mu_hub::names;
use mu_hub::root::Root;

use super::found::Pages;
use super::frame::{self, FEED, FEEDS, PageRequest};
use super::words::published;
use crate::problem::Problem;
use crate::reading::{ASK_AGAIN, answer_file, decoded};

/// How many versions a feed names.
const ENTRIES: usize = 50;

/// How many packages that changed are looked at for the hub's feed.
const PACKAGES: usize = 30;

#[derive(Debug, Template)]
#[template(path = "feed.xml", escape = "xml")]
struct Feed {
    title: String,
    /// The web page of the feed.
    page: String,
    /// The feed itself.
    own: String,
    updated: String,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    title: String,
    page: String,
    published: Timestamp,
    summary: Option<String>,
}

impl Entry {
    fn stamp(&self) -> String {
        stamp(self.published)
    }
}

/// Answers with the versions that were published last.
pub(super) async fn hub(
    State(pages): State<Arc<Pages>>,
    request: Request,
) -> Result<Response, Problem> {
    let asked = PageRequest::of(&pages.data, &request);
    let root = Root::read(&pages.data.files).await?;
    let names =
        log::newest(&pages.data.files, &root, PACKAGES, |name| asked.scope.has(name)).await?;
    let (data, root) = (&pages.data, &root);
    let reading = futures_util::stream::iter(names).map(|name| async move {
        data.own_catalog.index_unless_broken(&data.files, root, &name).await
    });
    let all: Vec<Option<Lines>> = reading.buffered(PACKAGES).try_collect().await?;
    let title = format!("New versions on {}", title(&asked));
    let lines = all.iter().flatten().flat_map(Lines::iter);
    send(&asked, title, "", entries(&asked, lines))
}

/// Answers with the newest versions of a package.
pub(super) async fn package(
    State(pages): State<Arc<Pages>>,
    request: Request,
) -> Result<Response, Problem> {
    let asked = PageRequest::of(&pages.data, &request);
    let path = decoded(&asked.path).ok_or_else(Problem::not_found)?;
    let name = path.trim_start_matches('/').strip_prefix(FEEDS);
    let name = name.and_then(|name| name.strip_suffix(FEED)).unwrap_or_default();
    if names::check_name(name).is_err() {
        return answer_file(State(Arc::clone(&pages.data)), request).await;
    }
    let root = Root::read(&pages.data.files).await?;
    let lines = match asked.scope.has(name) {
        true => derived::index(&pages.data.files, &root, name).await?,
        false => Lines::default(),
    };
    if lines.is_empty() {
        let detail = format!("this hub has no package {name}");
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    }
    let page = format!("packages/{name}");
    send(&asked, format!("Versions of {name}"), &page, entries(&asked, lines.iter()))
}

/// The name of the hub.
fn title(asked: &PageRequest) -> &str {
    let base = asked.address.base.trim_end_matches('/');
    if base.is_empty() { "this hub" } else { base }
}

/// The newest of the versions that were not withdrawn and have a publication time.
fn entries<'line>(
    asked: &PageRequest,
    lines: impl Iterator<Item = &'line PublishedLine>,
) -> Vec<Entry> {
    let standing = lines.filter(|line| !line.is_yanked());
    let dated = standing.filter_map(|line| Some((published(line)?, line)));
    let mut dated: Vec<(Timestamp, &PublishedLine)> = dated.collect();
    dated.sort_by(|(left, _), (right, _)| right.cmp(left));
    let frame = asked.frame();
    let entry = |(published, line): (Timestamp, &PublishedLine)| {
        let version = line.full_version();
        let page = frame.version(line.name(), &version);
        Entry {
            title: clean(&format!("{} {version}", line.name())),
            page: absolute(asked, &page),
            published,
            summary: line.text("description").map(clean),
        }
    };
    dated.into_iter().take(ENTRIES).map(entry).collect()
}

fn send(
    asked: &PageRequest,
    title: String,
    page: &str,
    entries: Vec<Entry>,
) -> Result<Response, Problem> {
    let root = asked.frame().root;
    let feed = Feed {
        title,
        page: absolute(asked, &format!("{root}{page}")),
        own: absolute(asked, &format!("{root}{}", asked.path.trim_start_matches('/'))),
        updated: stamp(entries.first().map_or(Timestamp::UNIX_EPOCH, |entry| entry.published)),
        entries,
    };
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the feed cannot be made");
    let text = feed.render().map_err(failed)?;
    let kind = "application/atom+xml; charset=utf-8";
    let mut response =
        frame::send(&asked.headers, StatusCode::OK, ASK_AGAIN, kind, text.as_bytes());
    let policy = HeaderValue::from_static("default-src 'none'");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// The whole URL of a page, as feed readers want it; a relative one if the server does not know its own.
fn absolute(asked: &PageRequest, page: &str) -> String {
    let root = asked.frame().root;
    let path = page.strip_prefix(&root).unwrap_or(page);
    match asked.address.url.is_empty() {
        true => page.to_owned(),
        false => format!("{}{path}", asked.address.url),
    }
}

fn stamp(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A text without the characters that XML does not allow.
fn clean(text: &str) -> String {
    let fits =
        |character: &char| !character.is_control() && !matches!(character, '\u{fffe}' | '\u{ffff}');
    text.chars().filter(fits).collect()
}
