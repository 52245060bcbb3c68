//! How a record is written, so that a package's versions and their needs are read without parsing their lines.
//!
//! The near part has the texts, each once; then the table of what is known of each version (`table.rs`); then the lines
//! of versions with details, which every reader needs. The far part has all other lines. [`BytesWriter`] and
//! [`BytesReader`] know how numbers and texts are written: a number has seven bits a byte, the lowest first; a text is
//! given by its length and its start among the texts. Where a record is in the file is not known here.

mod table;

use std::ops::Range;
use std::sync::Arc;

use mu_provider::{Dates, Lead, Location, SafeUrl};
use rustc_hash::FxHashMap;

use crate::index::cache::lines::{Far, Fetched, Learned, Listing, ListingLines, Record};

pub(in crate::index) use self::table::LineTable;

const VALIDATOR: u8 = 1;
const LISTING: u8 = 2;
const FOLDER: u8 = 4;
const INSECURE: u8 = 8;
const LENIENT: u8 = 16;

/// A record in its written form.
#[derive(Debug, Clone)]
pub(super) struct WrittenRecord {
    pub(super) near: Arc<Vec<u8>>,
    pub(super) far: Far,
}

/// In place of the seconds for which something is fresh, if its registry did not say.
const UNSTATED: u32 = u32::MAX;

/// When something was requested, and for how long it is fresh; every record starts with these.
fn put_times(checked: i64, max_age: Option<u32>) -> Vec<u8> {
    let mut out = checked.to_le_bytes().to_vec();
    out.extend_from_slice(&max_age.unwrap_or(UNSTATED).to_le_bytes());
    out
}

/// Reads when something was requested, and for how long it is fresh.
pub(super) fn read_times(bytes: &[u8]) -> Option<(i64, Option<u32>)> {
    BytesReader::new(bytes, 0..bytes.len())?.times()
}

/// Says that a record is unchanged, except for its times and its validator.
pub(super) fn encode_unchanged(record: &Record) -> Vec<u8> {
    let mut out = put_times(record.checked, record.max_age);
    if let Some(validator) = &record.validator {
        out.push(VALIDATOR);
        out.extend_from_slice(validator.as_bytes());
    }
    out
}

/// Reads what [`encode_unchanged`] wrote: times and validator.
pub(super) fn decode_unchanged(bytes: &[u8]) -> Option<(i64, Option<u32>, Option<String>)> {
    let mut reader = BytesReader::new(bytes, 0..bytes.len())?;
    let (checked, max_age) = reader.times()?;
    let validator = match reader.remaining_bytes() {
        [] => None,
        [VALIDATOR, text @ ..] => Some(std::str::from_utf8(text).ok()?.to_owned()),
        _ => return None,
    };
    Some((checked, max_age, validator))
}

impl Learned {
    /// Says that a registry lists `lines`, with heads ascending by version, followed by those that are not
    /// versions.
    pub(in crate::index) fn from_listing(
        checked: i64,
        max_age: Option<u32>,
        validator: Option<&str>,
        location: &Location,
        lines: (&[Fetched], &[u8]),
    ) -> Self {
        let mut writer = BytesWriter::default();
        validator.iter().for_each(|text| writer.text(text));
        let flags = LISTING | writer.location(location);
        let (fetched, bytes) = lines;
        // Nearly all lines are far.
        let (mut near, mut far) = (Vec::new(), Vec::with_capacity(bytes.len()));
        writer.write_number(fetched.len() as u64);
        writer.write_table(fetched);
        for Fetched { head, .. } in fetched {
            let part = if head.detailed { &mut near } else { &mut far };
            part.extend_from_slice(bytes.get(head.line.byte_range()).unwrap_or_default());
        }
        let whole = whole(checked, max_age, validator, flags, &writer, &near);
        Self::written(whole, far, &location.root)
    }

