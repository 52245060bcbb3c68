//! The snapshot: every index line of the hub in one file, for readers with an empty cache.
//!
//! It consists of two files, and a reader must never combine lines of one with digests of others. So lines keep
//! their place for ever, and new ones come last. In a store where several can write at the same time, each writer
//! first puts a mark into the snapshot: only the one that began last can finish, and it always can. If that one dies
//! in between, the two files may not fit each other. Then readers use the index, until the next write that is due,
//! or a repair, writes both.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures_util::{StreamExt as _, TryStreamExt as _};
use mu_provider::{ArchiveDigest, Digest};
use mu_provider_hub::wire::{SNAPSHOT_FILE, SNAPSHOT_ROW, SnapshotHead, digests_path};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::HubError;
use crate::archive::hex;
use crate::derived;
use crate::file::Seen;
use crate::files::{self, Files};
use crate::lines::{Lines, PUBLISHED_BY, PublishedLine};
use crate::log;
use crate::root::{DerivedFileProgress, Root};

/// Keys of an index line that are not needed to choose versions.
const LEFT_OUT: [&str; 11] = [
    "digest",
    "archive",
    "size",
    "urls",
    PUBLISHED_BY,
    "description",
    "keywords",
    "license",
    "maintainers",
    "website",
    "repository",
];

/// How many changes there must be, at least, before a snapshot is written again.
const FEWEST_CHANGES: u64 = 32;

/// How many bytes of a snapshot may be rewritten for each change: about 16 lines.
const BYTES_OF_A_CHANGE: u64 = 1_600;

/// The longest file of lines that is kept, in bytes: some 250,000 versions. A snapshot that is longer saves nobody anything, and each
/// change of one takes a writer seconds and gigabytes.
const LARGEST: usize = 4 << 20;

/// The longest that is read, in bytes.
const LONGEST: u64 = 4 << 30;

/// How many writers that began earlier may write the digests while the last one finishes.
const MOST_EARLIER_WRITERS: usize = 1_000;

/// Index files that are read at once.
const AT_ONCE: usize = 32;

/// A snapshot in memory.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// The generation of its content.
    pub(crate) generation: u64,
    /// SHA-256 of the file of digests, as hexadecimal digits.
    pub(crate) digests: String,
    /// Its lines, in order, and the digests of each.
    pub(crate) lines: Vec<(String, [u8; SNAPSHOT_ROW])>,
}

/// What a write did to the snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SnapshotChange {
    Written {
        progress: DerivedFileProgress,
        /// The length of the file of lines, in bytes.
        lines: u64,
    },
    /// The hub has become too large for one: only a repair looks at that again.
    TooLarge { generation: u64 },
}

/// Whether enough has changed since the snapshot was written the last time; `last` is the newest line of the log.
pub(crate) fn is_due(root: &Root, last: u64) -> bool {
    let DerivedFileProgress { generation, bytes } = root.snapshot_progress().unwrap_or_default();
    let changes = last.saturating_sub(generation);
    !root.is_too_large_for_a_snapshot()
        && changes >= FEWEST_CHANGES
        && changes.saturating_mul(BYTES_OF_A_CHANGE) >= bytes
}

/// Writes the snapshot, if enough has changed since the last time; `last` is the newest line of the log. With
/// `anew`, an existing snapshot is always rewritten.
pub(crate) async fn write(
    files: &Files,
    root: &Root,
    last: u64,
    anew: bool,
) -> Result<Option<SnapshotChange>, HubError> {
    let is_wanted = anew && root.knows_snapshots();
    if !is_due(root, last) && !is_wanted {
        return Ok(None);
    }
    let Some((mut snapshot, seen)) = begin(files).await? else { return Ok(None) };
    if anew {
        // People may have changed lines that otherwise never change.
        snapshot.lines.clear();
    }
    let names = match log::names(files, root, snapshot.generation, last).await? {
        Some(names) if !snapshot.lines.is_empty() && snapshot.generation <= last => names,
        _ => derived::all_package_names(files, root).await?,
    };
    let Some(mut snapshot) = update(files, root, snapshot, names).await? else { return Ok(None) };
    snapshot.generation = last;
    let rows: Bytes = snapshot.lines.iter().flat_map(|(_, row)| *row).collect::<Vec<u8>>().into();
    snapshot.digests = hex(&Sha256::digest(&rows));
    let file = snapshot.print();
    if file.len() > LARGEST {
        return Ok(Some(SnapshotChange::TooLarge { generation: last }));
    }
    let (bytes, lines) = ((rows.len() + file.len()) as u64, file.len() as u64);
    let is_written = end(files, &seen, rows, file).await?;
    let progress = DerivedFileProgress { generation: last, bytes };
    Ok(is_written.then_some(SnapshotChange::Written { progress, lines }))
}

