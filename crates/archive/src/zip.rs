//! Reads the entries of a zip archive, one after the other, in the order of its central directory.
//!
//! A zip has two descriptions of every entry: in the central directory at its end, and in front of the content. Tools believe one or the
//! other, so both must agree, and entries must neither overlap nor have the same name. Files may be stored or deflated. Encrypted
//! entries and archives in several parts are refused. Some tools on Windows write
//! paths with backslashes alone; all readers take them for slashes.
//!
//! Numbers that do not fit, or that a tool did not know in time, are in records of zip64: those of an entry in a field behind its name,
//! those of the end in a second end. The usual places then hold the largest number there is, or the same number.
//!
//! The format is described in PKWARE's APPNOTE.TXT, sections 4.3 to 4.5.

use std::collections::HashSet;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::CrcReader;
use flate2::bufread::DeflateDecoder;

use mu_provider::shown_path;

use crate::tar::{Sink, without_dot};
use crate::unpack::ArchiveError;

/// The record at the end of an archive, without its comment.
const END: usize = 22;

/// What leads to the second end, right before the first.
const LOCATOR: usize = 20;

/// The second end, without what may follow its fields.
const SECOND_END: usize = 56;

/// The longest comment that it may have.
const LONGEST_COMMENT: usize = 0xffff;

/// The fixed part of an entry in the central directory.
const LISTED: usize = 46;

/// The fixed part of the header in front of an entry's content.
const LOCAL: usize = 30;

/// The longest central directory, in bytes.
const LONGEST_DIRECTORY: u64 = 64 << 20;

/// An archive in memory, or in a file.
pub(crate) trait Source: Read + Seek {}

impl<R: Read + Seek> Source for R {}

/// One entry, as the central directory describes it.
#[derive(Debug, Default)]
struct Listed {
    flags: u16,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    name: Vec<u8>,
    /// The system that made it, by its number.
    system: u8,
    attributes: u32,
    /// Where its own header is.
    start: u64,
}

/// Unpacks an archive of `length` bytes.
pub(crate) fn unpack(
    archive: &mut dyn Source,
    length: u64,
    tree: &mut impl Sink,
) -> Result<(), ArchiveError> {
    let (directory, start) = directory(archive, length)?;
    let mut names = HashSet::new();
    let mut used = Vec::with_capacity(directory.len());
    for (number, listed) in (1..).zip(&directory) {
        let entry = Entry { number, listed };
        if !names.insert(listed.name.strip_suffix(b"/").unwrap_or(&listed.name)) {
            return Err(entry.malformed("it is there twice"));
        }
        used.push((listed.start, entry.unpack(archive, start, tree)?, number));
    }
    used.sort_unstable();
    for (one, next) in used.iter().zip(used.iter().skip(1)) {
        if next.0 < one.1 {
            let reason = "it overlaps with another entry";
            let name = next.2.checked_sub(1).and_then(|at| directory.get(at));
            let name = name.map(|listed| shown_path(&listed.name)).unwrap_or_default();
            return Err(ArchiveError::Entry { name, number: next.2, reason });
        }
    }
    Ok(())
}

