//! The only door to files: every error names the path, writes are atomic, locks say what they wait for.
//!
//! Nothing here knows what the files hold.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A file operation that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// The error of `action` (a verb, such as `read`) on `path`.
    pub fn new(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self { action, path: path.into(), source }
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file or folder is not there.
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Names the path in the error of a file operation.
pub trait AtPath<T> {
    /// Names `action` and `path` in the error.
    ///
    /// # Errors
    ///
    /// When the operation failed.
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|source| FileError::new(action, path, source))
    }
}

/// Reads a file of UTF-8 text.
///
/// # Errors
///
/// When it cannot be read, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).at("read", path)
}

/// Reads a file of UTF-8 text; `None` when it is not there.
///
/// # Errors
///
/// When it is there and cannot be read, or is not UTF-8.
pub fn read_text_if_there(path: &Path) -> Result<Option<String>, FileError> {
    if_there(read_text(path))
}

/// Reads a file; `None` when it is not there.
///
/// # Errors
///
/// When it is there and cannot be read.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    if_there(fs::read(path).at("read", path))
}

/// Opens a file to read parts of it; `None` when it is not there.
///
/// # Errors
///
/// When it is there and cannot be opened.
pub fn open_if_there(path: &Path) -> Result<Option<File>, FileError> {
    if_there(File::open(path).at("read", path))
}

/// Fills `buffer` from an open file, from `offset` on, wherever others read in it.
///
/// # Errors
///
/// When it cannot be read, or ends before.
pub fn read_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset);
    #[cfg(windows)]
    {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            match std::os::windows::fs::FileExt::seek_read(file, &mut buffer[filled..], at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(())
    }
}

fn if_there<T>(result: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if matches!(
                error.source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Replaces a file as a whole: readers see the old content or the new, whatever happens in between.
///
/// Makes the folder if it is not there, keeps the permissions, writes through a symbolic link, and
/// leaves a file alone whose content is already that.
///
/// # Errors
///
/// When the folder or the file cannot be written; the old file is then as it was.
pub fn write_atomic(path: &Path, content: &[u8]) -> Result<(), FileError> {
    if let Ok(present) = fs::read(path)
        && present == content
    {
        return Ok(());
    }
    copy_atomic(path, &mut &*content)
}

/// Replaces a file as a whole with what `content` yields, as [`write_atomic`] does.
///
/// # Errors
///
/// When `content` cannot be read, or the folder or the file cannot be written; the old file is then as
/// it was.
pub fn copy_atomic(path: &Path, content: &mut dyn io::Read) -> Result<(), FileError> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().unwrap_or(Path::new("/"));
    create_folder(folder)?;
    let mut staged = tempfile::Builder::new()
        .prefix(".mu-")
        .tempfile_in(folder)
        .at("write a file in", folder)?;
    io::copy(content, staged.as_file_mut()).at("write", staged.path())?;
    let permissions = fs::metadata(&target).map(|metadata| metadata.permissions());
    set_permissions(staged.as_file(), permissions.ok()).at("write", &target)?;
    staged.persist(&target).map_err(|error| FileError::new("write", &target, error.error))?;
    Ok(())
}

/// Replaces a file as a whole, as [`write_atomic`] does; nobody but its owner can read it.
///
/// # Errors
///
/// When the folder or the file cannot be written; the old file is then as it was.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    create_folder(folder)?;
    let mut staged = tempfile::Builder::new()
        .prefix(".mu-")
        .tempfile_in(folder)
        .at("write a file in", folder)?;
    // A temporary file is private from its first moment.
    io::Write::write_all(&mut staged, content).at("write", staged.path())?;
    staged.persist(path).map_err(|error| FileError::new("write", path, error.error))?;
    Ok(())
}

#[cfg(unix)]
fn set_permissions(file: &File, permissions: Option<fs::Permissions>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    // A temporary file is private; a new file of mu's is as readable as any other.
    file.set_permissions(permissions.unwrap_or_else(|| fs::Permissions::from_mode(0o644)))
}

#[cfg(not(unix))]
fn set_permissions(file: &File, permissions: Option<fs::Permissions>) -> io::Result<()> {
    permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))
}

/// Makes a folder and those above it.
///
/// # Errors
///
/// When one cannot be made.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).at("make the folder", path)
}

/// Removes a folder with all that is in it; one that is not there is fine.
///
/// # Errors
///
/// When something in it cannot be removed.
pub fn remove_folder(path: &Path) -> Result<(), FileError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::new("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// Removes a file; one that is not there is fine.
///
/// # Errors
///
/// When it cannot be removed.
pub fn remove_file(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::new("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// Renames a file or folder within one file system.
///
/// # Errors
///
/// When it cannot be renamed.
pub fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    fs::rename(from, to).at("move into place", to)
}

/// Who may hold a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One process alone.
    Exclusive,
    /// Any number that share.
    Shared,
}

/// A lock between processes, held until it is dropped or the process ends, however it ends.
///
/// Locks are taken in one order: workspace (or global packs), then store, then repositories.
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
            // Whoever held it may have removed the file, which is then another one than the next finds.
            if is_at(&file, path) {
                return Ok(Self { _file: file });
            }
        }
    }

    /// Takes the lock at `path` if no other process is in the way.
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

    fn open(path: &Path) -> Result<File, FileError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_folder(path.parent().unwrap_or(Path::new("/")))?;
                options.open(path)
            }
            other => other,
        }
        .at("open the lock", path)
    }
}

/// Whether an open file is still the one at `path`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => open.dev() == there.dev() && open.ino() == there.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    // A file that is open cannot be removed there.
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_whole_files_through_links_and_keeps_permissions() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("a/b");
        write_atomic(&file, b"one").expect("writes");
        assert_eq!(read_text(&file).expect("reads"), "one");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("sets");
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(&file, &link).expect("links");
            write_atomic(&link, b"two").expect("writes");
            assert!(link.is_symlink());
            assert_eq!(fs::metadata(&file).expect("is there").permissions().mode() & 0o777, 0o600);
        }
        #[cfg(unix)]
        assert_eq!(read_text(&file).expect("reads"), "two");
        assert_eq!(fs::read_dir(folder.path().join("a")).expect("reads").count(), 1);
    }

    #[test]
    fn one_holder_at_a_time() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("locks/x.lock");
        let first = Lock::try_acquire(&path, Sharing::Exclusive).expect("opens");
        assert!(first.is_some());
        assert!(Lock::try_acquire(&path, Sharing::Shared).expect("opens").is_none());
        drop(first);
        let shared = Lock::try_acquire(&path, Sharing::Shared).expect("opens");
        assert!(shared.is_some());
        assert!(Lock::try_acquire(&path, Sharing::Shared).expect("opens").is_some());
        assert!(Lock::try_acquire(&path, Sharing::Exclusive).expect("opens").is_none());
    }
}
