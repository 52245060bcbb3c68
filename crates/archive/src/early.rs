//! Looks at the first entries of an archive in memory, and writes nothing: whoever gets many archives refuses some of them before
//! they are unpacked.

use std::io::{self, BufReader, Read};

use flate2::bufread::GzDecoder;
use mu_provider::{Limits, TreeError};

use crate::tar::{self, Sink};
use crate::unpack::{ArchiveError, ArchiveLayout};

/// Among how many of its first entries the manifest of a package is.
pub const EARLY: usize = 1_000;

/// Whether an archive has [`EARLY`] entries or more, of which the first are no file with one of these names.
///
/// # Errors
///
/// When its beginning is damaged, or hostile.
pub fn lacks_early(archive: &[u8], names: &[&str]) -> Result<bool, ArchiveError> {
    let left = Limits::default().most_from(archive.len() as u64);
    let mut look = Look { names, seen: 0, left, ends: None };
    let inflate = BufReader::with_capacity(128 << 10, GzDecoder::new(archive));
    let read = tar::unpack(inflate, ArchiveLayout::Files, &mut look);
    match (look.ends, read) {
        (Some(Ends::Found), _) | (None, Ok(())) => Ok(false),
        (Some(Ends::TooLate), _) => Ok(true),
        (None, Err(error)) => Err(error),
    }
}

/// Why no more entries are looked at.
enum Ends {
    Found,
    TooLate,
}

struct Look<'a> {
    names: &'a [&'a str],
    seen: usize,
    /// How many more bytes of files may be passed over.
    left: u64,
    ends: Option<Ends>,
}

impl Look<'_> {
    /// Takes note of an entry. The error only ends the reading.
    fn pass(&mut self, is_found: bool) -> Result<(), TreeError> {
        self.seen += 1;
        self.ends = match (is_found, self.seen < EARLY) {
            (true, _) => Some(Ends::Found),
            (false, true) => return Ok(()),
            (false, false) => Some(Ends::TooLate),
        };
        Err(TreeError::Limit { what: "the number of its entries", limit: EARLY as u64 })
    }
}

impl Sink for Look<'_> {
    fn directory(&mut self, _path: &[u8]) -> Result<(), TreeError> {
        self.pass(false)
    }

    fn symlink(&mut self, _path: &[u8], _target: &[u8]) -> Result<(), TreeError> {
        self.pass(false)
    }

    fn file(&mut self, path: &[u8], _: bool, content: &mut dyn Read) -> Result<(), TreeError> {
        let length = io::copy(&mut content.take(self.left.saturating_add(1)), &mut io::sink());
        let length = length.map_err(|source| TreeError::Content {
            path: String::from_utf8_lossy(path).escape_debug().to_string(),
            source,
        })?;
        let ratio = Limits::default().ratio;
        let over =
            TreeError::Limit { what: "the ratio of its size to its archive's", limit: ratio };
        self.left = self.left.checked_sub(length).ok_or(over)?;
        self.pass(self.names.iter().any(|name| name.as_bytes() == path))
    }

    fn odd(&mut self, _path: &[u8], _what: &'static str) -> Result<(), TreeError> {
        self.pass(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArchiveWriter;

    /// An archive of this many files, then a manifest.
    fn archive(before: usize) -> Vec<u8> {
        let mut writer = ArchiveWriter::new(Vec::new());
        for number in 0..before {
            writer.file(&format!("A{number:06}"), false, 1, &b"x"[..]).expect("goes to memory");
        }
        writer.file("Mu.yaml", false, 1, &b"x"[..]).expect("goes to memory");
        writer.finish().expect("goes to memory")
    }

    #[test]
    fn a_manifest_is_early_or_is_missed() {
        for (before, lacks) in [(0, false), (EARLY - 1, false), (EARLY, true), (30_000, true)] {
            let found = lacks_early(&archive(before), &["Mu.yaml"]).expect("is whole");
            assert_eq!(found, lacks, "{before}");
        }
        // What is small is for whoever unpacks it.
        assert!(!lacks_early(&archive(5), &["other"]).expect("is whole"));
        assert!(lacks_early(b"no gzip", &["Mu.yaml"]).is_err());
    }
}
