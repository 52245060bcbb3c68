//! `helmfile.yaml` with `helmfile.lock`: the charts that releases install.
//!
//! Such a file is a template of Go's, which only helmfile can fill in, with values of environments. It is read without its actions
//! (`{{ … }}`), once for each of its branches: every release counts, whatever decides about it, and what is filled in is a text that
//! is not known.

mod release;

use std::collections::{BTreeMap, BTreeSet};

use self::release::{HelmfileRelease, RELEASE, read_release};
use super::template::{FilledLine, MOST_WAYS, Plain, Template, has_actions, with_gaps};
use super::{FilesBeside, List, ListedDependency, line_of, read, read_documents};
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
    let mut keys = text.lines().filter_map(|line| line.split_once(':'));
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
    let own = Template::new(text);
    let mut is_template = own.has_actions();
    let mut found = List { unknown, ..List::default() };
    let (mut seen, mut unknown_keys) = (BTreeSet::new(), BTreeSet::new());
    let (mut way, mut ways) = (0, own.count_of_ways());
    while way < ways {
        if ways > MOST_WAYS {
            let reason = format!("its conditions have more than {MOST_WAYS} branches");
            return Err(FormatError::new(file, text, Fault::excess(0..0, reason)));
        }
        let mut contents = Contents::default();
        let plain = own.in_way(way);
        let unknown = contents.add(file, &plain, None).map_err(|error| {
            // It points into the text without its actions, and its reader has the file.
            let FormatError { reason, is_excess, span, .. } = error;
            let span = plain.in_template(&span);
            FormatError::new(file, text, Fault { span, reason, is_excess })
        })?;
        for (line, base) in std::mem::take(&mut contents.bases) {
            // A base has none itself, and what is wrong in it is not shown: it may be any file.
            let text = Some(&base).filter(|base| !has_actions(base));
            let read = text.and_then(|base| beside.text(base)).is_some_and(|text| {
                let template = Template::new(&text);
                is_template |= template.has_actions();
                ways = ways.max(template.count_of_ways());
                contents.add(&base, &template.in_way(way), Some(line)).is_ok()
            });
            if !read {
                contents.others.push((line, with_gaps(&base), other_file(&base)));
            }
        }
        // What two ways have in common is said once.
        let dependencies = contents.dependencies(&locked, beside);
        found.dependencies.extend(dependencies.filter(|one| {
            let meaning = match &one.meaning {
                Ok(meaning) => meaning.reference.to_string(),
                Err(reason) => reason.clone(),
            };
            seen.insert((one.line, one.called.clone(), meaning))
        }));
        found.unknown.extend(unknown.into_iter().filter(|key| unknown_keys.insert(key.clone())));
        way += 1;
    }
    Ok((found, is_template))
}

/// What stands in a file and in its bases.
#[derive(Default)]
struct Contents {
    repositories: Repositories,
    releases: Vec<(usize, Result<HelmfileRelease, Fault>)>,
    templates: BTreeMap<String, HelmfileRelease>,
    /// The names of the templates that each release inherits from.
    defaults: Vec<String>,
    /// The files that it names as a part of itself, and the lines that do.
    bases: Vec<(usize, String)>,
    /// What else it names, in which lines, and why it is nothing here: other helmfiles, and lists that cannot be read.
    others: Vec<(usize, String, String)>,
}

impl Contents {
    /// Adds what a file says; the lines of a base are those of the file that names it, `line`. Returns the keys that it should not have.
    fn add(
        &mut self,
        file: &str,
        plain: &Plain,
        line: Option<usize>,
    ) -> Result<Vec<String>, FormatError> {
        let text = &plain.text;
        // A document may lack any of the keys, and a key of the wrong kind is one that a template makes something else of.
        let at = |node: &Node<'_>| line.unwrap_or_else(|| line_of(text, node));
        for (own, list, filled) in lines_that_add(plain) {
            let reason = match &filled.file {
                Some(path) => other_file(path),
                None => "it is a template, which only helmfile fills in".to_owned(),
            };
            let called =
                list.map_or_else(|| "{{…}}".to_owned(), |list| format!("a part of `{list}`"));
            self.others.push((line.unwrap_or(own), called, reason));
        }
        read_documents(file, text, &HELMFILE_KEYS, &mut |root| {
            for node in self.list(plain, &root, "repositories", &at) {
                let word = |key| node.text_for_people(key);
                if let (Some(name), Some(url)) = (word("name"), word("url")) {
                    let is_oci = node.flag("oci").unwrap_or_default();
                    self.repositories.insert(with_gaps(&name), (url, is_oci));
                }
            }
            if let Some(Kind::Map(entries, _)) = root.written("templates").map(|node| &node.kind) {
                let read = |entry: &Entry<'_>| {
                    Some((entry.key.to_string(), read_release(&entry.value).ok()?))
                };
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
            for node in self.list(plain, &root, "helmfiles", &at) {
                let path = node.scalar().map(str::to_owned);
                let path = path.or_else(|| node.text_for_people("path"));
                let other = |path: String| (at(node), with_gaps(&path), other_file(&path));
                self.others.extend(path.map(other));
            }
            for node in self.list(plain, &root, "bases", &at) {
                self.bases.extend(node.scalar().map(|path| (at(node), path.to_owned())));
            }
            for key in ["releases", "charts"] {
                for node in self.list(plain, &root, key, &at) {
                    self.releases.push((at(node), read_release(node)));
                }
            }
        })
    }

