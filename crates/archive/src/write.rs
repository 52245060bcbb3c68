//! Writes archives whose bytes depend only on the paths, modes and contents of their files.
//!
//! Owners, times and the order of the file system leave no trace: entries are sorted by the bytes of their
//! paths (a manifest may come before them), with fixed headers, gzip header and level. Other code decides which files are in a package, and
//! [`crate::unpack()`] decides whether an archive is valid.
//!
//! The compressed bytes are those of the compressor in `Cargo.lock` (flate2 with zlib-rs). A newer one may
//! produce others from the same files; the content's digest stays the same.

use std::io::{self, Read, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

/// Packages are packed once and fetched often.
const LEVEL: u32 = 9;

/// The gzip header's value for an unknown system.
const UNKNOWN_SYSTEM: u8 = 255;

/// How much the compressor gets at a time, however it was read.
const CHUNK: usize = 64 << 10;

/// Writes one archive, entry by entry, in the order of the bytes of their paths.
pub struct ArchiveWriter<W: Write> {
    tar: ::tar::Builder<GzEncoder<W>>,
    last: String,
    /// Whether the next entry comes before all others, whatever its path.
    is_any_next: bool,
}

impl<W: Write> std::fmt::Debug for ArchiveWriter<W> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ArchiveWriter").field("last", &self.last).finish_non_exhaustive()
    }
}

impl<W: Write> ArchiveWriter<W> {
    /// An archive without entries, that is written into `into`.
    pub fn new(into: W) -> Self {
        let gzip = GzBuilder::new().mtime(0).operating_system(UNKNOWN_SYSTEM);
        Self {
            tar: ::tar::Builder::new(gzip.write(into, Compression::new(LEVEL))),
            last: String::new(),
            is_any_next: false,
        }
    }

    /// Lets the first entry have any path: that of a manifest which would come late otherwise.
    pub fn any_first(&mut self) {
        self.is_any_next = self.last.is_empty();
    }

    /// Adds a file of `size` bytes.
    ///
    /// # Errors
    ///
    /// When `path` does not come after the previous one, `content` has another size, or it cannot be read or
    /// written.
    pub fn file(
        &mut self,
        path: &str,
        executable: bool,
        size: u64,
        content: impl Read,
    ) -> io::Result<()> {
        self.follow(path)?;
        let mut header = header(if executable { 0o755 } else { 0o644 });
        header.set_size(size);
        let mut content = Exactly { content, left: size };
        self.tar.append_data(&mut header, path, &mut content)?;
        content.end()
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    ///
    /// When `path` does not come after the previous one, or it cannot be written.
    pub fn add_symlink(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.follow(path)?;
        let mut header = header(0o777);
        header.set_entry_type(::tar::EntryType::Symlink);
        header.set_size(0);
        self.tar.append_link(&mut header, path, target)
    }

    /// Ends the archive, and returns what it was written into.
    ///
    /// # Errors
    ///
    /// When the end cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.tar.into_inner()?.finish()
    }

    fn follow(&mut self, path: &str) -> io::Result<()> {
        if path.as_bytes() <= self.last.as_bytes() {
            return Err(io::Error::other(format!("`{path}` is added after `{}`", self.last)));
        }
        if !std::mem::take(&mut self.is_any_next) {
            path.clone_into(&mut self.last);
        }
        Ok(())
    }
}

/// A header without the author and time of an entry.
fn header(mode: u32) -> ::tar::Header {
    let mut header = ::tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

/// Content of a known size, in chunks that do not depend on how it is read.
struct Exactly<R> {
    content: R,
    left: u64,
}

impl<R: Read> Exactly<R> {
    /// Checks that nothing is left.
    fn end(&mut self) -> io::Result<()> {
        if self.content.read(&mut [0])? == 0 { Ok(()) } else { Err(changed()) }
    }
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let length = buffer.len().min(CHUNK).min(most);
        let (room, _) = buffer.split_at_mut(length);
        self.content.read_exact(room).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => changed(),
            _ => error,
        })?;
        self.left -= length as u64;
        Ok(length)
    }
}

fn changed() -> io::Error {
    io::Error::other("the file changed while it was packed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_provider::{Folder, Limits, Mode, TreeWriter};
    use sha2::{Digest as _, Sha256};

    /// Yields at most a few bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(7);
            self.0.read(&mut buffer[..most])
        }
    }

    fn example(slow: bool) -> Vec<u8> {
        let long = format!("{}/file", "folder/".repeat(30));
        let large: Vec<u8> = (0..200_000_u32).flat_map(|n| (n % 1_000).to_le_bytes()).collect();
        let mut writer = ArchiveWriter::new(Vec::new());
        let mut file = |path: &str, executable, content: &[u8]| {
            let size = content.len() as u64;
            let added = if slow {
                writer.file(path, executable, size, Slow(content))
            } else {
                writer.file(path, executable, size, content)
            };
            added.expect("goes to memory");
        };
        file("Mu.yaml", false, b"name: a\n");
        file("bin/run", true, b"#!/bin/sh\n");
        file(&long.replace("//", "/"), false, b"deep");
        file("large", false, &large);
        writer.add_symlink("link", "bin/run").expect("goes to memory");
        writer.finish().expect("goes to memory")
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut tree =
            TreeWriter::new(Folder::open(folder.path()).expect("opens"), Limits::default());
        crate::unpack(&example(false), &mut tree).expect("is an honest archive");
        let tree = tree.finish().expect("can be written");
        let entries: Vec<_> =
            tree.entries().iter().map(|entry| (entry.path.len(), entry.mode, entry.size)).collect();
        let deep = "folder/".len() * 30 + "file".len();
        assert_eq!(
            entries,
            [
                (7, Mode::File, 8),
                (7, Mode::Executable, 10),
                (deep, Mode::File, 4),
                (5, Mode::File, 800_000),
                (4, Mode::Symlink, 7)
            ]
        );
    }

    /// These bytes are frozen: if a newer mu packs the same files, the archive's digest must not change by
    /// accident.
    #[test]
    fn the_bytes_are_those_of_the_compressor_in_the_lock() {
        let archive = example(false);
        assert_eq!(archive, example(true), "how content is read must not matter");
        let digest: String =
            Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, "7ae380be209f00ee6e5e306083b20630dc6919bfe789d5ae0fbb44b916a8e4de");
    }

    #[test]
    fn order_and_sizes_are_checked() {
        let mut writer = ArchiveWriter::new(Vec::new());
        writer.file("b", false, 1, &b"x"[..]).expect("fits");
        assert!(writer.file("a", false, 1, &b"x"[..]).is_err());
        assert!(writer.file("b", false, 1, &b"x"[..]).is_err());
        assert!(writer.file("c", false, 2, &b"x"[..]).is_err());
        assert!(writer.file("d", false, 1, &b"xy"[..]).is_err());
    }
}
