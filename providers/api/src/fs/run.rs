//! A temporary folder of this process, which is removed with it.
//!
//! The process holds a lock in it as long as it lives. If the lock of such a folder is free, its process
//! died, and the next process removes the folder.

use std::path::Path;

use tempfile::TempDir;

use super::{AtPath as _, FileError, Lock, Sharing, create_private_folder, entries, remove_folder};

/// The file whose lock distinguishes a living process's folder from a dead one's.
const LOCK: &str = "lock";

/// A folder that only this user can open. It is removed when this is dropped, or by the next process.
#[derive(Debug)]
pub struct RunFolder {
    // The content of the folder is removed before its lock.
    folder: TempDir,
    _lock: Lock,
}

impl RunFolder {
    /// Creates a folder below `parent`, and removes those of processes that died.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn new(parent: &Path) -> Result<Self, FileError> {
        create_private_folder(parent, &[LOCK])?;
        // One process at a time, because a folder without its lock looks like a dead process's.
        let _guard = Lock::acquire(&parent.join(LOCK), Sharing::Exclusive, &mut || {})?;
        remove_dead(parent)?;
        let folder = private_folder().tempdir_in(parent).at("make a folder in", parent)?;
        let lock = Lock::acquire(&folder.path().join(LOCK), Sharing::Exclusive, &mut || {})?;
        Ok(Self { folder, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Creates temporary folders that only this user can open.
pub fn private_folder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("mu-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder
}

fn remove_dead(parent: &Path) -> Result<(), FileError> {
    for entry in entries(parent)? {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        // A folder that cannot be removed now belongs to another process, or the next one removes it.
        let lock = Lock::try_acquire(&entry.path().join(LOCK), Sharing::Exclusive);
        if lock.is_ok_and(|lock| lock.is_some()) {
            let _ = remove_folder(&entry.path());
        }
    }
    Ok(())
}
