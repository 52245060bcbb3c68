//! Numbers and texts as they are written: seven bits a byte, the lowest first; a text is given by its length
//! and its start among the texts.

use std::ops::Range;

use rustc_hash::FxHashMap;

/// Collects texts, each once, and what refers to them.
#[derive(Default)]
pub(super) struct BytesWriter {
    pub(super) texts: Vec<u8>,
    known: FxHashMap<Box<str>, usize>,
    pub(super) rest: Vec<u8>,
}

impl BytesWriter {
    pub(super) fn write_number(&mut self, number: u64) {
        put_number(&mut self.rest, number);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.write_number(text.len() as u64);
        let place = self.place_of(text);
        self.write_number(place);
    }

    pub(super) fn write_optional_text(&mut self, text: Option<&str>) {
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

pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what was written; everything returns `None` if the bytes are not valid.
pub(super) struct BytesReader<'bytes> {
    bytes: &'bytes [u8],
    /// Its position in the bytes.
    pub(super) at: usize,
}

impl<'bytes> BytesReader<'bytes> {
    /// Reads at `place`, which counts from the start of all the bytes.
    pub(super) fn new(bytes: &'bytes [u8], place: Range<usize>) -> Option<Self> {
        Some(Self { bytes: bytes.get(..place.end)?, at: place.start })
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn remaining_bytes(&self) -> &'bytes [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(super) fn take_bytes(&mut self, count: usize) -> Option<&'bytes [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn read_number(&mut self) -> Option<u64> {
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

    pub(super) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.read_number()?).ok()
    }

    pub(super) fn long(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take_bytes(8)?.try_into().ok()?))
    }

    pub(super) fn text<'texts>(&mut self, texts: &'texts [u8]) -> Option<&'texts str> {
        let length = self.read_number()?;
        self.text_of(length, texts)
    }

    pub(super) fn optional_text<'texts>(
        &mut self,
        texts: &'texts [u8],
    ) -> Option<Option<&'texts str>> {
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
