//! `helmfile.yaml` with `helmfile.lock`: the charts that releases install.
//!
//! Such a file is a template of Go's, which only helmfile can fill in, with values of environments. Its actions (`{{ … }}`) are taken out
//! before it is read as YAML: one that stands alone in its lines decides or repeats, so every release below it counts; what has one in it
//! is a text that is not known.

use std::collections::BTreeMap;

use mu_manifest::reference::Version;

use super::{InUse, List, ListedDependency, Meaning, line_of, read, read_documents, terraform};
use crate::node::{Entry, Fault, FormatError, Kind, Node};
use crate::shape::Shape::{self, Each, List as Items, Map, Text, Unused};
use crate::shape::TEXTS;

/// The names of the file.
pub const HELMFILES: [&str; 4] =
    ["helmfile.yaml", "helmfile.yml", "helmfile.yaml.gotmpl", "helmfile.yml.gotmpl"];

/// Its lock, where it has its usual name.
pub const HELMFILE_LOCK: &str = "helmfile.lock";

/// The name of the lock beside the file called `name`.
pub fn lock_of(name: &str) -> String {
    let mut stem = name;
    for ending in [".gotmpl", ".yaml", ".yml"] {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    format!("{stem}.lock")
}

/// What is read of the file.
pub(crate) static HELMFILE_KEYS: Shape = Map(&[
    ("repositories", Items(&REPOSITORY)),
    ("releases", Items(&RELEASE)),
    ("charts", Items(&RELEASE)),
    (
        "helmfiles",
        Items(&Map(&[
            ("path", Text),
            ("inherits", Unused),
            ("selectors", Unused),
            ("selectorsInherited", Unused),
            ("values", Unused),
        ])),
    ),
    ("bases", Items(&Text)),
    ("apiVersions", Unused),
    ("chart", Unused),
    ("commonLabels", Unused),
    ("context", Unused),
    ("defaultInherit", TEXTS),
    ("environments", Unused),
    ("filepath", Unused),
    ("helmBinary", Unused),
    ("helmDefaults", Unused),
    ("hooks", Unused),
    ("kubeContext", Unused),
    ("kubeVersion", Unused),
    ("kustomizeBinary", Unused),
    ("llm", Unused),
    ("lockFilePath", Unused),
    ("missingFileHandler", Unused),
    ("missingFileHandlerConfig", Unused),
    ("namespace", Unused),
    ("renderedvalues", Unused),
    ("templates", Each(&RELEASE)),
    ("values", Unused),
]);

const REPOSITORY: Shape = Map(&[
    ("name", Text),
    ("url", Text),
    ("oci", Text),
    ("caFile", Unused),
    ("certFile", Unused),
    ("keyFile", Unused),
    ("keyring", Unused),
    ("managed", Unused),
    ("passCredentials", Unused),
    ("password", Unused),
    ("plainHttp", Unused),
    ("registryConfig", Unused),
    ("skipTLSVerify", Unused),
    ("username", Unused),
    ("verify", Unused),
]);

const RELEASE: Shape = Map(&[
    ("name", Text),
    ("chart", Text),
    ("version", Text),
    ("installed", Text),
    ("adopt", Unused),
    ("apiVersions", Unused),
    ("atomic", Unused),
    ("cascade", Unused),
    ("chartPath", Unused),
    ("cleanupOnFail", Unused),
    ("condition", Unused),
    ("conditionTemplate", Unused),
    ("createNamespace", Unused),
    ("deleteTimeout", Unused),
    ("deleteWait", Unused),
    ("dependencies", Unused),
    ("description", Unused),
    ("devel", Unused),
    ("directory", Unused),
    ("disableAutoDetectedKubeVersionForDiff", Unused),
    ("disableOpenAPIValidation", Unused),
    ("disableValidation", Unused),
    ("disableValidationOnInstall", Unused),
    ("enableDNS", Unused),
    ("env", Unused),
    ("force", Unused),
    ("forceConflicts", Unused),
    ("forceGoGetter", Unused),
    ("forceNamespace", Unused),
    ("helmStuckGrace", Unused),
    ("historyMax", Unused),
    ("hooks", Unused),
    ("inherit", Items(&Map(&[("template", Text), ("except", Unused)]))),
    ("insecureSkipTLSVerify", Unused),
    ("installedTemplate", Unused),
    ("jsonPatches", Unused),
    ("keyring", Unused),
    ("kubeContext", Unused),
    ("kubeVersion", Unused),
    ("kubedogBurst", Unused),
    ("kubedogQPS", Unused),
    ("labels", Unused),
    ("missingFileHandler", Unused),
    ("missingFileHandlerConfig", Unused),
    ("namespace", Unused),
    ("needs", Unused),
    ("plainHttp", Unused),
    ("postRenderer", Unused),
    ("postRendererArgs", Unused),
    ("recreatePods", Unused),
    ("reuseValues", Unused),
    ("rollbackOnFailure", Unused),
    ("secrets", Unused),
    ("serverSide", Unused),
    ("set", Unused),
    ("setString", Unused),
    ("setTemplate", Unused),
    ("skipDeps", Unused),
    ("skipKinds", Unused),
    ("skipRefresh", Unused),
    ("skipSchemaValidation", Unused),
    ("strategicMergePatches", Unused),
    ("suppressDiff", Unused),
    ("suppressOutputLineRegex", Unused),
    ("syncReleaseLabels", Unused),
    ("takeOwnership", Unused),
    ("timeout", Unused),
    ("trackFailOnError", Unused),
    ("trackFailedLogs", Unused),
    ("trackKinds", Unused),
    ("trackLogs", Unused),
    ("trackMode", Unused),
    ("trackResources", Unused),
    ("trackTimeout", Unused),
    ("transformers", Unused),
    ("unitTests", Unused),
    ("updateStrategy", Unused),
    ("values", Unused),
    ("valuesPathPrefix", Unused),
    ("valuesTemplate", Unused),
    ("verify", Unused),
    ("verifyTemplate", Unused),
    ("wait", Unused),
    ("waitForJobs", Unused),
    ("waitRetries", Unused),
    ("waitTemplate", Unused),
]);

/// What is read of its lock.
pub(crate) static HELMFILE_LOCK_KEYS: Shape = Map(&[
    ("version", Unused),
    ("dependencies", Items(&Map(&[("name", Text), ("repository", Text), ("version", Text)]))),
    ("digest", Unused),
    ("generated", Unused),
]);

/// What stands in the place of an action in a text: a character that no text of people has.
const ACTION: char = '\u{e000}';

/// Repositories of charts, by their names: the URL, and whether it is an OCI registry.
type Repositories = BTreeMap<String, (String, bool)>;

/// A chart in the lock: its name, the URL of its repository, and its version.
type LockedChart = [String; 3];

/// The releases in `text`, that of `file`, at what `lock` has, the text of its lock; and whether the file is a template.
///
/// # Errors
///
/// When the rest of the template is no YAML, or has a misspelt key.
pub fn list(file: &str, text: &str, lock: Option<&str>) -> Result<(List, bool), FormatError> {
    let (plain, origins) = without_actions(text);
    let (locked, unknown) = match lock {
        Some(lock) => read(&lock_of(file), lock, &HELMFILE_LOCK_KEYS, locked_charts)?,
        None => (Vec::new(), Vec::new()),
    };
    let (mut repositories, mut releases) = (Repositories::new(), Vec::new());
    let mut templates: BTreeMap<String, Release> = BTreeMap::new();
    let mut defaults: Vec<String> = Vec::new();
    let mut others: Vec<ListedDependency> = Vec::new();
    let mut own = read_documents(file, &plain, &HELMFILE_KEYS, &mut |root| {
        for node in root.list("repositories").unwrap_or_default() {
            let word = |key| node.text_for_people(key);
            if let (Some(name), Some(url)) = (word("name"), word("url")) {
                let is_oci = node.flag("oci").unwrap_or_default();
                repositories.insert(name, (url, is_oci));
            }
        }
        if let Some(Kind::Map(entries, _)) = root.written("templates").map(|node| &node.kind) {
            let read =
                |entry: &Entry<'_>| Some((entry.key.to_string(), release(&entry.value).ok()?));
            templates.extend(entries.iter().filter_map(read));
        }
        match root.written("defaultInherit").map(|node| &node.kind) {
            Some(Kind::List(names)) => {
                defaults.extend(names.iter().filter_map(|one| one.scalar()).map(str::to_owned));
            }
            Some(Kind::Scalar(name)) => defaults.push(name.trim().to_owned()),
            _ => {}
        }
        for key in ["helmfiles", "bases"] {
            for node in root.list(key).unwrap_or_default() {
                let path = node.scalar().map(str::to_owned).or_else(|| match key {
                    "helmfiles" => node.text_for_people("path"),
                    _ => None,
                });
                others.extend(path.map(|called| ListedDependency {
                    line: line_of(&plain, node),
                    meaning: Err(other_file(&called)),
                    called: shown(&called),
                }));
            }
        }
        for key in ["releases", "charts"] {
            for node in root.list(key).unwrap_or_default() {
                releases.push((line_of(&plain, node), release(node)));
            }
        }
    })
    .map_err(|error| {
        // It points into the text without its actions, and its reader has the file.
        let at = |offset: usize| origins.get(offset).copied().unwrap_or(text.len());
        let span = at(error.span.start)..at(error.span.end);
        let FormatError { reason, is_excess, .. } = error;
        FormatError::new(file, text, Fault { span, reason, is_excess })
    })?;
    let dependencies = releases.into_iter().map(|(line, read)| {
        // Two branches of a template can both set a key.
        let (called, read) = match read {
            Ok(release) => {
                let release = release.with_inherited(&templates, &defaults);
                (shown(&release.name), release.meaning(&repositories, &locked))
            }
            Err(fault) => ("a release".to_owned(), Err(fault.reason)),
        };
        ListedDependency { called, line, meaning: read }
    });
    let dependencies = dependencies.chain(others).collect();
    own.extend(unknown);
    Ok((List { dependencies, unknown: own }, plain != text))
}

fn locked_charts(root: &Node<'_>) -> Result<Vec<LockedChart>, Fault> {
    let word = |node: &Node<'_>, key: &str| -> Result<String, Fault> {
        Ok(node.text(key)?.map_or_else(String::new, |(text, _)| text.to_owned()))
    };
    let all = root.list("dependencies")?.iter();
    all.map(|node| Ok([word(node, "name")?, word(node, "repository")?, word(node, "version")?]))
        .collect()
}