    /// The list that a key has. If it is none, or stands there twice, that is said: nothing of it counts.
    fn list<'n, 't>(
        &mut self,
        plain: &Plain,
        root: &'n Node<'t>,
        key: &str,
        at: &dyn Fn(&Node<'_>) -> usize,
    ) -> &'n [Node<'t>] {
        let entry = match &root.kind {
            Kind::Map(entries, _) => entries.iter().rfind(|entry| entry.key == key),
            _ => None,
        };
        let is_template = entry.is_some_and(|entry| match &entry.value.kind {
            Kind::Scalar(text) => has_actions(text),
            Kind::Null => plain.is_filled_below(entry.span.start),
            _ => false,
        });
        let reason = match root.list(key) {
            _ if is_template => "it is a template, which only helmfile fills in".to_owned(),
            Ok(list) => return list,
            Err(fault) => fault.reason,
        };
        let line = entry.map(|entry| Node { span: entry.span.clone(), kind: Kind::Null });
        let line = line.as_ref().map_or(0, at);
        self.others.push((line, format!("`{key}`"), reason));
        &[]
    }

    /// What all of it means.
    fn dependencies(
        self,
        locked: &[LockedChart],
        beside: &dyn FilesBeside,
    ) -> impl Iterator<Item = ListedDependency> {
        let Self { repositories, releases, templates, defaults, others, .. } = self;
        let releases = releases.into_iter().flat_map(move |(line, read)| {
            let listed = |called: &str, meaning| ListedDependency {
                called: with_gaps(called),
                line,
                meaning,
            };
            // Two conditions can both set a key.
            let release = match read {
                Ok(release) => release.with_inherited(&templates, &defaults),
                Err(fault) => return vec![listed("a release", Err(fault.reason))],
            };
            let charts = release.charts(&repositories, locked, beside).into_iter();
            charts.map(|(called, meaning)| listed(&called, meaning)).collect()
        });
        let other =
            |(line, called, reason)| ListedDependency { line, called, meaning: Err(reason) };
        releases.chain(others.into_iter().map(other))
    }
}

/// The filled lines that may add more than a part of what stands around them, each with its number and the list that it adds to; `None`
/// if it may be any key of the file. Takes each line of the text once.
fn lines_that_add(plain: &Plain) -> Vec<(usize, Option<&str>, &FilledLine)> {
    const LISTS: [&str; 5] = ["repositories", "releases", "charts", "helmfiles", "bases"];
    let mut found = Vec::new();
    let mut filled = plain.filled.iter().peekable();
    // The list around a line, how far its items are indented, and whether the line above is a key without a value.
    let (mut list, mut items, mut is_below_key) = (None, None, false);
    // Filled lines below the key of a list: they add to it if items follow, and are all of it otherwise.
    let mut first: Vec<(usize, &FilledLine)> = Vec::new();
    let mut at = 0;
    // What is filled can be behind the last end of a line.
    for (number, line) in plain.text.split_inclusive('\n').chain([""]).enumerate() {
        let said = line.trim();
        let is_item = said.starts_with('-');
        if let Some(filled) = filled.next_if(|filled| filled.at <= at) {
            match (is_below_key, list, items) {
                (true, Some(_), None) => first.push((number + 1, filled)),
                (true, ..) => {}
                (false, Some(list), Some(most)) if filled.indentation <= most => {
                    found.push((number + 1, Some(list), filled));
                }
                (false, Some(_), Some(_)) => {}
                (false, ..) if filled.indentation == 0 => found.push((number + 1, None, filled)),
                (false, ..) => {}
            }
        } else if line.starts_with("---") {
            (list, items, is_below_key) = (None, None, false);
        } else if !said.is_empty() && !said.starts_with('#') {
            let first = std::mem::take(&mut first).into_iter();
            found.extend(first.filter(|_| is_item).map(|(line, filled)| (line, list, filled)));
            if !line.starts_with([' ', '\t', '-']) {
                let key = line.split_once(':').map(|(key, _)| key.trim());
                (list, items) = (key.filter(|key| LISTS.contains(key)), None);
            } else if is_item && items.is_none() {
                items = Some(line.len() - line.trim_start().len());
            }
            is_below_key = said.ends_with(':');
        }
        at += line.len();
    }
    found
}

fn locked_charts(root: &Node<'_>) -> Result<Vec<LockedChart>, Fault> {
    let word = |node: &Node<'_>, key: &str| -> Result<String, Fault> {
        Ok(node.text(key)?.map_or_else(String::new, |(text, _)| text.to_owned()))
    };
    let all = root.list("dependencies")?.iter();
    all.map(|node| Ok([word(node, "name")?, word(node, "repository")?, word(node, "version")?]))
        .collect()
}

/// What to do about a file that this one names.
fn other_file(path: &str) -> String {
    if has_actions(path) {
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
