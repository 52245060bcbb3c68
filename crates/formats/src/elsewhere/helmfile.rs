//! `helmfile.yaml` with `helmfile.lock`: the charts that releases install.
//!
//! Such a file is a template of Go's, which only helmfile can fill in, with values of environments. Its actions (`{{ … }}`) are taken out
//! before it is read as YAML: one that stands alone in its lines decides or repeats, so every release below it counts; what has one in it
//! is a text that is not known.

use std::collections::BTreeMap;

use mu_manifest::reference::Version;

use super::{InUse, List, ListedDependency, Meaning, line_of, read, read_documents};
use crate::error::{Fault, FormatError};
use crate::node::{Kind, Node};
use crate::shape::Shape::{self, List as Items, Map, Text, Unused};

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
    ("environments", Unused),
    ("filepath", Unused),
    ("helmBinary", Unused),
    ("helmDefaults", Unused),
    ("hooks", Unused),
    ("kubeContext", Unused),
    ("kubeVersion", Unused),
    ("kustomizeBinary", Unused),
    ("lockFilePath", Unused),
    ("missingFileHandler", Unused),
    ("missingFileHandlerConfig", Unused),
    ("namespace", Unused),
    ("renderedvalues", Unused),
    ("templates", Unused),
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
    ("createNamespace", Unused),
    ("dependencies", Unused),
    ("devel", Unused),
    ("directory", Unused),
    ("disableOpenAPIValidation", Unused),
    ("disableValidation", Unused),
    ("disableValidationOnInstall", Unused),
    ("enableDNS", Unused),
    ("env", Unused),
    ("force", Unused),
    ("forceGoGetter", Unused),
    ("forceNamespace", Unused),
    ("historyMax", Unused),
    ("hooks", Unused),
    ("inherit", Unused),
    ("insecureSkipTLSVerify", Unused),
    ("installedTemplate", Unused),
    ("jsonPatches", Unused),
    ("keyring", Unused),
    ("kubeContext", Unused),
    ("kubeVersion", Unused),
    ("labels", Unused),
    ("missingFileHandler", Unused),
    ("namespace", Unused),
    ("needs", Unused),
    ("postRenderer", Unused),
    ("postRendererArgs", Unused),
    ("recreatePods", Unused),
    ("reuseValues", Unused),
    ("secrets", Unused),
    ("set", Unused),
    ("setString", Unused),
    ("setTemplate", Unused),
    ("skipDeps", Unused),
    ("strategicMergePatches", Unused),
    ("suppressDiff", Unused),
    ("timeout", Unused),
    ("transformers", Unused),
    ("values", Unused),
    ("valuesPathPrefix", Unused),
    ("valuesTemplate", Unused),
    ("verify", Unused),
    ("verifyTemplate", Unused),
    ("wait", Unused),
    ("waitForJobs", Unused),
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
    let plain = without_actions(text);
    let (locked, unknown) = match lock {
        Some(lock) => read(&lock_of(file), lock, &HELMFILE_LOCK_KEYS, locked_charts)?,
        None => (Vec::new(), Vec::new()),
    };
    let (mut repositories, mut releases) = (Repositories::new(), Vec::new());
    let mut others: Vec<ListedDependency> = Vec::new();
    let mut own = read_documents(file, &plain, &HELMFILE_KEYS, &mut |root| {
        for node in root.list("repositories").unwrap_or_default() {
            let word = |key| node.text_for_people(key);
            if let (Some(name), Some(url)) = (word("name"), word("url")) {
                let is_oci = node.flag("oci").unwrap_or_default();
                repositories.insert(name, (url, is_oci));
            }
        }
        for key in ["helmfiles", "bases"] {
            for node in root.list(key).unwrap_or_default() {
                let path = node.scalar().map(str::to_owned).or_else(|| match key {
                    "helmfiles" => node.text_for_people("path"),
                    _ => None,
                });
                others.extend(path.map(|called| ListedDependency {
                    line: line_of(&plain, node),
                    meaning: Err(format!("it is another file: `mu import {called}` reads it")),
                    called,
                }));
            }
        }
        for key in ["releases", "charts"] {
            for node in root.list(key).unwrap_or_default() {
                releases.push((line_of(&plain, node), release(node)));
            }
        }
    })?;
    let dependencies = releases.into_iter().map(|(line, read)| {
        // Two branches of a template can both set a key.
        let (called, read) = match read {
            Ok(release) => (release.name.clone(), release.meaning(&repositories, &locked)),
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
}

fn release(node: &Node<'_>) -> Result<Release, Fault> {
    let word = |key: &str| -> Result<String, Fault> {
        Ok(node.text(key)?.map_or_else(String::new, |(text, _)| text.to_owned()))
    };
    let is_off = matches!(node.get("installed")?.map(|node| &node.kind), Some(Kind::Scalar(text)) if text == "false");
    let (name, chart) = (word("name")?, word("chart")?);
    let name = if name.is_empty() { chart.clone() } else { name };
    Ok(Release { name, chart, version: word("version")?, is_installed: !is_off })
}

impl Release {
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
        let range = Some(self.version.as_str()).filter(|version| !version.is_empty());
        if chart.starts_with(['.', '/']) {
            return Err(
                "its chart is a folder of this repository, so there is nothing to fetch".to_owned()
            );
        }
        let chart = chart.trim_end_matches('/');
        let (repository, rest) = chart
            .split_once('/')
            .ok_or_else(|| format!("its chart `{chart}` is in no repository"))?;
        let place = if chart.starts_with("oci://") {
            chart.to_owned()
        } else if chart.contains("://") || chart.contains("::") {
            return Err(
                "its chart is an address of go-getter, which only helmfile follows".to_owned()
            );
        } else {
            match repositories.get(repository) {
                Some((url, _)) if url.contains(ACTION) => {
                    return Err(format!(
                        "the `url` of the repository `{repository}` is a template"
                    ));
                }
                Some((url, true)) => format!("oci://{}/{rest}", url.trim_end_matches('/')),
                Some((url, false)) => format!("{}/{rest}", url.trim_end_matches('/')),
                None => return Err(format!("the file lists no repository `{repository}`")),
            }
        };
        let (url, name) = place.rsplit_once('/').unwrap_or((&place, ""));
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

/// The text without its actions. Its lines stay where they are.
fn without_actions(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        // Without an end, it is none.
        let Some((action, behind)) = after.split_once("}}") else { break };
        plain.push_str(before);
        plain.push(ACTION);
        plain.extend(action.matches('\n'));
        rest = behind;
    }
    plain.push_str(rest);
    let has_only_actions = |line: &str| {
        line.contains(ACTION) && line.chars().all(|one| one == ACTION || one.is_whitespace())
    };
    let lines = plain.split('\n').map(|line| if has_only_actions(line) { "" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}
