//! A tree of the store and the pack that it becomes, both held open, so that each file is looked at and
//! linked by its path in them. Walking the long paths to them twice a file is what linking mostly costs.
//!
//! Where this does not work, callers go by whole paths.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use mu_provider::Entry;

#[cfg(unix)]
pub(super) use self::held::Folders;
#[cfg(not(unix))]
pub(super) use self::unheld::Folders;

#[cfg(unix)]
mod held {
    use std::os::fd::OwnedFd;
    use std::time::{Duration, UNIX_EPOCH};

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, linkat, mkdirat, open, statat};

    use super::*;

    /// The two folders; none if they could not be opened.
    pub(in crate::packs) struct Folders(Option<(OwnedFd, OwnedFd)>);

    impl Folders {
        pub(in crate::packs) fn open(from: &Path, to: &Path) -> Self {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let from = open(from, flags, Mode::empty());
            let to = open(to, flags, Mode::empty());
            Self(from.ok().zip(to.ok()))
        }

        /// Whether the stored file at `entry`'s path is certainly as it was when it was checked.
        pub(in crate::packs) fn is_unchanged(&self, entry: &Entry, checked: SystemTime) -> bool {
            let Some((from, _)) = &self.0 else { return false };
            let Ok(stat) = statat(from, &entry.path, AtFlags::SYMLINK_NOFOLLOW) else {
                return false;
            };
            let modified = u64::try_from(stat.st_mtime)
                .ok()
                .zip(u32::try_from(stat.st_mtime_nsec).ok())
                .and_then(|(seconds, nanos)| UNIX_EPOCH.checked_add(Duration::new(seconds, nanos)));
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                && u64::try_from(stat.st_size) == Ok(entry.size)
                && modified.is_some_and(|modified| modified <= checked)
        }

        /// Makes a folder in the pack.
        pub(in crate::packs) fn make(&self, path: &str) -> io::Result<()> {
            let Some((_, to)) = &self.0 else { return Err(io::ErrorKind::Unsupported.into()) };
            Ok(mkdirat(to, path, Mode::from(0o777))?)
        }

        /// Links the file at `path`.
        pub(in crate::packs) fn link(&self, path: &str) -> io::Result<()> {
            let Some((from, to)) = &self.0 else { return Err(io::ErrorKind::Unsupported.into()) };
            Ok(linkat(from, path, to, path, AtFlags::empty())?)
        }
    }
}

#[cfg(not(unix))]
mod unheld {
    use super::*;

    /// Nothing: folders cannot be held open here.
    pub(in crate::packs) struct Folders;

    impl Folders {
        pub(in crate::packs) fn open(_from: &Path, _to: &Path) -> Self {
            Self
        }

        pub(in crate::packs) fn is_unchanged(&self, _entry: &Entry, _checked: SystemTime) -> bool {
            false
        }

        pub(in crate::packs) fn make(&self, _path: &str) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(in crate::packs) fn link(&self, _path: &str) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}
