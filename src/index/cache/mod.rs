//! The index cache: the answers of registries, one file for each, used without conversion.
//!
//! [`Cache`] is one file. Opening it reads only what selection needs: the number of each version, and its dependencies
//! as references. Finding a package in it is one table lookup, and whole lines stay on disk until they are needed.
//! Changes are appended, so that a new package does not rewrite the rest; a file of mostly superseded records is
//! rewritten. Until then, lines of many new packages wait in a file without a name. [`Caches`] are those of a run, each opened when it is first needed. Everything here can be deleted at any
//! time. This module does not know what the bytes of a line mean.
//!
//! The format is mu's own. On a real graph, a resolve that chose 4,118 packages took 908 million instructions, of which opening this cache
//! took 3.8, finding all of them 8.8, and reading what 4,167 versions need 14. To open and find alone, `redb` takes 90 (102 if it has
//! 63,094 packages), and a file of JSON lines with a table of names, offsets and versions 18 (78). Such a file is as good where nearly
//! all versions that are looked at are chosen, since their lines are parsed anyway: 11,000 instructions each, against 3,400 here for
//! what a version needs. It loses where many others are looked at. The first figures are from `valgrind --tool=callgrind mu resolve
//! --offline` on the graph of `mu-benches --real`; the others from programs that read the same packages and nothing else.

mod layout;
mod lines;
mod segments;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use mu_provider::threads::lock;
use mu_provider::{Lead, threads};
use rustc_hash::{FxHashMap, FxHashSet};

use self::layout::WrittenRecord;
use self::lines::{Far, FarFile};
use self::segments::{
    CHECKED, FarPart, Latest, MAGIC, MOST_SEGMENTS, Near, Part, RecordFrame, WHOLE,
};
use crate::fs::{self, AtPath as _, FileError, Lock, Sharing};

pub(super) use self::layout::LineTable;
pub(super) use self::lines::{
    Fetched, Label, Learned, LineHead, LineSpan, Listing, ListingLines, Record, read_ahead,
};

/// The cache of one registry.
#[derive(Debug)]
pub(super) struct Cache {
    path: PathBuf,
    root: Lead,
    bytes: Arc<Vec<u8>>,
    file: Option<Arc<FarFile>>,
    frames: Vec<RecordFrame>,
    records: FxHashMap<Box<str>, Latest>,
    changed: Mutex<Vec<Change>>,
    aside: Mutex<Aside>,
}

/// How many bytes of far lines stay in memory until they are written to the cache: those of some 100 packages.
const MOST_IN_MEMORY: usize = 512 << 10;

/// Far lines that were fetched in this run, beyond those in memory. Only those of chosen versions are needed again.
#[derive(Debug, Default)]
struct Aside {
    /// How many bytes are in memory.
    in_memory: usize,
    /// The file without a name; `None` inside if there can be none.
    file: OnceLock<Option<Arc<FarFile>>>,
    /// How many bytes it has.
    length: u64,
}

impl Aside {
    /// Puts lines into the file, which lies in `folder`; `None` if they stay in memory.
    fn take(&mut self, bytes: &[u8], folder: &Path) -> Option<Far> {
        let length = u32::try_from(bytes.len()).ok()?;
        if self.in_memory + bytes.len() <= MOST_IN_MEMORY {
            self.in_memory += bytes.len();
            return None;
        }
        let make = || {
            fs::create_folder(folder).ok()?;
            Some(Arc::new(FarFile::new(tempfile::tempfile_in(folder).ok()?)))
        };
        // If nothing can be written there, memory has to do, and saving says so.
        let file = Arc::clone(self.file.get_or_init(make).as_ref()?);
        fs::write_at(&file.file, self.length, bytes).ok()?;
        let start = self.length;
        self.length += u64::from(length);
        Some(Far::File(file, start, length))
    }
}

#[derive(Debug)]
struct Change {
    name: String,
    said: Said,
}

#[derive(Debug)]
enum Said {
    /// This.
    Record(WrittenRecord),
    /// A new request found no change: the times, and the validator for the next request.
    Unchanged(Vec<u8>),
}

impl Cache {
    /// Reads the cache of the registry at `root`, in the cache folder `folder`.
    pub(super) fn open(folder: &Path, provider: &str, root: &Lead) -> Result<Self, FileError> {
        let path = folder.join("index").join(file_name(provider, root));
        let file = fs::open_if_there(&path)?;
        let near = file.as_ref().map(Near::read).transpose().at("read", &path)?.unwrap_or_default();
        let records = near.latest_frames().into_iter().map(|(name, latest)| (name.into(), latest));
        Ok(Self {
            records: records.collect(),
            path,
            root: root.clone(),
            bytes: Arc::new(near.bytes),
            file: file.map(FarFile::new).map(Arc::new),
            frames: near.frames,
            changed: Mutex::default(),
            aside: Mutex::default(),
        })
    }

