//! The files that are derived from the index: capabilities, and the catalog.
//!
//! Each derived file is replaced only if it has not changed since it was read, and the index is read after
//! it. So the last writer has seen the current index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use mu_provider::publishable;
use mu_provider::threads::lock;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::HubError;
use crate::file::{CATALOG_FILE, FileMeta};
use crate::files::Files;
use crate::lines::Lines;
use crate::log;
use crate::names;
use crate::root::{DerivedFileProgress, Root};

/// How many bytes of the catalog may be rewritten for each change.
///
/// A small catalog is written at every change, and one of 100,000 packages (some 20 MB) at every 80th. Until
/// then, readers find later changes in the log.
const BYTES_OF_A_CHANGE: u64 = 256 << 10;

/// The keys that a catalog line takes from the index line.
const CATALOG_KEYS: [&str; 7] =
    ["description", "keywords", "appVersion", "provides", "movedTo", "yanked", "deprecated"];

/// A catalog line of at most this many bytes has nothing that is too long.
const SHORT: usize = 512;

/// How many capability files are written at the same time.
const AT_ONCE: usize = 32;

/// How long a file about all packages of a hub may be, in bytes, so that a change writes it, and does not leave it to `Writer::tidy`.
pub(crate) const LONGEST_IN_A_CHANGE: u64 = 1 << 20;

/// What changes have left to do: the long files about all packages of a hub.
#[derive(Debug, Default)]
pub struct Left {
    is_there: AtomicBool,
    /// Held while it is done.
    doing: tokio::sync::Mutex<()>,
}

impl Left {
    /// Records that there is something to do.
    pub(crate) fn add(&self) {
        self.is_there.store(true, Ordering::Release);
    }

    /// Whether there is something to do.
    pub fn has_work(&self) -> bool {
        self.is_there.load(Ordering::Acquire)
    }

    /// Takes what there is to do; `None` if there is nothing, or if somebody else is at it, who looks again at the end.
    pub(crate) fn take(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let doing = self.doing.try_lock().ok()?;
        self.is_there.swap(false, Ordering::AcqRel).then_some(doing)
    }
}

/// A capability's file.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Capability {
    pub(crate) packages: BTreeSet<String>,
}

