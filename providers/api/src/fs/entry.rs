//! Operations on entries of any kind: looking at them, moving, linking and removing them.
//!
//! The functions have the names of the standard library's, and their errors name the path.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use super::{AtPath as _, FileError, changing, if_there};
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
