//! The index cache: what registries answered, one file a registry, ready to use as it lies.
//!
//! Reading the file is one system call, finding a package in it one look into a table, and a version
//! costs its number and nothing else until someone asks for its line. Changes are appended, so that
//! one new package does not rewrite the rest; a file that is mostly superseded records is written anew.
//! A record that was cut off by a kill ends the file for its readers and is overwritten by the next writer.
//!
//! Everything here can be deleted at any time. What the bytes of a line mean is not known here.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mu_provider::{Location, SafeUrl};

use crate::fs::{self, AtPath as _, FileError, Lock, Sharing};
use crate::guard;

/// Changes with every change of the layout; a file with another one is ignored and replaced.
const MAGIC: &[u8; 8] = b"muindex2";

/// What a registry said about one package.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    /// When it was asked, in seconds since 1970.
    pub(super) checked: i64,
    /// For how many seconds it need not be asked again.
    pub(super) max_age: u32,
    /// What to send to ask whether anything changed.
    pub(super) validator: Option<String>,
    /// The package's releases; `None` if it has no such package.
    pub(super) listing: Option<Listing>,
    /// Where it was looked for, if it has no such package.
    pub(super) tried: Vec<String>,
}

/// A package's releases.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Listing {
    /// Where the package really is.
    pub(super) location: Location,
    /// One for each line, ascending by version; lines that are no version come last.
    pub(super) heads: Vec<Head>,
    /// The bytes that the heads' lines are in.
    pub(super) bytes: Arc<Vec<u8>>,
}

/// What is known of a line without reading it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Head {
    /// The version; empty for a tag or branch that is none.
    pub(super) version: String,
    /// Whether the version is composite.
    pub(super) composite: bool,
    /// Whether the line holds more than a version, its time and its dependencies.
    pub(super) detailed: bool,
    /// When it was published, in seconds since 1970.
    pub(super) published: Option<i64>,
    /// The commit.
    pub(super) commit: Option<String>,
    /// Where the line is in the listing's bytes.
    pub(super) line: Range<usize>,
}

/// The cache of one registry.
#[derive(Debug)]
pub(super) struct Cache {
    path: PathBuf,
    bytes: Arc<Vec<u8>>,
    records: HashMap<String, Range<usize>>,
    /// Newer times and validators of records that are otherwise as they were.
    checked: HashMap<String, Range<usize>>,
    changed: Mutex<Vec<Change>>,
}

#[derive(Debug)]
struct Change {
    name: String,
    said: Said,
}

#[derive(Debug)]
enum Said {
    /// This.
    Record(Arc<Vec<u8>>),
    /// Asked again, and nothing had changed: the times, and what to send the next time.
    Unchanged(Vec<u8>),
}

const WHOLE: u8 = 0;
const CHECKED: u8 = 1;

impl Cache {
    /// Reads the cache of the registry at `root`, in the cache folder `folder`.
    ///
    /// # Errors
    ///
    /// When the file is there and cannot be read. A damaged one counts as empty.
    pub(super) fn open(folder: &Path, provider: &str, root: &SafeUrl) -> Result<Self, FileError> {
        let path = folder.join("index").join(file_name(provider, root));
        let bytes = fs::read_if_there(&path)?.unwrap_or_default();
        let mut cache = Self {
            path,
            bytes: Arc::new(bytes),
            records: HashMap::new(),
            checked: HashMap::new(),
            changed: Mutex::default(),
        };
        for (frame, kind, name) in frames(&cache.bytes) {
            if kind == WHOLE {
                cache.checked.remove(name);
                cache.records.insert(name.to_owned(), frame);
            } else {
                cache.checked.insert(name.to_owned(), frame);
            }
        }
        Ok(cache)
    }

