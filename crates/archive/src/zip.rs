//! Reads the entries of a zip archive, one after the other, in the order of its central directory.
//!
//! A zip has two descriptions of every entry: in the central directory at its end, and in front of the content. Tools believe one or the
//! other, so both must agree, and entries must neither overlap nor have the same name. Files may be stored or deflated. Encrypted
//! entries, archives in several parts, and archives of more than 4 GiB or 65,534 entries (zip64) are refused. Some tools on Windows write
//! paths with backslashes alone; all readers take them for slashes.
//!
//! The format is described in PKWARE's APPNOTE.TXT, sections 4.3 and 4.4.

use std::collections::HashSet;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::CrcReader;
use flate2::bufread::DeflateDecoder;

use mu_provider::shown_path;

use crate::tar::Sink;
use crate::unpack::ArchiveError;

/// The record at the end of an archive, without its comment.
const END: usize = 22;

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
        let counts = [fields.u16(8)?, fields.u16(10)?];
        Some((parts, counts, u64::from(fields.u32(12)?), u64::from(fields.u32(16)?)))
    })();
    let Some((parts, [count, total], size, start)) = numbers else {
        return Err(ArchiveError::NoZip);
    };
    if parts != [0, 0] || count != total {
        return Err(ArchiveError::Zip("it has several parts"));
    }
    if count == u16::MAX || size == u64::from(u32::MAX) || start == u64::from(u32::MAX) {
        return Err(ArchiveError::Zip("it is too large (zip64)"));
    }
    if size > LONGEST_DIRECTORY {
        return Err(ArchiveError::Bomb);
    }
    if start + size != from + at as u64 {
        return Err(ArchiveError::Zip("its list of entries is not right before its end"));
    }
    archive.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; usize::try_from(size).expect("64 MiB fit")];
    archive.read_exact(&mut bytes)?;
    let mut rest = bytes.as_slice();
    let mut entries = Vec::with_capacity(usize::from(count));
    for number in 1..=usize::from(count) {
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

/// Reads one record of the central directory; also returns what follows it.
fn listed(bytes: &[u8]) -> Option<(Listed, &[u8])> {
    let (fixed, rest) = bytes.split_at_checked(LISTED)?;
    let fields = Fields(fixed);
    if !fixed.starts_with(b"PK\x01\x02") {
        return None;
    }
    let (name, rest) = rest.split_at_checked(fields.u16(28)?.into())?;
    let (_, rest) = rest.split_at_checked(fields.u16(30)?.into())?;
    let (_, rest) = rest.split_at_checked(fields.u16(32)?.into())?;
    let listed = Listed {
        system: *fixed.get(5)?,
        flags: fields.u16(8)?,
        method: fields.u16(10)?,
        crc: fields.u32(16)?,
        packed: fields.u32(20)?.into(),
        size: fields.u32(24)?.into(),
        name: with_slashes(name),
        attributes: fields.u32(38)?,
        start: fields.u32(42)?.into(),
    };
    // The other parts of an archive in several.
    (fields.u16(34)? == 0).then_some((listed, rest))
}

/// The name of an entry, with slashes between its parts.
fn with_slashes(name: &[u8]) -> Vec<u8> {
    let of_windows = |byte: &u8| if *byte == b'\\' { b'/' } else { *byte };
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
        if packed == u64::from(u32::MAX) || size == u64::from(u32::MAX) {
            return Err(self.malformed("it is too large (zip64)"));
        }
        let content = self.local(archive)?;
        let end = content + packed;
        if end > directory {
            return Err(self.malformed("its content is longer than the archive"));
        }
        let path = self.listed.name.as_slice();
        let kind = self.kind();
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
        let listed = [u64::from(*crc), *packed, *size];
        // Written while the sizes were not known yet; they follow the content, and are in the list.
        let is_open = flags & 1 << 3 != 0 && sizes == [0, 0, 0];
        let agrees = is_open || in_full(sizes, &more) == Some(listed);
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

/// The checksum and the two sizes that a header states. Where room was left for large sizes (zip64), they are in `more`, the fields
/// behind its name; `None` if they are not.
fn in_full([crc, packed, size]: [u32; 3], mut more: &[u8]) -> Option<[u64; 3]> {
    const ZIP64: u16 = 1;
    if [packed, size] != [u32::MAX; 2] {
        return Some([crc, packed, size].map(u64::from));
    }
    loop {
        let (head, rest) = more.split_at_checked(4)?;
        let (field, rest) = rest.split_at_checked(Fields(head).u16(2)?.into())?;
        if Fields(head).u16(0)? == ZIP64 {
            let fields = Fields(field);
            return Some([crc.into(), fields.u64(8)?, fields.u64(0)?]);
        }
        more = rest;
    }
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
