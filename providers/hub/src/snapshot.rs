//! The snapshot of a hub: what versions are chosen by, of all packages, in one request instead of one for each package; and the digests of
//! all these versions, in another one.
//!
//! It only saves requests. If anything about it is odd, packages are requested one by one. The lines come without digests, which do not
//! compress and are only needed of what was chosen: they are read if that is less work than the index files of these packages. The
//! size that a hub claims, and the size that it sends, limit what is held in memory.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::GzDecoder;
use mu_archive::below;
use mu_archive::document::{Asking, DocumentAnswer, Validator};
use mu_provider::{
    ArchiveDigest, Digest, ErrorKind, FileDigest, Found, Listing, Location, ProviderError,
};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::hub::KnownHub;
use crate::index;
use crate::root::Root;
use crate::wire::{SNAPSHOT_ROW, SnapshotHead, digests_path};

/// How many bytes the lines may have, inflated, and the digests.
const MOST_BYTES: u64 = 256 << 20;

/// The largest size of the lines, as they are sent, if the hub gives no size, in bytes.
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

/// About how many bytes more a line has in an index file than in the snapshot: two digests, a size, and the keys of both.
const BYTES_LEFT_OUT: u64 = 170;

/// How many bytes arrive in about the time of one request for an index file, beside the file: 50 are sent at once, so with a round trip
/// of 20 ms, one takes 0.4 ms, in which a line of 100 Mbit a second brings 5,000 bytes.
const BYTES_OF_A_FILE: u64 = 4 << 10;

/// How many packages one that is asked for first leads to, at least, with itself: 3.6 in a graph of 2,000 packages, 12 in Cargo's.
const LEADS_TO: u64 = 3;

/// What a line without its digests says of itself, so that nobody takes it for all there is.
const SHORT: &str = ",\"short\":true";

/// The lines of a snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotLines {
    /// The generation that they belong to.
    generation: u64,
    /// SHA-256 of the file of digests, as hexadecimal digits.
    digests: String,
    text: String,
    /// Where each line begins in the text, and where the next one would begin.
    starts: Vec<u32>,
    /// Name → which lines are about it.
    places: HashMap<String, Vec<u32>>,
    /// About how much work, in bytes, the index files are of the packages that will be listed in full.
    wanted: AtomicU64,
    /// The file of digests, once it was read; none if it is of no use.
    rows: OnceLock<Option<Vec<u8>>>,
}

