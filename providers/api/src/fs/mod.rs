//! The only door to files, for mu, its providers and hubs: every error names the path, writes are atomic, locks say what
//! they wait for.
//!
//! Nothing here knows what the files hold.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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

/// The most bytes of a file that is read as a whole. A lock of 100,000 packages has some 40 MB.
const LARGEST: u64 = 128 << 20;

/// Reads a file of UTF-8 text.
///
/// # Errors
///
/// When it cannot be read, is not a regular file, is larger than 128 MiB, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    text(path, read(path)?)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|_| {
        let error = io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
        FileError::new("read", path, error)
    })
}

/// Reads a file of UTF-8 text, and tells when it was last changed; `None` when it is not there.
///
/// # Errors
///
/// As [`read_text`], when it is there.
pub fn read_dated_text_if_there(path: &Path) -> Result<Option<(String, SystemTime)>, FileError> {
    let read = || {
        let opened = open_with_metadata(path)?;
        let changed = opened.1.modified()?;
        Ok((read_whole(opened, LARGEST)?, changed))
    };
    match if_there(read().at("read", path))? {
        Some((bytes, changed)) => Ok(Some((text(path, bytes)?, changed))),
        None => Ok(None),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    open_with_metadata(path).and_then(|opened| read_whole(opened, LARGEST)).at("read", path)
}

/// Reads an open file, if it has no more than `most` bytes.
fn read_whole((file, metadata): (File, fs::Metadata), most: u64) -> io::Result<Vec<u8>> {
    let too_large = || {
        let problem = format!("it is larger than {} MiB", most >> 20);
        io::Error::new(io::ErrorKind::FileTooLarge, problem)
    };
    let size = metadata.len();
    if size > most {
        return Err(too_large());
    }
    // One byte of room is left, so that its end is found without asking how much more there is.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    // A file may grow while it is read.
    io::Read::take(file, most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

/// Opens a regular file to read it. A pipe is not waited for, and a device is not read: a checkout may bring either.
///
/// # Errors
///
/// When it is not there, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    Ok(open_with_metadata(path)?.0)
}

fn open_with_metadata(path: &Path) -> io::Result<(File, fs::Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        return Ok((file, metadata));
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
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
    if_there(read(path))
}

/// Opens a file to read parts of it; `None` when it is not there.
///
/// # Errors
///
/// When it is there and cannot be opened.
pub fn open_if_there(path: &Path) -> Result<Option<File>, FileError> {
    if_there(open_regular(path).at("read", path))
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
/// Makes the folder if it is not there, keeps the permissions, and leaves a file alone whose content is already that.
///
/// # Errors
///
/// When the folder or the file cannot be written, or a symbolic link is there; what was there is then as it was.
pub fn write_atomic(path: &Path, content: &[u8]) -> Result<(), FileError> {
    if let Ok(present) = read(path)
        && present == content
        && !path.is_symlink()
    {
        return Ok(());
    }
    copy_atomic(path, &mut &*content)
}

/// Replaces a file as [`write_atomic`] does; where a symbolic link is there, the file that it leads to.
///
/// Only for files that the user keeps: who makes a link there decides what is written.
///
/// # Errors
///
/// When the folder or the file cannot be written; the old file is then as it was.
pub fn write_through_links(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    write_atomic(&target, content)
}

/// Replaces a file as a whole with what `content` yields, as [`write_atomic`] does.
///
/// # Errors
///
/// When `content` cannot be read, the folder or the file cannot be written, or a symbolic link is there; what was there
/// is then as it was.
pub fn copy_atomic(path: &Path, content: &mut dyn io::Read) -> Result<(), FileError> {
    if path.is_symlink() {
        let problem = "it is a symbolic link, and what it leads to may be somebody else's";
        let error = io::Error::new(io::ErrorKind::InvalidInput, problem);
        return Err(FileError::new("write", path, error));
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    create_folder(folder)?;
    let mut staged = tempfile::Builder::new()
        .prefix(".mu-")
        .tempfile_in(folder)
        .at("write a file in", folder)?;
    io::copy(content, staged.as_file_mut()).at("write", staged.path())?;
    let permissions = fs::metadata(path).map(|metadata| metadata.permissions());
    set_permissions(staged.as_file(), permissions.ok()).at("write", path)?;
    staged.persist(path).map_err(|error| FileError::new("write", path, error.error))?;
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

/// Makes a folder, and those above it, that nobody but its owner can enter. From one that is there others' rights are
/// taken if it holds nothing but what is `known` in it: a folder that is somebody else's, too, stays as it is.
///
/// # Errors
///
/// When it cannot be made. That the rights of a folder that is there cannot be changed is no error.
pub fn create_private_folder(path: &Path, known: &[&str]) -> Result<(), FileError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
        if let Ok(metadata) = fs::metadata(path) {
            // Nobody's private folder is sticky.
            let is_open = metadata.permissions().mode() & 0o1077;
            if metadata.is_dir() && (1..0o1000).contains(&is_open) && holds_only(path, known) {
                let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
            }
            return Ok(());
        }
        create_folder(path.parent().unwrap_or(Path::new("/")))?;
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(FileError::new("make the folder", path, error))
            }
            _ => Ok(()),
        }
    }
    #[cfg(not(unix))]
    {
        let _ = known;
        create_folder(path)
    }
}

#[cfg(unix)]
fn holds_only(folder: &Path, known: &[&str]) -> bool {
    let is_known = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| known.iter().any(|name| entry.file_name() == *name))
    };
    fs::read_dir(folder).is_ok_and(|mut entries| entries.all(is_known))
}

