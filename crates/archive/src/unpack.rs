//! Unpacks a gzip'd tar into a tree, and refuses every archive that two readers could read differently. `write.rs` creates
//! archives.
//!
//! Archives are hostile. The [`TreeWriter`] judges paths, sizes and links. This module makes sure that an archive has only one
//! meaning: nothing after the gzip member, a valid checksum for each header, one name for each entry, and a marker at
//! the end. mu's own archives are one gzip member; those of other tools may be several, which all readers read as one. The bytes were compared with their digest before; this module hashes nothing and uses no network.
//!
//! Large archives are decompressed piece by piece, others in memory as a whole. libdeflate is by far the fastest there, but does
//! not say where a gzip member ended, and data after a member is refused. So its result counts only if the archive itself proves
//! where the member ends; otherwise zlib decides. Later archives reuse the memory ([`Scratch`]): it is warm, and the system need
//! not provide more.

use std::io::{self, BufRead, Read};
use std::sync::Mutex;

use flate2::bufread::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::{Decompressor, crc32};
use memchr::memmem;
use mu_provider::threads::lock;
use mu_provider::{ArchiveDigest, ErrorKind, KeptArchives, ProviderError, TreeError, TreeWriter};
use sha2::{Digest as _, Sha256};

use crate::pick::Layers;
use crate::tar::{self, Sink};

/// An archive of up to this size is decompressed as a whole, which is faster than piece by piece.
const WHOLE: usize = 4 << 20;

/// Why an archive was refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It cannot be inflated.
    #[error("it is not gzip, or is damaged")]
    Gzip(#[source] io::Error),
    /// It does not begin as an archive does.
    #[error("it is neither gzip nor tar, or is damaged")]
    NoTar,
    /// It is something else, or nothing.
    #[error("it is {0}")]
    Other(&'static str),
    /// What was compressed does not begin as an archive does.
    #[error("it is gzip of something that is not a tar, or is damaged")]
    NoTarInside,
    /// It is compressed in another way.
    #[error("it is compressed with {0}, and mu reads gzip")]
    Compressed(&'static str),
    /// It has no end as a zip has it.
    #[error("it is not a zip, or ends early")]
    NoZip,
    /// A zip that could be read in two ways, or is of a kind that mu does not read.
    #[error("it is a zip that mu does not read: {0}")]
    Zip(&'static str),
    /// It breaks off.
    #[error("it ends early")]
    Truncated,
    /// Something follows its end.
    #[error("there is data after its end, which other tools may read as more files")]
    Trailing,
    /// An entry's header makes no sense, or could be read in two ways.
    #[error("its entry {} is malformed: {reason}", named(name, *number))]
    Entry {
        /// Its path, escaped; empty if that is not known.
        name: String,
        /// Which one, counted from 1.
        number: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// Its content is useless and too large.
    #[error("it contains far more headers and padding than files")]
    Bomb,
    /// It contains something that a package cannot contain, or writing failed.
    #[error(transparent)]
    Tree(TreeError),
    /// It could not be read from this machine's disk.
    #[error("it cannot be read")]
    Io(#[source] io::Error),
}

/// An entry in a message.
fn named(name: &str, number: usize) -> String {
    if name.is_empty() { number.to_string() } else { format!("`{name}`") }
}

impl ArchiveError {
    /// Whether this machine's disk is the reason, and not what is in the archive.
    pub fn is_disk_error(&self) -> bool {
        match self {
            Self::Io(_) => true,
            Self::Tree(error) => error.is_io(),
            _ => false,
        }
    }

    /// The error of a provider that got the archive from `place`.
    pub fn at(self, place: &str) -> ProviderError {
        let (kind, what) = match self.is_disk_error() {
            true => (ErrorKind::Io, "cannot be unpacked"),
            false => (ErrorKind::Integrity, "is refused"),
        };
        ProviderError::new(kind, format!("the archive `{place}` {what}")).because(self)
    }
}

impl From<TreeError> for ArchiveError {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Content { source, .. } => source.into(),
            other => Self::Tree(other),
        }
    }
}

impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            _ if error.get_ref().is_some_and(|inner| inner.is::<AfterEnd>()) => Self::Trailing,
            // flate2 returns these for everything that it cannot decompress.
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Self::Gzip(error),
            _ => Self::Io(error),
        }
    }
}

