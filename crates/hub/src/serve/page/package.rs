//! The page of a package.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use mu_provider::{Dependency, Maintainer, Release};
use mu_provider_hub::wire::{ProvidersFile, providers_path};
use serde_json::Value;

use super::answer::Keeping;
use super::frame::{Asked, Frame, PACKAGES};
use super::graph;
use super::notices::{Notice, Part, Subject, notices};
use super::readme::Readme;
use super::recent::day;
use super::relations::Known;
use super::target::Target;
use crate::files::Files;
use crate::lines::{Line, Lines};
use crate::names;
use crate::root::Root;
use crate::serve::answers::{answer_file, decoded};
use crate::serve::problem::Problem;
use crate::serve::server::Server;

/// How many versions are shown, unless all are asked for.
const VERSIONS: usize = 50;

/// How many dependents are shown.
const DEPENDENTS: usize = 100;

/// How many capabilities it is looked up for who provides them, and how many of those are shown.
const PROVIDERS: usize = 8;

#[derive(Debug, Template)]
#[template(path = "package.html")]
struct Page<'asked> {
    frame: Frame<'asked>,
    name: &'asked str,
    /// Its namespace with a slash behind it.
    namespace: &'asked str,
    leaf: &'asked str,
    latest: String,
    about: Release,
    published: Option<String>,
    maintainers: Vec<String>,
    website: Option<&'asked str>,
    notices: Vec<Notice>,
    install: Option<String>,
    readme: Arc<Readme>,
    versions: Vec<Version>,
    columns: Columns,
    total: usize,
    dependencies: Vec<Related>,
    /// The packages that depend on it, and how many there are; `None` before that is known.
    dependents: Option<(Vec<Related>, usize)>,
    requires: Vec<Required>,
    picture: Option<String>,
}

/// A row in the table of versions.
#[derive(Debug)]
struct Version {
    version: String,
    app_version: Option<String>,
    day: Option<String>,
    channels: Vec<String>,
    tags: Vec<String>,
    /// Why it was withdrawn, if it was.
    yanked: Option<String>,
    is_release: bool,
}

/// Which columns of the table have anything in them.
#[derive(Debug)]
struct Columns {
    app_version: bool,
    channels: bool,
    tags: bool,
}

/// A package that this one has to do with.
#[derive(Debug)]
pub(super) struct Related {
    /// Its name in this hub, else what was written.
    pub(super) key: String,
    pub(super) text: String,
    /// Its page, if it is of this hub.
    pub(super) page: Option<String>,
    /// What is asked of its version, and more.
    pub(super) asked: Vec<String>,
}

/// A capability that is required, and packages of this hub that provide it.
#[derive(Debug)]
struct Required {
    capability: String,
    providers: Vec<Related>,
}

/// Answers with the page of the package that the path names.
pub(super) async fn answer(
    State(server): State<Arc<Server>>,
    request: Request,
) -> Result<Response, Problem> {
    let asked = Asked::of(&server, &request);
    let path = decoded(&asked.path).ok_or_else(Problem::not_found)?;
    let name = path.trim_start_matches('/').strip_prefix(PACKAGES).unwrap_or_default();
    if names::check_name(name).is_err() {
        // No file of a hub is named like a package, whatever its folders are called.
        return answer_file(State(server), request).await;
    }
    let root = Root::read(&server.files).await?;
    let index = root.index(name);
    let missing = || Problem::new(StatusCode::NOT_FOUND, format!("this hub has no package {name}"));
    let read = server.files.read(&index).await?.ok_or_else(missing)?;
    // What is wrong with one line is no reason not to show the others.
    let (lines, _) = Lines::parse_all(&read.bytes, name);
    let latest = lines.latest().ok_or_else(missing)?;
    // All else is shown without it too.
    let readme = server.pages.readmes.of(&server.files, &root, latest).await;
    let readme = readme.unwrap_or_else(|_| Arc::new(Readme::None));
    let requires = required(&server.files, latest, &asked.frame()).await?;
    let is_known = server.pages.relations.refresh(&server.files, &root).await;
    let shows_all = asked.query("versions") == "all";
    let page = server.pages.relations.look(|known| {
        let mut page = Page::new(&asked, name, &lines, latest, known);
        if !is_known {
            page.dependents = None;
            page.picture = None;
        }
        if shows_all {
            page.show_versions(&lines, usize::MAX);
        }
        Page { readme, requires, ..page }
    });
    // What is not all there is not to be kept.
    asked.page(if is_known { Keeping::AskAgain } else { Keeping::Never }, &page)
}

impl<'asked> Page<'asked> {
    fn new(
        asked: &'asked Asked,
        name: &'asked str,
        lines: &Lines,
        latest: &'asked Line,
        known: &Known,
    ) -> Self {
        let about = release(latest);
        let frame = asked.frame();
        let base = asked.address.base.as_str();
        let leaf_at = name.rfind('/').map_or(0, |slash| slash + 1);
        let maintainers = about.maintainers.iter().map(maintainer).collect();
        let website = latest.text("website").filter(|website| is_web(website));
        let found = known.dependents(name, base);
        let total_dependents = found.len();
        let dependents = found.into_iter().take(DEPENDENTS).map(|(name, spec)| Related {
            key: name.to_owned(),
            text: name.to_owned(),
            page: Some(frame.package(name)),
            asked: asked_of(spec),
        });
        let dependents: Vec<Related> = dependents.collect();
        let needs = about.dependencies.iter().flatten();
        let dependencies: Vec<Related> = needs
            .map(|needed| dependency(needed, &frame, known.resolve(name, needed.reference(), base)))
            .collect();
        let latest_version = latest.full_version();
        let picture =
            graph::picture((name, &latest_version), &dependencies, &dependents, total_dependents);
        let notices = notices(Subject { name, line: latest, base, frame: &frame }, known);
        let mut page = Self {
            install: install(asked, name, latest),
            frame,
            name,
            namespace: &name[..leaf_at],
            leaf: &name[leaf_at..],
            latest: latest_version,
            published: day(latest),
            maintainers,
            website,
            notices,
            readme: Arc::new(Readme::None),
            versions: Vec::new(),
            columns: Columns { app_version: false, channels: false, tags: false },
            total: lines.iter().count(),
            dependencies,
            dependents: Some((dependents, total_dependents)),
            requires: Vec::new(),
            picture,
            about,
        };
        page.show_versions(lines, VERSIONS);
        page
    }

