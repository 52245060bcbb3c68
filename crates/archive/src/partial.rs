//! A large archive during its download: a file that grows, is hashed as it grows, and survives a broken
//! connection.
//!
//! Its name identifies the complete archive, so that the next run, or another process, can continue it. Whoever works
//! on it holds a lock on it. Nothing here connects to anything.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use mu_provider::fs::{self, AtPath as _};
use mu_provider::{ArchiveDigest, Folder, Progress, ProviderError};
use sha2::{Digest as _, Sha256};

/// A file that is being downloaded.
#[derive(Debug)]
pub(crate) struct Partial {
    path: PathBuf,
    file: File,
    hash: Sha256,
    length: u64,
    /// Whether the file is of use to anybody after this.
    keep: bool,
}

impl Partial {
    /// Whether an earlier attempt has left anything.
    pub(crate) fn is_in(folder: &Folder, name: &str) -> bool {
        folder.size_and_time(&file_name(name)).is_some()
    }

    /// Opens what an earlier attempt has left, if it has left anything.
    pub(crate) fn left_over(
        folder: &Path,
        name: &str,
        progress: &dyn Progress,
    ) -> Result<Option<Self>, ProviderError> {
        let path = file_of(folder, name);
        match fs::open_with(&path, OpenOptions::new().read(true).append(true)) {
            Ok(file) => Self::hold(path, file, progress).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the file of that name, new or not.
    pub(crate) fn create(
        folder: &Path,
        name: &str,
        progress: &dyn Progress,
    ) -> Result<Self, ProviderError> {
        fs::create_folder(folder)?;
        let path = file_of(folder, name);
        let file = fs::open_with(&path, OpenOptions::new().read(true).append(true).create(true))?;
        Self::hold(path, file, progress)
    }

    /// Waits until nobody else works on the file, and hashes its content.
    fn hold(path: PathBuf, file: File, progress: &dyn Progress) -> Result<Self, ProviderError> {
        let locked = match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                progress.waiting("another mu downloads the same archive");
                file.lock()
            }
            Err(TryLockError::Error(error)) => Err(error),
            Ok(()) => Ok(()),
        };
        locked.at("lock", &path)?;
        let mut partial = Self { path, file, hash: Sha256::new(), length: 0, keep: true };
        partial.hash_what_is_there().at("write", &partial.path)?;
        Ok(partial)
    }

    fn hash_what_is_there(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 256 << 10];
        self.file.seek(SeekFrom::Start(0))?;
        loop {
            let count = self.file.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            #[expect(
                clippy::indexing_slicing,
                reason = "a file reads no more than there is room for"
            )]
            self.hash.update(&buffer[..count]);
            self.length += count as u64;
        }
    }

    /// Bytes so far.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The digest of the bytes so far.
    pub(crate) fn digest(&self) -> ArchiveDigest {
        ArchiveDigest::from_bytes(self.hash.clone().finalize().into())
    }

    /// Adds bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), ProviderError> {
        self.file.write_all(bytes).at("write", &self.path)?;
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Starts over.
    pub(crate) fn clear(&mut self) -> Result<(), ProviderError> {
        self.file.set_len(0).at("write", &self.path)?;
        self.hash = Sha256::new();
        self.length = 0;
        Ok(())
    }

    /// Marks the file for removal: its content is used now, or never.
    pub(crate) fn give_up(&mut self) {
        self.keep = false;
    }

    /// The bytes, from the first on.
    pub(crate) fn reader(&mut self) -> io::Result<&File> {
        self.file.seek(SeekFrom::Start(0))?;
        Ok(&self.file)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.keep || self.length == 0 {
            // The file is emptied first, because another process may have it open already and wait for the
            // lock. If removing it fails, whoever finds it checks it.
            if self.length == 0 || self.file.set_len(0).is_ok() {
                let _ = fs::remove_file(&self.path);
            }
        }
    }
}

fn file_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(file_name(name))
}

fn file_name(name: &str) -> String {
    [name, ".part"].concat()
}

#[cfg(test)]
mod tests {
    use mu_provider::Silent;

    use super::*;

    #[test]
    fn goes_on_where_it_was_left() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let open = || Partial::create(folder.path(), "a", &Silent).expect("can be made");
        open().append(b"one ").expect("can be written");
        let mut partial = open();
        assert_eq!(partial.length(), 4);
        partial.append(b"two").expect("can be written");
        let expected = ArchiveDigest::from_bytes(Sha256::digest(b"one two").into());
        assert_eq!(partial.digest(), expected);
        let mut text = String::new();
        partial.reader().expect("can be read").read_to_string(&mut text).expect("can be read");
        assert_eq!(text, "one two");
        partial.give_up();
        drop(partial);
        let left = Partial::left_over(folder.path(), "a", &Silent).expect("can be looked for");
        assert!(left.is_none());
    }

    #[test]
    fn leaves_nothing_where_nothing_came() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        drop(Partial::create(folder.path(), "a", &Silent).expect("can be made"));
        assert_eq!(fs::entries(folder.path()).expect("is there").len(), 0);
    }
}