/// Whether the snapshot of a hub is less work than requesting `packages` packages.
pub(crate) fn is_worth_it(root: &Root, packages: u64) -> bool {
    if root.file.snapshot.is_none() || root.file.generation.is_none() || root.url.scheme() == "file"
    {
        return false;
    }
    match size_of_lines(root) {
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
    // It may have doubled since `hub.json` was written, but not more.
    let claimed = size_of_lines(root).unwrap_or(MOST_SENT);
    let sent = claimed.saturating_mul(2).saturating_add(SLACK).min(MOST_BYTES);
    // Some servers send it decompressed.
    let file = read_file(root, path, sent.saturating_mul(LARGEST_RATIO).min(MOST_BYTES), asking)?;
    let text = inflate(file, sent, MOST_BYTES)?;
    let head = text.lines().next().and_then(|head| serde_json::from_str(head).ok());
    SnapshotLines::new(head.ok_or(Unusable::Odd)?, text).ok_or(Unusable::Odd)
}

/// How many bytes the lines have, as they are sent; of hubs that say it only together with the digests, both.
fn size_of_lines(root: &Root) -> Option<u64> {
    root.file.snapshot_lines.or(root.file.snapshot_bytes)
}

fn read_file(
    root: &Root,
    path: &str,
    limit: u64,
    asking: &Asking<'_>,
) -> Result<Vec<u8>, Unusable> {
    let place = below(&root.url, path).map_err(|_| Unusable::Odd)?;
    match (Asking { limit, ..*asking }).read(&place, None) {
        Ok(DocumentAnswer::Read(document)) => Ok(document.bytes),
        Err(error) if error.kind() == ErrorKind::Protocol => {
            Err(Unusable::TooLarge(error.to_string()))
        }
        _ => Err(Unusable::Odd),
    }
}

impl KnownHub {
    /// Lists a package from the snapshot, if that is less work than the files of `packages` packages; `None` if it is not, or does not know
    /// how the package is now.
    pub(crate) fn list_from_snapshot(
        &self,
        location: &Location,
        packages: u64,
        asking: &Asking<'_>,
    ) -> Result<Option<Listing>, ProviderError> {
        if self.snapshot.get().is_none() && !is_worth_it(self, packages) {
            return Ok(None);
        }
        let snapshot = self.snapshot.get_or_init(|| read(self, asking));
        let Some(snapshot) = snapshot else { return Ok(None) };
        // Where the digests will be read anyway, no line is read twice.
        let soon = packages.saturating_mul(LEADS_TO * BYTES_OF_A_FILE);
        let rows = snapshot.digests(soon, self, asking);
        self.listed_in(snapshot, rows, location, asking)
    }

    /// Notes that a package will be listed in full.
    pub(crate) fn want_in_full(&self, name: &str) {
        if let Some(Some(snapshot)) = self.snapshot.get() {
            snapshot.want(name);
        }
    }

    /// Lists a package from the snapshot with all digests, if these are less work than the index files of all that is wanted.
    pub(crate) fn list_with_digests(
        &self,
        location: &Location,
        asking: &Asking<'_>,
    ) -> Result<Option<Listing>, ProviderError> {
        let Some(Some(snapshot)) = self.snapshot.get() else { return Ok(None) };
        let wanted = snapshot.wanted.load(Ordering::Relaxed);
        let rows = snapshot.digests(wanted, self, asking);
        let Some(rows) = rows else { return Ok(None) };
        self.listed_in(snapshot, Some(rows), location, asking)
    }

    fn listed_in(
        &self,
        snapshot: &SnapshotLines,
        rows: Option<&[u8]>,
        location: &Location,
        asking: &Asking<'_>,
    ) -> Result<Option<Listing>, ProviderError> {
        if !self.is_unchanged(&location.path, snapshot.generation, asking) {
            return Ok(None);
        }
        let file = self.index(&location.path)?;
        let validator = Validator::default().at(self.file.generation).to_stored_text();
        let max_age = self.max_age;
        let Some(lines) = snapshot.lines(&location.path, rows) else {
            let tried = vec![Root::hub_file(&self.url)?.to_string(), file.to_string()];
            return Ok(Some(Listing::Absent { tried, validator, max_age }));
        };
        let lines = index::check(lines, &location.path, &file)?;
        Ok(Some(Listing::Found(Found::new(location, lines, validator, max_age))))
    }
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
    fn new(head: SnapshotHead, text: String) -> Option<Self> {
        let mut places: HashMap<String, Vec<u32>> = HashMap::new();
        let (first, lines) = text.split_once('\n')?;
        let mut start = u32::try_from(first.len() + 1).ok()?;
        let mut starts = vec![start];
        for line in lines.split_terminator('\n') {
            places.entry(name(line)?).or_default().push(u32::try_from(starts.len() - 1).ok()?);
            start = start.checked_add(u32::try_from(line.len() + 1).ok()?)?;
            starts.push(start);
        }
        let SnapshotHead { generation, digests } = head;
        let (wanted, rows) = (AtomicU64::new(0), OnceLock::new());
        Some(Self { generation, digests, text, starts, places, wanted, rows })
    }

    /// The index lines of a package, with these digests or none; `None` if the hub has no such package.
    fn lines(&self, name: &str, rows: Option<&[u8]>) -> Option<Vec<u8>> {
        let mut lines = String::new();
        for &number in self.places.get(name)? {
            let line = self.line(number as usize)?;
            lines.push_str(line.strip_suffix('}')?);
            match rows {
                Some(rows) => {
                    let start = number as usize * SNAPSHOT_ROW;
                    lines.push_str(&described(rows.get(start..start + SNAPSHOT_ROW)?)?);
                }
                None => lines.push_str(SHORT),
            }
            lines.push_str("}\n");
        }
        Some(lines.into_bytes())
    }

    fn line(&self, number: usize) -> Option<&str> {
        let (start, end) = (*self.starts.get(number)?, *self.starts.get(number + 1)?);
        // The last line may lack its line feed.
        let end = self.text.len().min(end as usize);
        Some(self.text.get(start as usize..end)?.trim_end())
    }

    /// Notes that a package will be listed in full.
    fn want(&self, name: &str) {
        let lines = self.places.get(name).into_iter().flatten();
        let lengths = lines.filter_map(|number| Some(self.line(*number as usize)?.len() as u64));
        let bytes: u64 = lengths.map(|length| length + BYTES_LEFT_OUT).sum();
        self.wanted.fetch_add(bytes + BYTES_OF_A_FILE, Ordering::Relaxed);
    }

    /// The file of digests, if it was read before or has at most `most` bytes; `None` also if it does not belong to the lines.
    fn digests(&self, most: u64, root: &Root, asking: &Asking<'_>) -> Option<&[u8]> {
        if self.rows.get().is_none() && self.bytes_of_digests() > most.min(MOST_BYTES) {
            return None;
        }
        self.rows.get_or_init(|| self.read_digests(root, asking)).as_deref()
    }

    fn bytes_of_digests(&self) -> u64 {
        ((self.starts.len() - 1) * SNAPSHOT_ROW) as u64
    }

    fn read_digests(&self, root: &Root, asking: &Asking<'_>) -> Option<Vec<u8>> {
        let bytes = self.bytes_of_digests();
        let path = digests_path(root.file.snapshot.as_deref()?);
        let rows = read_file(root, &path, bytes, asking).ok()?;
        let digest = FileDigest::from_bytes(Sha256::digest(&rows).into()).to_string();
        let is_it = self.digests.trim_start_matches("sha256:").eq_ignore_ascii_case(&digest);
        (is_it && rows.len() as u64 == bytes).then_some(rows)
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
        let head = SnapshotHead { generation: 7, digests: "x".to_owned() };
        let snapshot = SnapshotLines::new(head, text.to_owned()).expect("fits");
        let lines = |name: &str, rows: Option<&[u8]>| {
            snapshot.lines(name, rows).map(|lines| String::from_utf8(lines).expect("is text"))
        };
        let archive = format!("sha256:01{}", "0".repeat(62));
        let expected = format!(
            "{{\"name\":\"a\",\"version\":\"1.0.0\",\"size\":5}}\n\
             {{\"name\":\"a\",\"version\":\"1.1.0\",\"archive\":\"{archive}\"}}\n"
        );
        assert_eq!(lines("a", Some(&rows)), Some(expected));
        let plain = "{\"version\":\"1.0.0\",\"name\":\"b/c\"}\n";
        assert_eq!(lines("b/c", Some(&rows)).as_deref(), Some(plain));
        assert_eq!(lines("b/c", None), Some(plain.replace('}', ",\"short\":true}")));
        assert_eq!(lines("b", Some(&rows)), None);
        assert_eq!(lines("a", Some(&rows[1..])), None, "has no digests for each line");
    }
}
