//! What a chart says about itself, in `Chart.yaml` and in an index alike, and each of its dependencies as a reference.

use std::collections::BTreeSet;

use mu_manifest::reference::{Reference, Version};
use mu_provider::{Dependency, Release, Yanked};

use crate::format::{Reading, Seen, check_name_segment};
use crate::node::{Fault, Node, PEOPLE};
use crate::range::rewritten;
use crate::shape::Shape::{self, Folded, List, Open, Shown, Text, Unused};
use crate::shape::{SHOWN, TEXTS};

/// The manifest of a chart.
pub const CHART: &str = "Chart.yaml";

/// What charts of the first format, and some of the second, depend on.
pub const REQUIREMENTS: &str = "requirements.yaml";

/// The folder in which a chart carries others.
pub const CHARTS_FOLDER: &str = "charts";

/// The rest of a path in a chart that begins with the folder of what it carries.
pub fn in_charts(path: &str) -> Option<&str> {
    path.strip_prefix(CHARTS_FOLDER)?.strip_prefix('/')
}

/// Whether the file at `path` in a chart is the manifest or the archive of its copy of the chart `name`.
pub fn is_copy(path: &str, name: &str) -> bool {
    let copy = in_charts(path).and_then(|path| path.strip_prefix(name));
    copy.is_some_and(|copy| {
        copy.strip_prefix('/') == Some(CHART)
            || (copy.starts_with('-') && copy.ends_with(".tgz") && !copy.contains('/'))
    })
}

/// The fact of the runtime that `kubeVersion` is about.
const KUBERNETES: &str = "kubernetes";

/// The annotations that hold a licence, the first that is there.
const LICENSES: [&str; 3] = ["licenses", "license", "artifacthub.io/license"];

/// What mu reads of a chart, in `Chart.yaml` and in an index alike.
pub(super) static SHAPE: Shape = Folded(&[
    ("apiVersion", Text),
    ("kind", Text),
    ("name", Text),
    ("version", Text),
    ("appVersion", Text),
    ("kubeVersion", Text),
    ("description", SHOWN),
    ("home", SHOWN),
    ("deprecated", Text),
    ("keywords", Shown(&TEXTS)),
    ("maintainers", PEOPLE),
    (
        "annotations",
        Shown(&Open(&[("licenses", Text), ("license", Text), ("artifacthub.io/license", Text)])),
    ),
    ("dependencies", List(&DEPENDENCY)),
    ("condition", Unused),
    ("engine", Unused),
    ("icon", Unused),
    ("sources", Unused),
    ("tags", Unused),
    ("tillerVersion", Unused),
    ("type", Text),
    // In an index.
    ("checksum", Unused),
    ("created", Text),
    ("digest", Text),
    ("operatorVersion", Text),
    ("removed", Text),
    ("url", Unused),
    ("urls", TEXTS),
]);

/// What mu reads of `requirements.yaml`.
pub(super) static REQUIRED: Shape = Folded(&[("dependencies", List(&DEPENDENCY))]);

/// Whether the chart has the first format, whose dependencies are usually in another file.
pub(super) fn is_first(root: &Node<'_>) -> bool {
    // Helm reads it in the same way.
    !matches!(root.text("apiVersion"), Ok(Some(("v2", _))))
}

/// Reads name and version. In an index, `name` is the name under which the index lists the chart.
pub(super) fn head(root: &Node<'_>, name: Option<&str>) -> Result<Release, Fault> {
    if !root.is_map() {
        return Err(root.fault("a chart is a map of keys"));
    }
    let missing = |key: &str| root.fault(format!("the chart has no `{key}`"));
    let (own, node) = root.text("name")?.ok_or_else(|| missing("name"))?;
    if name.is_some_and(|name| name != own) {
        return Err(node.fault(format!("its name is `{own}`")));
    }
    check_name_segment(own, "a chart").map_err(|reason| node.fault(reason))?;
    let (version, node) = root.text("version")?.ok_or_else(|| missing("version"))?;
    if Version::parse_lenient(version).is_err() {
        return Err(node.fault(format!("`{version}` is not a version")));
    }
    if let Some((other, node)) = root.text("apiVersion")?
        && !["v1", "v2"].contains(&other)
    {
        let reason = format!("charts of the format `{other}` are not supported, only v1 and v2");
        return Err(node.fault(reason));
    }
    Ok(Release {
        name: own.to_owned(),
        version: version.to_owned(),
        format: Some("helm".to_owned()),
        ..Release::default()
    })
}

