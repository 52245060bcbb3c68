//! The snapshot of a hub: the content of all its index files, in two requests instead of one for each
//! package.
//!
//! It only saves requests. If anything about it is odd, packages are requested one by one. The digests come
//! first, because their size gives the number of lines. The size that a hub claims, and the size that it
//! sends, limit what is held in memory.

use std::collections::HashMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use mu_archive::below;
use mu_archive::document::{Asking, DocumentAnswer};
use mu_provider::{ArchiveDigest, Digest, ErrorKind, FileDigest};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::root::Root;
use crate::wire::{SNAPSHOT_ROW, SnapshotHead, digests_path};

/// How many bytes both files may have together, inflated.
const MOST_BYTES: u64 = 256 << 20;

/// The largest size of the two files of a snapshot together, as they are sent, if the hub gives no size, in
/// bytes.
const MOST_SENT: u64 = 64 << 20;

/// How many times larger a decompressed snapshot may be. Index lines without digests reach twenty, and rarely
/// fifty.
const LARGEST_RATIO: u64 = 100;

/// How far a snapshot may always exceed the claimed sizes, in bytes, because the hub continues to publish.
const SLACK: u64 = 64 << 10;

/// How many bytes of a snapshot are about as much work as one request.
const BYTES_OF_A_QUESTION: u64 = 32 << 10;

/// How many packages must be needed to download a snapshot of unknown size.
const MANY: u64 = 64;

/// The lines of a snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotLines {
    /// The generation that they belong to.
    pub(crate) generation: u64,
    text: String,
    rows: Vec<u8>,
    /// Where each line begins in the text, and where the next one would begin.
    starts: Vec<u32>,
    /// Name → which lines are about it.
    places: HashMap<String, Vec<u32>>,
}

/// Whether the snapshot of a hub is less work than requesting `packages` packages.
pub(crate) fn is_worth_it(root: &Root, packages: u64) -> bool {
    if root.file.snapshot.is_none() || root.file.generation.is_none() || root.url.scheme() == "file"
    {
        return false;
    }
    match root.file.snapshot_bytes {
        Some(bytes) => bytes <= packages.saturating_mul(BYTES_OF_A_QUESTION),
        None => packages >= MANY,
    }
}

/// The snapshot of a hub; `None` if it is of no use.
pub(crate) fn read(root: &Root, asking: &Asking<'_>) -> Option<SnapshotLines> {
    match ask(root, asking) {
        Ok(snapshot) => Some(snapshot),
        Err(Unusable::Odd) => None,
        Err(Unusable::TooLarge(why)) => {
            asking.progress.warning(&format!(
                "the snapshot of the hub at `{}` is not used, and packages are requested one by one: {why}",
                root.url
            ));
            None
        }
    }
}

fn ask(root: &Root, asking: &Asking<'_>) -> Result<SnapshotLines, Unusable> {
    let path = root.file.snapshot.as_deref().ok_or(Unusable::Odd)?;
    let read = |path: &str, limit: u64| {
        let place = below(&root.url, path).map_err(|_| Unusable::Odd)?;
        match (Asking { limit, ..*asking }).read(&place, None) {
            Ok(DocumentAnswer::Read(document)) => Ok(document.bytes),
            Err(error) if error.kind() == ErrorKind::Protocol => {
                Err(Unusable::TooLarge(error.to_string()))
            }
            _ => Err(Unusable::Odd),
        }
    };
    let sent = most_sent(root);
    let rows = read(&digests_path(path), sent)?;
    let left = sent.saturating_sub(rows.len() as u64);
    let longest = MOST_BYTES - rows.len() as u64;
    // Some servers send it decompressed.
    let file = read(path, left.saturating_mul(LARGEST_RATIO).min(longest))?;
    let text = inflate(file, left, longest)?;
    let head = text.lines().next().and_then(|head| serde_json::from_str(head).ok());
    let head: SnapshotHead = head.ok_or(Unusable::Odd)?;
    let digest = FileDigest::from_bytes(Sha256::digest(&rows).into()).to_string();
    if !head.digests.trim_start_matches("sha256:").eq_ignore_ascii_case(&digest) {
        return Err(Unusable::Odd);
    }
    SnapshotLines::new(head.generation, text, rows).ok_or(Unusable::Odd)
}

/// How many bytes both files may have together, as they are sent.
fn most_sent(root: &Root) -> u64 {
    let claimed = root.file.snapshot_bytes.unwrap_or(MOST_SENT);
    // It may have doubled since `hub.json` was written, but not more.
    claimed.saturating_mul(2).saturating_add(SLACK).min(MOST_BYTES)
}

/// Why a snapshot is of no use.
#[derive(Debug, PartialEq)]
enum Unusable {
    /// It is missing, makes no sense, or does not belong to these digests.
    Odd,
    /// It is larger than claimed, or larger than is accepted; the limit that it exceeds.
    TooLarge(String),
}