/// Reads the central directory, and says where it begins.
fn directory(archive: &mut dyn Source, length: u64) -> Result<(Vec<Listed>, u64), ArchiveError> {
    let most = (END + LONGEST_COMMENT) as u64;
    let from = length.saturating_sub(most);
    archive.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    archive.take(most).read_to_end(&mut tail)?;
    let mut places =
        tail.windows(END).enumerate().filter(|(_, record)| record.starts_with(b"PK\x05\x06"));
    // Only a comment that fills the rest makes it the end.
    let is_end = |at: usize, record: &[u8]| {
        Fields(record).u16(20).is_some_and(|comment| at + END + usize::from(comment) == tail.len())
    };
    let found = places.find(|(at, record)| is_end(*at, record));
    let Some((at, record)) = found else { return Err(ArchiveError::NoZip) };
    if places.any(|(at, record)| is_end(at, record)) {
        return Err(ArchiveError::Trailing);
    }
    let fields = Fields(record);
    let numbers = (|| {
        let parts = [fields.u16(4)?, fields.u16(6)?];
        let counts = [fields.u16(8)?.into(), fields.u16(10)?.into()];
        Some((parts, End { counts, size: fields.u32(12)?.into(), start: fields.u32(16)?.into() }))
    })();
    let Some((parts, first)) = numbers else { return Err(ArchiveError::NoZip) };
    if parts != [0, 0] {
        return Err(ArchiveError::Zip("it has several parts"));
    }
    let locator = at.checked_sub(LOCATOR).and_then(|before| tail.get(before..at));
    let locator = locator.filter(|locator| locator.starts_with(b"PK\x06\x07"));
    let (End { counts: [count, total], size, start }, end) = match locator {
        Some(locator) => first.second(archive, locator, from + (at - LOCATOR) as u64)?,
        None => (first, from + at as u64),
    };
    if count != total {
        return Err(ArchiveError::Zip("it has several parts"));
    }
    if size > LONGEST_DIRECTORY {
        return Err(ArchiveError::Bomb);
    }
    if start.checked_add(size) != Some(end) {
        return Err(ArchiveError::Zip("its list of entries is not right before its end"));
    }
    archive.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; usize::try_from(size).expect("64 MiB fit")];
    archive.read_exact(&mut bytes)?;
    let mut rest = bytes.as_slice();
    let mut entries = Vec::new();
    for number in 1..=usize::try_from(count).unwrap_or(usize::MAX) {
        let malformed = |reason| ArchiveError::Entry { name: String::new(), number, reason };
        let (listed, after) = listed(rest).ok_or(malformed("its record in the list is damaged"))?;
        rest = after;
        entries.push(listed);
    }
    if !rest.is_empty() {
        return Err(ArchiveError::Zip("its list of entries is longer than it says"));
    }
    Ok((entries, start))
}

/// What the end says of the list of entries.
struct End {
    /// How many there are, in this part and in all.
    counts: [u64; 2],
    size: u64,
    /// Where it is.
    start: u64,
}

impl End {
    /// The numbers of the second end, which is in front of `locator` at `place`, and agrees with this one; also returns where it begins.
    fn second(
        self,
        archive: &mut dyn Source,
        locator: &[u8],
        place: u64,
    ) -> Result<(Self, u64), ArchiveError> {
        const MALFORMED: ArchiveError = ArchiveError::Zip("its two ends (zip64) differ");
        let begin = Fields(locator).u64(8).ok_or(MALFORMED)?;
        if begin.checked_add(SECOND_END as u64).is_none_or(|end| end > place) {
            return Err(MALFORMED);
        }
        archive.seek(SeekFrom::Start(begin))?;
        let mut record = [0; SECOND_END];
        archive.read_exact(&mut record)?;
        let fields = Fields(&record);
        let numbers = (|| {
            // The size leaves out itself and what is before it.
            let end = begin.checked_add(12)?.checked_add(fields.u64(4)?)?;
            let counts = [fields.u64(24)?, fields.u64(32)?];
            let second = Self { counts, size: fields.u64(40)?, start: fields.u64(48)? };
            let parts = [fields.u32(16)?, fields.u32(20)?, Fields(locator).u32(4)?];
            let is_one = parts == [0; 3] && Fields(locator).u32(16)? <= 1;
            (record.starts_with(b"PK\x06\x06") && end == place && is_one).then_some(second)
        })();
        let second = numbers.ok_or(MALFORMED)?;
        let (short, long) = (u64::from(u16::MAX), u64::from(u32::MAX));
        let agrees = [
            (self.counts[0], second.counts[0], short),
            (self.counts[1], second.counts[1], short),
            (self.size, second.size, long),
            (self.start, second.start, long),
        ];
        if agrees.iter().any(|(one, other, largest)| one != other && one != largest) {
            return Err(MALFORMED);
        }
        Ok((second, begin))
    }
}

