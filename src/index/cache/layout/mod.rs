//! How a record is written, so that a package's versions and what they need are read without reading their lines.
//!
//! The near part has the texts, each once; then what is known of each version, a few bytes long; then the lines of
//! versions that have details, which everybody looks at. The far part has all other lines. Numbers are seven bits a byte,
//! the lowest first; a text is said by where it begins among the texts and how long it is.
//!
//! Where all versions are plain ones, what is known of them is a table with rows of one length, of which nobody need read
//! but what is wanted; then come their dependencies, and which of them have details.

mod table;

use std::ops::Range;
use std::sync::Arc;

use mu_provider::{Location, SafeUrl};
use rustc_hash::FxHashMap;

pub(in crate::index) use self::table::Table;
use self::table::is_plain;
use crate::index::cache::listing::{Far, Head, Heads, Label, Line, Lines, Listing, Needs, Record};

const VALIDATOR: u8 = 1;
const LISTING: u8 = 2;
const FOLDER: u8 = 4;
const INSECURE: u8 = 8;
const LENIENT: u8 = 16;
const TABLE: u8 = 32;

const COMPOSITE: u8 = 1;
const DETAILED: u8 = 2;
const PUBLISHED: u8 = 4;
const COMMIT: u8 = 8;
const PLAIN: u8 = 16;
const NEEDS: u8 = 32;

/// No head is shorter.
const SHORTEST: usize = 4;

/// A record as it is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    pub(super) near: Arc<Vec<u8>>,
    pub(super) far: Arc<Vec<u8>>,
}

/// When something was asked, and for how long that is fresh; every record begins so.
pub(super) fn times(checked: i64, max_age: u32) -> Vec<u8> {
    let mut out = checked.to_le_bytes().to_vec();
    out.extend_from_slice(&max_age.to_le_bytes());
    out
}

/// That a record is as it was, but for its times and its validator.
pub(super) fn encode_unchanged(record: &Record) -> Vec<u8> {
    let mut out = times(record.checked, record.max_age);
    if let Some(validator) = &record.validator {
        out.push(VALIDATOR);
        out.extend_from_slice(validator.as_bytes());
    }
    out
}

/// Reads what [`encode_unchanged`] wrote: times and validator.
pub(super) fn decode_unchanged(bytes: &[u8]) -> Option<(i64, u32, Option<String>)> {
    let mut reader = Reader::new(bytes);
    let (checked, max_age) = reader.times()?;
    let validator = match reader.rest() {
        [] => None,
        [VALIDATOR, text @ ..] => Some(std::str::from_utf8(text).ok()?.to_owned()),
        _ => return None,
    };
    Some((checked, max_age, validator))
}

/// Writes a record; `None` where a line of it cannot be read any more.
pub(super) fn encode(record: &Record) -> Option<Written> {
    let mut writer = Writer::default();
    let mut flags = 0;
    if let Some(validator) = &record.validator {
        flags |= VALIDATOR;
        writer.text(validator);
    }
    let (mut near, mut far) = (Vec::new(), Vec::new());
    match &record.listing {
        None => {
            writer.number(record.tried.len() as u64);
            record.tried.iter().for_each(|tried| writer.text(tried));
        }
        Some(listing) => {
            flags |= LISTING | writer.location(&listing.location);
            let heads = listing.heads.each(&listing.lines);
            writer.number(heads.len() as u64);
            if is_plain(&heads) {
                flags |= TABLE;
                writer.table(&heads, &listing.lines);
            } else {
                heads.iter().for_each(|head| writer.head(head, &listing.lines));
            }
            for head in &*heads {
                let lines = if head.detailed { &mut near } else { &mut far };
                lines.extend_from_slice(&listing.lines.read(head.line).ok()?);
            }
        }
    }
    let mut whole = times(record.checked, record.max_age);
    whole.push(flags);
    put_number(&mut whole, writer.texts.len() as u64);
    whole.extend_from_slice(&writer.texts);
    whole.extend_from_slice(&writer.rest);
    whole.extend_from_slice(&near);
    Some(Written { near: Arc::new(whole), far: Arc::new(far) })
}

/// Reads the validator of a record.
pub(super) fn decode_validator(bytes: &[u8]) -> Option<String> {
    let mut reader = Reader::new(bytes);
    Some(reader.beginning()?.1?.to_owned())
}

