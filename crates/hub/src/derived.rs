//! The files that are derived from the index: capabilities, and the catalog.
//!
//! Each derived file is replaced only if it has not changed since it was read, and the index is read after
//! it. So the last writer has seen the current index.

use std::borrow::Cow;
use std::collections::BTreeSet;
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

/// After more changes than that, the catalog is rebuilt from all packages: their names take as much memory.
const MOST_CHANGES: u64 = 100_000;

/// How many files are read or written at the same time.
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

/// What a write did to the catalog.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CatalogChange {
    Written(DerivedFileProgress),
    /// The hub has become too large for one: only a repair looks at that again.
    TooLarge {
        generation: u64,
    },
}

/// Whether enough has changed since the catalog was written the last time; `last` is the newest line of the log.
pub(crate) fn is_catalog_due(root: &Root, last: u64) -> bool {
    let is_due = |known: DerivedFileProgress| {
        last.saturating_sub(known.generation).saturating_mul(BYTES_OF_A_CHANGE) >= known.bytes
    };
    !root.is_too_large_for_a_catalog() && root.catalog().is_none_or(is_due)
}

/// Writes the catalog if enough has changed since the last time; `last` is the newest line of the log. With
/// `anew`, it is always written. Of a hub that is too large for one, no more is read than shows that.
pub(crate) async fn write_catalog(
    files: &Files,
    root: &Root,
    last: u64,
    anew: bool,
) -> Result<Option<CatalogChange>, HubError> {
    if !anew && !is_catalog_due(root, last) {
        return Ok(None);
    }
    let too_large = CatalogChange::TooLarge { generation: last };
    let known = root.catalog().filter(|_| !anew);
    if known.is_some_and(|known| known.bytes > files.longest_catalog) {
        return Ok(Some(too_large));
    }
    let changed = match known.filter(|known| last - known.generation <= MOST_CHANGES) {
        Some(known) => log::names(files, root, known.generation, last).await?,
        None => None,
    };
    let written = files.change(CATALOG_FILE, async |present| {
        let updated = match (&changed, present) {
            (Some(changed), Some(present)) => updated(files, root, present, changed).await?,
            _ => None,
        };
        let text = match updated {
            Some(text) => Some(text),
            None => whole_catalog(files, root).await?,
        };
        let Some(text) = text.filter(|text| text.len() as u64 <= files.longest_catalog) else {
            return Ok((None, None));
        };
        let length = text.len() as u64;
        let is_same = present.is_some_and(|present| **present == *text.as_bytes());
        Ok(((!is_same).then(|| text.into()), Some(length)))
    });
    let written = written.await?.map(|bytes| DerivedFileProgress { generation: last, bytes });
    Ok(Some(written.map_or(too_large, CatalogChange::Written)))
}

/// A catalog, sorted by name, in which the lines of some packages, also sorted, are as their index says now. `None` if it is broken, or
/// somebody else has written it in another order.
async fn updated(
    files: &Files,
    root: &Root,
    catalog: &Bytes,
    changed: &[String],
) -> Result<Option<String>, HubError> {
    let Ok(catalog) = std::str::from_utf8(catalog) else { return Ok(None) };
    let mut text = String::with_capacity(catalog.len());
    let mut changed = changed.iter().peekable();
    let mut last = String::new();
    // Both go on by name, so each package is looked at once:
    //
    //     catalog   a      c  d
    //     changed      b      d  e
    for line in catalog.lines() {
        let Some((name, line)) = parse_catalog_line(line) else { return Ok(None) };
        if name <= last {
            return Ok(None);
        }
        while let Some(new) = changed.next_if(|new| **new < name) {
            push_line(&mut text, current_line(files, root, new).await?.flatten().as_deref());
        }
        let now = match changed.next_if(|new| **new == name) {
            Some(new) => current_line(files, root, new).await?,
            None => None,
        };
        match now {
            Some(now) => push_line(&mut text, now.as_deref()),
            None => push_line(&mut text, Some(&line)),
        }
        last = name;
    }
    for new in changed {
        push_line(&mut text, current_line(files, root, new).await?.flatten().as_deref());
    }
    Ok(Some(text))
}

fn push_line(text: &mut String, line: Option<&str>) {
    text.extend(line.iter().flat_map(|line| [line, "\n"]));
}

/// A package's line by its index, or none if it has no versions; `None` if that cannot be read: a problem with one package must not
/// stop the others.
async fn current_line(
    files: &Files,
    root: &Root,
    name: &str,
) -> Result<Option<Option<String>>, HubError> {
    match index(files, root, name).await {
        Err(HubError::Broken { .. }) => Ok(None),
        lines => Ok(Some(catalog_line_text(&lines?))),
    }
}

/// The catalog by the index of all packages, sorted by name; `None` as soon as it is too long.
async fn whole_catalog(files: &Files, root: &Root) -> Result<Option<String>, HubError> {
    let mut reading = package_names(files, root)?
        .map_ok(|name| async move {
            let line = current_line(files, root, &name).await?.flatten();
            Ok(line.map(|line| (name, line)))
        })
        .try_buffered(AT_ONCE);
    let (mut lines, mut length) = (Vec::new(), 0);
    while let Some(line) = reading.try_next().await? {
        length += line.as_ref().map_or(0, |(_, line)| line.len() as u64 + 1);
        if length > files.longest_catalog {
            return Ok(None);
        }
        lines.extend(line);
    }
    // They are listed by the paths of their files.
    lines.sort_unstable();
    Ok(Some(lines.iter().flat_map(|(_, line)| [line.as_str(), "\n"]).collect()))
}

/// The name in a line of a catalog, and the line; `None` if it is broken. One from before the limits is shortened to what a catalog
/// keeps.
pub(crate) fn parse_catalog_line(line: &str) -> Option<(String, Cow<'_, str>)> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let name = serde_json::from_str::<Named>(line).ok()?.name;
    Some(match line.len() <= SHORT {
        true => (name, line.into()),
        false => (name, kept(serde_json::from_str(line).ok()?).into()),
    })
}

/// The names of all packages that have an index file.
pub async fn all_package_names(files: &Files, root: &Root) -> Result<Vec<String>, HubError> {
    package_names(files, root)?.try_collect().await
}

/// The names of all packages that have an index file, one after another.
pub fn package_names(
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
