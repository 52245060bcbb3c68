//! The snapshot: every index line of the hub in one file, for readers with an empty cache.
//!
//! It consists of two files, and a reader must never combine lines of one with digests of others. So lines keep
//! their place for ever, and new ones come last. In a store where several can write at the same time, each writer
//! first puts a mark into the snapshot: only the one that began last can finish, and it always can. If that one dies
//! in between, the two files may not fit each other. Then readers use the index, until the next write that is due,
//! or a repair, writes both.
//!
//! Lines pass from file to file one after another: only what is compressed is in memory, and the digests.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};

use bytes::Bytes;
use flate2::read::GzDecoder;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use futures_util::{StreamExt as _, TryStreamExt as _};
use mu_provider::{ArchiveDigest, Digest};
use mu_provider_hub::wire::{SNAPSHOT_FILE, SNAPSHOT_ROW, SnapshotHead, digests_path};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::HubError;
use crate::archive::hex;
use crate::derived;
use crate::file::Seen;
use crate::files::{self, Files};
use crate::lines::{PUBLISHED_BY, PublishedLine};
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

/// The longest file of lines that is kept, in bytes: some 250,000 versions. A snapshot that is longer saves nobody anything.
const LARGEST: usize = 4 << 20;

/// The longest file of digests that is kept, in bytes: 262,144 versions, however well their lines compress.
const LARGEST_DIGESTS: usize = 18 << 20;

/// The longest that is read, in bytes.
const LONGEST: u64 = 4 << 30;

/// After more changes than that, a snapshot is rebuilt from all packages.
const MOST_CHANGES: u64 = 100_000;

/// How many writers that began earlier may write the digests while the last one finishes.
const MOST_EARLIER_WRITERS: usize = 1_000;

/// Index files that are read at once.
const AT_ONCE: usize = 32;

/// A snapshot as it was read, whose two files fit each other.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The generation of its content.
    pub(crate) generation: u64,
    /// SHA-256 of the file of digests, as hexadecimal digits.
    digests: String,
    /// The file of lines, compressed.
    file: Bytes,
    /// The digests of each line.
    rows: Bytes,
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
    let too_large = SnapshotChange::TooLarge { generation: last };
    if !anew && root.length_of_snapshot_lines() > LARGEST as u64 {
        // It is from before there was a limit, and longer than memory should hold.
        return Ok(Some(too_large));
    }
    let Some((snapshot, seen)) = begin(files).await? else { return Ok(None) };
    // People may have changed lines that otherwise never change.
    let is_usable = |known: &Snapshot| {
        let is_near = known.generation <= last && last - known.generation <= MOST_CHANGES;
        !anew && is_near && !known.rows.is_empty()
    };
    let snapshot = snapshot.filter(is_usable);
    let changed = match &snapshot {
        Some(known) => log::names(files, root, known.generation, last).await?,
        None => None,
    };
    let written = match (snapshot, changed) {
        (Some(known), Some(changed)) => updated(files, root, &known, changed).await?,
        _ => whole(files, root).await?,
    };
    let Some(mut written) = written else { return Ok(None) };
    if written.is_too_large() {
        return Ok(Some(too_large));
    }
    let rows = Bytes::from(std::mem::take(&mut written.rows));
    let digests = hex(&Sha256::digest(&rows));
    let file = written.finish(SnapshotHead { generation: last, digests });
    if file.len() > LARGEST {
        return Ok(Some(too_large));
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
async fn begin(files: &Files) -> Result<Option<(Option<Snapshot>, Seen)>, HubError> {
    let (snapshot, seen) = match files.read(SNAPSHOT_FILE).await? {
        None => (None, None),
        Some(read) => (parse(files, read.bytes).await?, Some(read.mark)),
    };
    if files.is_folder() {
        return Ok(Some((snapshot, seen)));
    }
    // The same lines, with another mark.
    let (mut written, mut head) = (WrittenLines::new(), SnapshotHead::default());
    if let Some(Snapshot { generation, digests, .. }) = &snapshot {
        head = SnapshotHead { generation: *generation, digests: digests.clone() };
    }
    for line in snapshot.iter().flat_map(Snapshot::snapshot_lines) {
        written.push(&line.map_err(|error| unreadable(files, &error))?, &[]);
    }
    let marked = files.replace_seen(SNAPSHOT_FILE, &seen, written.finish(head)).await?;
    Ok(marked.map(|seen| (snapshot, Some(seen))))
}

fn unreadable(files: &Files, error: &io::Error) -> HubError {
    files.broken(SNAPSHOT_FILE, error.to_string())
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
        Some(read) => parse(files, read.bytes).await,
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
        let mut lines = inflated(&read.bytes).lines();
        let head: SnapshotHead = serde_json::from_str(&lines.next()?.ok()?).ok()?;
        for line in lines {
            visit(&mut visitor, PublishedLine::parse(&line.ok()?).ok()?);
        }
        Some((head.generation, visitor))
    });
    Ok(visited.await.ok().flatten())
}