    /// Says that a registry has no such package, and which places were searched; its `root` does not matter.
    pub(in crate::index) fn absent(
        checked: i64,
        max_age: Option<u32>,
        validator: Option<&str>,
        tried: &[String],
        root: &Lead,
    ) -> Self {
        let mut writer = BytesWriter::default();
        validator.iter().for_each(|text| writer.text(text));
        writer.write_number(tried.len() as u64);
        tried.iter().for_each(|tried| writer.text(tried));
        Self::written(whole(checked, max_age, validator, 0, &writer, &[]), Vec::new(), root)
    }

    fn written(near: Vec<u8>, far: Vec<u8>, root: &Lead) -> Self {
        let written = WrittenRecord { near: Arc::new(near), far: Far::Bytes(Arc::new(far)) };
        let record = decode(&written.near, 0..written.near.len(), written.far.clone(), root);
        let record = record.expect("what was written a moment ago can be read");
        Self { record, written: Some(written) }
    }
}

/// The near part of a record.
fn whole(
    checked: i64,
    max_age: Option<u32>,
    validator: Option<&str>,
    flags: u8,
    writer: &BytesWriter,
    near: &[u8],
) -> Vec<u8> {
    let mut whole = put_times(checked, max_age);
    // It stays in memory until the run ends, so it has no room to grow.
    whole.reserve_exact(16 + writer.texts.len() + writer.rest.len() + near.len());
    whole.push(flags | if validator.is_some() { VALIDATOR } else { 0 });
    put_number(&mut whole, writer.texts.len() as u64);
    whole.extend_from_slice(&writer.texts);
    whole.extend_from_slice(&writer.rest);
    whole.extend_from_slice(near);
    whole
}

/// Reads the validator of a record.
pub(super) fn decode_validator(bytes: &[u8]) -> Option<String> {
    Some(BytesReader::new(bytes, 0..bytes.len())?.beginning()?.validator?.to_owned())
}

/// Reads the record at `place` in `near`; packages are most likely below `root`.
pub(super) fn decode(
    near: &Arc<Vec<u8>>,
    place: Range<usize>,
    far: Far,
    root: &Lead,
) -> Option<Record> {
    let end = place.end;
    let mut reader = BytesReader::new(near, place)?;
    let Beginning { times: (checked, max_age), flags, validator, texts: texts_at } =
        reader.beginning()?;
    let texts = near.get(texts_at.clone())?;
    let validator = validator.map(str::to_owned);
    let mut record = Record { checked, max_age, validator, listing: None, tried: Vec::new() };
    if flags & LISTING == 0 {
        for _ in 0..reader.read_number()? {
            record.tried.push(reader.text(texts)?.to_owned());
        }
        return Some(record);
    }
    let location = reader.location(texts, flags, root)?;
    let count = usize::try_from(reader.read_number()?).ok()?;
    let mut table = reader.read_table(count, texts_at, texts)?;
    // The rest is near lines, one after the other.
    let mut begin = u32::try_from(reader.at).ok()?;
    for (_, line) in &mut table.detailed {
        line.start = begin;
        begin = begin.checked_add(line.length)?;
    }
    if begin as usize != end {
        return None;
    }
    let lines = ListingLines { near: Arc::clone(near), far };
    record.listing = Some(Listing { location, table, lines });
    Some(record)
}

/// The start of every record.
struct Beginning<'bytes> {
    times: (i64, Option<u32>),
    flags: u8,
    validator: Option<&'bytes str>,
    /// Where its texts are.
    texts: Range<usize>,
}

impl<'bytes> BytesReader<'bytes> {
    fn times(&mut self) -> Option<(i64, Option<u32>)> {
        let checked = self.long()?;
        let max_age = u32::from_le_bytes(self.take_bytes(4)?.try_into().ok()?);
        Some((checked, Some(max_age).filter(|seconds| *seconds != UNSTATED)))
    }

