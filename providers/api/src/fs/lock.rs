//! Locks between processes: files that the system unlocks when a process ends, for whatever reason.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::{AtPath as _, FileError, create_folder};

/// Which locks can be held at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One process alone.
    Exclusive,
    /// Any number that share.
    Shared,
}

/// A lock between processes, held until it is dropped or the process ends.
///
/// Always take locks in this order: workspace (or global packs), then store, then repositories.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock at `path`; if another process holds it, calls `waiting` once and then waits.
    ///
    /// # Errors
    ///
    /// When the lock file cannot be made or locked.
    pub fn acquire(
        path: &Path,
        sharing: Sharing,
        waiting: &mut dyn FnMut(),
    ) -> Result<Self, FileError> {
        if let Some(lock) = Self::try_acquire(path, sharing)? {
            return Ok(lock);
        }
        waiting();
        loop {
            let file = Self::open(path)?;
            match sharing {
                Sharing::Exclusive => file.lock(),
                Sharing::Shared => file.lock_shared(),
            }
            .at("lock", path)?;
            // The last holder may have removed the file; the next one then locks a new file.
            if is_at(&file, path) {
                return Ok(Self { _file: file });
            }
        }
    }

    /// Takes the lock at `path` if no other process holds it.
    ///
    /// # Errors
    ///
    /// When the lock file cannot be made or locked.
    pub fn try_acquire(path: &Path, sharing: Sharing) -> Result<Option<Self>, FileError> {
        loop {
            let file = Self::open(path)?;
            let result = match sharing {
                Sharing::Exclusive => file.try_lock(),
                Sharing::Shared => file.try_lock_shared(),
            };
            match result {
                Ok(()) if is_at(&file, path) => return Ok(Some(Self { _file: file })),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(FileError::new("lock", path, error)),
            }
        }
    }

    /// Opens the file of a lock. Only its owner may open it: it is enough to read a file to lock it, so any
    /// user of the machine could make mu wait for ever.
    fn open(path: &Path) -> Result<File, FileError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            use rustix::fs::OFlags;
            use std::os::unix::fs::OpenOptionsExt as _;
            let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
            options.mode(0o600).custom_flags(flags.bits().cast_signed());
        }
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_folder(path.parent().unwrap_or(Path::new("/")))?;
                options.open(path)
            }
            other => other,
        };
        file.and_then(only_for_owner).at("open the lock", path)
    }
}

/// Removes the permissions of others from a lock that an older mu created, or that came with a checkout.
fn only_for_owner(file: File) -> io::Result<File> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if metadata.permissions().mode() & 0o077 != 0 {
            // If another user owns it, that user decides.
            let _ = file.set_permissions(std::fs::Permissions::from_mode(0o600));
        }
    }
    Ok(file)
}

/// Whether an open file is still the one at `path`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(there)) => open.dev() == there.dev() && open.ino() == there.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    // On this system, an open file cannot be removed.
    path.exists()
}