    /// Shows so many versions, the highest first.
    fn show_versions(&mut self, lines: &Lines, most: usize) {
        let mut sorted: Vec<_> = lines.iter().map(|line| (line.standing(), line)).collect();
        sorted.sort_by(|(left, _), (right, _)| right.number.cmp(&left.number));
        let shown = sorted.into_iter().take(most);
        self.versions =
            shown.map(|(standing, line)| Version::of(line, standing.is_release)).collect();
        self.columns = Columns {
            app_version: self.versions.iter().any(|version| version.app_version.is_some()),
            channels: self.versions.iter().any(|version| !version.channels.is_empty()),
            tags: self.versions.iter().any(|version| !version.tags.is_empty()),
        };
    }
}

impl Version {
    fn of(line: &Line, is_release: bool) -> Self {
        let reason = || match line.map().get("yanked") {
            Some(Value::String(reason)) => reason.clone(),
            _ => String::new(),
        };
        Self {
            version: line.full_version(),
            app_version: line.text("appVersion").map(str::to_owned),
            day: day(line),
            channels: line.texts("channels").map(str::to_owned).collect(),
            tags: line.texts("tags").map(str::to_owned).collect(),
            yanked: line.is_yanked().then(reason),
            is_release,
        }
    }
}

/// The command that depends on the package; none for what nobody should begin to depend on.
fn install(asked: &Asked, name: &str, latest: &Line) -> Option<String> {
    if let Some(to) = latest.text("movedTo") {
        let is_plain = Target::parse(to).is_some_and(|target| target.spec.is_empty());
        return is_plain.then(|| format!("mu add {to}"));
    }
    let reference = asked.address.reference(name).filter(|_| !latest.is_yanked())?;
    // What has no release is not chosen by itself.
    let more = if latest.standing().is_release { "" } else { "--pre " };
    Some(format!("mu add {more}{reference}"))
}

fn dependency(needed: &Dependency, frame: &Frame<'_>, found: Option<&str>) -> Related {
    let (text, spec) = needed.reference().split_once('#').unwrap_or((needed.reference(), ""));
    let mut asked = asked_of(spec);
    if let Dependency::Detailed(detailed) = needed {
        asked.extend(detailed.channel.as_ref().map(|channel| format!("channel {channel}")));
        asked.extend(detailed.app_version.as_ref().map(|version| format!("app version {version}")));
        asked.extend(detailed.prerelease.then(|| "prereleases too".to_owned()));
    }
    Related {
        key: found.unwrap_or(text).to_owned(),
        text: text.to_owned(),
        page: found.map(|name| frame.package(name)),
        asked,
    }
}

fn asked_of(spec: &str) -> Vec<String> {
    vec![if spec.is_empty() { "any version".to_owned() } else { spec.to_owned() }]
}

/// The capabilities that a version requires, and who provides them.
async fn required(files: &Files, line: &Line, frame: &Frame<'_>) -> Result<Vec<Required>, Problem> {
    let mut required = Vec::new();
    for (number, capability) in line.texts("requires").enumerate() {
        let is_one = names::capability_path(capability).is_some();
        let path = providers_path(capability);
        let read = match is_one && number < PROVIDERS {
            true => files.read(&path).await?,
            false => None,
        };
        let file = read.and_then(|read| serde_json::from_slice::<ProvidersFile>(&read.bytes).ok());
        let providers = file.unwrap_or_default().packages.into_iter().take(PROVIDERS);
        let providers = providers.filter(|name| names::check_name(name).is_ok());
        let related = |name: String| Related {
            key: name.clone(),
            page: Some(frame.package(&name)),
            text: name,
            asked: Vec::new(),
        };
        required.push(Required {
            capability: capability.to_owned(),
            providers: providers.map(related).collect(),
        });
    }
    Ok(required)
}

/// Somebody's name, without the mail address.
fn maintainer(maintainer: &Maintainer) -> String {
    match maintainer {
        Maintainer::Text(text) => text.split('<').next().unwrap_or_default().trim().to_owned(),
        Maintainer::Person { name, .. } => name.clone(),
    }
}

fn is_web(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// A line as a release, without what is wrong in it.
fn release(line: &Line) -> Release {
    let read = |value: &Value| serde_json::from_value::<Release>(value.clone()).ok();
    if let Some(release) = read(&Value::Object(line.map().clone())) {
        return release;
    }
    // Key by key, so that one that is wrong takes no other with it.
    let mut right = serde_json::Map::new();
    for (key, value) in line.map() {
        let alone = Value::Object([(key.clone(), value.clone())].into_iter().collect());
        if read(&alone).is_some() {
            right.insert(key.clone(), value.clone());
        }
    }
    read(&Value::Object(right)).unwrap_or_default()
}