/// The text of a file of lines.
fn inflated(file: &[u8]) -> BufReader<io::Take<GzDecoder<&[u8]>>> {
    BufReader::new(GzDecoder::new(file).take(LONGEST))
}

async fn parse(files: &Files, file: Bytes) -> Result<Option<Snapshot>, HubError> {
    let Some(read) = files.read(&digests_path(SNAPSHOT_FILE)).await? else { return Ok(None) };
    let rows = read.bytes;
    let mut lines = inflated(&file).lines();
    let head = lines.next().and_then(|head| serde_json::from_str(&head.ok()?).ok());
    let Some(SnapshotHead { generation, digests }) = head else { return Ok(None) };
    let count = lines.try_fold(0, |count, line| line.map(|_| count + SNAPSHOT_ROW));
    let is_whole =
        count.is_ok_and(|bytes| bytes == rows.len()) && digests == hex(&Sha256::digest(&rows));
    Ok(is_whole.then_some(Snapshot { generation, digests, file, rows }))
}

/// The snapshot by the index of all packages, or as much of it as shows that it is too large; `None` if a package cannot be read: a
/// snapshot without it would say that it does not exist.
async fn whole(files: &Files, root: &Root) -> Result<Option<WrittenLines>, HubError> {
    let mut written = WrittenLines::new();
    let mut reading = derived::package_names(files, root)?
        .map_ok(|name| async move { derived::index(files, root, &name).await })
        .try_buffered(AT_ONCE);
    while let Some(lines) = reading.next().await {
        let lines = match lines {
            Err(HubError::Broken { .. }) => return Ok(None),
            lines => lines?,
        };
        lines.iter().for_each(|line| written.push(&of(line), &row(line)));
        if written.is_too_large() {
            break;
        }
    }
    Ok(Some(written))
}

/// A snapshot in which the lines of some packages are as their index says now, each in its place, and new ones behind all others;
/// `None` if one of the packages cannot be read.
async fn updated(
    files: &Files,
    root: &Root,
    snapshot: &Snapshot,
    changed: Vec<String>,
) -> Result<Option<WrittenLines>, HubError> {
    let mut reading = futures_util::stream::iter(changed)
        .map(|name| async move {
            let lines = derived::index(files, root, &name).await;
            (name, lines)
        })
        .buffered(AT_ONCE);
    // Name → its lines that were not met in the snapshot yet, with their versions.
    let mut newer: BTreeMap<String, Vec<(String, String, [u8; SNAPSHOT_ROW])>> = BTreeMap::new();
    while let Some((name, lines)) = reading.next().await {
        let lines = match lines {
            Err(HubError::Broken { .. }) => return Ok(None),
            lines => lines?,
        };
        let lines = lines.iter().map(|line| (line.full_version(), of(line), row(line)));
        newer.insert(name, lines.collect());
    }
    let mut written = WrittenLines::new();
    let rows = snapshot.rows.chunks_exact(SNAPSHOT_ROW);
    for (line, row) in snapshot.snapshot_lines().zip(rows) {
        let line = line.map_err(|error| unreadable(files, &error))?;
        let Some(name) = name_in(&line) else { return Ok(None) };
        let mut now = None;
        if let Some(lines) = newer.get_mut(&*name) {
            let Ok(known) = PublishedLine::parse(&line) else { return Ok(None) };
            let version = known.full_version();
            let at = lines.iter().position(|(other, ..)| *other == version);
            now = at.map(|at| lines.remove(at));
        }
        match &now {
            Some((_, line, row)) => written.push(line, row),
            None => written.push(&line, row),
        }
    }
    newer.values().flatten().for_each(|(_, line, row)| written.push(line, row));
    Ok(Some(written))
}