/// Where the files of a package are in its archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArchiveLayout {
    /// At its top, as mu and hubs have it.
    #[default]
    Files,
    /// At its top, in a layer of an OCI image, which may be compressed or not.
    Layer,
    /// In one folder with any name, which is left out.
    InFolder,
}

impl ArchiveLayout {
    /// What the lines of a hub say in `locator` of archives that other tools have made.
    const NAMED: [(Self, &str); 2] = [(Self::InFolder, "in-folder"), (Self::Layer, "layer")];

    /// How the archive of the line of a hub with this `locator` is laid out.
    pub fn for_locator(locator: Option<&str>) -> Self {
        let named = Self::NAMED.into_iter().find(|(_, name)| Some(*name) == locator);
        named.map_or(Self::Files, |(layout, _)| layout)
    }

    /// Whether `tree` wants archives that are laid out like this: mu's own are, which no other tool reads.
    pub fn is_kept(self, tree: &TreeWriter) -> bool {
        match tree.keeps_archive {
            KeptArchives::None => false,
            KeptArchives::OfOtherTools => self != Self::Files,
            KeptArchives::All => true,
        }
    }

    /// The `locator` of a line whose archive is laid out like this; `None` for mu's own.
    pub fn as_locator(self) -> Option<&'static str> {
        let named = Self::NAMED.into_iter().find(|(layout, _)| *layout == self);
        named.map(|(_, name)| name)
    }
}

/// Unpacks an archive that is in memory.
///
/// # Errors
///
/// When the archive is damaged or hostile, or writing fails. The caller removes what was already written.
pub fn unpack(archive: &[u8], tree: &mut TreeWriter) -> Result<(), ArchiveError> {
    unpack_with(&Scratch::default(), archive, ArchiveLayout::Files, tree)
}

/// Unpacks an archive in memory; all archives share `scratch`.
///
/// # Errors
///
/// As [`unpack`].
pub fn unpack_with(
    scratch: &Scratch,
    archive: &[u8],
    layout: ArchiveLayout,
    tree: &mut TreeWriter,
) -> Result<(), ArchiveError> {
    match inflated_size(archive) {
        _ if layout == ArchiveLayout::Layer && !is_gzip(archive) => {
            tree.set_archive_size(archive.len() as u64);
            tar::unpack(archive, layout, tree)
        }
        Some(size) if size <= WHOLE => {
            check_gzip(archive)?;
            tree.set_archive_size(archive.len() as u64);
            let whole = scratch.lend(|inflate| match inflate.whole(archive, size) {
                // It may be several members.
                Err(_) if layout != ArchiveLayout::Files => None,
                inflated => Some(inflated.and_then(|tar| tar::unpack(tar, layout, tree))),
            });
            whole.unwrap_or_else(|| unpack_from(archive, archive.len() as u64, layout, tree))
        }
        _ => unpack_from(archive, archive.len() as u64, layout, tree),
    }
}

/// Unpacks an archive of `size` bytes piece by piece.
///
/// # Errors
///
/// As [`unpack`].
pub fn unpack_from(
    mut archive: impl BufRead,
    size: u64,
    layout: ArchiveLayout,
    tree: &mut TreeWriter,
) -> Result<(), ArchiveError> {
    tree.set_archive_size(size);
    if layout == ArchiveLayout::Layer && !is_gzip(archive.fill_buf()?) {
        return tar::unpack(io::BufReader::with_capacity(128 << 10, archive), layout, tree);
    }
    check_gzip(archive.fill_buf()?)?;
    if layout != ArchiveLayout::Files {
        let inflate = Members::new(archive);
        return tar::unpack(io::BufReader::with_capacity(128 << 10, inflate), layout, tree);
    }
    let mut inflate = GzDecoder::new(archive);
    tar::unpack(io::BufReader::with_capacity(128 << 10, &mut inflate), layout, tree)?;
    if inflate.into_inner().fill_buf()?.is_empty() { Ok(()) } else { Err(ArchiveError::Trailing) }
}

/// Unpacks a tar that is not compressed, to its end, into whatever judges its entries.
///
/// # Errors
///
/// As [`unpack`].
pub fn unpack_tar(archive: impl Read, into: &mut impl Sink) -> Result<(), ArchiveError> {
    tar::unpack(io::BufReader::with_capacity(128 << 10, archive), ArchiveLayout::Files, into)
}

/// The first bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Whether bytes begin as gzip does.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&GZIP)
}

/// Inflates the members of a gzip, one after the other. What follows them is an error, which says so; programs disagree about it.
pub(crate) struct Members<R>(Option<GzDecoder<R>>);