/// Reads everything else that a chart says. Text that is only for people is left out if it makes no sense.
pub(super) fn details(release: &mut Release, root: &Node<'_>) -> Result<(), Fault> {
    if let Some((kind, node)) = root.text("type")?
        && !["", "application", "library"].contains(&kind)
    {
        let reason =
            format!("the type `{kind}` is none that Helm knows: `application` or `library`");
        return Err(node.fault(reason));
    }
    release.app_version = root.text_for_people("appVersion");
    release.description = root.text_for_people("description");
    release.website = root.text_for_people("home");
    if let Some((text, node)) = root.text("kubeVersion")? {
        let range = rewritten(text)
            .map_err(|reason| node.fault(format!("`kubeVersion`: the range `{text}` {reason}")))?;
        release.constraints.insert(KUBERNETES.to_owned(), range.text);
    }
    if root.flag("deprecated")? {
        release.deprecated = Yanked::Flag(true);
    }
    release.keywords = root.words("keywords");
    release.maintainers = root.maintainers();
    if let Ok(Some(annotations)) = root.get("annotations") {
        release.license = LICENSES.iter().find_map(|key| annotations.text_for_people(key));
    }
    Ok(())
}

/// Refuses what Helm reads only in another form. In a published chart, what is only for people and makes no sense is left out.
pub(super) fn check_forms(root: &Node<'_>) -> Result<(), Fault> {
    for key in ["appVersion", "description", "home"] {
        root.text(key)?;
    }
    root.list("keywords")?;
    if let Some(person) = root.list("maintainers")?.iter().find(|person| !person.is_map()) {
        return Err(person.fault("a maintainer is a map with `name`, `email` and `url`"));
    }
    match root.get("annotations")?.filter(|annotations| !annotations.is_map()) {
        Some(other) => Err(other.fault("`annotations` must be a map")),
        None => Ok(()),
    }
}

/// What mu reads of a dependency.
const DEPENDENCY: Shape = Folded(&[
    ("name", Text),
    ("version", Text),
    ("repository", Text),
    ("alias", Text),
    ("condition", Unused),
    ("enabled", Unused),
    ("import-values", Unused),
    ("tags", Unused),
]);

/// Where a dependency comes from.
enum Repository {
    /// The chart itself.
    Inside,
    /// A folder beside the chart.
    Folder(String),
    /// A repository, as the beginning of a reference.
    Url(String),
}

/// Adds a dependency, and returns whether the list of dependencies is longer now.
///
/// Conditions, tags and imported values depend on the values that a chart is installed with, so every
/// dependency is required. A dependency that is listed twice with two aliases is one package, and must
/// satisfy both ranges. Where its author works on it, each entry counts, because each can be edited.
pub(super) fn add(
    release: &mut Release,
    node: &Node<'_>,
    around: &Reading<'_>,
    seen: &mut Seen,
) -> Result<bool, Fault> {
    if !node.is_map() {
        return Err(node.fault("a dependency is a map with `name`, `version` and `repository`"));
    }
    let (name, at) = node.text("name")?.ok_or_else(|| node.fault("a dependency has no `name`"))?;
    check_name_segment(name, "a chart").map_err(|reason| at.fault(reason))?;
    let alias = node.text("alias")?.filter(|(alias, _)| !alias.is_empty());
    let (called, called_at) = alias.unwrap_or((name, at));
    if alias.is_some() {
        check_alias(called).map_err(|reason| called_at.fault(reason))?;
    }
    // Helm loads no chart with two, whatever their versions and repositories are.
    if !seen.note_called(called) {
        let reason = format!(
            "two dependencies are called `{called}`: give one of them an `alias` of its own"
        );
        return Err(called_at.fault(reason));
    }
    let version = node.text("version")?;
    let (repository, at) = match node.text("repository")? {
        Some((text, at)) => {
            (repository(name, text, around).map_err(|reason| at.fault(reason))?, at)
        }
        None => (Repository::Inside, node),
    };
    let place = match (repository, version) {
        (Repository::Folder(folder), None) => {
            return Ok(depend(release, Dependency::Reference(folder), around, seen));
        }
        (Repository::Folder(folder), Some(_)) => folder,
        (Repository::Url(base), Some(_)) => format!("{base}{name}"),
        (Repository::Inside, _) | (Repository::Url(_), None) => {
            let lacks = match node.text("repository")? {
                None => "repository",
                // Another folder of the chart.
                Some((text, _)) if text.starts_with(FOLDER) => "",
                Some(_) => "version",
            };
            if !lacks.is_empty() && around.carried.is_some_and(|carried| !carries(carried, name)) {
                return Err(node.fault(format!(
                    "the dependency `{name}` has no `{lacks}`, and the chart does not carry it: there is no `{CHARTS_FOLDER}/{name}`"
                )));
            }
            seen.bundle(release, name);
            return Ok(false);
        }
    };
    let (written, range_at) = version.expect("without one it was taken for bundled");
    let range = rewritten(written).map_err(|reason| {
        range_at.fault(format!("the range `{written}` of the dependency `{name}` {reason}"))
    })?;
    let reference = format!("{place}#{}", range.text);
    if let Err(error) = Reference::parse(&reference) {
        return Err(at.fault(format!("the dependency `{name}` has no valid reference: {error}")));
    }
    let dependency = Dependency::new(reference, range.prerelease);
    Ok(depend(release, dependency, around, seen))
}

