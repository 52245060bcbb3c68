//! The folder that a tree is written into, held open, so that its files and folders are made by their
//! paths in it. Walking the long path to it for each of them is dear.
//!
//! What may be written, and whether it is there already, is not known here.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The folder.
pub(super) struct Disk {
    path: PathBuf,
    /// Opened with the first use.
    #[cfg(unix)]
    held: Option<std::os::fd::OwnedFd>,
}

impl Disk {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            #[cfg(unix)]
            held: None,
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder; one that is there already is fine.
    pub(super) fn make_folder(&mut self, path: &str) -> io::Result<()> {
        match self.new_folder(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result,
        }
    }

    /// Makes a symbolic link that is not there yet.
    pub(super) fn make_link(&self, target: &str, path: &str) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::symlink(target, self.path.join(path));
        // Files are the usual targets; folders need another call, and privileges.
        #[cfg(windows)]
        return std::os::windows::fs::symlink_file(target, self.path.join(path));
    }
}

#[cfg(unix)]
impl Disk {
    /// Makes a file that is not there yet, read-only, because packs may share it with the store.
    pub(super) fn new_file(&mut self, path: &str, executable: bool) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, openat};
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let readable = Mode::RUSR | Mode::RGRP | Mode::ROTH;
        let mode =
            if executable { readable | Mode::XUSR | Mode::XGRP | Mode::XOTH } else { readable };
        Ok(openat(self.held()?, path, flags, mode)?.into())
    }

    fn new_folder(&mut self, path: &str) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(self.held()?, path, rustix::fs::Mode::from(0o777))?)
    }

    fn held(&mut self) -> io::Result<&std::os::fd::OwnedFd> {
        use rustix::fs::{Mode, OFlags, open};
        if self.held.is_none() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.held = Some(open(&self.path, flags, Mode::empty())?);
        }
        Ok(self.held.as_ref().expect("was opened if it was not"))
    }
}

#[cfg(not(unix))]
impl Disk {
    /// Makes a file that is not there yet.
    pub(super) fn new_file(&mut self, path: &str, _executable: bool) -> io::Result<File> {
        File::options().write(true).create_new(true).open(self.path.join(path))
    }

    fn new_folder(&mut self, path: &str) -> io::Result<()> {
        std::fs::create_dir(self.path.join(path))
    }
}