/// Reads the record that is at `place` in `near`; packages are most likely below `root`.
pub(super) fn decode(
    near: &Arc<Vec<u8>>,
    place: Range<usize>,
    far: Far,
    root: &SafeUrl,
) -> Option<Record> {
    let end = place.end;
    let mut reader = Reader { bytes: near.get(..end)?, at: place.start };
    let (checked, max_age) = reader.times()?;
    reader.at = place.start;
    let (flags, validator, texts_at) = reader.beginning()?;
    let validator = validator.map(str::to_owned);
    let texts = near.get(texts_at.clone())?;
    let mut record = Record { checked, max_age, validator, listing: None, tried: Vec::new() };
    if flags & LISTING == 0 {
        for _ in 0..reader.number()? {
            record.tried.push(reader.text(texts)?.to_owned());
        }
        return Some(record);
    }
    let location = reader.location(texts, flags, root)?;
    let count = usize::try_from(reader.number()?).ok()?;
    let mut heads = match flags & TABLE {
        0 => Heads::Each(reader.heads(count, texts)?),
        _ => Heads::Table(reader.table(count)?),
    };
    // What is left are near lines, one after the other.
    let mut line_begin = u32::try_from(reader.at).ok()?;
    let mut place = |line: &mut Line| {
        line.start = line_begin;
        line_begin = line_begin.checked_add(line.length)?;
        Some(())
    };
    match &mut heads {
        Heads::Each(heads) => {
            let mut detailed = heads.iter_mut().filter(|head| head.detailed);
            detailed.try_for_each(|head| place(&mut head.line))?;
        }
        Heads::Table(table) => table.detailed.iter_mut().try_for_each(|(_, line)| place(line))?,
    }
    if line_begin as usize != end {
        return None;
    }
    let lines = Lines { near: Arc::clone(near), texts: texts_at, far };
    record.listing = Some(Listing { location, heads, lines });
    Some(record)
}

/// Collects texts, each once, and what refers to them.
#[derive(Default)]
struct Writer {
    texts: Vec<u8>,
    known: FxHashMap<Box<str>, usize>,
    rest: Vec<u8>,
}

impl Writer {
    fn number(&mut self, number: u64) {
        put_number(&mut self.rest, number);
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

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        let place = self.place_of(text);
        self.number(place);
    }

    fn optional_text(&mut self, text: Option<&str>) {
        let Some(text) = text else { return self.number(0) };
        self.number(text.len() as u64 + 1);
        let place = self.place_of(text);
        self.number(place);
    }

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

    /// How it is written what a version depends on, if that is known.
    fn needs(&mut self, head: &Head, lines: &Lines) -> Option<Vec<u8>> {
        let needs: Vec<(&str, Option<&str>)> = match &head.needs {
            Needs::Unread => return None,
            Needs::At(at) => lines.needs(at)?,
            Needs::References(references) => {
                references.iter().map(|text| split_reference(text)).collect()
            }
        };
        let before = std::mem::take(&mut self.rest);
        for (place, version) in needs {
            self.text(place);
            self.optional_text(version);
        }
        Some(std::mem::replace(&mut self.rest, before))
    }

    fn head(&mut self, head: &Head, lines: &Lines) {
        let needs = self.needs(head, lines);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        self.rest.push(
            flag(head.composite, COMPOSITE)
                | flag(head.detailed, DETAILED)
                | flag(head.published.is_some(), PUBLISHED)
                | flag(head.commit.is_some(), COMMIT)
                | flag(matches!(head.version, Label::Plain(_)), PLAIN)
                | flag(needs.is_some(), NEEDS),
        );
        match &head.version {
            Label::Plain(numbers) => {
                numbers.iter().for_each(|&number| self.number(u64::from(number)));
            }
            Label::Text(text) => self.text(text),
        }
        if let Some(published) = head.published {
            self.rest.extend_from_slice(&published.to_le_bytes());
        }
        if let Some(commit) = &head.commit {
            self.text(commit);
        }
        self.number(u64::from(head.line.length));
        if let Some(needs) = needs {
            self.number(needs.len() as u64);
            self.rest.extend_from_slice(&needs);
        }
    }
}