impl SnapshotLines {
    fn new(generation: u64, text: String, rows: Vec<u8>) -> Option<Self> {
        let count = rows.len() / SNAPSHOT_ROW;
        let mut places: HashMap<String, Vec<u32>> = HashMap::new();
        let mut starts = Vec::with_capacity(count + 1);
        let (head, lines) = text.split_once('\n')?;
        let mut start = u32::try_from(head.len() + 1).ok()?;
        starts.push(start);
        for line in lines.split_terminator('\n') {
            if starts.len() > count {
                return None;
            }
            places.entry(name(line)?).or_default().push(u32::try_from(starts.len() - 1).ok()?);
            start = start.checked_add(u32::try_from(line.len() + 1).ok()?)?;
            starts.push(start);
        }
        let fits = rows.len() == (starts.len() - 1) * SNAPSHOT_ROW;
        fits.then_some(Self { generation, text, rows, starts, places })
    }

    /// The index lines of a package; `None` if the hub has no such package.
    pub(crate) fn lines(&self, name: &str) -> Option<Vec<u8>> {
        let mut lines = String::new();
        for &number in self.places.get(name)? {
            let number = number as usize;
            let (start, end) = (*self.starts.get(number)?, *self.starts.get(number + 1)?);
            // The last line may lack its line feed.
            let end = self.text.len().min(end as usize);
            let line = self.text.get(start as usize..end)?.trim_end();
            let row = self.rows.get(number * SNAPSHOT_ROW..(number + 1) * SNAPSHOT_ROW)?;
            lines.push_str(line.strip_suffix('}')?);
            lines.push_str(&described(row)?);
            lines.push_str("}\n");
        }
        Some(lines.into_bytes())
    }
}

/// What a row of digests adds to a line.
fn described(row: &[u8]) -> Option<String> {
    let (content, rest) = row.split_first_chunk::<32>()?;
    let (archive, rest) = rest.split_first_chunk::<32>()?;
    let size = u64::from_le_bytes(*rest.first_chunk()?);
    let mut text = String::new();
    if *content != [0; 32] {
        text.push_str(&format!(",\"digest\":\"{}\"", Digest::from_bytes(*content)));
    }
    if *archive != [0; 32] {
        text.push_str(&format!(",\"archive\":\"{}\"", ArchiveDigest::from_bytes(*archive)));
    }
    if size != 0 {
        text.push_str(&format!(",\"size\":{size}"));
    }
    Some(text)
}

/// The name that a line is about.
fn name(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let plain = line.strip_prefix("{\"name\":\"").and_then(|rest| rest.split_once('"'));
    match plain {
        Some((name, _)) if !name.contains('\\') => Some(name.to_owned()),
        _ => Some(serde_json::from_str::<Named>(line).ok()?.name),
    }
}

/// The text of a snapshot. At most `most_sent` bytes may have arrived, unless they were sent decompressed,
/// and the text may have `longest` bytes.
fn inflate(bytes: Vec<u8>, most_sent: u64, longest: u64) -> Result<String, Unusable> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return String::from_utf8(bytes).map_err(|_| Unusable::Odd);
    }
    let sent = bytes.len() as u64;
    if sent > most_sent {
        return Err(Unusable::TooLarge(format!(
            "it has {sent} bytes, and hub.json allows for {most_sent}"
        )));
    }
    let longest = longest.min(sent * LARGEST_RATIO + SLACK);
    let mut text = Vec::new();
    let mut inflated = GzDecoder::new(&*bytes).take(longest + 1);
    inflated.read_to_end(&mut text).map_err(|_| Unusable::Odd)?;
    if inflated.limit() == 0 {
        let why = format!("its {sent} bytes unpack to more than {longest}");
        return Err(Unusable::TooLarge(why));
    }
    String::from_utf8(text).map_err(|_| Unusable::Odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_get_their_digests_back() {
        let text = "{\"generation\":7,\"digests\":\"x\"}\n{\"name\":\"a\",\"version\":\"1.0.0\"}\n\
                    {\"version\":\"1.0.0\",\"name\":\"b/c\"}\n{\"name\":\"a\",\"version\":\"1.1.0\"}\n";
        let mut rows = vec![0; 3 * SNAPSHOT_ROW];
        rows[64] = 5;
        rows[2 * SNAPSHOT_ROW + 32] = 1;
        let snapshot = SnapshotLines::new(7, text.to_owned(), rows).expect("fits");
        let lines = |name: &str| {
            snapshot.lines(name).map(|lines| String::from_utf8(lines).expect("is text"))
        };
        let archive = format!("sha256:01{}", "0".repeat(62));
        let expected = format!(
            "{{\"name\":\"a\",\"version\":\"1.0.0\",\"size\":5}}\n\
             {{\"name\":\"a\",\"version\":\"1.1.0\",\"archive\":\"{archive}\"}}\n"
        );
        assert_eq!(lines("a"), Some(expected));
        assert_eq!(lines("b/c").as_deref(), Some("{\"version\":\"1.0.0\",\"name\":\"b/c\"}\n"));
        assert_eq!(lines("b"), None);
        assert!(SnapshotLines::new(7, text.to_owned(), vec![0; SNAPSHOT_ROW]).is_none());
    }
}