/// Reads one record of the central directory; also returns what follows it.
fn listed(bytes: &[u8]) -> Option<(Listed, &[u8])> {
    let (fixed, rest) = bytes.split_at_checked(LISTED)?;
    let fields = Fields(fixed);
    if !fixed.starts_with(b"PK\x01\x02") {
        return None;
    }
    let (name, rest) = rest.split_at_checked(fields.u16(28)?.into())?;
    let (more, rest) = rest.split_at_checked(fields.u16(30)?.into())?;
    let short = [fields.u32(24)?, fields.u32(20)?, fields.u32(42)?];
    let [size, packed, start] = in_full(short, more)?;
    let (_, rest) = rest.split_at_checked(fields.u16(32)?.into())?;
    let listed = Listed {
        system: *fixed.get(5)?,
        flags: fields.u16(8)?,
        method: fields.u16(10)?,
        crc: fields.u32(16)?,
        packed,
        size,
        name: with_slashes(name),
        attributes: fields.u32(38)?,
        start,
    };
    // The other parts of an archive in several.
    (fields.u16(34)? == 0).then_some((listed, rest))
}

/// The name of an entry, with slashes between its parts, and without `./` before them.
fn with_slashes(name: &[u8]) -> Vec<u8> {
    let of_windows = |byte: &u8| if *byte == b'\\' { b'/' } else { *byte };
    let name = without_dot(name);
    if name.contains(&b'/') { name.to_vec() } else { name.iter().map(of_windows).collect() }
}

struct Entry<'a> {
    number: usize,
    listed: &'a Listed,
}

impl Entry<'_> {
    /// Hands the entry to the tree, and returns where it ends. Content must end before `directory`.
    fn unpack(
        &self,
        archive: &mut dyn Source,
        directory: u64,
        tree: &mut impl Sink,
    ) -> Result<u64, ArchiveError> {
        let Listed { flags, packed, size, method, .. } = *self.listed;
        if flags & (1 | 1 << 6 | 1 << 13) != 0 {
            return Err(self.malformed("it is encrypted"));
        }
        if self.listed.start >= directory {
            return Err(self.malformed("its header is not in front of the list of entries"));
        }
        let content = self.local(archive)?;
        let end = content.checked_add(packed).filter(|end| *end <= directory);
        let end = end.ok_or_else(|| self.malformed("its content is longer than the archive"))?;
        let path = self.listed.name.as_slice();
        let kind = self.kind();
        if path.is_empty() && size == 0 {
            return Ok(end);
        }
        if path.ends_with(b"/") {
            return match (kind, size) {
                (Some(0o040_000) | None, 0) => {
                    tree.directory(path).map(|()| end).map_err(Into::into)
                }
                _ => Err(self.malformed("it is called like a folder, and is none")),
            };
        }
        let content: Box<dyn Read> = match method {
            0 if packed != size => return Err(self.malformed("its two sizes differ")),
            0 => Box::new(archive.take(packed)),
            8 => Box::new(DeflateDecoder::new(BufReader::new(archive.take(packed)))),
            _ => return Err(self.malformed("it is compressed in a way that mu does not read")),
        };
        let mut content =
            Checked { inner: CrcReader::new(content), left: size, crc: self.listed.crc };
        match kind {
            None | Some(0o100_000) => {
                let executable = self.mode() & 0o100 != 0;
                if self.mode() & 0o7000 != 0 {
                    tree.odd(path, "something with set-uid, set-gid or sticky bits")?;
                }
                tree.file(path, executable, &mut content)?;
            }
            Some(0o120_000) => {
                let mut target = Vec::new();
                (&mut content).take(4_097).read_to_end(&mut target)?;
                tree.symlink(path, &target)?;
            }
            Some(_) => tree.odd(path, "neither a file nor a folder nor a link")?,
        }
        // To the end, so that what follows and the checksum are looked at, whatever the tree has read.
        io::copy(&mut content, &mut io::sink())?;
        Ok(end)
    }

    /// Where the content begins, after its own header, which must agree with the list.
    fn local(&self, archive: &mut dyn Source) -> Result<u64, ArchiveError> {
        let Listed { start, flags, method, crc, packed, size, name, .. } = self.listed;
        archive.seek(SeekFrom::Start(*start))?;
        let mut fixed = [0; LOCAL];
        archive.read_exact(&mut fixed)?;
        let fields = Fields(&fixed);
        let read = (|| {
            let sizes = [fields.u32(14)?, fields.u32(18)?, fields.u32(22)?];
            Some((fields.u16(6)?, fields.u16(8)?, sizes, fields.u16(26)?, fields.u16(28)?))
        })();
        let header = read.filter(|_| fixed.starts_with(b"PK\x03\x04"));
        let Some((own_flags, own_method, sizes, length, extra)) = header else {
            return Err(self.malformed("its header is damaged"));
        };
        let mut own_name = vec![0; length.into()];
        archive.read_exact(&mut own_name)?;
        let mut more = vec![0; extra.into()];
        archive.read_exact(&mut more)?;
        let stated = in_full([sizes[2], sizes[1], 0], &more);
        let is_open = flags & 1 << 3 != 0;
        let agrees = stated.is_some_and(|[own_size, own_packed, _]| {
            let own = [u64::from(sizes[0]), own_packed, own_size];
            // What was not known yet follows the content, and is in the list.
            let mut pairs = own.iter().zip([u64::from(*crc), *packed, *size]);
            pairs.all(|(own, listed)| *own == listed || is_open && *own == 0)
        });
        if with_slashes(&own_name) != *name
            || own_method != *method
            || own_flags != *flags
            || !agrees
        {
            return Err(self.malformed("its header and the list of entries differ"));
        }
        Ok(start + (LOCAL as u64) + u64::from(length) + u64::from(extra))
    }

    /// The kind of file, if it was packed on a system that says so.
    fn kind(&self) -> Option<u32> {
        Some(self.mode() & 0o170_000).filter(|kind| *kind != 0)
    }

    /// The permissions and the kind, as Unix has them.
    fn mode(&self) -> u32 {
        const UNIX: [u8; 2] = [3, 19];
        if UNIX.contains(&self.listed.system) { self.listed.attributes >> 16 } else { 0 }
    }

    fn malformed(&self, reason: &'static str) -> ArchiveError {
        let name = shown_path(&self.listed.name);
        ArchiveError::Entry { name, number: self.number, reason }
    }
}