/// A release, as far as it says what it installs.
struct Release {
    name: String,
    chart: String,
    version: String,
    is_installed: bool,
    /// The names of the templates that it has the rest from; a later one counts before the ones in front of it.
    inherits: Vec<String>,
}

fn release(node: &Node<'_>) -> Result<Release, Fault> {
    let word = |key: &str| -> Result<String, Fault> {
        Ok(node.text(key)?.map_or_else(String::new, |(text, _)| text.to_owned()))
    };
    let is_off = matches!(node.get("installed")?.map(|node| &node.kind), Some(Kind::Scalar(text)) if text == "false");
    let (name, chart) = (word("name")?, word("chart")?);
    let name = if name.is_empty() { chart.clone() } else { name };
    let inherits = node.list("inherit")?.iter();
    let inherits = inherits.filter_map(|one| one.text_for_people("template")).collect();
    Ok(Release { name, chart, version: word("version")?, is_installed: !is_off, inherits })
}

impl Release {
    /// With what it has from templates, where it says nothing itself: its own ones, and those that each release inherits from.
    fn with_inherited(mut self, templates: &BTreeMap<String, Self>, defaults: &[String]) -> Self {
        let names = self.inherits.iter().rev().chain(defaults.iter().rev());
        for template in names.filter_map(|name| templates.get(name)) {
            for (own, theirs) in
                [(&mut self.chart, &template.chart), (&mut self.version, &template.version)]
            {
                if own.is_empty() {
                    own.clone_from(theirs);
                }
            }
        }
        self
    }