/// Something that is not gzip is behind the members of a gzip.
#[derive(Debug, thiserror::Error)]
#[error("there is data after its end")]
struct AfterEnd;

impl<R: BufRead> Members<R> {
    /// The members in `archive`, which begins with one.
    pub(crate) fn new(archive: R) -> Self {
        Self(Some(GzDecoder::new(archive)))
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(mut rest) = self.0.take().map(GzDecoder::into_inner) else { break };
            let start = rest.fill_buf()?;
            if start.is_empty() {
                break;
            }
            if !is_gzip(start) && !GZIP.starts_with(start) {
                return Err(io::Error::other(AfterEnd));
            }
            self.0 = Some(GzDecoder::new(rest));
        }
        Ok(0)
    }
}

/// The digest of the tar in an archive, and whether it is compressed there.
///
/// # Errors
///
/// When it cannot be inflated.
pub fn digest_of_tar(archive: &[u8]) -> io::Result<(ArchiveDigest, bool)> {
    let digest = |hasher: Sha256| ArchiveDigest::from_bytes(hasher.finalize().into());
    let mut hasher = Sha256::new();
    if !is_gzip(archive) {
        hasher.update(archive);
        return Ok((digest(hasher), false));
    }
    let mut inflate = Members::new(archive);
    let mut buffer = vec![0; 128 << 10];
    loop {
        match inflate.read(&mut buffer)? {
            0 => return Ok((digest(hasher), true)),
            length => hasher.update(buffer.get(..length).unwrap_or_default()),
        }
    }
}

/// Refuses bytes that begin otherwise, as far as they are there: what cannot be inflated looks as if it ended early.
fn check_gzip(start: &[u8]) -> Result<(), ArchiveError> {
    if is_gzip(start) || GZIP.starts_with(start) {
        return Ok(());
    }
    let reason = "its first bytes are not those of gzip";
    Err(ArchiveError::Gzip(io::Error::new(io::ErrorKind::InvalidData, reason)))
}

/// Unpacks what is wanted of a layer of an image, a tar of `size` bytes that may be gzip'd: the last layer first.
///
/// # Errors
///
/// As [`unpack`].
pub fn unpack_layer(
    mut layer: impl BufRead,
    size: u64,
    layers: &mut Layers,
    tree: &mut TreeWriter,
) -> Result<(), ArchiveError> {
    const BUFFER: usize = 128 << 10;
    tree.set_archive_size(size);
    layers.begin_layer(size);
    if is_gzip(layer.fill_buf()?) {
        let inflate = Members::new(layer);
        tar::unpack_layer(io::BufReader::with_capacity(BUFFER, inflate), layers, tree)?;
    } else {
        tar::unpack_layer(io::BufReader::with_capacity(BUFFER, layer), layers, tree)?;
    }
    layers.end_layer();
    Ok(())
}

/// The decompressed size according to the archive itself. This is only a hint, which the end of the archive
/// confirms.
fn inflated_size(archive: &[u8]) -> Option<usize> {
    let last = archive.last_chunk::<4>()?;
    usize::try_from(u32::from_le_bytes(*last)).ok()
}

/// The window of gzip, as a power of two.
const MAX_WINDOW: u8 = 15;

/// Inflates one archive after the other, into memory that is warm then.
#[derive(Default)]
struct Inflate {
    decompressor: Decompressor,
    memory: Vec<u8>,
}

impl Inflate {
    /// Decompresses one gzip member that fills the whole `archive` and claims to have `size` bytes.
    #[expect(
        clippy::indexing_slicing,
        reason = "the memory was made long enough, and no more of it is written"
    )]
    fn whole(&mut self, archive: &[u8], size: usize) -> Result<&[u8], ArchiveError> {
        // One more byte, to notice if the content is longer.
        if self.memory.len() <= size {
            self.memory.resize(size + 1, 0);
        }
        let memory = &mut self.memory[..=size];
        let length = match self.decompressor.gzip_decompress(archive, memory) {
            Ok(length) if ends_with_member(archive, &memory[..length]) => length,
            _ => inflate_exactly(archive, memory)?,
        };
        Ok(&self.memory[..length])
    }

    /// How many bytes of memory it holds.
    fn capacity(&self) -> usize {
        self.memory.capacity()
    }
}

mu_provider::debug_fields!(Inflate {});