/// Removes the snapshot, once `hub.json` names it no more.
pub(crate) async fn remove(files: &Files) -> Result<(), HubError> {
    for path in [SNAPSHOT_FILE.to_owned(), digests_path(SNAPSHOT_FILE)] {
        if files.read(&path).await?.is_some() {
            files.remove(&path).await?;
        }
    }
    Ok(())
}

/// Reads the snapshot, and makes sure that an earlier writer cannot finish.
async fn begin(files: &Files) -> Result<Option<(Snapshot, Seen)>, HubError> {
    let (snapshot, seen) = match files.read(SNAPSHOT_FILE).await? {
        None => (Snapshot::default(), None),
        Some(read) => (parse(files, &read.bytes).await?.unwrap_or_default(), Some(read.mark)),
    };
    if files.is_folder() {
        return Ok(Some((snapshot, seen)));
    }
    let marked = files.replace_seen(SNAPSHOT_FILE, &seen, snapshot.print()).await?;
    Ok(marked.map(|seen| (snapshot, Some(seen))))
}

/// Writes both files; `false` if somebody else has begun after this writer's mark, and has to do it.
///
/// A writer that began earlier may still write the digests. So they are written again until they are this
/// writer's. The current digests are read before the mark is checked: they are not replaced once a later
/// writer has put its own there.
async fn end(files: &Files, mark: &Seen, rows: Bytes, file: Bytes) -> Result<bool, HubError> {
    let digests = digests_path(SNAPSHOT_FILE);
    for _ in 0..MOST_EARLIER_WRITERS {
        let seen = files.read(&digests).await?.map(|read| read.mark);
        let is_marked = match files.read(SNAPSHOT_FILE).await? {
            Some(read) => {
                read.mark.e_tag.as_ref() == mark.as_ref().and_then(|mark| mark.e_tag.as_ref())
            }
            None => mark.is_none(),
        };
        if !is_marked {
            return Ok(false);
        }
        if files.replace(&digests, &seen, rows.clone()).await? {
            return files.replace(SNAPSHOT_FILE, mark, file).await;
        }
    }
    Ok(false)
}

/// Reads the current snapshot; `None` if there is none, or if its two files do not belong together.
pub(crate) async fn read(files: &Files) -> Result<Option<Snapshot>, HubError> {
    match files.read(SNAPSHOT_FILE).await? {
        Some(read) => parse(files, &read.bytes).await,
        None => Ok(None),
    }
}

/// Visits the lines of the current snapshot without keeping them. Returns the visitor and the generation;
/// `None` if there is no snapshot, or if it cannot be read to its end.
pub async fn visit<T: Send + 'static>(
    files: &Files,
    mut visitor: T,
    visit: fn(&mut T, PublishedLine),
) -> Result<Option<(u64, T)>, HubError> {
    let Some(read) = files.read(SNAPSHOT_FILE).await? else { return Ok(None) };
    // A large one takes seconds, during which requests continue.
    let visited = tokio::task::spawn_blocking(move || {
        let mut lines = BufReader::new(GzDecoder::new(&*read.bytes).take(LONGEST)).lines();
        let head: SnapshotHead = serde_json::from_str(&lines.next()?.ok()?).ok()?;
        for line in lines {
            visit(&mut visitor, PublishedLine::parse(&line.ok()?).ok()?);
        }
        Some((head.generation, visitor))
    });
    Ok(visited.await.ok().flatten())
}

async fn parse(files: &Files, bytes: &[u8]) -> Result<Option<Snapshot>, HubError> {
    let Some(read) = files.read(&digests_path(SNAPSHOT_FILE)).await? else { return Ok(None) };
    let mut text = String::new();
    if GzDecoder::new(bytes).take(LONGEST).read_to_string(&mut text).is_err() {
        return Ok(None);
    }
    let mut lines = text.lines();
    let head = lines.next().and_then(|head| serde_json::from_str::<SnapshotHead>(head).ok());
    let Some(head) = head else { return Ok(None) };
    let (rows, rest) = read.bytes.as_chunks::<SNAPSHOT_ROW>();
    let lines: Vec<_> = lines.zip(rows).map(|(line, row)| (line.to_owned(), *row)).collect();
    let fits =
        rest.is_empty() && lines.len() == rows.len() && lines.len() + 1 == text.lines().count();
    let is_whole = fits && head.digests == hex(&Sha256::digest(&read.bytes));
    let snapshot = Snapshot { generation: head.generation, digests: head.digests, lines };
    Ok(is_whole.then_some(snapshot))
}