    fn beginning(&mut self) -> Option<Beginning<'bytes>> {
        let times = self.times()?;
        let flags = self.byte()?;
        let length = usize::try_from(self.read_number()?).ok()?;
        let begin = self.at;
        let texts = self.take_bytes(length)?;
        let validator = match flags & VALIDATOR {
            0 => None,
            _ => Some(self.text(texts)?),
        };
        Some(Beginning { times, flags, validator, texts: begin..begin + length })
    }

    fn location(&mut self, texts: &[u8], flags: u8, likely: &Lead) -> Option<Location> {
        let root = self.text(texts)?;
        let is_likely = root == likely.as_url().as_str();
        Some(Location {
            root: match is_likely {
                true => likely.clone(),
                false => likely.within(SafeUrl::parse(root).ok()?).ok()?,
            },
            path: self.text(texts)?.to_owned(),
            folder: match flags & FOLDER {
                0 => None,
                _ => Some(self.text(texts)?.to_owned()),
            },
            insecure: flags & INSECURE != 0,
            lenient: flags & LENIENT != 0,
            dates: Dates::Ignored,
        })
    }
}

impl BytesWriter {
    fn location(&mut self, location: &Location) -> u8 {
        self.text(location.root.as_url().as_str());
        self.text(&location.path);
        if let Some(folder) = &location.folder {
            self.text(folder);
        }
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(location.folder.is_some(), FOLDER)
            | flag(location.insecure, INSECURE)
            | flag(location.lenient, LENIENT)
    }
}

/// Collects texts, each once, and what refers to them.
#[derive(Default)]
struct BytesWriter {
    texts: Vec<u8>,
    known: FxHashMap<Box<str>, usize>,
    rest: Vec<u8>,
}

impl BytesWriter {
    fn write_number(&mut self, number: u64) {
        put_number(&mut self.rest, number);
    }

    fn text(&mut self, text: &str) {
        self.write_number(text.len() as u64);
        let place = self.place_of(text);
        self.write_number(place);
    }

    fn write_optional_text(&mut self, text: Option<&str>) {
        let Some(text) = text else { return self.write_number(0) };
        self.write_number(text.len() as u64 + 1);
        let place = self.place_of(text);
        self.write_number(place);
    }

    fn place_of(&mut self, text: &str) -> u64 {
        if let Some(&known) = self.known.get(text) {
            return known as u64;
        }
        let place = self.texts.len();
        self.texts.extend_from_slice(text.as_bytes());
        self.known.insert(text.into(), place);
        place as u64
    }
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what was written; everything returns `None` if the bytes are not valid.
struct BytesReader<'bytes> {
    bytes: &'bytes [u8],
    /// Its position in the bytes.
    at: usize,
}

impl<'bytes> BytesReader<'bytes> {
    /// Reads at `place`, which counts from the start of all the bytes.
    fn new(bytes: &'bytes [u8], place: Range<usize>) -> Option<Self> {
        Some(Self { bytes: bytes.get(..place.end)?, at: place.start })
    }

    fn is_exhausted(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn remaining_bytes(&self) -> &'bytes [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn take_bytes(&mut self, count: usize) -> Option<&'bytes [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn read_number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.read_number()?).ok()
    }

    fn long(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take_bytes(8)?.try_into().ok()?))
    }

    fn text<'texts>(&mut self, texts: &'texts [u8]) -> Option<&'texts str> {
        let length = self.read_number()?;
        self.text_of(length, texts)
    }

    fn optional_text<'texts>(&mut self, texts: &'texts [u8]) -> Option<Option<&'texts str>> {
        match self.read_number()? {
            0 => Some(None),
            length => Some(Some(self.text_of(length - 1, texts)?)),
        }
    }

    fn text_of<'texts>(&mut self, length: u64, texts: &'texts [u8]) -> Option<&'texts str> {
        let start = usize::try_from(self.read_number()?).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        std::str::from_utf8(texts.get(start..end)?).ok()
    }
}