/// Removes a folder with all that is in it; one that is not there is fine.
///
/// # Errors
///
/// When something in it cannot be removed.
pub fn remove_folder(path: &Path) -> Result<(), FileError> {
    // Another process may write into it meanwhile, but not for ever: what it writes next goes with it.
    const TRIES: u32 = 10;
    for left in (0..TRIES).rev() {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && left > 0 => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::new("remove", path, error));
            }
            _ => break,
        }
    }
    Ok(())
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

    /// Opens the file of a lock. Nobody else may open it: to hold a lock needs no more than to read the file, and so
    /// every user of the machine could make mu wait for ever.
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

/// Takes others' rights from a lock that an older mu has made, or that came with a checkout.
fn only_for_owner(file: File) -> io::Result<File> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if metadata.permissions().mode() & 0o077 != 0 {
            // Where it is another user's, that user decides.
            let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
        }
    }
    Ok(file)
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
            for content in [b"one", b"two"] {
                let error =
                    write_atomic(&link, content).expect_err("a link is not written through");
                assert_eq!(error.path(), link);
            }
            assert_eq!(read_text(&file).expect("reads"), "one");
            write_through_links(&link, b"two").expect("writes");
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

    #[test]
    #[cfg(unix)]
    fn what_is_not_a_regular_file_is_neither_read_nor_waited_for() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs");
        assert!(made.success());
        for path in [&pipe, Path::new("/dev/zero"), folder.path()] {
            assert!(read_text(path).is_err(), "{}", path.display());
            assert!(read_if_there(path).is_err(), "{}", path.display());
            assert!(open_if_there(path).is_err(), "{}", path.display());
            assert!(Lock::try_acquire(path, Sharing::Exclusive).is_err(), "{}", path.display());
        }
        write_atomic(&pipe, b"x").expect("is replaced");
        assert_eq!(read_text(&pipe).expect("reads"), "x");
    }

    #[test]
    fn a_huge_file_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("sparse");
        let file = File::create(&path).expect("makes");
        file.set_len(LARGEST + 1).expect("has no content");
        let error = read_text(&path).expect_err("is too large");
        assert_eq!(error.source.to_string(), "it is larger than 128 MiB");
    }

    #[test]
    #[cfg(unix)]
    fn locks_and_private_folders_are_closed_to_others() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        let lock = folder.path().join("lock");
        for _ in 0..2 {
            drop(Lock::try_acquire(&lock, Sharing::Shared).expect("opens"));
            assert_eq!(mode(&lock), 0o600);
            // As an older mu left it.
            fs::set_permissions(&lock, fs::Permissions::from_mode(0o644)).expect("sets");
        }
        let private = folder.path().join("a/private");
        for _ in 0..2 {
            create_private_folder(&private, &["own"]).expect("makes");
            assert_eq!(mode(&private), 0o700);
            write_atomic(&private.join("own"), b"").expect("writes");
            fs::set_permissions(&private, fs::Permissions::from_mode(0o755)).expect("sets");
        }
        // What is not mu's alone stays open to those who use it, too.
        write_atomic(&private.join("other"), b"").expect("writes");
        create_private_folder(&private, &["own"]).expect("is there");
        assert_eq!(mode(&private), 0o755);
        let shared = folder.path().join("shared");
        fs::create_dir(&shared).expect("makes");
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("sets");
        create_private_folder(&shared, &["own"]).expect("is there");
        assert_eq!(fs::metadata(&shared).expect("is there").permissions().mode() & 0o7777, 0o1777);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &link).expect("links");
        assert!(Lock::try_acquire(&link, Sharing::Exclusive).is_err());
        assert!(!folder.path().join("elsewhere").exists());
    }
}