/// A reference, split where its version begins.
fn split_reference(text: &str) -> (&str, Option<&str>) {
    text.split_once('#').map_or((text, None), |(place, version)| (place, Some(version)))
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what was written; everything gives `None` where the bytes make no sense.
pub(super) struct Reader<'bytes> {
    bytes: &'bytes [u8],
    at: usize,
}

impl<'bytes> Reader<'bytes> {
    pub(super) fn new(bytes: &'bytes [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn rest(&self) -> &'bytes [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, count: usize) -> Option<&'bytes [u8]> {
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

    fn number(&mut self) -> Option<u64> {
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
        u32::try_from(self.number()?).ok()
    }

    fn long(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(super) fn times(&mut self) -> Option<(i64, u32)> {
        let checked = self.long()?;
        Some((checked, u32::from_le_bytes(self.take(4)?.try_into().ok()?)))
    }

    /// What every record begins with: its flags, its validator, and where its texts are.
    fn beginning(&mut self) -> Option<(u8, Option<&'bytes str>, Range<usize>)> {
        self.times()?;
        let flags = self.byte()?;
        let length = usize::try_from(self.number()?).ok()?;
        let begin = self.at;
        let texts = self.take(length)?;
        let validator = match flags & VALIDATOR {
            0 => None,
            _ => Some(self.text(texts)?),
        };
        Some((flags, validator, begin..begin + length))
    }

    pub(super) fn text<'texts>(&mut self, texts: &'texts [u8]) -> Option<&'texts str> {
        let length = self.number()?;
        self.text_of(length, texts)
    }

    pub(super) fn optional_text<'texts>(
        &mut self,
        texts: &'texts [u8],
    ) -> Option<Option<&'texts str>> {
        match self.number()? {
            0 => Some(None),
            length => Some(Some(self.text_of(length - 1, texts)?)),
        }
    }

    fn text_of<'texts>(&mut self, length: u64, texts: &'texts [u8]) -> Option<&'texts str> {
        let start = usize::try_from(self.number()?).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        std::str::from_utf8(texts.get(start..end)?).ok()
    }

    fn location(&mut self, texts: &[u8], flags: u8, likely: &SafeUrl) -> Option<Location> {
        let root = self.text(texts)?;
        let is_likely = root == likely.as_url().as_str();
        Some(Location {
            root: if is_likely { likely.clone() } else { SafeUrl::parse(root).ok()? },
            path: self.text(texts)?.to_owned(),
            folder: match flags & FOLDER {
                0 => None,
                _ => Some(self.text(texts)?.to_owned()),
            },
            insecure: flags & INSECURE != 0,
            lenient: flags & LENIENT != 0,
            dated: false,
        })
    }

    /// Reads heads, but for where their near lines begin.
    fn heads(&mut self, count: usize, texts: &[u8]) -> Option<Vec<Head>> {
        let mut heads = Vec::with_capacity(count.min(self.rest().len() / SHORTEST));
        let mut far_end = 0u32;
        for _ in 0..count {
            let mut head = self.head(texts)?;
            if head.line.is_far {
                head.line.start = far_end;
                far_end = far_end.checked_add(head.line.length)?;
            }
            heads.push(head);
        }
        Some(heads)
    }

    /// Reads a head, but for where its line begins.
    fn head(&mut self, texts: &[u8]) -> Option<Head> {
        let flags = self.byte()?;
        let has = |flag: u8| flags & flag != 0;
        let version = if has(PLAIN) {
            Label::Plain([self.small()?, self.small()?, self.small()?])
        } else {
            Label::Text(self.text(texts)?.into())
        };
        let published = if has(PUBLISHED) { Some(self.long()?) } else { None };
        let commit = if has(COMMIT) { Some(self.text(texts)?.into()) } else { None };
        let line = Line { start: 0, length: self.small()?, is_far: !has(DETAILED) };
        let needs = if has(NEEDS) {
            let length = usize::try_from(self.number()?).ok()?;
            let start = u32::try_from(self.at).ok()?;
            self.take(length)?;
            Needs::At(start..u32::try_from(self.at).ok()?)
        } else {
            Needs::Unread
        };
        Some(Head {
            version,
            composite: has(COMPOSITE),
            detailed: has(DETAILED),
            published,
            commit,
            line,
            needs,
        })
    }
}
