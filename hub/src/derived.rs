//! What is derived from the index and kept beside it: capabilities, and the catalog.
//!
//! Each derived file is replaced only if it is as it was read, and the index is read after it: whoever
//! comes last has seen the index as it is.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::HubError;
use crate::files::Files;
use crate::lines::Lines;
use crate::log;
use crate::names;
use crate::root::{Progress, Root};

/// The file with a line for each package.
pub(crate) const CATALOG_FILE: &str = "catalog.jsonl";

/// How many bytes of the catalog may be written again for each change.
///
/// A small catalog is written at every change. One of 100,000 packages (some 20 MB) is written after
/// every 80th: until then, readers that care find what is new in the log.
const BYTES_OF_A_CHANGE: u64 = 256 << 10;

/// The keys of a catalog line that are those of the index line.
const CATALOG_KEYS: [&str; 4] = ["description", "keywords", "appVersion", "movedTo"];

/// A capability's file.
#[derive(Debug, Default, Deserialize)]
struct Capability {
    packages: BTreeSet<String>,
}

/// Reads the index file of a package; one that is not there has no lines.
pub(crate) async fn index(files: &Files, root: &Root, name: &str) -> Result<Lines, HubError> {
    let path = root.index(name);
    match files.read(&path).await? {
        None => Ok(Lines::default()),
        Some(read) => Lines::parse(&read.bytes, name).map_err(|reason| files.broken(&path, reason)),
    }
}

/// The capabilities that any version of a package names.
pub(crate) fn named(lines: &Lines) -> BTreeSet<String> {
    lines.iter().flat_map(|line| line.texts("provides")).map(str::to_owned).collect()
}

/// The capabilities that versions of a package provide which were not withdrawn.
pub(crate) fn provided(lines: &Lines) -> BTreeSet<String> {
    let standing = lines.iter().filter(|line| !line.is_yanked());
    standing.flat_map(|line| line.texts("provides")).map(str::to_owned).collect()
}

/// Puts a package into the files of the capabilities that it provides, and takes it out of the others
/// that it names.
pub(crate) async fn write_capabilities(
    files: &Files,
    root: &Root,
    name: &str,
) -> Result<(), HubError> {
    for capability in named(&index(files, root, name).await?) {
        let Some(path) = names::capability_path(&capability) else { continue };
        files
            .change(&path, async |bytes| {
                // A file that cannot be read holds nothing that the index does not say.
                let file: Option<Capability> =
                    bytes.and_then(|bytes| serde_json::from_slice(bytes).ok());
                let mut file = file.unwrap_or_default();
                let provides = provided(&index(files, root, name).await?).contains(&capability);
                let changes = match provides {
                    true => file.packages.insert(name.to_owned()),
                    false => file.packages.remove(name),
                };
                Ok((changes.then(|| capability_file(&file.packages)), ()))
            })
            .await?;
    }
    Ok(())
}

/// The file of a capability.
pub(crate) fn capability_file(packages: &BTreeSet<String>) -> Bytes {
    format!("{}\n", json!({ "packages": packages })).into()
}

/// The catalog's line of a package; `None` if it has no versions.
pub(crate) fn catalog_line(lines: &Lines) -> Option<String> {
    let latest = lines.latest()?;
    let mut line = Map::new();
    line.insert("name".to_owned(), latest.name().into());
    line.insert("latest".to_owned(), latest.full_version().into());
    for key in CATALOG_KEYS {
        if let Some(value) = latest.map().get(key) {
            line.insert(key.to_owned(), value.clone());
        }
    }
    Some(Value::Object(line).to_string())
}

/// Writes the catalog, if enough has changed since it was written: `last` is the newest line of the log.
/// With `anew`, it is written whatever was there.
pub(crate) async fn write_catalog(
    files: &Files,
    root: &Root,
    last: u64,
    anew: bool,
) -> Result<Option<Progress>, HubError> {
    let known = root.catalog().filter(|_| !anew);
    if let Some(known) = known
        && last.saturating_sub(known.generation).saturating_mul(BYTES_OF_A_CHANGE) < known.bytes
    {
        return Ok(None);
    }
    let changed = match known {
        Some(known) => log::names(files, root, known.generation, last).await?,
        None => None,
    };
    let bytes = files
        .change(CATALOG_FILE, async |bytes| {
            let mut catalog = match (&changed, bytes) {
                (Some(_), Some(bytes)) => catalog_of(bytes),
                _ => None,
            };
            let names = match (&changed, &catalog) {
                (Some(changed), Some(_)) => changed.clone(),
                _ => all_names(files, root).await?,
            };
            let catalog = catalog.get_or_insert_default();
            for name in names {
                let lines = match index(files, root, &name).await {
                    // What is wrong with one package is not to stop the others.
                    Err(HubError::Broken { .. }) => continue,
                    lines => lines?,
                };
                match catalog_line(&lines) {
                    Some(line) => catalog.insert(name, line),
                    None => catalog.remove(&name),
                };
            }
            let text = catalog_file(catalog);
            let length = text.len() as u64;
            let is_same = bytes.is_some_and(|bytes| *bytes == text);
            Ok(((!is_same).then_some(text), length))
        })
        .await?;
    Ok(Some(Progress { generation: last, bytes }))
}

/// The whole catalog, sorted by name.
pub(crate) fn catalog_file(lines: &BTreeMap<String, String>) -> Bytes {
    lines.values().flat_map(|line| [line.as_str(), "\n"]).collect::<String>().into()
}

/// Name → line of a catalog; `None` if it is broken.
pub(crate) fn catalog_of(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    #[derive(Deserialize)]
    struct Name {
        name: String,
    }
    let lines = std::str::from_utf8(bytes).ok()?.lines();
    lines
        .map(|line| Some((serde_json::from_str::<Name>(line).ok()?.name, line.to_owned())))
        .collect()
}

/// The names of all packages that have an index file.
pub(crate) async fn all_names(files: &Files, root: &Root) -> Result<Vec<String>, HubError> {
    let folder = root.index_folder();
    let listed = files.list(&folder).await?;
    let name = |path: &str| Some(path.strip_prefix(&folder)?.strip_suffix(".jsonl")?.to_owned());
    Ok(listed.iter().filter_map(|file| name(file.location.as_ref())).collect())
}
