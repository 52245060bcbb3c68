//! Entries of any kind: looking at them, moving, linking and removing them. And what holds them: folders are created, listed and
//! removed; among them a temporary one of this process, which is removed with it.
//!
//! Functions that the standard library has, too, have the same names, and their errors name the path.
//!
//! The process holds a lock in its folder as long as it lives. If the lock of such a folder is free, its process died, and the
//! next process removes the folder.

use std::fs::{self, DirEntry, Metadata, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{AtPath as _, FileError, Lock, Sharing, changing, if_there};
use crate::tree::{Folder, needs_a_copy};

/// The metadata of what is at `path`, or of a link's target.
///
/// # Errors
///
/// When nothing is there, or it cannot be looked at.
pub fn metadata(path: &Path) -> Result<Metadata, FileError> {
    fs::metadata(path).at("look at", path)
}

/// The metadata of what is at `path`, or of a link's target; `None` if nothing is there.
///
/// # Errors
///
/// When something is there, and cannot be looked at.
pub fn metadata_if_there(path: &Path) -> Result<Option<Metadata>, FileError> {
    if_there(metadata(path))
}

/// The metadata of what is at `path` itself, even if that is a link.
///
/// # Errors
///
/// When nothing is there, or it cannot be looked at.
pub fn symlink_metadata(path: &Path) -> Result<Metadata, FileError> {
    fs::symlink_metadata(path).at("look at", path)
}

/// Whether something is at `path`, or at the target of a link there.
///
/// # Errors
///
/// When the system cannot tell.
pub fn exists(path: &Path) -> Result<bool, FileError> {
    path.try_exists().at("look at", path)
}

/// The path without links and `..`.
///
/// # Errors
///
/// When nothing is there, or a folder on the way cannot be entered.
pub fn canonicalize(path: &Path) -> Result<PathBuf, FileError> {
    fs::canonicalize(path).at("look at", path)
}

/// The target of the link at `path`.
///
/// # Errors
///
/// When it is not there, or is not a link.
pub fn read_link(path: &Path) -> Result<PathBuf, FileError> {
    fs::read_link(path).at("read the link", path)
}

/// Creates a link at `path` that leads to a file.
///
/// # Errors
///
/// When something is there, or the system refuses.
pub fn symlink_file(target: &Path, path: &Path) -> Result<(), FileError> {
    changing();
    #[cfg(unix)]
    let result = std::os::unix::fs::symlink(target, path);
    #[cfg(windows)]
    let result = std::os::windows::fs::symlink_file(target, path);
    result.at("make the link", path)
}

/// Creates a link at `path` that leads to a folder.
///
/// # Errors
///
/// When something is there, or the system refuses.
pub fn symlink_folder(target: &Path, path: &Path) -> Result<(), FileError> {
    changing();
    #[cfg(unix)]
    let result = std::os::unix::fs::symlink(target, path);
    #[cfg(windows)]
    let result = std::os::windows::fs::symlink_dir(target, path);
    result.at("make the link", path)
}

/// Gives the file at `from` a second name.
///
/// # Errors
///
/// When something is at `to`, or the file system refuses.
pub fn hard_link(from: &Path, to: &Path) -> Result<(), FileError> {
    changing();
    fs::hard_link(from, to).at("write", to)
}

/// Copies the file at `from`, with its permissions if they can be set there.
///
/// # Errors
///
/// When it cannot be read or written.
pub fn copy(from: &Path, to: &Path) -> Result<(), FileError> {
    changing();
    match fs::copy(from, to) {
        // This file system has no permissions that can be set.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let copied = fs::File::open(from)
                .and_then(|mut from| io::copy(&mut from, &mut fs::File::create(to)?));
            copied.map(drop)
        }
        copied => copied.map(drop),
    }
    .at("write", to)
}

/// Sets the permissions of a file or folder.
///
/// # Errors
///
/// When it belongs to another user.
pub fn set_permissions(path: &Path, permissions: Permissions) -> Result<(), FileError> {
    changing();
    fs::set_permissions(path, permissions).at("change the permissions of", path)
}

/// Whether the owner of a file may execute it; on systems without such permissions, nobody may.
pub fn is_executable(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0;
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

/// Makes a file one that was changed just now. On systems without this, nothing happens.
///
/// # Errors
///
/// When it is not there, or belongs to another user.
pub fn touch(path: &Path) -> Result<(), FileError> {
    #[cfg(unix)]
    {
        use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};
        let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        let times =
            Timestamps { last_access: time(UTIME_OMIT), last_modification: time(UTIME_NOW) };
        changing();
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(io::Error::from)
            .at("write", path)?;
    }
    let _ = path;
    Ok(())
}

/// Removes a file; one that is not there is fine.
///
/// # Errors
///
/// When it cannot be removed.
pub fn remove_file(path: &Path) -> Result<(), FileError> {
    changing();
    match fs::remove_file(path) {
        // A file system that is only read says so of what is not there, too.
        Err(error) if error.kind() != io::ErrorKind::NotFound && !is_absent(path) => {
            Err(FileError::new("remove", path, error))
        }
        _ => Ok(()),
    }
}

fn is_absent(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Moves a file or folder, as [`Folder::rename`] does.
///
/// # Errors
///
/// When it cannot be moved.
pub fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    moved(from, to).at("move into place", to)
}

