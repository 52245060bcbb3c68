//! The page of one version: everything in its index line, and the content of its archive, down to each file.

use std::sync::Arc;

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::about::{About, FileRow, Install, Required, download, file_rows, required};
use super::answer;
use super::content::{Content, Readme, Shown};
use super::frame::{Frame, PageRequest};
use super::notices::{Notice, Part, Subject, of_version};
use super::pages::Pages;
use super::words::size;
use crate::problem::Problem;
use crate::reading::{ASK_AGAIN, FOREVER};
use mu_hub::lines::{Lines, PublishedLine};
use mu_hub::names::printable;
use mu_hub::root::Root;

/// What a picture may do when a browser shows it alone: nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

#[derive(Debug, Template)]
#[template(path = "version.html")]
struct Page<'asked> {
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
pub(super) async fn answer(
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
    // Everything else is shown without it too.
    let content = pages.contents.of(&pages.data.files, root, line).await.unwrap_or_default();
    let requires = required(&pages.data.files, line, &frame).await?;
    pages.relations.refresh(&pages.data.files, root).await;
    let page = pages.relations.look(|known| {
        let base = asked.address.base.as_str();
        let mut about = About::new(asked, line, known);
        let latest = lines.latest().filter(|latest| latest.full_version() != about.version);
        if latest.is_some() {
            // A visitor of another version wants that one.
            about.install = Install::of(asked, line, "");
        }
        let files = file_rows(&content, line, &frame);
        let release = latest.filter(|latest| latest.standing().is_release && !latest.is_yanked());
        Page {
            name,
            notices: of_version(
                Subject { name, line, base, frame: &frame },
                release.map(PublishedLine::full_version).as_deref(),
            ),
            about,
            changelog: files
                .iter()
                .find(|file| is_changelog(&file.path))
                .map(|file| file.page.clone()),
            changes: changes(asked, lines, line),
            files,
            download: download(root, line, &frame),
            content,
            requires,
            frame,
        }
    });
    asked.page(ASK_AGAIN, &page)
}

/// Whether a file has that name in which authors tell what has changed.
fn is_changelog(path: &str) -> bool {
    let name = path.to_ascii_lowercase();
    let name = name.strip_suffix(".md").or_else(|| name.strip_suffix(".txt")).unwrap_or(&name);
    matches!(name, "changelog" | "changes" | "history" | "news" | "releases")
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
    answer::redirect(&page)
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
        let mut response = answer::send(&asked.headers, StatusCode::OK, FOREVER, kind, bytes);
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
