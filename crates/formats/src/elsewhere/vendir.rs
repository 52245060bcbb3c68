//! `vendir.yml` with `vendir.lock.yml`: which files of others belong into which folders, and the commits and versions that they are at.
//!
//! A folder of vendir is a part of a repository, an archive or a chart; a package is all of it. So the filters (`includePaths`) are left
//! out, and said.

use super::{InUse, List, ListedDependency, Meaning, line_of, range_of, read, read_documents};
use crate::node::{Fault, FormatError, Node};
use crate::shape::Shape::{self, Each, List as Items, Map, Text, Unused};
use crate::shape::TEXTS;

/// The file.
pub const VENDIR_FILE: &str = "vendir.yml";

/// Its lock.
pub const VENDIR_LOCK: &str = "vendir.lock.yml";

/// How a tag is chosen.
const SELECTION: Shape = Map(&[(
    "semver",
    Map(&[("constraints", Text), ("prereleases", Map(&[("identifiers", TEXTS)]))]),
)]);

/// The name of a secret.
const SECRET: Shape = Map(&[("name", Unused)]);

/// What is read of the file.
pub(crate) static VENDIR_KEYS: Shape = Map(&[
    ("apiVersion", Unused),
    ("kind", Unused),
    ("minimumRequiredVersion", Unused),
    // Of secrets and other resources, which may stand in the same file.
    ("metadata", Unused),
    ("data", Unused),
    ("stringData", Unused),
    ("type", Unused),
    (
        "directories",
        Items(&Map(&[("path", Text), ("permissions", Unused), ("contents", Items(&CONTENTS))])),
    ),
]);

/// What is put into one folder.
const CONTENTS: Shape = Map(&[
    ("path", Text),
    ("lazy", Unused),
    ("permissions", Unused),
    ("includePaths", TEXTS),
    ("excludePaths", TEXTS),
    ("ignorePaths", TEXTS),
    ("legalPaths", Unused),
    ("newRootPath", Text),
    (
        "git",
        Map(&[
            ("url", Text),
            ("ref", Text),
            ("refSelection", SELECTION),
            ("depth", Unused),
            ("lfsSkipSmudge", Unused),
            ("skipSslVerification", Unused),
            ("dangerousSkipTLSVerify", Unused),
            ("skipInitSubmodules", Unused),
            ("forceHTTPBasicAuth", Unused),
            ("verification", Map(&[("publicKeysSecretRef", SECRET)])),
            ("secretRef", SECRET),
        ]),
    ),
    (
        "hg",
        Map(&[
            ("url", Unused),
            ("ref", Unused),
            ("secretRef", SECRET),
            ("evolve", Unused),
            ("verification", Unused),
        ]),
    ),
    (
        "http",
        Map(&[("url", Text), ("sha256", Text), ("secretRef", SECRET), ("disableUnpack", Text)]),
    ),
    (
        "image",
        Map(&[
            ("url", Unused),
            ("tagSelection", SELECTION),
            ("secretRef", SECRET),
            ("responseHeaderTimeout", Unused),
            ("dangerousSkipTLSVerify", Unused),
            ("dangerouSkipTLSVerify", Unused),
        ]),
    ),
    (
        "imgpkgBundle",
        Map(&[
            ("image", Unused),
            ("tagSelection", SELECTION),
            ("secretRef", SECRET),
            ("responseHeaderTimeout", Unused),
            ("dangerousSkipTLSVerify", Unused),
            ("dangerouSkipTLSVerify", Unused),
            ("recursive", Unused),
        ]),
    ),
    (
        "githubRelease",
        Map(&[
            ("slug", Text),
            ("tag", Text),
            ("tagSelection", SELECTION),
            ("latest", Unused),
            ("url", Unused),
            ("assetNames", TEXTS),
            ("checksums", Each(&Text)),
            ("disableAutoChecksumValidation", Unused),
            ("unpackArchive", Map(&[("path", Text)])),
            ("secretRef", SECRET),
            ("http", Unused),
        ]),
    ),
    (
        "helmChart",
        Map(&[
            ("name", Text),
            ("version", Text),
            ("repository", Map(&[("url", Text), ("secretRef", SECRET)])),
            ("helmVersion", Unused),
        ]),
    ),
    ("manual", Map(&[])),
    ("directory", Map(&[("path", Text)])),
    ("inline", Map(&[("paths", Unused), ("pathsFrom", Unused)])),
]);