    /// Whether nothing is remembered of this registry.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The names of all packages that something is remembered of.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(String::as_str)
    }

    /// When `name` was last asked about, in seconds since 1970, and for how many seconds that is fresh.
    pub(super) fn times(&self, name: &str) -> Option<(i64, u32)> {
        // Both kinds of records begin with them.
        let frame = self.checked.get(name).or_else(|| self.records.get(name))?.clone();
        Reader::new(&self.bytes[frame]).times()
    }

    /// What was last said about the package `name`.
    pub(super) fn find(&self, name: &str) -> Option<Record> {
        let frame = self.records.get(name)?.clone();
        let mut record =
            Reader::new(&self.bytes[frame.clone()]).record(&self.bytes, frame.start)?;
        if let Some(frame) = self.checked.get(name) {
            let mut reader = Reader::new(&self.bytes[frame.clone()]);
            (record.checked, record.max_age) = reader.times()?;
            record.validator = reader.option()?.map(str::to_owned);
        }
        Some(record)
    }

    /// Remembers what was said about `name`; written by [`Cache::save`].
    ///
    /// Returns the same record over the bytes that are remembered, so that there is one copy of them.
    pub(super) fn put(&self, name: &str, record: Record) -> Record {
        let bytes = Arc::new(encode(&record));
        let kept = Reader::new(&bytes).record(&bytes, 0).unwrap_or(record);
        self.change(name, Said::Record(bytes));
        kept
    }

    /// Remembers that nothing changed about `name`, and when that was asked.
    pub(super) fn touch(&self, name: &str, record: &Record) {
        let mut content = times(record.checked, record.max_age);
        put_option(&mut content, record.validator.as_deref());
        self.change(name, Said::Unchanged(content));
    }

    fn change(&self, name: &str, said: Said) {
        guard::lock(&self.changed).push(Change { name: name.to_owned(), said });
    }

    /// Writes what was remembered.
    ///
    /// # Errors
    ///
    /// When the disk refuses.
    pub(super) fn save(&self) -> Result<(), FileError> {
        let changes = std::mem::take(&mut *guard::lock(&self.changed));
        if changes.is_empty() {
            return Ok(());
        }
        let lock_path = self.path.with_extension("lock");
        let _lock = Lock::acquire(&lock_path, Sharing::Exclusive, &mut || {})?;
        let present = fs::read_if_there(&self.path)?.unwrap_or_default();
        let whole = valid_length(&present);
        if is_mostly_superseded(&present[..whole], &changes) {
            let appended: Vec<u8> = changes.iter().flat_map(Change::frame).collect();
            return fs::write_atomic(&self.path, &compact(&present[..whole], &appended));
        }
        drop(present);
        if whole == 0 {
            fs::write_atomic(&self.path, MAGIC)?;
        }
        append(&self.path, whole.max(MAGIC.len()), &changes).at("write", &self.path)
    }
}

impl Change {
    /// How it is written.
    fn frame(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match &self.said {
            Said::Record(record) => frame(&mut bytes, WHOLE, &self.name, record),
            Said::Unchanged(content) => frame(&mut bytes, CHECKED, &self.name, content),
        }
        bytes
    }
}

/// Writes the changes one by one behind the first `after` bytes.
fn append(path: &Path, after: usize, changes: &[Change]) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(after as u64)?;
    let mut writer = BufWriter::with_capacity(256 << 10, file);
    writer.seek(SeekFrom::End(0))?;
    for change in changes {
        writer.write_all(&change.frame())?;
    }
    writer.flush()
}

/// Whether less than half of the bytes would still say something.
fn is_mostly_superseded(present: &[u8], changes: &[Change]) -> bool {
    let mut sizes: HashMap<&str, usize> = HashMap::new();
    for (frame, kind, name) in frames(present) {
        if kind == WHOLE {
            sizes.insert(name, frame.len());
        }
    }
    let mut appended = 0;
    for change in changes {
        if let Said::Record(record) = &change.said {
            appended += record.len();
            sizes.insert(&change.name, record.len());
        }
    }
    present.len() > 64 << 10 && sizes.values().sum::<usize>() * 2 < present.len() + appended
}

/// The same records without the superseded ones.
fn compact(present: &[u8], appended: &[u8]) -> Vec<u8> {
    let mut last: HashMap<&str, &[u8]> = HashMap::new();
    let mut checked: HashMap<&str, &[u8]> = HashMap::new();
    for bytes in [present, appended] {
        // Appended frames have no magic in front; `frames` reads both.
        for (range, kind, name) in frames(bytes) {
            if kind == WHOLE {
                last.insert(name, &bytes[range]);
                checked.remove(name);
            } else {
                checked.insert(name, &bytes[range]);
            }
        }
    }
    let mut names: Vec<&str> = last.keys().copied().collect();
    names.sort_unstable();
    let mut file = MAGIC.to_vec();
    for name in names {
        frame(&mut file, WHOLE, name, last[name]);
        if let Some(times) = checked.get(name) {
            frame(&mut file, CHECKED, name, times);
        }
    }
    file
}

fn file_name(provider: &str, root: &SafeUrl) -> String {
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
    format!("{provider}-{host}-{}.index", &hash[..16])
}

/// Appends a frame: length, kind, name, content.
fn frame(out: &mut Vec<u8>, kind: u8, name: &str, content: &[u8]) {
    let length = 1 + 4 + name.len() + content.len();
    out.extend_from_slice(&u32::try_from(length).expect("an index is under 4 GiB").to_le_bytes());
    out.push(kind);
    put_text(out, name);
    out.extend_from_slice(content);
}

