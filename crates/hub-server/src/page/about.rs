//! What a page shows about one version: facts, how to depend on it, related packages; and what people should know before they
//! depend on it: that it was withdrawn, that it has moved, or that it claims to replace another one, and whether that one agrees.
//!
//! On each machine, mu itself decides whether one package may replace another. The page only shows the hub's data.

use mu_hub::files::Files;
use mu_hub::lines::PublishedLine;
use mu_hub::names;
use mu_hub::root::Root;
use mu_hub::tokens::Scope;
use mu_provider::{Dependency, Maintainer, Release};
use mu_provider_hub::wire::{ProvidersFile, providers_path};
use serde_json::Value;

use super::content::{Content, escaped, place, repository_files};
use super::frame::{Frame, PageRequest};
use super::relations::{KnownInScope, Target, are_neighbours};
use super::words::{Moment, size};
use crate::problem::Problem;

/// For how many capabilities the providers are looked up, and how many providers are shown.
const PROVIDERS: usize = 8;

/// How many files of a version are listed.
const FILES: usize = 500;

/// What a page shows about one version.
#[derive(Debug)]
pub(super) struct About {
    pub(super) version: String,
    /// The line, without its invalid keys.
    pub(super) says: Release,
    pub(super) published: Option<Moment>,
    pub(super) maintainers: Vec<String>,
    pub(super) website: Option<String>,
    /// The repository as it was written, and its URL if it has a web page.
    pub(super) repository: Option<(String, Option<String>)>,
    /// Such as `3.4 KiB`.
    pub(super) size: Option<String>,
    pub(super) install: Option<Install>,
    pub(super) dependencies: Vec<Related>,
}

/// How to depend on a package.
#[derive(Debug)]
pub(super) struct Install {
    pub(super) command: String,
    /// A line under `dependencies` in a manifest.
    pub(super) line: Option<String>,
}

/// A package that this one has to do with.
#[derive(Debug)]
pub(super) struct Related {
    /// Its name in this hub, or else the text that was written.
    pub(super) key: String,
    pub(super) text: String,
    /// Its page, if it is of this hub.
    pub(super) page: Option<String>,
    /// The required version, and more.
    pub(super) asked: Vec<String>,
}

/// A required capability, and packages of this hub that provide it.
#[derive(Debug)]
pub(super) struct Required {
    pub(super) capability: String,
    pub(super) providers: Vec<Related>,
}

/// A file of a version.
#[derive(Debug)]
pub(super) struct FileRow {
    pub(super) path: String,
    pub(super) page: String,
    pub(super) size: String,
}

impl About {
    pub(super) fn new(asked: &PageRequest, line: &PublishedLine, known: &KnownInScope<'_>) -> Self {
        let (name, base) = (line.name(), asked.address.base.as_str());
        let frame = asked.frame();
        let says = release(line);
        let dependencies = says.dependencies.iter().flatten().map(|needed| {
            dependency(needed, &frame, known.resolve(name, needed.reference(), base))
        });
        let repository = line.text("repository").map(|text| {
            let place = text.split('#').next().unwrap_or_default();
            let place = place.strip_prefix("git+").unwrap_or(place);
            (text.to_owned(), is_web(place).then(|| place.to_owned()))
        });
        Self {
            version: line.full_version(),
            published: Moment::published(line),
            maintainers: says.maintainers.iter().map(maintainer).collect(),
            website: line.text("website").filter(|text| is_web(text)).map(str::to_owned),
            repository,
            size: says.size.map(size),
            install: Install::of(asked, line, "^"),
            dependencies: dependencies.collect(),
            says,
        }
    }

    /// The web page of the commit that the version was made from.
    pub(super) fn commit_page(&self) -> Option<String> {
        let (repository, _) = self.repository.as_ref()?;
        let commit = self.says.commit.as_deref()?;
        let files = repository_files(repository, Some(commit))?;
        let files = files.split(commit).next()?;
        Some(format!("{}{commit}", files.replace("/blob/", "/tree/")))
    }
}

impl Install {
    /// The command that depends on a version, with `range` before its number; none for versions that nobody
    /// should start to depend on.
    pub(super) fn of(asked: &PageRequest, line: &PublishedLine, range: &str) -> Option<Self> {
        if let Some(to) = line.text("movedTo") {
            let is_plain = Target::parse(to).is_some_and(|target| target.spec.is_empty());
            return is_plain.then(|| Self { command: format!("mu add {to}"), line: None });
        }
        let reference = asked.address.reference(line.name()).filter(|_| !line.is_yanked())?;
        let version = line.full_version();
        // Ranges work with numbers; a version without them can be chosen only by its name.
        let is_number = names::check_version(line.version(), line.has_lenient_version()).is_ok();
        let is_safe = line.composite_app().is_none_or(|app| names::check_app_version(app).is_ok());
        if !is_number || !is_safe {
            return Some(Self { command: format!("mu add {reference}"), line: Some(reference) });
        }
        let version = version.split('+').next().unwrap_or_default();
        let spec = match (line.composite_app(), range) {
            (Some(app), "^") => format!("^{}", app.split('+').next().unwrap_or_default()),
            _ => format!("{range}{version}"),
        };
        let reference = format!("{reference}#{spec}");
        Some(Self { command: format!("mu add '{reference}'"), line: Some(reference) })
    }
}