/// The size of an entry, its size in the archive, and where it is, as a header states them. Those that are the largest number there are
/// in this order in `more`, the fields behind its name; `None` if they are not, or could be in two of them.
fn in_full(short: [u32; 3], mut more: &[u8]) -> Option<[u64; 3]> {
    const ZIP64: u16 = 1;
    let mut numbers = short.map(u64::from);
    if !short.contains(&u32::MAX) {
        return Some(numbers);
    }
    let mut found = None;
    // Bytes at the end that are no field are padding, as tools for Android write it.
    while let Some((head, rest)) = more.split_at_checked(4) {
        let (field, rest) = rest.split_at_checked(Fields(head).u16(2)?.into())?;
        if Fields(head).u16(0)? == ZIP64 && found.replace(field).is_some() {
            return None;
        }
        more = rest;
    }
    let mut places = (0..).step_by(8);
    for (number, _) in numbers.iter_mut().zip(short).filter(|(_, short)| *short == u32::MAX) {
        *number = Fields(found?).u64(places.next()?)?;
    }
    Some(numbers)
}

/// The content of a file, which must have exactly the size and the checksum that the list says.
struct Checked<R> {
    inner: CrcReader<R>,
    left: u64,
    crc: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        if buffer.is_empty() {
            return Ok(0);
        }
        let count = self.inner.read(buffer)?;
        match (count, self.left.checked_sub(count as u64)) {
            (0, Some(0)) if self.inner.crc().sum() == self.crc => Ok(0),
            (0, Some(0)) => Err(wrong("its checksum is wrong")),
            (0, _) => Err(io::ErrorKind::UnexpectedEof.into()),
            (_, None) => Err(wrong("it is longer than it says")),
            (_, Some(left)) => {
                self.left = left;
                Ok(count)
            }
        }
    }
}

/// Numbers at places in a record, least significant byte first.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.0.get(at..at + 2)?.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.0.get(at..at + 8)?.try_into().ok()?))
    }

    fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..at + 4)?.try_into().ok()?))
    }
}