/// The frames of a file (or of what is appended to one): where each content is, its kind and name.
fn frames(bytes: &[u8]) -> impl Iterator<Item = (Range<usize>, u8, &str)> {
    let mut at = if bytes.starts_with(MAGIC) { MAGIC.len() } else { 0 };
    std::iter::from_fn(move || {
        let mut reader = Reader { bytes, at };
        let length = reader.number()? as usize;
        let end = reader.at.checked_add(length).filter(|end| *end <= bytes.len())?;
        let kind = reader.take(1)?[0];
        let name = reader.text()?;
        let start = reader.at;
        if start > end {
            return None;
        }
        at = end;
        Some((start..end, kind, name))
    })
}

/// How much of a file is whole; 0 if it is no cache of this layout.
fn valid_length(bytes: &[u8]) -> usize {
    if !bytes.starts_with(MAGIC) {
        return 0;
    }
    frames(bytes).last().map_or(MAGIC.len(), |(range, ..)| range.end)
}

fn times(checked: i64, max_age: u32) -> Vec<u8> {
    let mut out = checked.to_le_bytes().to_vec();
    out.extend_from_slice(&max_age.to_le_bytes());
    out
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn put_option(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    put_text(out, text.unwrap_or_default());
}

fn put_number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&u32::try_from(number).expect("an index is under 4 GiB").to_le_bytes());
}

fn encode(record: &Record) -> Vec<u8> {
    let mut out = times(record.checked, record.max_age);
    put_option(&mut out, record.validator.as_deref());
    out.push(u8::from(record.listing.is_some()));
    let Some(listing) = &record.listing else {
        put_number(&mut out, record.tried.len());
        for tried in &record.tried {
            put_text(&mut out, tried);
        }
        return out;
    };
    let location = &listing.location;
    put_text(&mut out, location.root.as_url().as_str());
    put_text(&mut out, &location.path);
    put_option(&mut out, location.folder.as_deref());
    out.push(u8::from(location.insecure));
    out.push(u8::from(location.lenient));
    put_number(&mut out, listing.heads.len());
    let mut start = 0;
    for head in &listing.heads {
        put_text(&mut out, &head.version);
        out.push(u8::from(head.composite) | u8::from(head.detailed) << 1);
        out.extend_from_slice(&head.published.unwrap_or(i64::MIN).to_le_bytes());
        put_text(&mut out, head.commit.as_deref().unwrap_or_default());
        // Lines are written in the order of their heads, so that a start and a length say all.
        put_number(&mut out, start);
        put_number(&mut out, head.line.len());
        start += head.line.len();
    }
    for head in &listing.heads {
        out.extend_from_slice(&listing.bytes[head.line.clone()]);
    }
    out
}

struct Reader<'bytes> {
    bytes: &'bytes [u8],
    at: usize,
}

impl<'bytes> Reader<'bytes> {
    fn new(bytes: &'bytes [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn take(&mut self, count: usize) -> Option<&'bytes [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.take(1)?[0] == 1)
    }