    fn meaning(
        &self,
        repositories: &Repositories,
        locked: &[LockedChart],
    ) -> Result<Meaning, String> {
        for (what, text) in [("chart", &self.chart), ("version", &self.version)] {
            if text.contains(ACTION) {
                return Err(format!("its `{what}` is a template, which only helmfile fills in"));
            }
        }
        let chart = self.chart.as_str();
        if !self.is_installed {
            return Err("it is not installed (`installed: false`)".to_owned());
        }
        if chart.is_empty() {
            return Err("it has no `chart`".to_owned());
        }
        if chart.starts_with(['.', '/']) {
            return Err(
                "its chart is a folder of this repository, so there is nothing to fetch".to_owned()
            );
        }
        let chart = chart.trim_end_matches('/');
        let (repository, rest) = chart
            .split_once('/')
            .ok_or_else(|| format!("its chart `{chart}` is in no repository"))?;
        let mut pinned = Pinned { version: &self.version, digest: None };
        let place = if chart.starts_with("oci://") {
            pinned.in_registry(chart).to_owned()
        } else if chart.contains("://") || chart.contains("::") {
            return of_address(chart);
        } else {
            match repositories.get(repository) {
                Some((url, _)) if url.contains(ACTION) => {
                    return Err(format!(
                        "the `url` of the repository `{repository}` is a template"
                    ));
                }
                Some((url, true)) => {
                    let rest = pinned.in_registry(rest);
                    format!("oci://{}/{rest}", url.trim_end_matches('/'))
                }
                Some((url, false)) => format!("{}/{rest}", url.trim_end_matches('/')),
                None => return Err(format!("the file lists no repository `{repository}`")),
            }
        };
        let (url, name) = place.rsplit_once('/').unwrap_or((&place, ""));
        if let Some(digest) = pinned.digest {
            let meaning = Meaning::of_chart(url, name, None)?;
            return Meaning::parse(&format!("{}#{digest}", meaning.reference));
        }
        let range = Some(pinned.version).filter(|version| !version.is_empty());
        let meaning = Meaning::of_chart(url, name, range)?;
        // As helmfile does, of several versions the first one that the release accepts is its own.
        let spec = meaning.reference.spec();
        let is_it = |[chart, repository, version]: &&LockedChart| {
            let accepts = |version: Version| spec.accepts(&version, true);
            chart == name
                && repository.trim_end_matches('/') == url
                && (range.is_none() || Version::parse_lenient(version).is_ok_and(accepts))
        };
        let found = locked.iter().find(is_it);
        Ok(meaning.at(found.map(|[.., version]| InUse::Version(version.clone()))))
    }
}