/// The name in a line of a snapshot.
fn name_in(line: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Named<'line> {
        #[serde(borrow)]
        name: Cow<'line, str>,
    }
    Some(serde_json::from_str::<Named<'_>>(line).ok()?.name)
}

impl Snapshot {
    /// Its lines, in order.
    pub(crate) fn snapshot_lines(&self) -> impl Iterator<Item = io::Result<String>> + use<'_> {
        inflated(&self.file).lines().skip(1)
    }
}

/// The lines of a snapshot on their way into its file, and the digests of each.
///
/// The first line of the file is known last, because it has the digest of all digests. So the file is put together of two parts:
///
/// ```text
/// 1f 8b 08 …             the head of a gzip file
/// 00 length ~length      the first line, as it is
/// …                      the others, as they were compressed
/// CRC-32, length         of both
/// ```
struct WrittenLines {
    lines: DeflateEncoder<Vec<u8>>,
    crc: Crc,
    rows: Vec<u8>,
}

impl WrittenLines {
    fn new() -> Self {
        let lines = DeflateEncoder::new(Vec::new(), Compression::default());
        Self { lines, crc: Crc::new(), rows: Vec::new() }
    }

    fn push(&mut self, line: &str, row: &[u8]) {
        for part in [line, "\n"] {
            self.lines.write_all(part.as_bytes()).expect("memory takes it");
            self.crc.update(part.as_bytes());
        }
        self.rows.extend_from_slice(row);
    }

    fn is_too_large(&self) -> bool {
        self.lines.get_ref().len() > LARGEST || self.rows.len() > LARGEST_DIGESTS
    }

    /// The file.
    fn finish(self, head: SnapshotHead) -> Bytes {
        let Ok(Value::Object(mut head)) = serde_json::to_value(&head) else {
            unreachable!("a struct of a number and a text is an object")
        };
        head.insert("mark".to_owned(), format!("{:016x}", files::random()).into());
        let head = format!("{}\n", Value::Object(head));
        let mut crc = Crc::new();
        crc.update(head.as_bytes());
        crc.combine(&self.crc);
        let lines = self.lines.finish().expect("memory takes it");
        let length = u16::try_from(head.len()).expect("a number and two texts are short");
        let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 0];
        file.reserve_exact(head.len() + lines.len() + 12);
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(&(!length).to_le_bytes());
        file.extend_from_slice(head.as_bytes());
        file.extend_from_slice(&lines);
        file.extend_from_slice(&crc.sum().to_le_bytes());
        file.extend_from_slice(&crc.amount().to_le_bytes());
        file.into()
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
        let mut written = WrittenLines::new();
        written.push(&text, &[7; SNAPSHOT_ROW]);
        let rows = Bytes::from(std::mem::take(&mut written.rows));
        let digests = hex(&Sha256::digest(&rows));
        (rows, written.finish(SnapshotHead { generation: 1, digests }))
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
        let line = snapshot.snapshot_lines().next().expect("has one").expect("is text");
        assert_eq!(line, "{\"name\":\"a\",\"version\":\"2.0.0\"}");
        let (rows, file) = snapshot_of("1.0.0");
        assert!(!end(&files, &first, rows, file).await.expect("is in memory"), "too late");
        assert!(read(&files).await.expect("is in memory").is_some());
    }
}
