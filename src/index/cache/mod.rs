//! The index cache: what registries answered, one file a registry, ready to use as it lies.
//!
//! Opening it reads what selection needs, and nothing else: of each version its number, and what it depends on as
//! references. Finding a package in it is one look into a table, and whole lines stay on the disk until someone asks for
//! them. Changes are appended, so that one new package does not rewrite the rest; a file that is mostly superseded records
//! is written anew.
//!
//! Everything here can be deleted at any time. What the bytes of a line mean is not known here.

mod layout;
mod listing;
mod segments;

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mu_provider::SafeUrl;
use rustc_hash::{FxHashMap, FxHashSet};

use self::layout::{Reader, Written};
use self::listing::Far;
use self::segments::{CHECKED, Frame, Latest, MAGIC, MOST_SEGMENTS, Near, Part, Segment, WHOLE};
use crate::fs::{self, AtPath as _, FileError, Lock, Sharing};
use crate::guard;

pub(super) use self::layout::Table;
pub(super) use self::listing::{Head, Heads, Label, Line, Lines, Listing, Needs, Record};

/// The cache of one registry.
#[derive(Debug)]
pub(super) struct Cache {
    path: PathBuf,
    root: SafeUrl,
    bytes: Arc<Vec<u8>>,
    file: Option<Arc<File>>,
    frames: Vec<Frame>,
    records: FxHashMap<Box<str>, Latest>,
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
    Record(Written),
    /// Asked again, and nothing had changed: the times, and what to send the next time.
    Unchanged(Vec<u8>),
}

impl Cache {
    /// Reads the cache of the registry at `root`, in the cache folder `folder`.
    ///
    /// # Errors
    ///
    /// When the file is there and cannot be read. A damaged one counts as empty.
    pub(super) fn open(folder: &Path, provider: &str, root: &SafeUrl) -> Result<Self, FileError> {
        let path = folder.join("index").join(file_name(provider, root));
        let file = fs::open_if_there(&path)?;
        let near = match &file {
            Some(file) => Near::read(file).at("read", &path)?,
            None => Near::default(),
        };
        let records = near.latest().into_iter().map(|(name, latest)| (name.into(), latest));
        Ok(Self {
            records: records.collect(),
            path,
            root: root.clone(),
            bytes: Arc::new(near.bytes),
            file: file.map(Arc::new),
            frames: near.frames,
            changed: Mutex::default(),
        })
    }

    /// Whether nothing is remembered of this registry.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The names of all packages that something is remembered of.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(|name| &**name)
    }

    /// When `name` was last asked about, in seconds since 1970, and for how many seconds that is fresh.
    pub(super) fn times(&self, name: &str) -> Option<(i64, u32)> {
        let latest = self.records.get(name)?;
        // Both kinds of records begin with them.
        let frame = self.frames.get(latest.checked.unwrap_or(latest.whole))?;
        Reader::new(self.bytes.get(frame.near.clone())?).times()
    }

    /// What to send to ask whether anything changed about `name`.
    pub(super) fn validator(&self, name: &str) -> Option<String> {
        let latest = self.records.get(name)?;
        let near = |frame: usize| self.bytes.get(self.frames.get(frame)?.near.clone());
        match latest.checked {
            Some(checked) => layout::decode_unchanged(near(checked)?)?.2,
            None => layout::decode_validator(near(latest.whole)?),
        }
    }

    /// What was last said about the package `name`.
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

    /// Remembers what was said about `name`; written by [`Cache::save`].
    ///
    /// Returns the same record over the bytes that are remembered, so that there is one copy of them.
    pub(super) fn put(&self, name: &str, record: Record) -> Record {
        let Some(written) = layout::encode(&record) else { return record };
        let far = Far::Bytes(Arc::clone(&written.far));
        let kept = layout::decode(&written.near, 0..written.near.len(), far, &self.root);
        self.change(name, Said::Record(written));
        kept.unwrap_or(record)
    }

    /// Remembers that nothing changed about `name`, and when that was asked.
    pub(super) fn touch(&self, name: &str, record: &Record) {
        self.change(name, Said::Unchanged(layout::encode_unchanged(record)));
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
        // Another process may have written since this one read.
        let present = fs::open_if_there(&self.path)?;
        let near = match &present {
            Some(file) => Near::read(file).at("read", &self.path)?,
            None => Near::default(),
        };
        let mut segment = Segment::default();
        if let (Some(file), true) = (&present, is_worth_rewriting(&near, &changes)) {
            keep(&mut segment, file, &near, &changes).at("read", &self.path)?;
            changes.iter().for_each(|change| segment.push(change.part()));
            let mut whole = MAGIC.to_vec();
            segment.write(&mut whole).at("write", &self.path)?;
            return fs::write_atomic(&self.path, &whole);
        }
        changes.iter().for_each(|change| segment.push(change.part()));
        if near.end == 0 {
            fs::write_atomic(&self.path, MAGIC)?;
        }
        let end = near.end.max(MAGIC.len() as u64);
        let file = fs::open_with(&self.path, OpenOptions::new().write(true))?;
        append(file, end, &segment).at("write", &self.path)
    }
}