/// Checks what a dependency is called instead of the chart, as Helm does.
fn check_alias(alias: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match alias.bytes().all(is_allowed) {
        true => Ok(()),
        false => Err(format!(
            "the alias `{alias}` has other characters than letters, digits, `-` and `_`, which Helm refuses"
        )),
    }
}

/// What a repository begins with that is a folder.
const FOLDER: &str = "file://";

/// Whether a chart with these files in `charts` carries the chart called `name`.
fn carries(files: &BTreeSet<String>, name: &str) -> bool {
    let is_it = |file: &String| file == name || is_copy(&format!("{CHARTS_FOLDER}/{file}"), name);
    files.iter().any(is_it)
}

fn depend(
    release: &mut Release,
    dependency: Dependency,
    around: &Reading<'_>,
    seen: &mut Seen,
) -> bool {
    if !around.is_own {
        return seen.depend(release, dependency);
    }
    release.dependencies.get_or_insert_default().push(dependency);
    true
}

/// What the `repository` of the chart `name` names.
fn repository(name: &str, text: &str, around: &Reading<'_>) -> Result<Repository, String> {
    if let Some(alias) = text.strip_prefix('@').or_else(|| text.strip_prefix("alias:")) {
        let url = around.aliases.and_then(|aliases| aliases.repository_url(alias, name));
        // Where it was packed, the name led to a repository, and the chart from there is in the archive.
        let is_packed = !around.is_own
            && !around.is_source
            && around.carried.is_none_or(|carried| carries(carried, name));
        return match url {
            Some(url) => url_of(&url).map(Repository::Url),
            None if is_packed => Ok(Repository::Inside),
            None => Err(format!(
                "the repository `{text}` is not named in Helm's `repositories.yaml`: name it with `helm repo add {alias} URL`, or write its URL here"
            )),
        };
    }
    let Some(path) = text.strip_prefix(FOLDER) else { return url_of(text).map(Repository::Url) };
    let inner = path.trim_start_matches("./");
    let is_inside = !path.starts_with('/') && !inner.split('/').any(|part| part == "..");
    let is_beside = around.is_own || around.is_folder;
    Ok(match is_inside {
        false if is_beside && path.starts_with('/') => Repository::Folder(path.to_owned()),
        false if is_beside && inner.starts_with("../") => Repository::Folder(inner.to_owned()),
        false if is_beside => Repository::Folder(format!("./{inner}")),
        // `helm package` has copied what the author had beside the chart into the archive.
        _ => Repository::Inside,
    })
}

/// The beginning of the references to charts of a repository.
fn url_of(text: &str) -> Result<String, String> {
    let (scheme, rest) = text
        .split_once("://")
        .ok_or_else(|| format!("the repository `{text}` is neither a URL nor `@NAME`"))?;
    let protocol = match &*scheme.to_ascii_lowercase() {
        "https" => "helm+https",
        "http" => "helm+http",
        "oci" => "oci",
        other => {
            return Err(format!(
                "its repository has the scheme `{other}`, which only a Helm plugin supports"
            ));
        }
    };
    let segments: Vec<&str> = rest.split('/').filter(|segment| !segment.is_empty()).collect();
    if segments.is_empty() {
        return Err(format!("the repository `{text}` names no host"));
    }
    if rest.contains('?') {
        return Err(
            "the URL of its repository has a query (`?`), and mu asks no repository with one: a token belongs into `mu login`, and not into a chart"
                .to_owned(),
        );
    }
    Ok(format!("{protocol}://{}/", segments.join("/")))
}

/// The text of a reference to a chart of a repository, and whether its range asks for prereleases.
///
/// # Errors
///
/// When the repository is none that mu reads, or the range is none.
pub(crate) fn dependency_reference(
    repository: &str,
    name: &str,
    range: Option<&str>,
) -> Result<(String, bool), String> {
    check_name_segment(name, "a chart")?;
    let place = format!("{}{name}", url_of(repository)?);
    let Some(range) = range else { return Ok((place, false)) };
    let range = rewritten(range).map_err(|reason| format!("its version `{range}` {reason}"))?;
    Ok((format!("{place}#{}", range.text), range.prerelease))
}