/// Adds the index lines of some packages; `None` if one of them cannot be read.
async fn update(
    files: &Files,
    root: &Root,
    snapshot: Snapshot,
    names: Vec<String>,
) -> Result<Option<Snapshot>, HubError> {
    let mut lines = snapshot.lines;
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    for (place, (text, _)) in lines.iter().enumerate() {
        let Ok(line) = PublishedLine::parse(text) else { return Ok(None) };
        places.insert((line.name().to_owned(), line.full_version()), place);
    }
    let reading = futures_util::stream::iter(names)
        .map(|name| async move { derived::index(files, root, &name).await })
        .buffered(AT_ONCE);
    let read: Result<Vec<Lines>, HubError> = reading.try_collect().await;
    let read = match read {
        // A snapshot without a package would say that the package does not exist.
        Err(HubError::Broken { .. }) => return Ok(None),
        read => read?,
    };
    for line in read.iter().flat_map(Lines::iter) {
        let entry = (of(line), row(line));
        match places.get(&(line.name().to_owned(), line.full_version())) {
            Some(place) => lines[*place] = entry,
            None => lines.push(entry),
        }
    }
    Ok(Some(Snapshot { lines, ..snapshot }))
}

impl Snapshot {
    fn print(&self) -> Bytes {
        let head = SnapshotHead { generation: self.generation, digests: self.digests.clone() };
        let Ok(Value::Object(mut head)) = serde_json::to_value(&head) else {
            unreachable!("a struct of a number and a text is an object")
        };
        head.insert("mark".to_owned(), format!("{:016x}", files::random()).into());
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let head = Value::Object(head).to_string();
        let lines = self.lines.iter().map(|(line, _)| line.as_str());
        for line in std::iter::once(head.as_str()).chain(lines) {
            encoder.write_all(line.as_bytes()).expect("memory takes it");
            encoder.write_all(b"\n").expect("memory takes it");
        }
        encoder.finish().expect("memory takes it").into()
    }
}

/// An index line in the form of the snapshot.
pub(crate) fn of(line: &PublishedLine) -> String {
    let mut map = line.map().clone();
    for key in LEFT_OUT {
        map.shift_remove(key);
    }
    Value::Object(map).to_string()
}

/// The row for a line in the file of digests.
fn row(line: &PublishedLine) -> [u8; SNAPSHOT_ROW] {
    let mut row = [0; SNAPSHOT_ROW];
    if let Some(Ok(digest)) = line.text("digest").map(str::parse::<Digest>) {
        row[..32].copy_from_slice(digest.as_bytes());
    }
    if let Some(Ok(digest)) = line.text("archive").map(str::parse::<ArchiveDigest>) {
        row[32..64].copy_from_slice(digest.as_bytes());
    }
    let size = line.map().get("size").and_then(Value::as_u64).unwrap_or_default();
    row[64..].copy_from_slice(&size.to_le_bytes());
    row
}

#[cfg(all(test, feature = "buckets"))]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::Place;

    fn snapshot_of(version: &str) -> (Bytes, Bytes) {
        let text = format!("{{\"name\":\"a\",\"version\":\"{version}\"}}");
        let rows = Bytes::copy_from_slice(&[7; SNAPSHOT_ROW]);
        let digests = hex(&Sha256::digest(&rows));
        let lines = vec![(text, [7; SNAPSHOT_ROW])];
        (rows, Snapshot { generation: 1, digests, lines }.print())
    }

    #[tokio::test]
    async fn of_two_writers_the_one_that_began_last_ends() {
        let place = Place::store(Arc::new(InMemory::new()), "memory");
        let files = Files::open(&place, false).expect("is in memory");
        let (_, first) = begin(&files).await.expect("is in memory").expect("nobody else writes");
        let (_, second) = begin(&files).await.expect("is in memory").expect("nobody else writes");
        let digests = digests_path(SNAPSHOT_FILE);
        // The first one was about to write the digests when the second one began.
        files.write(&digests, "of the first".into()).await.expect("is in memory");
        let (rows, file) = snapshot_of("1.0.0");
        assert!(!end(&files, &first, rows, file).await.expect("is in memory"));
        assert!(read(&files).await.expect("is in memory").is_none());
        let (rows, file) = snapshot_of("2.0.0");
        assert!(end(&files, &second, rows, file).await.expect("is in memory"));
        let snapshot = read(&files).await.expect("is in memory").expect("fits its digests");
        assert!(snapshot.lines[0].0.contains("2.0.0"));
        let (rows, file) = snapshot_of("1.0.0");
        assert!(!end(&files, &first, rows, file).await.expect("is in memory"), "too late");
        assert!(read(&files).await.expect("is in memory").is_some());
    }
}
