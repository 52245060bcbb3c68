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
///
/// What can only be read, because of its file system or because it is another user's, needs no lock, and a file system without locks works without:
/// see [`Lock::is_missing`].
#[derive(Debug)]
pub struct Lock(Held);

#[derive(Debug)]
enum Held {
    Locked {
        _file: File,
    },
    /// Nothing can be changed there.
    NotNeeded,
    /// The file system has no locks.
    Missing,
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
            let Some(file) = Self::open(path)? else { return Ok(Self(Held::NotNeeded)) };
            match sharing {
                Sharing::Exclusive => file.lock(),
                Sharing::Shared => file.lock_shared(),
            }
            .at("lock", path)?;
            // The last holder may have removed the file; the next one then locks a new file.
            if is_at(&file, path) {
                return Ok(Self(Held::Locked { _file: file }));
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
            let Some(file) = Self::open(path)? else { return Ok(Some(Self(Held::NotNeeded))) };
            let result = match sharing {
                Sharing::Exclusive => file.try_lock(),
                Sharing::Shared => file.try_lock_shared(),
            };
            match result {
                Ok(()) if is_at(&file, path) => {
                    return Ok(Some(Self(Held::Locked { _file: file })));
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                    return Ok(Some(Self(Held::Missing)));
                }
                Err(TryLockError::Error(error)) => return Err(FileError::new("lock", path, error)),
            }
        }
    }

    /// Whether the file system has no locks, so that nothing keeps another process away.
    pub fn is_missing(&self) -> bool {
        matches!(self.0, Held::Missing)
    }

    /// Opens the file of a lock; `None` if nothing can be changed there, and it cannot be opened to be read. Only its owner may open it: it is enough to read a file to lock it, so any
    /// user of the machine could make mu wait for ever.
    fn open(path: &Path) -> Result<Option<File>, FileError> {
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
        let file = match file {
            Err(error) if is_only_read(path, &error) => {
                match options.write(false).create(false).open(path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        return Ok(None);
                    }
                    other => other,
                }
            }
            other => other,
        };
        file.and_then(only_for_owner).map(Some).at("open the lock", path)
    }
}

/// Whether a lock could not be opened because nothing around it can be changed: its folder is on a file system that is only read, or another
/// user's, such as that of a container's image.
fn is_only_read(path: &Path, error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => true,
        #[cfg(unix)]
        io::ErrorKind::PermissionDenied => path.parent().is_some_and(|folder| {
            rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_err()
        }),
        _ => false,
    }
}

/// Whether a file cannot be locked because its file system, such as some of networks, has no locks.
fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let of_locks = [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP, Errno::INVAL, Errno::BADF];
        let number = error.raw_os_error();
        of_locks.iter().any(|errno| number == Some(errno.raw_os_error()))
    }
    #[cfg(not(unix))]
    {
        error.kind() == io::ErrorKind::Unsupported
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_says_that_there_are_no_locks_is_told_from_other_failures() {
        use rustix::io::Errno;
        let is = |errno: Errno| has_no_locks(&io::Error::from_raw_os_error(errno.raw_os_error()));
        for errno in [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP, Errno::INVAL, Errno::BADF] {
            assert!(is(errno), "{errno:?}");
        }
        for errno in [Errno::IO, Errno::ACCESS, Errno::STALE, Errno::NOSPC] {
            assert!(!is(errno), "{errno:?}");
        }
    }

    #[test]
    fn a_lock_that_is_held_is_not_missing() {
        let around = tempfile::tempdir().expect("a temporary folder");
        let path = around.path().join("lock");
        let lock = Lock::try_acquire(&path, Sharing::Exclusive).expect("locks").expect("is free");
        assert!(!lock.is_missing());
        assert!(Lock::try_acquire(&path, Sharing::Shared).expect("asks").is_none());
    }

    /// Says nothing to a user who may do everything.
    #[test]
    fn what_is_another_users_needs_no_lock() {
        use std::os::unix::fs::PermissionsExt as _;

        let around = tempfile::tempdir().expect("a temporary folder");
        let path = around.path().join("lock");
        let set = |path: &Path, mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, mode).expect("is ours");
        };
        std::fs::write(&path, "").expect("can be written");
        set(&path, 0);
        if std::fs::read(&path).is_ok() {
            return;
        }
        let lock = || Lock::try_acquire(&path, Sharing::Exclusive);
        assert!(lock().is_err(), "others may change what is there");
        set(around.path(), 0o555);
        let found = lock().expect("needs none").expect("nobody has it");
        set(around.path(), 0o755);
        assert!(!found.is_missing());
    }
}