/// The URL from which to download the archive of a version.
pub(super) fn download(root: &Root, line: &PublishedLine, frame: &Frame<'_>) -> Option<String> {
    let path = place(root, line);
    let is_plain = |segment: &str| !matches!(segment, "" | "." | "..");
    let is_here = path.starts_with(&root.packs_folder()) && path.split('/').all(is_plain);
    let has_other = line.texts("urls").next().is_some();
    let is_told = line.texts("urls").any(|url| !url.contains("://"));
    if is_here && path.ends_with(".tgz") && (is_told || !has_other) {
        return Some(format!("{}{}", frame.root, escaped(&path)));
    }
    line.texts("urls").find(|url| is_web(url)).map(str::to_owned)
}

/// The files of a version, and how many there are.
pub(super) fn file_rows(
    content: &Content,
    line: &PublishedLine,
    frame: &Frame<'_>,
) -> Vec<FileRow> {
    let version = line.full_version();
    let files = content.files.iter().take(FILES);
    let row = |file: &super::content::Listed| FileRow {
        path: file.path.clone(),
        page: frame.file(line.name(), &version, &file.path),
        size: size(file.size),
    };
    files.map(row).collect()
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

pub(super) fn asked_of(spec: &str) -> Vec<String> {
    vec![if spec.is_empty() { "any version".to_owned() } else { spec.to_owned() }]
}

/// The capabilities that a version requires, and the packages in `scope` that provide them.
pub(super) async fn required(
    files: &Files,
    scope: &Scope,
    line: &PublishedLine,
    frame: &Frame<'_>,
) -> Result<Vec<Required>, Problem> {
    let mut required = Vec::new();
    for (number, capability) in line.texts("requires").enumerate() {
        let providers = match number < PROVIDERS {
            true => providers(files, scope, capability).await?,
            false => Vec::new(),
        };
        let related = |name: String| Related {
            key: name.clone(),
            page: Some(frame.package(&name)),
            text: name,
            asked: Vec::new(),
        };
        required.push(Required {
            capability: capability.to_owned(),
            providers: providers.into_iter().take(PROVIDERS).map(related).collect(),
        });
    }
    Ok(required)
}

/// The packages of this hub, in `scope`, that provide a capability; none if the text is not a valid capability.
pub(super) async fn providers(
    files: &Files,
    scope: &Scope,
    capability: &str,
) -> Result<Vec<String>, Problem> {
    if names::capability_path(capability).is_none() {
        return Ok(Vec::new());
    }
    let path = providers_path(capability);
    let Some(read) = files.read(&path).await? else { return Ok(Vec::new()) };
    let file = serde_json::from_slice::<ProvidersFile>(&read.bytes);
    let mut providers = file.map_err(|error| files.broken(&path, error.to_string()))?.packages;
    providers.retain(|name| names::check_name(name).is_ok() && scope.has(name));
    Ok(providers)
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

/// A line as a release, without its invalid keys.
fn release(line: &PublishedLine) -> Release {
    let read = |value: &Value| serde_json::from_value::<Release>(value.clone()).ok();
    if let Some(release) = read(&Value::Object(line.map().clone())) {
        return release;
    }
    // Key by key, so that an invalid one does not affect the others.
    let mut right = serde_json::Map::new();
    for (key, value) in line.map() {
        let alone = Value::Object([(key.clone(), value.clone())].into_iter().collect());
        if read(&alone).is_some() {
            right.insert(key.clone(), value.clone());
        }
    }
    read(&Value::Object(right)).unwrap_or_default()
}

/// Something to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    /// Whether to be careful.
    pub(super) is_warning: bool,
    pub(super) parts: Vec<Part>,
}

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// A package, and its page if it is of this hub.
    Package(String, Option<String>),
}

/// The package that a page is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'page> {
    pub(super) name: &'page str,
    /// The line that represents it.
    pub(super) line: &'page PublishedLine,
    /// The hub's base.
    pub(super) base: &'page str,
    pub(super) frame: &'page Frame<'page>,
}

