//! `helmfile.yaml` with `helmfile.lock`: the charts that releases install.
//!
//! Such a file is a template of Go's, which only helmfile can fill in, with values of environments. Its actions (`{{ … }}`) are taken out
//! before it is read as YAML: one that stands alone in its lines decides or repeats, so every release below it counts; what has one in it
//! is a text that is not known.

use std::collections::BTreeMap;

use mu_manifest::reference::Version;

use super::{
    ACTION, FilesBeside, InUse, List, ListedDependency, Meaning, line_of, read, read_documents,
    shown, terraform, without_actions,
};
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
    ("directory", Text),
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
    ("inherit", Items(&Map(&[("template", Text), ("except", TEXTS)]))),
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

/// Repositories of charts, by their names: the URL, and whether it is an OCI registry.
type Repositories = BTreeMap<String, (String, bool)>;

/// A chart in the lock: its name, the URL of its repository, and its version.
type LockedChart = [String; 3];

/// Whether a text is such a file, and not another one of YAML: it has a key that says what is installed, or from where.
pub fn looks_like_helmfile(text: &str) -> bool {
    const KEYS: [&str; 6] =
        ["charts", "environments", "helmfiles", "releases", "repositories", "templates"];
    let (plain, _) = without_actions(text);
    let mut keys = plain.lines().filter_map(|line| line.split_once(':'));
    keys.any(|(key, _)| KEYS.contains(&key.trim_matches(['"', '\''])))
}

/// The releases in `text`, that of `file`, at what `lock` has, the text of its lock; and whether the file is a template. What is
/// in the files that it names as its `bases` counts as if it stood in this one.
///
/// # Errors
///
/// When the rest of the template is no YAML, or has a misspelt key.
pub fn list(
    file: &str,
    text: &str,
    lock: Option<&str>,
    beside: &dyn FilesBeside,
) -> Result<(List, bool), FormatError> {
    let (locked, unknown) = match lock {
        Some(lock) => read(&lock_of(file), lock, &HELMFILE_LOCK_KEYS, locked_charts)?,
        None => (Vec::new(), Vec::new()),
    };
    let mut contents = Contents::default();
    let mut own = contents.add(file, text, None)?;
    let mut is_template = text.contains("{{");
    for (line, base) in std::mem::take(&mut contents.bases) {
        // A base has none itself, and what is wrong in it is not shown: it may be any file.
        let read = beside.text(&base).is_some_and(|text| {
            is_template |= text.contains("{{");
            contents.add(&base, &text, Some(line)).is_ok()
        });
        if !read {
            contents.others.push((line, base));
        }
    }
    let Contents { repositories, releases, templates, defaults, others, .. } = contents;
    let dependencies = releases.into_iter().map(|(line, read)| {
        // Two branches of a template can both set a key.
        let (called, read) = match read {
            Ok(release) => {
                let release = release.with_inherited(&templates, &defaults);
                (shown(&release.name), release.meaning(&repositories, &locked, beside))
            }
            Err(fault) => ("a release".to_owned(), Err(fault.reason)),
        };
        ListedDependency { called, line, meaning: read }
    });
    let others = others.into_iter().map(|(line, called)| ListedDependency {
        line,
        meaning: Err(other_file(&called)),
        called: shown(&called),
    });
    let dependencies = dependencies.chain(others).collect();
    own.extend(unknown);
    Ok((List { dependencies, unknown: own }, is_template))
}

/// What stands in a file and in its bases.
#[derive(Default)]
struct Contents {
    repositories: Repositories,
    releases: Vec<(usize, Result<Release, Fault>)>,
    templates: BTreeMap<String, Release>,
    /// The names of the templates that each release inherits from.
    defaults: Vec<String>,
    /// The files that it names as a part of itself, and the lines that do.
    bases: Vec<(usize, String)>,
    /// Other helmfiles.
    others: Vec<(usize, String)>,
}