/// What a release says of the version of its chart.
struct Pinned<'r> {
    version: &'r str,
    digest: Option<&'r str>,
}

impl<'r> Pinned<'r> {
    /// The address of a chart in an OCI registry, without the version and the digest that can be at its end: `chart:1.0.0@sha256:…`.
    /// As with helmfile, the version of the release counts before this one, and its digest, `1.0.0@sha256:…`, after it.
    fn in_registry(&mut self, chart: &'r str) -> &'r str {
        if let Some((version, digest)) = self.version.split_once('@') {
            *self = Self { version, digest: Some(digest) };
        }
        let (chart, digest) =
            chart.split_once('@').map_or((chart, None), |(chart, digest)| (chart, Some(digest)));
        self.digest = digest.or(self.digest);
        // What is in front of the last slash may have a port.
        let Some((chart, version)) =
            chart.rsplit_once(':').filter(|(_, version)| !version.contains('/'))
        else {
            return chart;
        };
        if self.version.is_empty() {
            self.version = version;
        }
        chart
    }
}

/// What a chart at an address of its own is: helmfile has a form of go-getter's, with `@` in front of the folder.
fn of_address(address: &str) -> Result<Meaning, String> {
    let source = match address.split_once("://") {
        Some((scheme, path)) if scheme.contains("git") => {
            format!("{scheme}://{}", path.replacen(".git@", ".git//", 1))
        }
        _ => address.to_owned(),
    };
    terraform::of_source(&source)
        .map_err(|_| "its chart is at an address that only helmfile follows".to_owned())
}

/// A text in a form that people can read: what an action makes of it is not known.
fn shown(text: &str) -> String {
    text.replace(ACTION, "{{…}}")
}

/// What to do about a file that this one names.
fn other_file(path: &str) -> String {
    if path.contains(ACTION) {
        return "it is another file, whose name only helmfile fills in".to_owned();
    }
    if path.contains("://") || path.contains("::") {
        return "it is a file elsewhere, which only helmfile fetches".to_owned();
    }
    match path.contains(['*', '?', '[']) {
        true => "these are other files: `mu import FILE` reads one of them".to_owned(),
        false => format!("it is another file: `mu import {path}` reads it"),
    }
}

/// The text without its actions, and where each of its bytes was. Its lines stay where they are.
fn without_actions(text: &str) -> (String, Vec<usize>) {
    let (mut plain, mut origins) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        // Without an end, it is none.
        let Some((action, behind)) = after.split_once("}}") else { break };
        let start = text.len() - rest.len();
        plain.push_str(before);
        origins.extend(start..start + before.len());
        let start = start + before.len();
        plain.push(ACTION);
        origins.extend([start; ACTION.len_utf8()]);
        for (at, line_end) in action.match_indices('\n') {
            plain.push_str(line_end);
            origins.push(start + "{{".len() + at);
        }
        rest = behind;
    }
    plain.push_str(rest);
    origins.extend(text.len() - rest.len()..text.len());
    let has_only_actions = |line: &str| {
        line.contains(ACTION) && line.chars().all(|one| one == ACTION || one.is_whitespace())
    };
    // Such a line becomes empty: spaces in it would count in a text of several lines.
    let (mut kept, mut places) = (String::with_capacity(plain.len()), Vec::new());
    let mut start = 0;
    for line in plain.split_inclusive('\n') {
        let left_out = match has_only_actions(line) {
            true => line.trim_end_matches('\n').len(),
            false => 0,
        };
        kept.push_str(&line[left_out..]);
        let end = start + line.len();
        places.extend(origins.iter().take(end).skip(start + left_out));
        start += line.len();
    }
    (kept, places)
}
