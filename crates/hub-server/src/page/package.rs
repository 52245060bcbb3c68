//! The page of a package, which shows its newest release.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::about::{About, Related, Required, asked_of, required};
use super::content::{Content, Readme};
use super::found;
use super::frame::{Frame, PACKAGES, PageRequest};
use super::graph;
use super::notices::{Notice, Part, Subject, deprecated, notices};
use super::pages::Pages;
use super::relations::Known;
use super::version;
use super::words::Moment;
use crate::answers::{answer_file, decoded};
use crate::problem::Problem;
use crate::reading::{ASK_AGAIN, NEVER};
use mu_hub::lines::{Lines, PublishedLine};
use mu_hub::names;
use mu_hub::root::Root;

/// How many versions are shown, unless all are requested.
const VERSIONS: usize = 50;

/// How many dependents are shown.
const DEPENDENTS: usize = 100;

#[derive(Debug, Template)]
#[template(path = "package.html")]
struct Page<'asked> {
    frame: Frame<'asked>,
    name: &'asked str,
    about: About,
    notices: Vec<Notice>,
    content: Arc<Content>,
    versions: Vec<Version>,
    columns: Columns,
    total: usize,
    /// The packages that depend on it, and their number; `None` while that is not known.
    dependents: Option<(Vec<Related>, usize)>,
    requires: Vec<Required>,
    picture: Option<String>,
}

/// A row in the table of versions.
#[derive(Debug)]
struct Version {
    version: String,
    page: String,
    app_version: Option<String>,
    published: Option<Moment>,
    channels: Vec<String>,
    tags: Vec<String>,
    /// Why it was withdrawn, if it was.
    yanked: Option<String>,
    is_deprecated: bool,
    is_release: bool,
}

/// Which columns of the table have anything in them.
#[derive(Debug)]
struct Columns {
    app_version: bool,
    channels: bool,
    tags: bool,
}

/// Answers with the page of the package, the version or the file that the path names.
pub(super) async fn answer(
    State(pages): State<Arc<Pages>>,
    request: Request,
) -> Result<Response, Problem> {
    let asked = PageRequest::of(&pages.data, &request);
    let path = decoded(&asked.path).ok_or_else(Problem::not_found)?;
    let rest = path.trim_start_matches('/').strip_prefix(PACKAGES).unwrap_or_default();
    let (name, more) = rest.split_once('@').map_or((rest, None), |(name, more)| (name, Some(more)));
    if names::check_name(name).is_err() {
        // No file of a hub has the name of a package, whatever its folders are called.
        return answer_file(State(Arc::clone(&pages.data)), request).await;
    }
    let root = Root::read(&pages.data.files).await?;
    let index = root.index(name);
    let read = pages.data.files.read(&index).await?;
    // A mistake in one line does not hide the others.
    let lines = read.map(|read| Lines::parse_all(&read.bytes, name).0).unwrap_or_default();
    let Some(latest) = lines.latest() else {
        let detail = format!("this hub has no package {name}");
        let mut missing = Problem::new(StatusCode::NOT_FOUND, detail);
        if asked.is_of_person() {
            let catalog = pages.data.read_catalog().await?;
            missing.similar = found::similar(catalog, name.to_owned()).await;
        }
        return Err(missing);
    };
    if let Some(more) = more {
        return version::answer(&pages, &asked, &root, &lines, more).await;
    }
    // Everything else is shown without it too.
    let content = pages.contents.of(&pages.data.files, &root, latest).await;
    let content = content.unwrap_or_default();
    let requires = required(&pages.data.files, latest, &asked.frame()).await?;
    let is_known = pages.relations.refresh(&pages.data.files, &root).await;
    let most = if asked.query("versions") == "all" { usize::MAX } else { VERSIONS };
    let page = pages.relations.look(|known| {
        let mut page = Page::new(&asked, name, latest, known);
        if !is_known {
            page.dependents = None;
            page.picture = None;
        }
        page.show_versions(&lines, most);
        Page { content, requires, ..page }
    });
    // An incomplete page must not be cached.
    asked.page(if is_known { ASK_AGAIN } else { NEVER }, &page)
}

impl<'asked> Page<'asked> {
    fn new(
        asked: &'asked PageRequest,
        name: &'asked str,
        latest: &'asked PublishedLine,
        known: &Known,
    ) -> Self {
        let frame = asked.frame();
        let base = asked.address.base.as_str();
        let about = About::new(asked, latest, known);
        let found = known.dependents(name, base);
        let total_dependents = found.len();
        let dependents = found.into_iter().take(DEPENDENTS).map(|(name, spec)| Related {
            key: name.to_owned(),
            text: name.to_owned(),
            page: Some(frame.package(name)),
            asked: asked_of(spec),
        });
        let dependents: Vec<Related> = dependents.collect();
        let picture = graph::picture(
            (name, &about.version),
            &about.dependencies,
            &dependents,
            total_dependents,
        );
        let notices = notices(Subject { name, line: latest, base, frame: &frame }, known);
        Self {
            frame,
            name,
            about,
            notices,
            content: Arc::default(),
            versions: Vec::new(),
            columns: Columns { app_version: false, channels: false, tags: false },
            total: 0,
            dependents: Some((dependents, total_dependents)),
            requires: Vec::new(),
            picture,
        }
    }

    /// Shows so many versions, the highest first.
    fn show_versions(&mut self, lines: &Lines, most: usize) {
        let mut sorted: Vec<_> = lines.iter().map(|line| (line.standing(), line)).collect();
        sorted.sort_by(|(left, _), (right, _)| right.number.cmp(&left.number));
        self.total = sorted.len();
        let shown = sorted.into_iter().take(most);
        self.versions =
            shown.map(|(standing, line)| self.version(line, standing.is_release)).collect();
        self.columns = Columns {
            app_version: self.versions.iter().any(|version| version.app_version.is_some()),
            channels: self.versions.iter().any(|version| !version.channels.is_empty()),
            tags: self.versions.iter().any(|version| !version.tags.is_empty()),
        };
    }

    fn version(&self, line: &PublishedLine, is_release: bool) -> Version {
        let version = line.full_version();
        Version {
            page: self.frame.version(self.name, &version),
            version,
            app_version: line.text("appVersion").map(str::to_owned),
            published: Moment::published(line),
            channels: line.texts("channels").map(str::to_owned).collect(),
            tags: line.texts("tags").map(str::to_owned).collect(),
            yanked: line.is_yanked().then(|| line.text("yanked").unwrap_or_default().to_owned()),
            is_deprecated: deprecated(line).is_some(),
            is_release,
        }
    }
}