    /// Whether the last answer about `name` is that the package is there.
    pub(super) fn lists(&self, name: &str) -> bool {
        self.find(name).is_some_and(|record| record.listing.is_some())
    }

    /// The names of all cached packages.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(|name| &**name)
    }

    /// When `name` was last requested, in seconds since 1970, and for how many seconds that is fresh.
    pub(super) fn times(&self, name: &str) -> Option<(i64, Option<u32>)> {
        let latest = self.records.get(name)?;
        // Both kinds of records start with them.
        let frame = self.frames.get(latest.checked.unwrap_or(latest.whole))?;
        layout::read_times(self.bytes.get(frame.near.clone())?)
    }

    /// The validator to send with a request about `name`.
    pub(super) fn validator(&self, name: &str) -> Option<String> {
        let latest = self.records.get(name)?;
        let near = |frame: usize| self.bytes.get(self.frames.get(frame)?.near.clone());
        match latest.checked {
            Some(checked) => layout::decode_unchanged(near(checked)?)?.2,
            None => layout::decode_validator(near(latest.whole)?),
        }
    }

    /// The last answer about the package `name`.
    pub(super) fn find(&self, name: &str) -> Option<Record> {
        let latest = self.records.get(name)?;
        let frame = self.frames.get(latest.whole)?;
        let far = Far::File(Arc::clone(self.file.as_ref()?), frame.far, frame.far_length);
        let mut record = layout::decode(&self.bytes, frame.near.clone(), far, &self.root)?;
        if let Some(checked) = latest.checked {
            let near = self.frames.get(checked)?.near.clone();
            (record.checked, record.max_age, record.validator) =
                layout::decode_unchanged(self.bytes.get(near)?)?;
        }
        Some(record)
    }

    /// Stores the answer about `name`; written by [`Cache::save`].
    pub(super) fn put(&self, name: &str, Learned { mut record, mut written }: Learned) -> Record {
        if let (Some(listing), Some(written)) = (&mut record.listing, &mut written)
            && let Far::Bytes(bytes) = &written.far
            && let Some(far) = lock(&self.aside).take(bytes, self.folder())
        {
            listing.lines.far = far.clone();
            written.far = far;
        }
        match written {
            Some(written) => self.change(name, Said::Record(written)),
            None => self.touch(name, &record),
        }
        record
    }

    /// Stores that nothing changed about `name`, and when that was requested.
    pub(super) fn touch(&self, name: &str, record: &Record) {
        self.change(name, Said::Unchanged(layout::encode_unchanged(record)));
    }

    fn change(&self, name: &str, said: Said) {
        threads::lock(&self.changed).push(Change { name: name.to_owned(), said });
    }

    /// Writes what was stored.
    pub(super) fn save(&self) -> Result<(), FileError> {
        let changes = std::mem::take(&mut *threads::lock(&self.changed));
        if changes.is_empty() {
            return Ok(());
        }
        let lock_path = self.path.with_extension("lock");
        let _lock = Lock::acquire(&lock_path, Sharing::Exclusive, &mut || {})?;
        // Another process may have written after this one read.
        let present = fs::open_if_there(&self.path)?;
        let near = present.as_ref().map(Near::read).transpose().at("read", &self.path)?;
        let near = near.unwrap_or_default();
        let changed = changes.iter().map(Change::part);
        if let (Some(file), true) = (&present, is_worth_rewriting(&near, &changes)) {
            let mut parts = kept(file, &near, &changes);
            parts.extend(changed);
            let mut whole = tempfile::tempfile_in(self.folder()).at("write", &self.path)?;
            whole.write_all(MAGIC).at("write", &self.path)?;
            append(&whole, MAGIC.len() as u64, &parts).at("write", &self.path)?;
            whole.rewind().at("read", &self.path)?;
            return fs::copy_atomic(&self.path, &mut whole);
        }
        if near.end == 0 {
            fs::write_atomic(&self.path, MAGIC)?;
        }
        let end = near.end.max(MAGIC.len() as u64);
        let file = fs::open_with(&self.path, OpenOptions::new().write(true))?;
        append(&file, end, &changed.collect::<Vec<_>>()).at("write", &self.path)
    }

    /// The folder of its file.
    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

impl Change {
    fn part(&self) -> Part<'_> {
        let (kind, near, far) = match &self.said {
            Said::Record(WrittenRecord { near, far: Far::Bytes(far) }) => {
                (WHOLE, near.as_slice(), FarPart::Bytes(far))
            }
            Said::Record(WrittenRecord { near, far: Far::File(file, start, length) }) => {
                (WHOLE, near.as_slice(), FarPart::File(&file.file, *start, *length))
            }
            Said::Unchanged(near) => (CHECKED, near.as_slice(), FarPart::Bytes(&[])),
        };
        Part { kind, name: &self.name, near, far }
    }
}

