//! Finds and reads the manifest of a package in a commit, without parsing it.

use std::borrow::Cow;

use mu_provider::{ErrorKind, ManifestFile, ProviderError};

use crate::snapshot::{Entry, Kind, Snapshot};

/// A manifest longer than this was not written by a person.
const LONGEST: usize = 1 << 20;

/// The manifest in `folder`, if there is one.
pub(crate) fn read(
    snapshot: &Snapshot<'_>,
    folder: &str,
) -> Result<Option<ManifestFile>, ProviderError> {
    let (_, entries) = snapshot.folder(folder)?;
    let slash = if folder.is_empty() { "" } else { "/" };
    let place = || {
        let Snapshot { repository, commit, .. } = snapshot;
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
    snapshot: &Snapshot<'_>,
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
