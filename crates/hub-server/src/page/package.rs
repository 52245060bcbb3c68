//! The page of a package, which shows its newest release, and that of one version: everything in its index line, and the content
//! of its archive, down to each file.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use mu_hub::lines::{Lines, PUBLISHED_BY, PublishedLine};
use mu_hub::names::{self, printable};
use mu_hub::root::Root;

use super::about::{
    About, FileRow, Install, Notice, Part, Related, Required, Subject, asked_of, deprecated,
    download, file_rows, notices, of_version, required,
};
use super::content::{Content, Readme, Shown};
use super::found::Pages;
use super::frame::{Frame, PACKAGES, PageRequest};
use super::graph;
use super::relations::{Interest, KnownInScope};
use super::words::{Moment, size};
use super::{found, frame};
use crate::problem::Problem;
use crate::reading::{ASK_AGAIN, FOREVER, NEVER, answer_file, decoded};

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
    published_by: Option<String>,
    channels: Vec<String>,
    tags: Vec<String>,
    /// Why it was withdrawn, if it was.
    yanked: Option<String>,
    is_deprecated: bool,
    is_release: bool,
}

/// Which columns of the table have anything in them.
#[derive(Debug, Default)]
struct Columns {
    app_version: bool,
    published_by: bool,
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
    // What the reader may not read is not there.
    let read = match asked.scope.has(name) {
        true => pages.data.files.read(&index).await?,
        false => None,
    };
    // A mistake in one line does not hide the others.
    let lines = read.map(|read| Lines::parse_all(&read.bytes, name).0).unwrap_or_default();
    let Some(latest) = lines.latest() else {
        let detail = format!("this hub has no package {name}");
        let mut missing = Problem::new(StatusCode::NOT_FOUND, detail);
        if asked.is_of_person() {
            match pages.data.read_catalog(&asked.scope).await {
                Ok(catalog) => missing.similar = found::similar(catalog, name.to_owned()).await?,
                // While a large hub is being read, nothing similar is known.
                Err(problem) if problem.status == StatusCode::SERVICE_UNAVAILABLE => {}
                Err(problem) => return Err(problem),
            }
        }
        return Err(missing);
    };
    if let Some(more) = more {
        return answer_version(&pages, &asked, &root, &lines, more).await;
    }
    let content = pages.contents.of(&pages.data.files, &root, latest).await?;
    let requires = required(&pages.data.files, &asked.scope, latest, &asked.frame()).await?;
    let is_known = pages.relations.refresh(&pages.data.files, &root).await?;
    let most = if asked.query("versions") == "all" { usize::MAX } else { VERSIONS };
    let interest = Interest::in_page(latest, &asked.address.base).and_dependents();
    let page = |known: &KnownInScope<'_>| {
        let mut page = Page::new(&asked, name, latest, known);
        if !is_known {
            page.dependents = None;
            page.picture = None;
        }
        page.show_versions(&lines, most);
        Page { content, requires, ..page }
    };
    let page = pages.relations.look(&root, &asked.scope, interest, page).await?;
    // An incomplete page must not be cached.
    asked.page(if is_known { ASK_AGAIN } else { NEVER }, &page)
}

impl<'asked> Page<'asked> {
    fn new(
        asked: &'asked PageRequest,
        name: &'asked str,
        latest: &'asked PublishedLine,
        known: &KnownInScope<'_>,
    ) -> Self {
        let frame = asked.frame();
        let base = asked.address.base.as_str();
        let about = About::new(asked, latest, known);
        let found = known.dependents(name, base);
        let total_dependents = found.len() + known.unnamed();
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
            columns: Columns::default(),
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
            published_by: self.versions.iter().any(|version| version.published_by.is_some()),
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
            published_by: line.text(PUBLISHED_BY).map(printable),
            channels: line.texts("channels").map(str::to_owned).collect(),
            tags: line.texts("tags").map(str::to_owned).collect(),
            yanked: line.is_yanked().then(|| line.text("yanked").unwrap_or_default().to_owned()),
            is_deprecated: deprecated(line).is_some(),
            is_release,
        }
    }
}

/// What a picture may do when a browser shows it alone: nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

#[derive(Debug, Template)]
#[template(path = "version.html")]
struct VersionPage<'asked> {
    frame: Frame<'asked>,
    name: &'asked str,
    about: About,
    notices: Vec<Notice>,
    content: Arc<Content>,
    files: Vec<FileRow>,
    download: Option<String>,
    requires: Vec<Required>,
    /// The version before it, and the command that shows what has changed since.
    changes: Option<(String, String)>,
    /// The page of the file in which its authors tell what has changed.
    changelog: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "file.html")]
struct FilePage<'asked> {
    frame: Frame<'asked>,
    name: &'asked str,
    version: String,
    path: &'asked str,
    size: String,
    shown: Arc<Shown>,
    download: Option<String>,
}

