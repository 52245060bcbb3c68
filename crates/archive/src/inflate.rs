//! Decompresses archives in memory as a whole. `unpack.rs` decompresses larger ones piece by piece.
//!
//! libdeflate is by far the fastest, but does not say where a gzip member ended, and data after a member is
//! refused here. So its result counts only if the archive itself proves where the member ends; otherwise zlib
//! decides.
//!
//! Later archives reuse the memory ([`Scratch`]): it is warm, and the system need not provide
//! more.

use std::io;
use std::sync::Mutex;

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::{Decompressor, crc32};
use memchr::memmem;
use mu_provider::threads::lock;

use crate::unpack::ArchiveError;

/// The window of gzip, as a power of two.
const MAX_WINDOW: u8 = 15;

/// Inflates one archive after the other, into memory that is warm then.
#[derive(Default)]
pub(crate) struct Inflate {
    decompressor: Decompressor,
    memory: Vec<u8>,
}

impl Inflate {
    /// Decompresses one gzip member that fills the whole `archive` and claims to have `size` bytes.
    #[expect(
        clippy::indexing_slicing,
        reason = "the memory was made long enough, and no more of it is written"
    )]
    pub(crate) fn whole(&mut self, archive: &[u8], size: usize) -> Result<&[u8], ArchiveError> {
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
    pub(crate) fn capacity(&self) -> usize {
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
    pub(crate) fn lend<T>(&self, work: impl FnOnce(&mut Inflate) -> T) -> T {
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