impl Change {
    fn part(&self) -> Part<'_> {
        let (kind, near, far) = match &self.said {
            Said::Record(Written { near, far }) => (WHOLE, near.as_slice(), far.as_slice()),
            Said::Unchanged(near) => (CHECKED, near.as_slice(), [].as_slice()),
        };
        Part { kind, name: &self.name, near, far: Cow::Borrowed(far) }
    }
}

/// Writes a segment behind the first `after` bytes.
fn append(file: File, after: u64, segment: &Segment<'_>) -> io::Result<()> {
    file.set_len(after)?;
    let mut writer = BufWriter::with_capacity(256 << 10, file);
    writer.seek(SeekFrom::End(0))?;
    segment.write(&mut writer)?;
    writer.flush()
}

/// Whether less than half of the bytes would still say something, or reading the file takes many steps.
fn is_worth_rewriting(present: &Near, changes: &[Change]) -> bool {
    if present.segments >= MOST_SEGMENTS {
        return true;
    }
    let mut sizes: FxHashMap<&str, u64> = FxHashMap::default();
    for (name, latest) in present.latest() {
        let Some(frame) = present.frames.get(latest.whole) else { continue };
        sizes.insert(name, frame.near.len() as u64 + u64::from(frame.far_length));
    }
    let mut whole = present.end;
    for change in changes {
        if let Said::Record(written) = &change.said {
            let size = (written.near.len() + written.far.len()) as u64;
            whole += size;
            sizes.insert(&change.name, size);
        }
    }
    present.end > 64 << 10 && sizes.values().sum::<u64>() * 2 < whole
}

/// Takes over what is in a file and still says something.
fn keep<'parts>(
    segment: &mut Segment<'parts>,
    file: &File,
    present: &'parts Near,
    changes: &[Change],
) -> io::Result<()> {
    let replaced = changes.iter().filter(|change| matches!(change.said, Said::Record(_)));
    let replaced: FxHashSet<&str> = replaced.map(|change| change.name.as_str()).collect();
    let mut latest: Vec<(&str, Latest)> = present.latest().into_iter().collect();
    latest.retain(|(name, _)| !replaced.contains(name));
    latest.sort_unstable_by_key(|(name, _)| *name);
    for (name, Latest { whole, checked }) in latest {
        let Some((whole, near)) = present.part(whole) else { continue };
        let mut far = vec![0; whole.far_length as usize];
        fs::read_at(file, whole.far, &mut far)?;
        segment.push(Part { kind: WHOLE, name, near, far: Cow::Owned(far) });
        if let Some((_, near)) = checked.and_then(|checked| present.part(checked)) {
            segment.push(Part { kind: CHECKED, name, near, far: Cow::Borrowed(&[]) });
        }
    }
    Ok(())
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
    let (begin, _) = hash.split_at(16);
    format!("{provider}-{host}-{begin}.index")
}

#[cfg(test)]
mod tests {
    use mu_provider::Location;

    use super::*;

    fn record(lines: &[&str]) -> Record {
        let bytes = lines.concat().into_bytes();
        let mut start = 0;
        let heads = lines.iter().enumerate().map(|(index, line)| {
            start += line.len();
            let plain = Label::Plain([1, index as u32, 0]);
            let references = ["aws/ec2#^1", "acme.co/x", "aws/ec2#"].map(str::to_owned);
            Head {
                version: if index == 3 { Label::Text("1.3.0-rc.1".into()) } else { plain },
                composite: index == 3,
                detailed: index == 1,
                published: (index == 0).then_some(7),
                commit: (index == 2).then(|| "c0ffee".into()),
                line: Line::fetched(start - line.len()..start),
                needs: match index {
                    0 => Needs::Unread,
                    1 => Needs::References(Vec::new()),
                    _ => Needs::References(references.to_vec()),
                },
            }
        });
        let root = SafeUrl::parse("https://hub.example/mu/").expect("is a URL");
        Record {
            checked: 5,
            max_age: 60,
            validator: Some("\"etag\"".to_owned()),
            listing: Some(Listing {
                heads: Heads::Each(heads.collect()),
                location: Location::new(root, "aws/ec2"),
                lines: Lines::fetched(bytes),
            }),
            tried: Vec::new(),
        }
    }