    fn text(&mut self) -> Option<&'bytes str> {
        let length = self.number()? as usize;
        std::str::from_utf8(self.take(length)?).ok()
    }

    fn option(&mut self) -> Option<Option<&'bytes str>> {
        let is_some = self.flag()?;
        let text = self.text()?;
        Some(is_some.then_some(text))
    }

    fn times(&mut self) -> Option<(i64, u32)> {
        Some((self.long()?, self.number()?))
    }

    /// Reads a record whose first byte is at `offset` in `file`.
    fn record(&mut self, file: &Arc<Vec<u8>>, offset: usize) -> Option<Record> {
        let (checked, max_age) = self.times()?;
        let validator = self.option()?.map(str::to_owned);
        if !self.flag()? {
            let count = self.number()?;
            let tried =
                (0..count).map(|_| self.text().map(str::to_owned)).collect::<Option<_>>()?;
            return Some(Record { checked, max_age, validator, listing: None, tried });
        }
        let location = Location {
            root: SafeUrl::parse(self.text()?).ok()?,
            path: self.text()?.to_owned(),
            folder: self.option()?.map(str::to_owned),
            insecure: self.flag()?,
            lenient: self.flag()?,
            dated: false,
        };
        let count = self.number()? as usize;
        let mut heads = Vec::with_capacity(count.min(self.bytes.len()));
        for _ in 0..count {
            let version = self.text()?.to_owned();
            let flags = self.take(1)?[0];
            let published = Some(self.long()?).filter(|published| *published != i64::MIN);
            let commit = Some(self.text()?).filter(|commit| !commit.is_empty()).map(str::to_owned);
            let start = self.number()? as usize;
            let length = self.number()? as usize;
            heads.push(Head {
                version,
                composite: flags & 1 != 0,
                detailed: flags & 2 != 0,
                published,
                commit,
                line: start..start.checked_add(length)?,
            });
        }
        let lines = offset + self.at;
        let available = self.bytes.len() - self.at;
        for head in &mut heads {
            if head.line.end > available {
                return None;
            }
            head.line = head.line.start + lines..head.line.end + lines;
        }
        let listing = Listing { location, heads, bytes: Arc::clone(file) };
        Some(Record { checked, max_age, validator, listing: Some(listing), tried: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(lines: &[&str]) -> Record {
        let bytes = lines.concat().into_bytes();
        let mut start = 0;
        let heads = lines.iter().enumerate().map(|(index, line)| {
            start += line.len();
            Head {
                version: format!("1.{index}.0"),
                composite: false,
                detailed: index == 1,
                published: (index == 0).then_some(7),
                commit: (index == 2).then(|| "c0ffee".to_owned()),
                line: start - line.len()..start,
            }
        });
        let root = SafeUrl::parse("https://hub.example/mu/").expect("is a URL");
        Record {
            checked: 5,
            max_age: 60,
            validator: Some("\"etag\"".to_owned()),
            listing: Some(Listing {
                heads: heads.collect(),
                location: Location::new(root, "aws/ec2"),
                bytes: Arc::new(bytes),
            }),
            tried: Vec::new(),
        }
    }

    fn lines(cache: &Cache, name: &str) -> Option<Vec<String>> {
        let listing = cache.find(name)?.listing?;
        let text =
            |head: &Head| String::from_utf8_lossy(&listing.bytes[head.line.clone()]).into_owned();
        Some(listing.heads.iter().map(text).collect())
    }

    fn open(folder: &tempfile::TempDir) -> Cache {
        let root = SafeUrl::parse("https://hub.example/mu/").expect("is a URL");
        Cache::open(folder.path(), "hub", &root).expect("opens")
    }

    #[test]
    fn remembers_what_is_not_there() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = open(&folder);
        let absent = Record { listing: None, tried: vec!["x".to_owned()], ..record(&[]) };
        cache.put("a", absent.clone());
        cache.save().expect("saves");
        assert_eq!(open(&folder).find("a"), Some(absent));
    }

    #[test]
    fn finds_what_was_saved_and_the_newest_of_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = open(&folder);
        cache.put("a", record(&["{1}", "{22}", "{333}"]));
        cache.put("b", record(&["{b}"]));
        cache.save().expect("saves");
        let cache = open(&folder);
        assert_eq!(lines(&cache, "a"), Some(["{1}", "{22}", "{333}"].map(String::from).to_vec()));
        cache.put("a", record(&["{new}"]));
        let renewed = Some("renewed".to_owned());
        cache.touch("b", &Record { checked: 99, max_age: 10, validator: renewed, ..record(&[]) });
        cache.save().expect("saves");
        let cache = open(&folder);
        assert_eq!(lines(&cache, "a"), Some(vec!["{new}".to_owned()]));
        let b = cache.find("b").expect("is there");
        assert_eq!((b.checked, b.max_age, b.validator.as_deref()), (99, 10, Some("renewed")));
        assert_eq!(cache.find("c"), None);
    }

    #[test]
    fn a_file_that_was_cut_anywhere_is_still_a_cache() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = open(&folder);
        cache.put("a", record(&["{1}"]));
        cache.put("b", record(&["{2}"]));
        cache.save().expect("saves");
        let whole = std::fs::read(&cache.path).expect("reads");
        for length in 0..whole.len() {
            std::fs::write(&cache.path, &whole[..length]).expect("writes");
            let cut = open(&folder);
            cut.put("c", record(&["{3}"]));
            cut.save().expect("saves");
            assert_eq!(lines(&open(&folder), "c"), Some(vec!["{3}".to_owned()]), "{length}");
        }
    }

    #[test]
    fn does_not_grow_for_ever() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let long = "x".repeat(10_000);
        for _ in 0..50 {
            let cache = open(&folder);
            cache.put("a", record(&[&long]));
            cache.save().expect("saves");
        }
        let size = std::fs::metadata(&open(&folder).path).expect("is there").len();
        assert!(size < 100_000, "{size}");
    }
}
