//! Finds and reads the manifest of a package in a commit, without parsing it.

use std::borrow::Cow;

use mu_provider::{
    ErrorKind, FOREIGN_MANIFESTS, MANIFEST_NAMES, ManifestFile, MarkedManifest, ProviderError,
};

use crate::snapshot::{Entry, Kind, Snapshot};

/// A manifest longer than this was not written by a person.
const LONGEST: usize = 1 << 20;

/// The manifest in `folder`, if there is one.
pub(crate) fn read(
    snapshot: &Snapshot<'_>,
    folder: &str,
) -> Result<Option<ManifestFile>, ProviderError> {
    let entries = snapshot.folder(folder)?;
    let place = || {
        let slash = if folder.is_empty() { "" } else { "/" };
        format!(
            "`{}` at commit {}, `{folder}{slash}",
            snapshot.repository.remote(),
            snapshot.commit
        )
    };
    let named = |name: &str| entries.iter().find(|entry| entry.name == name.as_bytes());
    let (name, entry) = match MANIFEST_NAMES.map(named) {
        [Some(_), Some(_)] => {
            return Err(ProviderError::new(
                ErrorKind::Manifest,
                format!("there are both {}Mu.yaml` and `Mu.json`", place()),
            )
            .hint("a package has one manifest: remove one of them"));
        }
        [Some(entry), None] => (MANIFEST_NAMES[0], entry),
        [None, Some(entry)] => (MANIFEST_NAMES[1], entry),
        [None, None] => {
            let foreign = FOREIGN_MANIFESTS.iter();
            if let Some((name, beside, entry)) =
                foreign.filter_map(|(name, beside)| Some((*name, *beside, named(name)?))).next()
            {
                let text = text_of(snapshot, entry, &|why| refuse(&place(), name, why))?;
                let beside = beside.and_then(|name| Some((name, named(name)?)));
                let beside = beside.map(|(name, entry)| {
                    let text = text_of(snapshot, entry, &|why| refuse(&place(), name, why))?;
                    Ok::<_, ProviderError>((name.to_owned(), text))
                });
                let beside = beside.transpose()?.into_iter().collect();
                return Ok(Some(ManifestFile { name: name.to_owned(), text, beside }));
            }
            if let Some(found) = marked(snapshot, folder, &entries, &place())? {
                return Ok(Some(found));
            }
            if named("mu.yaml").is_some() {
                let text =
                    format!("{}mu.yaml` is not read: a manifest's name is `Mu.yaml`", place());
                snapshot.progress.warning(&text);
            }
            return Ok(None);
        }
    };
    let text = text_of(snapshot, entry, &|why| refuse(&place(), name, why))?;
    Ok(Some(ManifestFile { name: name.to_owned(), text, beside: Vec::new() }))
}

/// A manifest that is known by what it contains.
fn marked(
    snapshot: &Snapshot<'_>,
    folder: &str,
    entries: &[Entry],
    place: &str,
) -> Result<Option<ManifestFile>, ProviderError> {
    let inside = |inner: &str| {
        let is_it = |entry: &&Entry| entry.name == inner.as_bytes() && entry.kind == Kind::Folder;
        if inner.is_empty() {
            return Ok(Cow::Borrowed(entries));
        }
        if !entries.iter().any(|entry| is_it(&entry)) {
            return Ok(Cow::default());
        }
        let slash = if folder.is_empty() { "" } else { "/" };
        snapshot.folder(&format!("{folder}{slash}{inner}")).map(Cow::Owned)
    };
    let read = |path: &str| {
        let (inner, name) = path.split_once('/').unwrap_or(("", path));
        let entries = inside(inner)?;
        let entry = entries.iter().find(|entry| entry.name == name.as_bytes());
        entry.map(|entry| text_of(snapshot, entry, &|why| refuse(place, path, why))).transpose()
    };
    let list = |inner: &str| {
        let inside = inside(inner.trim_end_matches('/'))?;
        Ok(inside.iter().filter_map(|entry| String::from_utf8(entry.name.clone()).ok()).collect())
    };
    MarkedManifest::find_first(&read, &list)
}

fn refuse(place: &str, name: &str, why: &str) -> ProviderError {
    ProviderError::new(ErrorKind::Manifest, format!("{place}{name}` cannot be read: {why}"))
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