    /// The same with plain versions alone.
    fn plain_record(lines: &[&str]) -> Record {
        let mut record = record(lines);
        if let Some(Heads::Each(heads)) = record.listing.as_mut().map(|listing| &mut listing.heads)
        {
            for (index, head) in heads.iter_mut().enumerate() {
                let version = Label::Plain([1, index as u32, 0]);
                *head = Head { version, composite: false, commit: None, ..head.clone() };
            }
        }
        record
    }

    fn is_table(record: &Record) -> bool {
        record.listing.as_ref().is_some_and(|listing| matches!(listing.heads, Heads::Table(_)))
    }

    fn texts(record: &Record) -> Option<Vec<String>> {
        let listing = record.listing.as_ref()?;
        let text = |head: &Head| {
            let line = listing.lines.read(head.line).expect("is there");
            String::from_utf8_lossy(&line).into_owned()
        };
        Some(listing.heads.each(&listing.lines).iter().map(text).collect())
    }

    fn lines(cache: &Cache, name: &str) -> Option<Vec<String>> {
        texts(&cache.find(name)?)
    }

    #[test]
    fn a_record_comes_out_as_it_went_in() {
        let lines = ["{1}", "{22}", "{333}", "{4444}"];
        for (before, is_plain) in [(record(&lines), false), (plain_record(&lines), true)] {
            comes_out(&before, is_plain);
        }
    }

    fn comes_out(before: &Record, is_plain: bool) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = open(&folder);
        let check = |after: &Record| {
            assert_eq!((after.checked, after.max_age), (before.checked, before.max_age));
            assert_eq!(after.validator, before.validator);
            assert_eq!(is_table(after), is_plain);
            assert_eq!(texts(after), texts(before));
            let (after, before) = (after.listing.as_ref(), before.listing.as_ref());
            let (after, before) = after.zip(before).expect("have releases");
            assert_eq!(after.location, before.location);
            let heads = |listing: &Listing| listing.heads.each(&listing.lines).into_owned();
            for (after, before) in heads(after).iter().zip(&heads(before)) {
                let known = |head: &Head| {
                    let Head { version, composite, detailed, published, commit, .. } = head.clone();
                    (version, composite, detailed, published, commit)
                };
                assert_eq!(known(after), known(before));
            }
            let needs = |head: &Head| match &head.needs {
                Needs::At(at) => after.lines.needs(at),
                _ => None,
            };
            let heads = heads(after);
            let found: Vec<_> = heads.iter().map(needs).collect();
            let all = vec![("aws/ec2", Some("^1")), ("acme.co/x", None), ("aws/ec2", Some(""))];
            assert_eq!(found, [None, Some(Vec::new()), Some(all.clone()), Some(all)]);
        };
        check(&cache.put("a", before.clone()));
        cache.save().expect("saves");
        check(&open(&folder).find("a").expect("is there"));
    }

    #[test]
    fn whatever_the_bytes_are_nothing_breaks() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let lines = ["{1}", "{22}", "{333}", "{4444}"];
        for record in [record(&lines), plain_record(&lines)] {
            survives(&folder, record);
        }
    }

    fn survives(folder: &tempfile::TempDir, before: Record) {
        let cache = open(folder);
        cache.put("a", before);
        cache.save().expect("saves");
        let cache = open(folder);
        cache.touch("a", &record(&[]));
        cache.save().expect("saves");
        let whole = std::fs::read(&cache.path).expect("reads");
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff, whole[at] ^ 1] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                std::fs::write(&cache.path, &bytes).expect("writes");
                let cache = open(folder);
                cache.times("a");
                let Some(listing) = cache.find("a").and_then(|record| record.listing) else {
                    continue;
                };
                for head in &*listing.heads.each(&listing.lines) {
                    let _ = listing.lines.read(head.line);
                    if let Needs::At(at) = &head.needs {
                        listing.lines.needs(at);
                    }
                }
            }
        }
    }

    #[test]
    fn many_small_changes_become_one_segment() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for index in 0..MOST_SEGMENTS * 2 {
            let cache = open(&folder);
            cache.put(&format!("package-{index}"), record(&["{1}"]));
            cache.save().expect("saves");
        }
        let cache = open(&folder);
        assert_eq!(cache.names().count(), MOST_SEGMENTS * 2);
        let file = File::open(&cache.path).expect("is there");
        assert!(Near::read(&file).expect("reads").segments <= MOST_SEGMENTS);
        assert_eq!(lines(&cache, "package-0"), Some(vec!["{1}".to_owned()]));
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
        let found = open(&folder).find("a").expect("is there");
        assert!(found.listing.is_none());
        assert_eq!(found.tried, absent.tried);
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
        assert!(cache.find("c").is_none());
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