impl Contents {
    /// Adds what a file says; the lines of a base are those of the file that names it, `line`. Returns the keys that it should not have.
    fn add(
        &mut self,
        file: &str,
        text: &str,
        line: Option<usize>,
    ) -> Result<Vec<String>, FormatError> {
        let (plain, origins) = without_actions(text);
        // A document may lack any of the keys, and a key of the wrong kind is one that a template makes something else of.
        let at = |node: &Node<'_>| line.unwrap_or_else(|| line_of(&plain, node));
        read_documents(file, &plain, &HELMFILE_KEYS, &mut |root| {
            for node in root.list("repositories").unwrap_or_default() {
                let word = |key| node.text_for_people(key);
                if let (Some(name), Some(url)) = (word("name"), word("url")) {
                    let is_oci = node.flag("oci").unwrap_or_default();
                    self.repositories.insert(name, (url, is_oci));
                }
            }
            if let Some(Kind::Map(entries, _)) = root.written("templates").map(|node| &node.kind) {
                let read =
                    |entry: &Entry<'_>| Some((entry.key.to_string(), release(&entry.value).ok()?));
                self.templates.extend(entries.iter().filter_map(read));
            }
            match root.written("defaultInherit").map(|node| &node.kind) {
                Some(Kind::List(names)) => {
                    let names = names.iter().filter_map(|one| one.scalar());
                    self.defaults.extend(names.map(str::to_owned));
                }
                Some(Kind::Scalar(name)) => self.defaults.push(name.trim().to_owned()),
                _ => {}
            }
            for node in root.list("helmfiles").unwrap_or_default() {
                let path = node.scalar().map(str::to_owned);
                let path = path.or_else(|| node.text_for_people("path"));
                self.others.extend(path.map(|path| (at(node), path)));
            }
            for node in root.list("bases").unwrap_or_default() {
                self.bases.extend(node.scalar().map(|path| (at(node), path.to_owned())));
            }
            for key in ["releases", "charts"] {
                for node in root.list(key).unwrap_or_default() {
                    self.releases.push((at(node), release(node)));
                }
            }
        })
        .map_err(|error| {
            // It points into the text without its actions, and its reader has the file.
            let at = |offset: usize| origins.get(offset).copied().unwrap_or(text.len());
            let span = at(error.span.start)..at(error.span.end);
            let FormatError { reason, is_excess, .. } = error;
            FormatError::new(file, text, Fault { span, reason, is_excess })
        })
    }
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
#[derive(Clone)]
struct Release {
    name: String,
    chart: String,
    version: String,
    /// `false`, if it is not to be there.
    installed: String,
    inherits: Vec<Inherit>,
}

/// The name of a template that a release, or another template, has the rest from; a later one counts before the ones in front of it.
#[derive(Clone)]
struct Inherit {
    template: String,
    /// The keys that it has not from there.
    except: Vec<String>,
}

fn release(node: &Node<'_>) -> Result<Release, Fault> {
    let word = |key: &str| -> Result<String, Fault> {
        Ok(node.text(key)?.map_or_else(String::new, |(text, _)| text.to_owned()))
    };
    let installed = match node.get("installed")?.map(|node| &node.kind) {
        Some(Kind::Scalar(text)) => text.to_string(),
        _ => String::new(),
    };
    let (name, chart) = (word("name")?, word("chart")?);
    // Another name of the same key.
    let chart = if chart.is_empty() { word("directory")? } else { chart };
    let name = if name.is_empty() { chart.clone() } else { name };
    let inherit = |one: &Node<'_>| {
        let template = one.text_for_people("template")?;
        let except = one.list("except").unwrap_or_default().iter();
        Some(Inherit {
            template,
            except: except.filter_map(|key| key.scalar()).map(str::to_owned).collect(),
        })
    };
    let inherits = node.list("inherit")?.iter().filter_map(inherit).collect();
    Ok(Release { name, chart, version: word("version")?, installed, inherits })
}

impl Release {
    /// With what it has from templates, where it says nothing itself: its own ones, and those that each release inherits from.
    fn with_inherited(mut self, templates: &BTreeMap<String, Self>, defaults: &[String]) -> Self {
        let default = |name: &String| Inherit { template: name.clone(), except: Vec::new() };
        let mut inherits: Vec<Inherit> = defaults.iter().map(default).collect();
        inherits.append(&mut self.inherits);
        self.fill(&inherits, templates, &mut Vec::new());
        self
    }

    /// Fills what it says nothing of. Ends: `above` has the templates on the way, and none of them counts again.
    fn fill<'t>(
        &mut self,
        inherits: &'t [Inherit],
        templates: &'t BTreeMap<String, Self>,
        above: &mut Vec<&'t str>,
    ) {
        for Inherit { template, except } in inherits.iter().rev() {
            let Some(found) = templates.get(template).filter(|_| !above.contains(&&**template))
            else {
                continue;
            };
            let mut whole = found.clone();
            above.push(template);
            whole.fill(&found.inherits, templates, above);
            above.pop();
            for (key, own, theirs) in [
                ("chart", &mut self.chart, whole.chart),
                ("version", &mut self.version, whole.version),
                ("installed", &mut self.installed, whole.installed),
            ] {
                if own.is_empty() && !except.iter().any(|one| one == key) {
                    *own = theirs;
                }
            }
        }
    }

    fn meaning(
        &self,
        repositories: &Repositories,
        locked: &[LockedChart],
        beside: &dyn FilesBeside,
    ) -> Result<Meaning, String> {
        for (what, text) in [("chart", &self.chart), ("version", &self.version)] {
            if text.contains(ACTION) {
                return Err(format!("its `{what}` is a template, which only helmfile fills in"));
            }
        }
        let chart = self.chart.as_str();
        if self.installed == "false" {
            return Err("it is not installed (`installed: false`)".to_owned());
        }
        if chart.is_empty() {
            return Err("it has no `chart`".to_owned());
        }
        let of_folder =
            || "its chart is a folder of this repository, so there is nothing to fetch".to_owned();
        if chart.starts_with(['.', '/']) {
            return Err(of_folder());
        }
        let chart = chart.trim_end_matches('/');
        let (repository, rest) =
            chart.split_once('/').ok_or_else(|| match beside.has_folder(chart) {
                true => of_folder(),
                false => format!("its chart `{chart}` is in no repository"),
            })?;
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
                    let place = url.strip_prefix("oci://").unwrap_or(url);
                    format!("oci://{}/{rest}", place.trim_end_matches('/'))
                }
                Some((url, false)) => format!("{}/{rest}", url.trim_end_matches('/')),
                None if beside.has_folder(chart) => return Err(of_folder()),
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
