//! The file of a cache: segments, each with what one run learned.
//!
//! First come the near parts of its records, then all far parts, so that opening the file reads only near
//! parts. Readers stop at a segment that was cut off by a kill or is not valid, and the next writer
//! overwrites it. This module does not know what a record means.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::fs;

/// Changes with every change of the layout; a file with another one is ignored and replaced.
pub(super) const MAGIC: &[u8; 8] = b"muindex6";

/// A whole record.
pub(super) const WHOLE: u8 = 0;
/// An unchanged record: newer times, and the next validator.
pub(super) const CHECKED: u8 = 1;

/// More segments than this are rewritten as one.
pub(super) const MOST_SEGMENTS: usize = 64;

/// The lengths of the near and the far part of a segment.
const SEGMENT_HEAD: usize = 8;
/// The length of the rest, the kind, the length of the name, and the start and length of the far part.
const FRAME_HEAD: usize = 4 + 1 + 4 + 4 + 4;

/// The near parts of a file.
#[derive(Debug, Default)]
pub(super) struct Near {
    pub(super) bytes: Vec<u8>,
    pub(super) frames: Vec<RecordFrame>,
    /// How many segments the file has.
    pub(super) segments: usize,
    /// The place of the next segment.
    pub(super) end: u64,
}

/// A record in a file.
#[derive(Debug, Clone)]
pub(super) struct RecordFrame {
    pub(super) kind: u8,
    /// Where its name is in the near parts.
    pub(super) name: Range<usize>,
    /// Where its near part is in the near parts.
    pub(super) near: Range<usize>,
    /// Where its far part is in the file.
    pub(super) far: u64,
    pub(super) far_length: u32,
}

impl Near {
    /// Reads the near parts of a file; nothing if it is not a cache of this layout.
    pub(super) fn read(mut file: &File) -> io::Result<Self> {
        let mut near = Self::default();
        let size = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let mut magic = [0; MAGIC.len()];
        if size < MAGIC.len() as u64 {
            return Ok(near);
        }
        file.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Ok(near);
        }
        near.end = MAGIC.len() as u64;
        while size - near.end >= SEGMENT_HEAD as u64 {
            let mut head = [0; SEGMENT_HEAD];
            file.read_exact(&mut head)?;
            let [near_length, far_length] = lengths(head);
            let begin = near.end + SEGMENT_HEAD as u64;
            let end = begin + near_length + far_length;
            if end > size {
                break;
            }
            let start = near.bytes.len();
            near.bytes.reserve(near_length as usize);
            file.take(near_length).read_to_end(&mut near.bytes)?;
            let far = begin + near_length..end;
            let known = near.frames.len();
            if near.read_frames(start, &far).is_none() {
                near.bytes.truncate(start);
                near.frames.truncate(known);
                break;
            }
            near.segments += 1;
            near.end = end;
            file.seek(SeekFrom::Start(end))?;
        }
        Ok(near)
    }

    /// Finds the frames of a segment; `None` if they are not valid.
    fn read_frames(&mut self, start: usize, far: &Range<u64>) -> Option<()> {
        let mut at = start;
        while at < self.bytes.len() {
            let mut head: &[u8] = self.bytes.get(at..at.checked_add(FRAME_HEAD)?)?;
            let rest = number_at(&mut head)?;
            let kind = *head.split_off_first()?;
            let name = number_at(&mut head)?;
            let (far_start, far_length) = (number_at(&mut head)?, number_at(&mut head)?);
            let end = at.checked_add(4)?.checked_add(rest as usize)?;
            let name = at + FRAME_HEAD..(at + FRAME_HEAD).checked_add(name as usize)?;
            let frame = RecordFrame {
                kind,
                near: name.end..end,
                name,
                far: far.start + u64::from(far_start),
                far_length,
            };
            let is_whole = frame.near.start <= end
                && end <= self.bytes.len()
                && frame.far + u64::from(far_length) <= far.end
                && self
                    .bytes
                    .get(frame.name.clone())
                    .is_some_and(|name| std::str::from_utf8(name).is_ok());
            if !is_whole {
                return None;
            }
            self.frames.push(frame);
            at = end;
        }
        Some(())
    }

    /// The name of a frame.
    pub(super) fn name(&self, frame: &RecordFrame) -> &str {
        let name = self.bytes.get(frame.name.clone()).unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }

    /// A frame, and the content of its near part.
    pub(super) fn part(&self, index: usize) -> Option<(&RecordFrame, &[u8])> {
        let frame = self.frames.get(index)?;
        Some((frame, self.bytes.get(frame.near.clone())?))
    }

    /// The frames that are still in use: for each name, the last whole record and the last later record that
    /// says that nothing changed.
    pub(super) fn latest_frames(&self) -> FxHashMap<&str, Latest> {
        let mut latest: FxHashMap<&str, Latest> = FxHashMap::default();
        latest.reserve(self.frames.len());
        for (index, frame) in self.frames.iter().enumerate() {
            let name = self.name(frame);
            if frame.kind == WHOLE {
                latest.insert(name, Latest { whole: index, checked: None });
            } else if let Some(latest) = latest.get_mut(name) {
                latest.checked = Some(index);
            }
        }
        latest
    }
}

/// The places of a name's frames.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latest {
    pub(super) whole: usize,
    pub(super) checked: Option<usize>,
}

/// Takes the number at the start of `bytes`.
fn number_at(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

fn lengths(head: [u8; SEGMENT_HEAD]) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h] = head;
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])].map(u64::from)
}

/// A record to be written.
#[derive(Debug)]
pub(super) struct Part<'parts> {
    pub(super) kind: u8,
    pub(super) name: &'parts str,
    pub(super) near: &'parts [u8],
    pub(super) far: FarPart<'parts>,
}

/// The far part of a record to be written. All of them together may be more than memory should hold.
#[derive(Debug)]
pub(super) enum FarPart<'parts> {
    Bytes(&'parts [u8]),
    /// In a file: the offset, and the number of bytes.
    File(&'parts File, u64, u32),
}

/// How many bytes of a far part are copied at once from a file.
const PIECE: u32 = 64 << 10;

impl FarPart<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::File(.., length) => *length as usize,
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match *self {
            Self::Bytes(bytes) => out.write_all(bytes),
            Self::File(file, mut start, mut left) => {
                let mut buffer = vec![0; left.min(PIECE) as usize];
                while left > 0 {
                    buffer.truncate(left as usize);
                    fs::read_at(file, start, &mut buffer)?;
                    out.write_all(&buffer)?;
                    start += buffer.len() as u64;
                    left -= left.min(PIECE);
                }
                Ok(())
            }
        }
    }
}

/// Writes a segment of these records.
pub(super) fn write(parts: &[Part<'_>], out: &mut dyn Write) -> io::Result<()> {
    let near = |part: &Part<'_>| FRAME_HEAD + part.name.len() + part.near.len();
    out.write_all(&number(parts.iter().map(near).sum()))?;
    out.write_all(&number(parts.iter().map(|part| part.far.len()).sum()))?;
    let mut far = 0;
    for part in parts {
        out.write_all(&number(near(part) - 4))?;
        out.write_all(&[part.kind])?;
        for length in [part.name.len(), far, part.far.len()] {
            out.write_all(&number(length))?;
        }
        out.write_all(part.name.as_bytes())?;
        out.write_all(part.near)?;
        far += part.far.len();
    }
    parts.iter().try_for_each(|part| part.far.write(out))
}

fn number(number: usize) -> [u8; 4] {
    u32::try_from(number).expect("an index is under 4 GiB").to_le_bytes()
}