/// Moves a file or folder out of the way, as [`Folder::rename`] does. If there is none, that is fine.
///
/// # Errors
///
/// When it cannot be moved.
pub fn move_away(from: &Path, to: &Path) -> Result<(), FileError> {
    if_there(moved(from, to).at("move out of the way", from)).map(drop)
}

fn moved(from: &Path, to: &Path) -> io::Result<()> {
    changing();
    let Err(error) = fs::rename(from, to) else { return Ok(()) };
    match (around(from), around(to)) {
        (Some((above, name)), Some((target, new))) if needs_a_copy(&error) => {
            Folder::open(above)?.carry(name, &Folder::open(target)?, new)
        }
        _ => Err(error),
    }
}

/// The folder around a file or folder, and its name there.
fn around(path: &Path) -> Option<(&Path, &str)> {
    Some((path.parent()?, path.file_name()?.to_str()?))
}

/// The room on a disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRoom {
    /// What is free for users without privileges.
    pub free: u64,
    /// The size of the disk.
    pub size: u64,
}

/// The room on the disk that a folder is on; `None` where the system is not asked.
///
/// # Errors
///
/// When there is no such folder, or the disk does not say it.
#[cfg(unix)]
pub fn disk_room(folder: &Path) -> Result<Option<DiskRoom>, FileError> {
    let found =
        rustix::fs::statvfs(folder).map_err(io::Error::from).at("ask for the room at", folder)?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok(Some(DiskRoom { free: bytes(found.f_bavail), size: bytes(found.f_blocks) }))
}

/// The room on the disk that a folder is on; `None` where the system is not asked.
///
/// # Errors
///
/// None here.
#[cfg(not(unix))]
pub fn disk_room(_: &Path) -> Result<Option<DiskRoom>, FileError> {
    Ok(None)
}

/// Creates a folder and those above it.
///
/// # Errors
///
/// When one cannot be made.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    changing();
    fs::create_dir_all(path).at("make the folder", path)
}

/// Creates a folder that only its owner can enter, and those above it. If the folder exists and holds nothing
/// but `known` entries, other users lose their permissions; a shared folder stays as it is.
///
/// # Errors
///
/// When it cannot be created. It is not an error if the permissions of an existing folder cannot be changed.
pub fn create_private_folder(path: &Path, known: &[&str]) -> Result<(), FileError> {
    changing();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
        if let Ok(metadata) = fs::metadata(path) {
            // A private folder is never sticky.
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
    let is_known = |entry: io::Result<DirEntry>| {
        entry.is_ok_and(|entry| known.iter().any(|name| entry.file_name() == *name))
    };
    fs::read_dir(folder).is_ok_and(|mut entries| entries.all(is_known))
}

/// The file that says that its folder is a cache, by <https://bford.info/cachedir/>.
pub const CACHE_TAG: &str = "CACHEDIR.TAG";

/// How the file begins.
const CACHE_SIGNATURE: &str = "Signature: 8a477f597d28d172789f06886806bc55";

/// Says in a folder that it is a cache, so that programs that copy or search files pass it by; does nothing if it says so already.
///
/// # Errors
///
/// When it cannot be written.
pub fn mark_as_cache(folder: &Path) -> Result<(), FileError> {
    let path = folder.join(CACHE_TAG);
    if path.exists() {
        return Ok(());
    }
    let text = format!("{CACHE_SIGNATURE}\n# Written by mu. All of this folder can be deleted.\n");
    super::write_atomic(&path, text.as_bytes())
}

/// Whether a folder says that it is a cache.
pub fn is_cache(folder: &Path) -> bool {
    let tag = super::read_if_there(&folder.join(CACHE_TAG));
    tag.ok().flatten().is_some_and(|tag| tag.starts_with(CACHE_SIGNATURE.as_bytes()))
}

/// The entries of a folder, in no order.
///
/// # Errors
///
/// When it cannot be read.
pub fn entries(folder: &Path) -> Result<Vec<DirEntry>, FileError> {
    fs::read_dir(folder).and_then(Iterator::collect).at("read the folder", folder)
}

/// The entries of a folder, in no order; none if the folder does not exist.
///
/// # Errors
///
/// When it is there and cannot be read.
pub fn entries_if_there(folder: &Path) -> Result<Vec<DirEntry>, FileError> {
    if_there(entries(folder)).map(Option::unwrap_or_default)
}

/// Removes an empty folder.
///
/// # Errors
///
/// When it is not empty, or cannot be removed.
pub fn remove_empty_folder(path: &Path) -> Result<(), FileError> {
    changing();
    fs::remove_dir(path).at("remove", path)
}

/// Lets this user list and change the folder and all folders in it, as far as they are this user's.
fn open_folders(path: &Path) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    // What a link leads to is not in the folder.
    if !metadata.is_dir() {
        return;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = metadata.permissions().mode() | 0o700;
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_folders(&entry.path());
    }
}

/// Removes a folder and everything in it. If it does not exist, that is fine.
///
/// # Errors
///
/// When something in it cannot be removed.
pub fn remove_folder(path: &Path) -> Result<(), FileError> {
    changing();
    // Another process may write into it meanwhile, but not for ever. The next attempt removes what it wrote.
    const TRIES: u32 = 10;
    for left in (0..TRIES).rev() {
        match fs::remove_dir_all(path) {
            // Whoever made a folder may have kept it for nobody.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && left == TRIES - 1 => {
                open_folders(path);
            }
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && left > 0 => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::new("remove", path, error));
            }
            _ => break,
        }
    }
    Ok(())
}

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
