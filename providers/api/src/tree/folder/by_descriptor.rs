//! Folders that are kept open by their descriptors, below which nothing is reached through a link. Paths are not checked here.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, Dir, DirEntry, FileType, Mode, OFlags, linkat, mkdirat, open, openat, readlinkat,
    renameat, statat, symlinkat, unlinkat,
};
use rustix::io::retry_on_intr;

use crate::tree::folder::Kind;

/// Writes `content` with nothing but the system call: the standard library uses one at which a thread can
/// be cancelled, which is expensive for small files.
pub(super) fn write_all(file: File, mut content: &[u8]) -> io::Result<()> {
    while !content.is_empty() {
        match retry_on_intr(|| rustix::io::write(&file, content))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => content = content.get(count..).unwrap_or_default(),
        }
    }
    Ok(())
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Opening a pipe must not wait for a writer.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Opens `path` below `folder` without following a symbolic link in any part of it.
///
/// This is one call if the system has it (`openat2`, Linux 5.6), and otherwise one for each part.
fn open_beneath(folder: &OwnedFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        use rustix::io::Errno;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match retry_on_intr(|| openat2(folder, path, flags, Mode::empty(), resolve)) {
            // The call does not exist, or a sandbox that is older than the call forbids it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    open_by_parts(folder, path, flags)
}

pub(super) fn open_by_parts(folder: &OwnedFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    if path.split('/').any(|part| part == "..") {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let (above, leaf) = path.rsplit_once('/').unwrap_or((".", path));
    let mut held = openat(folder, ".", FOLDER, Mode::empty())?;
    for part in above.split('/') {
        held = openat(&held, part, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(openat(&held, leaf, flags | OFlags::NOFOLLOW, Mode::empty())?)
}

/// Opens `path` below the folder at `folder` like [`open_beneath`], if the system knows all parts of both by heart.
#[cfg(target_os = "linux")]
pub(super) fn open_cached(folder: &Path, path: &str) -> io::Result<File> {
    use rustix::fs::{CWD, ResolveFlags, openat2};
    use rustix::io::Errno;
    let open = || {
        let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let cached = ResolveFlags::CACHED;
        let folder = retry_on_intr(|| openat2(CWD, folder, place, Mode::empty(), cached))?;
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | cached;
        retry_on_intr(|| openat2(&folder, path, FILE, Mode::empty(), inside))
    };
    match open() {
        // The system does not have the call (Linux 5.6) or its flag (5.12), or a sandbox forbids it.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => Err(io::ErrorKind::WouldBlock.into()),
        opened => Ok(opened?.into()),
    }
}

/// The names of what is directly in a folder.
fn names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let names = Dir::read_from(folder)?.map(|entry| Ok(entry?.file_name().to_owned()));
    let is_inside = |name: &io::Result<CString>| {
        !name.as_ref().is_ok_and(|name| matches!(name.to_bytes(), b"." | b".."))
    };
    names.filter(is_inside).collect()
}

fn remove_all(folder: &OwnedFd, name: &CString) -> io::Result<()> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(unlinkat(folder, name, AtFlags::empty())?);
    }
    let inside = openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    for name in names(&inside)? {
        remove_all(&inside, &name)?;
    }
    Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

#[derive(Debug)]
pub(super) struct Held(OwnedFd);

impl Held {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, FOLDER, Mode::empty())?))
    }

    pub(super) fn open_folder(&self, path: &str) -> io::Result<Self> {
        Ok(Self(open_beneath(&self.0, path, FOLDER)?))
    }

    pub(super) fn open_file(&self, path: &str) -> io::Result<File> {
        Ok(open_beneath(&self.0, path, FILE)?.into())
    }

    pub(super) fn kind(&self, path: &str) -> Option<Kind> {
        let stat = statat(&self.0, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::Other,
        })
    }

    pub(super) fn folders(&self) -> io::Result<Vec<String>> {
        let name = |entry: &DirEntry| entry.file_name().to_str().ok().map(str::to_owned);
        let mut folders = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            if entry.file_type() == FileType::Directory {
                folders.extend(name(&entry).filter(|name| name != "." && name != ".."));
            }
        }
        Ok(folders)
    }

    pub(super) fn new_folder(&self, path: &str) -> io::Result<()> {
        Ok(mkdirat(&self.0, path, Mode::from(0o777))?)
    }

    pub(super) fn new_file(&self, path: &str, executable: bool) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = if executable { 0o555 } else { 0o444 };
        Ok(openat(&self.0, path, flags, Mode::from(mode))?.into())
    }

    /// A new file that its owner can change.
    pub(super) fn new_own_file(
        &self,
        name: &str,
        permissions: Option<std::fs::Permissions>,
        content: &[u8],
    ) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file: File = openat(&self.0, name, flags, Mode::from(0o600))?.into();
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        write_all(file, content)
    }

    /// Opens a file whose content is about to be replaced; it is empty then.
    pub(super) fn open_to_replace(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::empty())?.into())
    }

    pub(super) fn remove_file(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(super) fn remove_empty(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes what is called so, and if it is a folder, everything in it.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let name = CString::new(name)?;
        match remove_all(&self.0, &name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    pub(super) fn all_names(&self) -> io::Result<Vec<OsString>> {
        let names = names(&self.0)?.into_iter();
        Ok(names.map(|name| OsString::from_vec(name.into_bytes())).collect())
    }

    pub(super) fn read_link(&self, path: &str) -> io::Result<PathBuf> {
        let target = readlinkat(&self.0, path, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let names = names(&self.0)?.into_iter();
        Ok(names.filter_map(|name| name.into_string().ok()).collect())
    }

    pub(super) fn new_symlink(&self, target: &str, path: &str) -> io::Result<()> {
        Ok(symlinkat(target, &self.0, path)?)
    }

    pub(super) fn link(&self, path: &str, to: &Self) -> io::Result<()> {
        Ok(linkat(&self.0, path, &to.0, path, AtFlags::empty())?)
    }

    pub(super) fn rename(&self, path: &str, to: &Self, new: &str) -> io::Result<()> {
        Ok(renameat(&self.0, path, &to.0, new)?)
    }

    pub(super) fn size_and_time(&self, path: &str) -> Option<(u64, SystemTime)> {
        let stat = statat(&self.0, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        // Anybody can set the one back, and only the system writes the other.
        let written = (stat.st_mtime, stat.st_mtime_nsec);
        let (seconds, rest) = written.max((stat.st_ctime, stat.st_ctime_nsec));
        let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(rest).ok()?);
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
            .then_some((u64::try_from(stat.st_size).ok()?, UNIX_EPOCH.checked_add(since)?))
    }
}
