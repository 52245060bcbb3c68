//! Finds and reads the manifest of a package in a commit, without parsing it.
//!
//! A KCL module is also found by its own name: `kcl.mod` names one of several in a repository so (`package = "NAME"`), wherever
//! its folder is. kpm looks for it in the same way.

use std::borrow::Cow;

use git2::Oid;
use mu_formats::Texts;
use mu_formats::kcl;
use mu_provider::{ErrorKind, ManifestFile, ProviderError};

use crate::snapshot::{CommitFiles, Entry, Kind};

/// A manifest longer than this was not written by a person.
const LONGEST: usize = 1 << 20;

/// The manifest in `folder`, if there is one.
pub(crate) fn read(
    snapshot: &CommitFiles<'_>,
    folder: &str,
) -> Result<Option<ManifestFile>, ProviderError> {
    let (_, entries) = snapshot.folder(folder)?;
    let slash = if folder.is_empty() { "" } else { "/" };
    let place = || {
        let CommitFiles { repository, commit, .. } = snapshot;
        format!("`{}` at commit {commit}, `{folder}{slash}", repository.remote)
    };
    let inside = |inner: &str| {
        let is_it = |entry: &Entry| entry.name == inner.as_bytes() && entry.kind == Kind::Folder;
        match inner {
            "" => Ok(Cow::Borrowed(entries.as_slice())),
            _ if !entries.iter().any(is_it) => Ok(Cow::default()),
            _ => {
                let found = snapshot.folder(&format!("{folder}{slash}{inner}"));
                found.map(|(_, entries)| Cow::Owned(entries))
            }
        }
    };
    let read = |path: &str| {
        let (inner, name) = path.split_once('/').unwrap_or(("", path));
        let entries = inside(inner)?;
        let entry = entries.iter().find(|entry| entry.name == name.as_bytes());
        let refuse = |why: &str| {
            let text = format!("{}{path}` cannot be read: {why}", place());
            ProviderError::new(ErrorKind::Manifest, text)
        };
        let Some(entry) = entry else { return Ok(None) };
        let led = match entry.kind {
            Kind::Symlink => snapshot.follow(format!("{folder}{slash}{path}").as_bytes())?,
            _ => None,
        };
        let entry = led.as_ref().map_or(entry, |led| &led.entry);
        text_of(snapshot, entry, &refuse).map(Some)
    };
    let list = |inner: &str| {
        let inside = inside(inner.trim_end_matches('/'))?;
        Ok(inside.iter().filter_map(|entry| String::from_utf8(entry.name.clone()).ok()).collect())
    };
    let both = || {
        let text = format!("there are both {}Mu.yaml` and `Mu.json`", place());
        ProviderError::new(ErrorKind::Manifest, text)
            .hint("a package has one manifest: remove one of them")
    };
    let found = ManifestFile::find(&read, &list, &both)?;
    if found.is_none() && entries.iter().any(|entry| entry.name == b"mu.yaml") {
        let text = format!("{}mu.yaml` is not read: a manifest's name is `Mu.yaml`", place());
        snapshot.progress.warning(&text);
    }
    Ok(found)
}

fn text_of(
    snapshot: &CommitFiles<'_>,
    entry: &Entry,
    refuse: &dyn Fn(&str) -> ProviderError,
) -> Result<String, ProviderError> {
    if !matches!(entry.kind, Kind::File | Kind::Executable) {
        return Err(refuse("it is not a file"));
    }
    let text = snapshot.blob(entry.oid, &mut |data| match data.len() {
        ..=LONGEST => String::from_utf8(data.to_vec()).map_err(|_| "it is not UTF-8"),
        _ => Err("it is too long"),
    })?;
    text.map_err(refuse)
}

/// How many folders of a repository are looked into.
const MOST_FOLDERS: usize = 5_000;

/// How deep they are.
const MOST_DEEP: usize = 16;

/// The folder of the module called `name`, if there is one.
///
/// # Errors
///
/// When there are several, or the repository has too many folders to say so.
pub(crate) fn find_module(
    snapshot: &CommitFiles<'_>,
    name: &str,
) -> Result<Option<String>, ProviderError> {
    // A path with folders in it names a folder.
    if name.contains('/') {
        return Ok(None);
    }
    let mut found: Vec<String> = Vec::new();
    let mut folders: Vec<(String, Oid)> = Vec::new();
    let mut seen = 0;
    let mut next = Some((String::new(), None::<Oid>));
    while let Some((path, tree)) = next {
        seen += 1;
        if seen > MOST_FOLDERS {
            let text = format!(
                "`{}` has more than {MOST_FOLDERS} folders, in which mu does not look for the module `{name}`",
                snapshot.repository.remote
            );
            return Err(ProviderError::new(ErrorKind::Manifest, text)
                .hint("name the module's folder in place of its name"));
        }
        let entries = match tree {
            None => snapshot.folder("")?.1,
            Some(tree) => snapshot.tree(tree)?,
        };
        for entry in entries {
            let is_manifest = entry.name == kcl::MODULE.as_bytes();
            if is_manifest && matches!(entry.kind, Kind::File | Kind::Executable) {
                let text = snapshot.blob(entry.oid, &mut |data| {
                    (data.len() <= LONGEST).then(|| String::from_utf8_lossy(data).into_owned())
                })?;
                let texts = text.map(|text| Texts([(kcl::MODULE.to_owned(), text)].into()));
                let own = texts.and_then(|texts| kcl::head(&texts).ok());
                found.extend(own.filter(|own| own.name == name).map(|_| path.clone()));
            } else if entry.kind == Kind::Folder
                && path.split('/').count() < MOST_DEEP
                && let Ok(inner) = String::from_utf8(entry.name)
            {
                let slash = if path.is_empty() { "" } else { "/" };
                folders.push((format!("{path}{slash}{inner}"), entry.oid));
            }
        }
        next = folders.pop().map(|(path, tree)| (path, Some(tree)));
    }
    found.sort();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        [first, second, ..] => {
            let text = format!(
                "`{}` has two modules called `{name}` at commit {}: in `{first}` and in `{second}`",
                snapshot.repository.remote, snapshot.commit
            );
            Err(ProviderError::new(ErrorKind::Manifest, text)
                .hint("name the module's folder in place of its name"))
        }
    }
}