/// All notices about a package; fewer while the hub's relations are not known yet.
pub(super) fn notices(subject: Subject<'_>, known: &KnownInScope<'_>) -> Vec<Notice> {
    let mut notices = Vec::new();
    if subject.line.is_yanked() {
        notices.push(warning(vec![text(
            "Every version of this package was yanked: nothing new should depend on it.",
        )]));
    }
    notices.extend(deprecated(subject.line).map(deprecation));
    notices.extend(moved(subject, known));
    for reference in subject.line.texts("replaces") {
        notices.push(claim(subject, known, reference));
    }
    for claimant in known.claimants(subject.name, subject.base) {
        notices.extend(claimed(subject, known, claimant));
    }
    notices
}

/// The notices about one version; `newer` is the package's newest release, if that is another one.
pub(super) fn of_version(subject: Subject<'_>, newer: Option<&str>) -> Vec<Notice> {
    let Subject { name, line, frame, .. } = subject;
    let mut notices = Vec::new();
    if line.is_yanked() {
        let reason = line.text("yanked").filter(|reason| !reason.is_empty());
        let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let rest = "mu does not choose it any more; a lock that names it still works.";
        notices.push(warning(vec![Part::Text(format!("This version was yanked{why}. {rest}"))]));
    }
    notices.extend(deprecated(line).map(deprecation));
    if let Some(newer) = newer {
        let page = Some(frame.version(name, newer));
        let link = Part::Package(newer.to_owned(), page);
        let parts = vec![text("The newest release is "), link, text(".")];
        notices.push(Notice { is_warning: false, parts });
    }
    notices
}

/// The replacement that a deprecated version suggests; an empty text if it suggests none.
pub(super) fn deprecated(line: &PublishedLine) -> Option<&str> {
    match line.map().get("deprecated")? {
        Value::Bool(true) => Some(""),
        Value::String(why) => Some(why),
        _ => None,
    }
}

fn deprecation(why: &str) -> Notice {
    let more = if why.is_empty() { String::new() } else { format!(": {why}") };
    warning(vec![Part::Text(format!("This version is deprecated{more}."))])
}

/// The notice that the package has moved, and whether the other one knows; `None` if it has not.
fn moved(subject: Subject<'_>, known: &KnownInScope<'_>) -> Option<Notice> {
    let to = subject.line.text("movedTo")?;
    let mut parts = vec![text("This package has moved to "), subject.package(known, to), text(".")];
    let other = known.resolve(subject.name, to, subject.base);
    if let Some(other) = other {
        let knows = known.claimants(subject.name, subject.base).contains(&other);
        parts.push(text(match knows {
            true => " That package agrees: it says that it replaces this one.",
            false => " That package does not say that it replaces this one.",
        }));
    }
    Some(Notice { is_warning: false, parts })
}

/// The notice that the package claims to replace another, and whether that one agrees.
fn claim(subject: Subject<'_>, known: &KnownInScope<'_>, reference: &str) -> Notice {
    let Subject { name, base, .. } = subject;
    let mut parts =
        vec![text("This package claims to replace "), subject.package(known, reference)];
    let old = known.resolve(name, reference, base);
    let (is_warning, rest) = match old.map(|old| (old, known.find(old))) {
        Some((old, Some(brief))) if brief.has_moved_to(old, name, base) => {
            (false, ", and that package agrees: it says that it has moved here.")
        }
        Some((old, _)) if are_neighbours(old, name) => {
            (false, ". Both belong to one namespace, so mu uses one in place of the other.")
        }
        Some(_) => (
            true,
            ", but that package does not say so. mu uses one in place of the other only if you agree.",
        ),
        None => (
            true,
            ", which is not in this hub, so whether that package agrees is not known here. mu checks that itself.",
        ),
    };
    parts.push(text(rest));
    Notice { is_warning, parts }
}

/// The notice that another package claims to replace this one, which has not agreed; `None` if it has.
fn claimed(subject: Subject<'_>, known: &KnownInScope<'_>, claimant: &str) -> Option<Notice> {
    let Subject { name, base, frame, .. } = subject;
    let has_moved = known.find(name)?.has_moved_to(name, claimant, base);
    if has_moved {
        return None;
    }
    let package = Part::Package(claimant.to_owned(), Some(frame.package(claimant)));
    let (is_warning, rest) = match are_neighbours(name, claimant) {
        true => (false, " of the same namespace says that it replaces this package."),
        false => (
            true,
            " claims to replace this package, but this one does not say so. mu uses one in place of the other only if you agree.",
        ),
    };
    Some(Notice { is_warning, parts: vec![package, text(rest)] })
}

impl Subject<'_> {
    /// A package that the subject names.
    fn package(&self, known: &KnownInScope<'_>, reference: &str) -> Part {
        let found = known.resolve(self.name, reference, self.base);
        let shown = Target::parse(reference)
            .map_or(reference, |_| reference.split('#').next().unwrap_or(reference));
        Part::Package(shown.to_owned(), found.map(|name| self.frame.package(name)))
    }
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn warning(parts: Vec<Part>) -> Notice {
    Notice { is_warning: true, parts }
}
