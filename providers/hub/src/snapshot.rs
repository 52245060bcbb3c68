//! The snapshot of a hub: what all its index files say, in two requests instead of one for each package.
//!
//! It only saves requests. Whatever is odd about it, packages are asked for one by one.

use std::collections::HashMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use mu_provider::{ArchiveDigest, Digest, FileDigest};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::document::{Answer, Asking};
use crate::root::{Root, below};
use crate::wire::{SNAPSHOT_ROW, SnapshotHead, digests_path};

/// The longest of its files, in bytes, as it is sent.
const LONGEST_FILE: u64 = 512 << 20;

/// The longest snapshot, in bytes, inflated.
const LONGEST_TEXT: u64 = 2 << 30;

/// How many bytes of a snapshot are about as much work as asking for one package.
const BYTES_OF_A_QUESTION: u64 = 32 << 10;

/// How many packages must be wanted before a snapshot of unknown size is taken.
const MANY: u64 = 64;

/// The lines of a snapshot.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// As of which generation they are the hub's.
    pub(crate) generation: u64,
    text: String,
    rows: Vec<u8>,
    /// Name → its lines: where each is in the text, and which of all it is.
    places: HashMap<String, Vec<(usize, usize, usize)>>,
}

impl Root {
    /// Whether the snapshot is less work than asking for `packages` packages, or was read already.
    pub(crate) fn is_snapshot_worth_it(&self, packages: u64) -> bool {
        if self.snapshot.get().is_some() {
            return true;
        }
        if self.file.snapshot.is_none()
            || self.file.generation.is_none()
            || self.url.scheme() == "file"
        {
            return false;
        }
        match self.file.snapshot_bytes {
            Some(bytes) => bytes <= packages.saturating_mul(BYTES_OF_A_QUESTION),
            None => packages >= MANY,
        }
    }

    /// The snapshot, read once; `None` if it is of no use.
    pub(crate) fn snapshot(&self, asking: &Asking<'_>) -> Option<&Snapshot> {
        self.snapshot.get_or_init(|| self.read_snapshot(asking)).as_ref()
    }

    fn read_snapshot(&self, asking: &Asking<'_>) -> Option<Snapshot> {
        let path = self.file.snapshot.as_deref()?;
        let asking = Asking { limit: LONGEST_FILE, ..*asking };
        let read = |path: &str| match asking.read(&below(&self.url, path).ok()?, None) {
            Ok(Answer::Read(document)) => Some(document.bytes),
            _ => None,
        };
        let text = inflate(read(path)?)?;
        let head: SnapshotHead = serde_json::from_str(text.lines().next()?).ok()?;
        let rows = read(&digests_path(path))?;
        let digest = FileDigest::from_bytes(Sha256::digest(&rows).into()).to_string();
        if !head.digests.trim_start_matches("sha256:").eq_ignore_ascii_case(&digest) {
            return None;
        }
        Snapshot::new(head.generation, text, rows)
    }
}

impl Snapshot {
    fn new(generation: u64, text: String, rows: Vec<u8>) -> Option<Self> {
        let mut places: HashMap<String, Vec<(usize, usize, usize)>> = HashMap::new();
        let mut count = 0;
        let mut start = text.find('\n')? + 1;
        for line in text[start..].split_terminator('\n') {
            places.entry(name(line)?).or_default().push((start, start + line.len(), count));
            start += line.len() + 1;
            count += 1;
        }
        (rows.len() == count * SNAPSHOT_ROW).then_some(Self { generation, text, rows, places })
    }

    /// The index lines of a package; `None` if the hub has no such package.
    pub(crate) fn lines(&self, name: &str) -> Option<Vec<u8>> {
        let mut lines = String::new();
        for (start, end, number) in self.places.get(name)? {
            let line = self.text[*start..*end].trim_end();
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

/// The text of a snapshot, which some servers send inflated already.
fn inflate(bytes: Vec<u8>) -> Option<String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return String::from_utf8(bytes).ok();
    }
    let mut text = String::new();
    let mut inflated = GzDecoder::new(&bytes[..]).take(LONGEST_TEXT);
    inflated.read_to_string(&mut text).ok()?;
    (inflated.limit() > 0).then_some(text)
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
        let snapshot = Snapshot::new(7, text.to_owned(), rows).expect("fits");
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
        assert!(Snapshot::new(7, text.to_owned(), vec![0; SNAPSHOT_ROW]).is_none());
    }
}