/// What is read of its lock.
pub(crate) static VENDIR_LOCK_KEYS: Shape = Map(&[
    ("apiVersion", Unused),
    ("kind", Unused),
    (
        "directories",
        Items(&Map(&[
            ("path", Text),
            (
                "contents",
                Items(&Map(&[
                    ("path", Text),
                    ("configDigest", Unused),
                    ("git", Map(&[("sha", Text), ("tags", Unused), ("commitTitle", Unused)])),
                    ("helmChart", Map(&[("version", Text), ("appVersion", Unused)])),
                    ("hg", Unused),
                    ("http", Unused),
                    ("image", Unused),
                    ("imgpkgBundle", Unused),
                    ("githubRelease", Unused),
                    ("manual", Unused),
                    ("directory", Unused),
                    ("inline", Unused),
                ])),
            ),
        ])),
    ),
]);

/// What the lock has: the paths of a folder and of what is in it, and what is in use there.
type Locked = Vec<([String; 2], InUse)>;

/// Whether a text is such a file, whatever it is called.
pub fn looks_like_vendir(text: &str) -> bool {
    text.contains("vendir.k14s.io/")
}

/// The dependencies in `text`, that of `file`, at what `lock` has, the text of its lock. Each of its documents may list some, as
/// others are the secrets that they need.
///
/// # Errors
///
/// When one of them cannot be read.
pub fn list(file: &str, text: &str, lock: Option<&str>) -> Result<List, FormatError> {
    let (locked, unknown) = match lock {
        Some(lock) => read(VENDIR_LOCK, lock, &VENDIR_LOCK_KEYS, locked)?,
        None => (Locked::new(), Vec::new()),
    };
    let mut dependencies = Ok(Vec::new());
    let mut own = read_documents(file, text, &VENDIR_KEYS, &mut |root| {
        if let Ok(all) = &mut dependencies
            && let Err(fault) = add(all, text, &root, &locked)
        {
            dependencies = Err(FormatError::new(file, text, fault));
        }
    })?;
    own.extend(unknown);
    Ok(List { dependencies: dependencies?, unknown: own })
}

/// Adds what a document lists.
fn add(
    all: &mut Vec<ListedDependency>,
    text: &str,
    root: &Node<'_>,
    locked: &Locked,
) -> Result<(), Fault> {
    if !root.is_map() {
        return Err(root.fault("expected keys and values"));
    }
    for directory in root.list("directories")? {
        let above = said(directory, "path")?;
        for contents in directory.list("contents")? {
            let path = said(contents, "path")?;
            let place = [above, path].map(clean);
            let in_use = locked.iter().find(|(at, _)| *at == place);
            let in_use = in_use.map(|(_, in_use)| in_use.clone());
            let called = match path {
                "." | "" => above.to_owned(),
                path => format!("{}/{path}", above.trim_end_matches('/')),
            };
            let line = line_of(text, contents);
            all.push(ListedDependency { called, line, meaning: meaning(contents, in_use)? });
        }
    }
    Ok(())
}

/// The text of a key; empty without one.
fn said<'n>(node: &'n Node<'_>, key: &str) -> Result<&'n str, Fault> {
    Ok(node.text(key)?.map_or("", |(text, _)| text))
}

/// A path without what leads nowhere: vendir writes such ones into its lock, as Go's `filepath.Clean` makes them.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match (part, parts.last()) {
            ("..", Some(last)) if *last != ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    if path.starts_with('/') { format!("/{}", parts.join("/")) } else { parts.join("/") }
}

fn locked(root: &Node<'_>) -> Result<Locked, Fault> {
    let mut all = Vec::new();
    for directory in root.list("directories")? {
        for contents in directory.list("contents")? {
            let place = [said(directory, "path")?, said(contents, "path")?].map(clean);
            let word = |what: &str, key: &str| -> Result<Option<String>, Fault> {
                let Some(node) = contents.get(what)? else { return Ok(None) };
                Ok(node.text(key)?.map(|(text, _)| text.to_owned()))
            };
            let commit = word("git", "sha")?.map(InUse::Commit);
            let version = word("helmChart", "version")?.map(InUse::Version);
            all.extend(commit.or(version).map(|in_use| (place, in_use)));
        }
    }
    Ok(all)
}

