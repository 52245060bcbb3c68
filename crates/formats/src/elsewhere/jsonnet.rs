//! `jsonnetfile.json` with `jsonnetfile.lock.json`, the libraries that jsonnet-bundler copies into `vendor`.
//!
//! Its lock has all libraries, also those that others need. mu cannot know what a library needs, as nothing in it says so to mu; so
//! each of them is listed, and those that the lock alone names are at their commits.

use super::{InUse, List, ListedDependency, Meaning, line_of, read};
use crate::node::{Fault, FormatError, Node};
use crate::shape::Shape::{self, List as Items, Map, Text, Unused};

/// The file.
pub const JSONNET_FILE: &str = "jsonnetfile.json";

/// Its lock.
pub const JSONNET_LOCK: &str = "jsonnetfile.lock.json";

/// What is read of both files.
pub(crate) static JSONNET_KEYS: Shape = Map(&[
    ("version", Unused),
    (
        "dependencies",
        Items(&Map(&[
            (
                "source",
                Map(&[
                    ("git", Map(&[("remote", Text), ("subdir", Text)])),
                    ("local", Map(&[("directory", Text)])),
                    ("oci", Unused),
                ]),
            ),
            ("version", Text),
            ("sum", Unused),
            ("name", Unused),
            ("single", Unused),
        ])),
    ),
    ("legacyImports", Unused),
]);

/// A library.
#[derive(Debug)]
struct Library {
    /// The URL of its repository; empty if it is none.
    remote: String,
    folder: String,
    version: String,
    line: usize,
}

impl Library {
    fn of_node(text: &str, node: &Node<'_>) -> Result<Self, Fault> {
        let said = |node: &Node<'_>, key: &str| -> Result<String, Fault> {
            Ok(node.text(key)?.map_or_else(String::new, |(text, _)| text.to_owned()))
        };
        let source = node.get("source")?;
        let git = source.map(|source| source.get("git")).transpose()?.flatten();
        let local = source.map(|source| source.get("local")).transpose()?.flatten();
        let (remote, folder) = match (git, local) {
            (Some(git), _) => (said(git, "remote")?, said(git, "subdir")?),
            (None, Some(local)) => (String::new(), said(local, "directory")?),
            (None, None) => (String::new(), String::new()),
        };
        let folder = folder.trim_matches('/').to_owned();
        Ok(Self { remote, folder, version: said(node, "version")?, line: line_of(text, node) })
    }

    /// Where it is, without the way there.
    fn place(&self) -> String {
        let place = match self.remote.split_once("://") {
            Some((_, place)) => place.to_owned(),
            // `git@host:path`
            None => self.remote.replacen(':', "/", 1),
        };
        let place = place.strip_prefix("git@").unwrap_or(&place);
        let place = place.trim_end_matches('/').trim_end_matches(".git");
        let parts = [place, &self.folder].into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("/")
    }

    fn meaning(&self, version: &str) -> Result<Meaning, String> {
        if self.remote.is_empty() {
            return Err(match self.folder.is_empty() {
                true => "it is in no Git repository and no folder".to_owned(),
                false => {
                    "it is a folder of this repository, so there is nothing to fetch".to_owned()
                }
            });
        }
        match version.is_empty() {
            true => Meaning::of_git(&self.remote, &self.folder, None),
            false => Meaning::of_git_name(&self.remote, &self.folder, version),
        }
    }
}

/// The libraries in `text`, that of `jsonnetfile.json`, at what `lock` has, the text of its lock; then those that the lock alone has.
///
/// # Errors
///
/// When one of them cannot be read.
pub fn list(text: &str, lock: Option<&str>) -> Result<List, FormatError> {
    let libraries = |file: &str, text: &str| {
        read(file, text, &JSONNET_KEYS, |root| {
            let all = root.list("dependencies")?.iter();
            all.map(|node| Library::of_node(text, node)).collect::<Result<Vec<_>, Fault>>()
        })
    };
    let (own, mut unknown) = libraries(JSONNET_FILE, text)?;
    let (mut locked, more) = match lock {
        Some(lock) => libraries(JSONNET_LOCK, lock)?,
        None => (Vec::new(), Vec::new()),
    };
    unknown.extend(more);
    let mut dependencies = Vec::new();
    for library in &own {
        let place = library.place();
        let found = locked.iter().position(|other| other.place() == place);
        let found = found.map(|at| locked.remove(at).version).filter(|commit| !commit.is_empty());
        let meaning = library.meaning(&library.version);
        let meaning = meaning.map(|meaning| meaning.at(found.map(InUse::Commit)));
        let line = library.line;
        dependencies.push(ListedDependency { called: called(library), line, meaning });
    }
    dependencies.extend(locked.iter().map(|library| {
        let meaning = library.meaning(&library.version);
        let commit = Some(library.version.clone()).filter(|commit| !commit.is_empty());
        let meaning = meaning.map(|meaning| meaning.at(commit.map(InUse::Commit)));
        ListedDependency { called: called(library), line: 0, meaning }
    }));
    Ok(List { dependencies, unknown })
}

/// What a library is called in a list.
fn called(library: &Library) -> String {
    let place = library.place();
    let place = mu_provider::without_secrets(&place).into_owned();
    if place.is_empty() { "a library without a source".to_owned() } else { place }
}