/// Reads the index file of a package; if there is none, it has no lines.
pub async fn index(files: &Files, root: &Root, name: &str) -> Result<Lines, HubError> {
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

/// Adds a package to the files of the capabilities that it provides, and removes it from those of the other
/// capabilities that it names.
pub(crate) async fn write_capabilities(
    files: &Files,
    root: &Root,
    name: &str,
) -> Result<(), HubError> {
    let index = Provided::read(files, root, name).await?;
    let named = index.latest().named.clone();
    futures_util::stream::iter(named)
        .map(|capability| write_capability(files, &index, name, capability))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

async fn write_capability(
    files: &Files,
    index: &Provided<'_>,
    name: &str,
    capability: String,
) -> Result<(), HubError> {
    let Some(path) = names::capability_path(&capability) else { return Ok(()) };
    files
        .change(&path, async |bytes| {
            // If a file cannot be read, the index is enough to write it again.
            let file: Option<Capability> =
                bytes.and_then(|bytes| serde_json::from_slice(bytes).ok());
            let mut file = file.unwrap_or_default();
            let changes = match index.now().await?.provided.contains(&capability) {
                true => file.packages.insert(name.to_owned()),
                false => file.packages.remove(name),
            };
            Ok((changes.then(|| capability_file(&file.packages)), ()))
        })
        .await
}

/// The capabilities in an index file. The file is requested again after each derived file was read, and
/// parsed only if it has changed.
struct Provided<'hub> {
    files: &'hub Files,
    path: String,
    name: &'hub str,
    known: Mutex<Arc<Capabilities>>,
}

/// Capabilities of one content of an index file.
#[derive(Debug, Default)]
struct Capabilities {
    e_tag: Option<String>,
    named: BTreeSet<String>,
    provided: BTreeSet<String>,
}

impl<'hub> Provided<'hub> {
    async fn read(files: &'hub Files, root: &Root, name: &'hub str) -> Result<Self, HubError> {
        let index = Self { files, path: root.index(name), name, known: Mutex::default() };
        index.now().await?;
        Ok(index)
    }

    fn latest(&self) -> Arc<Capabilities> {
        Arc::clone(&lock(&self.known))
    }

    /// The current capabilities.
    async fn now(&self) -> Result<Arc<Capabilities>, HubError> {
        let known = self.latest();
        let Some(read) = self.files.read_if_changed(&self.path, known.e_tag.as_deref()).await?
        else {
            return Ok(known);
        };
        let mut now = Capabilities::default();
        if let Some(read) = read {
            now.e_tag = read.mark.e_tag;
            let lines = Lines::parse(&read.bytes, self.name)
                .map_err(|reason| self.files.broken(&self.path, reason))?;
            now.named = named(&lines);
            now.provided = provided(&lines);
        }
        let now = Arc::new(now);
        *lock(&self.known) = Arc::clone(&now);
        Ok(now)
    }
}

/// The file of a capability.
pub(crate) fn capability_file(packages: &BTreeSet<String>) -> Bytes {
    format!("{}\n", json!({ "packages": packages })).into()
}

/// The catalog's line of a package; `None` if it has no versions.
pub fn catalog_line_text(lines: &Lines) -> Option<String> {
    let latest = lines.latest()?;
    let mut line = Map::new();
    line.insert("name".to_owned(), latest.name().into());
    line.insert("latest".to_owned(), latest.full_version().into());
    for key in CATALOG_KEYS {
        if let Some(value) = latest.map().get(key) {
            line.insert(key.to_owned(), value.clone());
        }
    }
    Some(kept(line))
}

/// A catalog line without the parts that a catalog does not keep.
fn kept(mut line: Map<String, Value>) -> String {
    for key in CATALOG_KEYS {
        if let Some(value) = line.get_mut(key) {
            match publishable::in_catalog(key, value) {
                Some(kept) => *value = kept,
                None => drop(line.shift_remove(key)),
            }
        }
    }
    Value::Object(line).to_string()
}

/// Whether enough has changed since the catalog was written the last time; `last` is the newest line of the log.
pub(crate) fn is_catalog_due(root: &Root, last: u64) -> bool {
    root.catalog().is_none_or(|known| {
        last.saturating_sub(known.generation).saturating_mul(BYTES_OF_A_CHANGE) >= known.bytes
    })
}

/// Writes the catalog if enough has changed since the last time; `last` is the newest line of the log. With
/// `anew`, it is always written.
pub(crate) async fn write_catalog(
    files: &Files,
    root: &Root,
    last: u64,
    anew: bool,
) -> Result<Option<DerivedFileProgress>, HubError> {
    if !anew && !is_catalog_due(root, last) {
        return Ok(None);
    }
    let changed = match root.catalog().filter(|_| !anew) {
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
                _ => all_package_names(files, root).await?,
            };
            let catalog = catalog.get_or_insert_default();
            for name in names {
                let lines = match index(files, root, &name).await {
                    // A problem with one package must not stop the others.
                    Err(HubError::Broken { .. }) => continue,
                    lines => lines?,
                };
                match catalog_line_text(&lines) {
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
    Ok(Some(DerivedFileProgress { generation: last, bytes }))
}

/// The whole catalog, sorted by name.
pub(crate) fn catalog_file(lines: &BTreeMap<String, String>) -> Bytes {
    lines.values().flat_map(|line| [line.as_str(), "\n"]).collect::<String>().into()
}

/// Name → line of a catalog; `None` if it is broken. Lines from before the limits are shortened to what a
/// catalog keeps.
pub(crate) fn catalog_of(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    #[derive(Deserialize)]
    struct Name {
        name: String,
    }
    let lines = std::str::from_utf8(bytes).ok()?.lines();
    lines
        .map(|line| {
            let name = serde_json::from_str::<Name>(line).ok()?.name;
            let line = match line.len() <= SHORT {
                true => line.to_owned(),
                false => kept(serde_json::from_str(line).ok()?),
            };
            Some((name, line))
        })
        .collect()
}

/// The names of all packages that have an index file.
pub async fn all_package_names(files: &Files, root: &Root) -> Result<Vec<String>, HubError> {
    package_names(files, root)?.try_collect().await
}

/// The names of all packages that have an index file, one after another.
pub(crate) fn package_names(
    files: &Files,
    root: &Root,
) -> Result<BoxStream<'static, Result<String, HubError>>, HubError> {
    let folder = root.index_folder();
    let name = move |meta: FileMeta| {
        let name = meta.path.strip_prefix(&folder)?.strip_suffix(".jsonl")?;
        Some(name.to_owned())
    };
    let named = files.each_file(&root.index_folder())?;
    Ok(named.try_filter_map(move |meta| std::future::ready(Ok(name(meta)))).boxed())
}

#[cfg(all(test, feature = "buckets"))]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::Place;

    #[tokio::test]
    async fn an_index_file_is_read_again_only_where_it_has_changed() {
        let place = Place::store(Arc::new(InMemory::new()), "memory");
        let files = Files::open(&place, false).expect("is in memory");
        let root = Root::new();
        let line = |version: &str, more: &str| {
            format!(
                "{{\"name\":\"a\",\"version\":\"{version}\",\"provides\":[\"g/v1/{version}\"]{more}}}\n"
            )
        };
        let path = root.index("a");
        let first = line("1.0.0", "");
        files.replace(&path, &None, first.clone().into()).await.expect("is in memory");
        let index = Provided::read(&files, &root, "a").await.expect("is there");
        let before = index.latest();
        for _ in 0..3 {
            assert!(Arc::ptr_eq(&before, &index.now().await.expect("is there")));
        }
        let second = first + &line("2.0.0", ",\"yanked\":true");
        files.write(&path, second.into()).await.expect("is in memory");
        let now = index.now().await.expect("is there");
        assert_eq!((now.named.len(), now.provided.len()), (2, 1));
        assert!(Arc::ptr_eq(&now, &index.now().await.expect("is there")));
    }
}