/// Whether the gzip member that inflated to `content` is all of `archive`.
///
/// A member ends with the checksum and the length of its content ([RFC 1952], section 2.3.1). If these eight
/// bytes occur only at the end of the archive, the member ends there.
///
/// [RFC 1952]: https://www.rfc-editor.org/rfc/rfc1952
fn ends_with_member(archive: &[u8], content: &[u8]) -> bool {
    let Ok(length) = u32::try_from(content.len()) else { return false };
    let end = [crc32(content).to_le_bytes(), length.to_le_bytes()].concat();
    memmem::find(archive, &end).is_some_and(|start| start + end.len() == archive.len())
}

/// Decompresses like [`Inflate::whole`], but with the reason for a failure; returns the length.
fn inflate_exactly(archive: &[u8], memory: &mut [u8]) -> Result<usize, ArchiveError> {
    let mut state = Decompress::new_gzip(MAX_WINDOW);
    let status = state.decompress(archive, memory, FlushDecompress::Finish).map_err(|error| {
        let reason = error.message().unwrap_or("its content is not valid").to_owned();
        ArchiveError::Gzip(io::Error::new(io::ErrorKind::InvalidData, reason))
    })?;
    let length = usize::try_from(state.total_out()).expect("is no longer than the memory");
    match status {
        Status::StreamEnd if state.total_in() < archive.len() as u64 => Err(ArchiveError::Trailing),
        Status::StreamEnd => Ok(length),
        _ if length == memory.len() => {
            Err(ArchiveError::Gzip(io::Error::other("its size is not the size that it states")))
        }
        _ => Err(ArchiveError::Truncated),
    }
}

/// Larger pieces are returned to the system. Nearly all packages are smaller.
const LARGEST: usize = 256 << 10;

/// Memory for as many archives as are unpacked at once.
#[derive(Debug, Default)]
pub struct Scratch(Mutex<Vec<Inflate>>);

impl Scratch {
    /// Calls `work` with what inflates one archive.
    fn lend<T>(&self, work: impl FnOnce(&mut Inflate) -> T) -> T {
        let mut inflate = lock(&self.0).pop().unwrap_or_default();
        let result = work(&mut inflate);
        if inflate.capacity() <= LARGEST {
            lock(&self.0).push(inflate);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::write::GzEncoder;
    use flate2::{Compression, GzBuilder};

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).expect("memory takes everything");
        encoder.finish().expect("memory takes everything")
    }

    fn whole(archive: &[u8], size: usize) -> Result<Vec<u8>, ArchiveError> {
        Inflate::default().whole(archive, size).map(<[u8]>::to_vec)
    }

    #[test]
    fn inflates_one_after_the_other() {
        let mut inflate = Inflate::default();
        for content in [&[7; 9_000][..], b"short", b"", &[8; 20_000]] {
            let inflated = inflate.whole(&gzip(content), content.len()).expect("is whole");
            assert_eq!(inflated, content);
        }
    }

    #[test]
    fn refuses_what_follows_even_if_it_ends_as_the_member_does() {
        let member = gzip(b"content");
        let end = &member[member.len() - 8..];
        for following in [end, &[b"something", end].concat(), &member] {
            let refused = whole(&[&member[..], following].concat(), 7);
            assert!(matches!(refused, Err(ArchiveError::Trailing)), "{following:?}: {refused:?}");
        }
    }

    #[test]
    fn takes_a_member_whose_end_stands_in_it_twice() {
        let member = gzip(b"content");
        let header = GzBuilder::new().extra(&member[member.len() - 8..]);
        let mut encoder = header.write(Vec::new(), Compression::default());
        encoder.write_all(b"content").expect("memory takes everything");
        let archive = encoder.finish().expect("memory takes everything");
        assert!(!ends_with_member(&archive, b"content"));
        assert_eq!(whole(&archive, 7).expect("is whole"), b"content");
    }

    #[test]
    fn says_what_is_wrong() {
        let member = gzip(b"content");
        let truncated = whole(&member[..member.len() - 1], 7);
        assert!(matches!(truncated, Err(ArchiveError::Truncated)), "{truncated:?}");
        let longer = whole(&member, 3);
        assert!(matches!(longer, Err(ArchiveError::Gzip(_))), "{longer:?}");
        let mut damaged = member.clone();
        damaged[member.len() - 6] ^= 1;
        let damaged = whole(&damaged, 7);
        assert!(matches!(damaged, Err(ArchiveError::Gzip(_))), "{damaged:?}");
    }
}