/// Writes a segment after the first `after` bytes.
fn append(file: &File, after: u64, parts: &[Part<'_>]) -> io::Result<()> {
    file.set_len(after)?;
    let mut writer = BufWriter::with_capacity(256 << 10, file);
    writer.seek(SeekFrom::End(0))?;
    segments::write(parts, &mut writer)?;
    writer.flush()
}

/// Whether less than half of the bytes would still be in use, or reading the file takes many steps.
fn is_worth_rewriting(present: &Near, changes: &[Change]) -> bool {
    if present.segments >= MOST_SEGMENTS {
        return true;
    }
    let mut sizes: FxHashMap<&str, u64> = FxHashMap::default();
    for (name, latest) in present.latest_frames() {
        let Some(frame) = present.frames.get(latest.whole) else { continue };
        sizes.insert(name, frame.near.len() as u64 + u64::from(frame.far_length));
    }
    let mut whole = present.end;
    for change in changes {
        if let Said::Record(written) = &change.said {
            let size = written.near.len() as u64 + written.far.count_bytes();
            whole += size;
            sizes.insert(&change.name, size);
        }
    }
    present.end > 64 << 10 && sizes.values().sum::<u64>() * 2 < whole
}

/// The parts of a file that are still in use.
fn kept<'parts>(
    file: &'parts File,
    present: &'parts Near,
    changes: &[Change],
) -> Vec<Part<'parts>> {
    let mut parts = Vec::new();
    let replaced = changes.iter().filter(|change| matches!(change.said, Said::Record(_)));
    let replaced: FxHashSet<&str> = replaced.map(|change| change.name.as_str()).collect();
    let mut latest: Vec<(&str, Latest)> = present.latest_frames().into_iter().collect();
    latest.retain(|(name, _)| !replaced.contains(name));
    latest.sort_unstable_by_key(|(name, _)| *name);
    for (name, Latest { whole, checked }) in latest {
        let Some((whole, near)) = present.part(whole) else { continue };
        let far = FarPart::File(file, whole.far, whole.far_length);
        parts.push(Part { kind: WHOLE, name, near, far });
        if let Some((_, near)) = checked.and_then(|checked| present.part(checked)) {
            parts.push(Part { kind: CHECKED, name, near, far: FarPart::Bytes(&[]) });
        }
    }
    parts
}

fn file_name(provider: &str, root: &Lead) -> String {
    use sha2::Digest as _;
    let hash = sha2::Sha256::digest(format!("{provider} {root}").as_bytes());
    let host: String =
        root.host_and_port()
            .chars()
            .map(|character| {
                if character.is_ascii_alphanumeric() || character == '.' { character } else { '-' }
            })
            .collect();
    let hash = mu_provider::FileDigest::from_bytes(hash.into()).to_string();
    let (begin, _) = hash.split_at(16);
    format!("{provider}-{host}-{begin}.index")
}

/// The caches of one run.
#[derive(Debug)]
pub(super) struct Caches {
    folder: PathBuf,
    opened: Mutex<FxHashMap<Lead, CachesAt>>,
}

/// A registry's cache; a second thread waits for the first.
type CacheSlot = OnceLock<Result<Arc<Cache>, Arc<FileError>>>;

/// The caches of the registries with one root, by provider.
type CachesAt = Vec<(String, Arc<CacheSlot>)>;

impl Caches {
    /// The caches in the cache folder `folder`.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, opened: Mutex::default() }
    }

    /// The cache of a registry.
    pub(super) fn cache_of_registry(
        &self,
        provider: &str,
        root: &Lead,
    ) -> Result<Arc<Cache>, Arc<FileError>> {
        let slot = {
            let mut opened = lock(&self.opened);
            let of_root = opened.get(root).into_iter().flatten();
            let known = of_root.into_iter().find(|(known, _)| known == provider);
            match known.map(|(_, slot)| Arc::clone(slot)) {
                Some(slot) => slot,
                None => {
                    let slot = Arc::default();
                    let of_root = opened.entry(root.clone()).or_default();
                    of_root.push((provider.to_owned(), Arc::clone(&slot)));
                    slot
                }
            }
        };
        let open = || Cache::open(&self.folder, provider, root).map(Arc::new).map_err(Arc::new);
        slot.get_or_init(open).clone()
    }

    /// Whether a registry once listed a package, or if `name` is `None`, any.
    pub(super) fn has_listed(&self, provider: &str, root: &Lead, name: Option<&str>) -> bool {
        self.cache_of_registry(provider, root).is_ok_and(|cache| match name {
            Some(name) => cache.lists(name),
            None => cache.names().any(|name| cache.lists(name)),
        })
    }

    /// The caches that could be opened.
    pub(super) fn open_caches(&self) -> Vec<Arc<Cache>> {
        let opened = lock(&self.opened);
        let slots = opened.values().flatten();
        slots.filter_map(|(_, slot)| slot.get()?.as_ref().ok().cloned()).collect()
    }
}