/// What one folder is for mu; `in_use` is what the lock has for it.
fn meaning(contents: &Node<'_>, in_use: Option<InUse>) -> Result<Result<Meaning, String>, Fault> {
    let mut left_out = Vec::new();
    for key in ["includePaths", "excludePaths", "ignorePaths"] {
        if !contents.list(key)?.is_empty() {
            left_out.push(key);
        }
    }
    let mut folder = said(contents, "newRootPath")?;
    let found = if let Some(git) = contents.get("git")? {
        if let [only] = contents.list("includePaths")?
            && let Some(included) = only.scalar().and_then(whole_folder)
            && (folder.is_empty() || folder == included)
        {
            folder = included;
            left_out.retain(|key| *key != "includePaths");
        }
        of_repository(git, folder)?
    } else if let Some(chart) = contents.get("helmChart")? {
        of_chart(chart)?
    } else if let Some(http) = contents.get("http")? {
        of_archive(http)?
    } else {
        Err(nothing(contents))
    };
    Ok(found.map(|meaning| meaning.at(in_use).without(left_out)))
}

/// The folder that a pattern includes as a whole: `charts/dex` of `charts/dex/**/*`.
fn whole_folder(pattern: &str) -> Option<&str> {
    let folder = pattern.strip_suffix("/**/*").or_else(|| pattern.strip_suffix("/**"))?;
    let is_plain = !folder.is_empty() && !folder.contains(['*', '?', '[', '{', '\\']);
    is_plain.then_some(folder)
}

/// The semantic versions that a tag is chosen among: the constraints, and whether prereleases are among them.
fn selection<'n>(node: &'n Node<'_>, key: &str) -> Result<Option<(&'n str, bool)>, Fault> {
    let Some(semver) = node.get(key)?.map(|node| node.get("semver")).transpose()?.flatten() else {
        return Ok(None);
    };
    Ok(Some((said(semver, "constraints")?, semver.get("prereleases")?.is_some())))
}

fn of_repository(git: &Node<'_>, folder: &str) -> Result<Result<Meaning, String>, Fault> {
    let (url, revision) = (said(git, "url")?, said(git, "ref")?);
    // `origin/main`, of which the first word is the name of the remote.
    let revision = revision.strip_prefix("origin/").unwrap_or(revision);
    let Some((constraints, prerelease)) = selection(git, "refSelection")? else {
        return Ok(match revision.is_empty() {
            true => Meaning::of_git(url, folder, None),
            false => Meaning::of_git_name(url, folder, revision),
        });
    };
    Ok(match range_of(constraints) {
        Some(range) => {
            Meaning::of_git(url, folder, Some(&range)).map(|found| Meaning { prerelease, ..found })
        }
        None => Err(format!("mu reads `{constraints}` as no range of versions")),
    })
}

fn of_chart(chart: &Node<'_>) -> Result<Result<Meaning, String>, Fault> {
    let (name, version) = (said(chart, "name")?, said(chart, "version")?);
    let repository = chart.get("repository")?;
    let url = repository.map(|repository| said(repository, "url")).transpose()?.unwrap_or_default();
    if url.is_empty() {
        let text = "it names no `repository`, which only Helm's own list of names leads to";
        return Ok(Err(text.to_owned()));
    }
    Ok(Meaning::of_chart(url, name, Some(version).filter(|version| !version.is_empty())))
}

/// The endings of archives that are packages.
const ARCHIVES: [&str; 4] = [".tgz", ".tar.gz", ".tar", ".zip"];

fn of_archive(http: &Node<'_>) -> Result<Result<Meaning, String>, Fault> {
    let (url, digest) = (said(http, "url")?, said(http, "sha256")?);
    if url.is_empty() {
        return Ok(Err("it does not say its URL".to_owned()));
    }
    let is_archive = ARCHIVES.iter().any(|ending| url.ends_with(ending));
    if !is_archive || http.flag("disableUnpack")? {
        return Ok(Err(
            "a single file is not a package; an archive (.tgz, .tar, .zip) is".to_owned()
        ));
    }
    let digest = if digest.is_empty() { String::new() } else { format!("#sha256:{digest}") };
    Ok(Meaning::parse(&format!("{url}{digest}")))
}

/// Why other contents are no package.
fn nothing(contents: &Node<'_>) -> String {
    for (key, reason) in [
        ("manual", "it is kept by hand, so there is nothing to fetch"),
        ("directory", "it is a folder of this repository, so there is nothing to fetch"),
        ("inline", "its files stand in vendir.yml itself"),
        ("hg", "mu has no provider for Mercurial"),
        (
            "image",
            "the files of an image are not a package; an artifact with a chart or a package is",
        ),
        ("imgpkgBundle", "bundles of imgpkg are not packages of mu"),
        (
            "githubRelease",
            "the files of a release are not a package; an archive among them is, by its URL",
        ),
    ] {
        // Some of them are empty maps, or nothing at all.
        if contents.written(key).is_some() {
            return reason.to_owned();
        }
    }
    "it says no source that mu knows".to_owned()
}