/// Answers with the page of a version, or of a file in it: `more` is `VERSION` or `VERSION/PATH`. `TAG`
/// instead of the version leads to the page of the version with that tag.
async fn answer_version(
    pages: &Pages,
    asked: &PageRequest,
    root: &Root,
    lines: &Lines,
    more: &str,
) -> Result<Response, Problem> {
    let (version, path) =
        more.split_once('/').map_or((more, None), |(version, path)| (version, Some(path)));
    let name = lines.iter().next().map(PublishedLine::name).unwrap_or_default();
    let missing = || {
        let detail = format!("{name} has no version {}", printable(version));
        Problem::new(StatusCode::NOT_FOUND, detail)
    };
    let Some(line) = lines.find(version) else {
        return tagged(asked, lines, more).ok_or_else(missing);
    };
    if let Some(path) = path {
        return file(pages, asked, root, line, path).await;
    }
    let frame = asked.frame();
    let content = pages.contents.of(&pages.data.files, root, line).await?;
    let requires = required(&pages.data.files, &asked.scope, line, &frame).await?;
    pages.relations.refresh(&pages.data.files, root).await?;
    let page = |known: &KnownInScope<'_>| {
        let base = asked.address.base.as_str();
        let mut about = About::new(asked, line, known);
        let latest = lines.latest().filter(|latest| latest.full_version() != about.version);
        if latest.is_some() {
            // A visitor of another version wants that one.
            about.install = Install::of(asked, line, "");
        }
        let files = file_rows(&content, line, &frame);
        let release = latest.filter(|latest| latest.standing().is_release && !latest.is_yanked());
        VersionPage {
            name,
            notices: of_version(
                Subject { name, line, base, frame: &frame },
                release.map(PublishedLine::full_version).as_deref(),
            ),
            about,
            changelog: files
                .iter()
                .find(|file| mu_provider::is_changelog(&file.path))
                .map(|file| file.page.clone()),
            changes: changes(asked, lines, line),
            files,
            download: download(root, line, &frame),
            content,
            requires,
            frame,
        }
    };
    let interest = Interest::in_page(line, &asked.address.base);
    let page = pages.relations.look(root, &asked.scope, interest, page).await?;
    asked.page(ASK_AGAIN, &page)
}

/// The newest version below one, and the command that compares the two; none for the first one.
fn changes(asked: &PageRequest, lines: &Lines, line: &PublishedLine) -> Option<(String, String)> {
    let reference = asked.address.reference(line.name())?;
    let is_usable = |one: &&PublishedLine| {
        !one.is_yanked() && (one.standing().is_release || !line.standing().is_release)
    };
    let below =
        lines.iter().filter(is_usable).filter(|one| one.standing().number < line.standing().number);
    let before = below.max_by_key(|one| one.standing().number)?.full_version();
    let [from, to] = [&before, &line.full_version()]
        .map(|version| version.split('+').next().unwrap_or_default().to_owned());
    let is_plain = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    };
    let command = format!("mu diff '{reference}#{from}' '#{to}'");
    (is_plain(&from) && is_plain(&to)).then_some((before, command))
}

/// Redirects to the page of the version with the tag at the beginning of `more`, or to a file in it.
fn tagged(asked: &PageRequest, lines: &Lines, more: &str) -> Option<Response> {
    let (line, path) = lines.iter().rev().find_map(|line| {
        let paths = line.texts("tags").filter_map(|tag| more.strip_prefix(tag));
        let path = paths.into_iter().find(|path| path.is_empty() || path.starts_with('/'))?;
        Some((line, path.trim_start_matches('/')))
    })?;
    let (frame, version) = (asked.frame(), line.full_version());
    let page = match path {
        "" => frame.version(line.name(), &version),
        path => frame.file(line.name(), &version, path),
    };
    frame::redirect(&page)
}

/// Answers with a picture, or with a page that shows another file.
async fn file(
    pages: &Pages,
    asked: &PageRequest,
    root: &Root,
    line: &PublishedLine,
    path: &str,
) -> Result<Response, Problem> {
    let missing = || {
        let detail = format!("{} has no file {}", line.describe(), printable(path));
        Problem::new(StatusCode::NOT_FOUND, detail)
    };
    let contents = &pages.contents;
    let shown = contents.file(&pages.data.files, root, line, path).await?.ok_or_else(missing)?;
    if let Shown::Picture(kind, bytes) = &*shown {
        let mut response = frame::send(&asked.headers, StatusCode::OK, FOREVER, kind, bytes);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        let resources = header::HeaderName::from_static("cross-origin-resource-policy");
        headers.insert(resources, HeaderValue::from_static("same-origin"));
        return Ok(response);
    }
    let content = contents.of(&pages.data.files, root, line).await?;
    let listed = content.files.iter().find(|file| file.path == path);
    let frame = asked.frame();
    let page = FilePage {
        name: line.name(),
        version: line.full_version(),
        path,
        size: listed.map(|file| size(file.size)).unwrap_or_default(),
        shown,
        download: download(root, line, &frame),
        frame,
    };
    asked.page(ASK_AGAIN, &page)
}
