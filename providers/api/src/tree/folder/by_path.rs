//! Folders on systems where they cannot be kept open: everything uses whole paths, and looks for links on the way. Paths are not
//! checked here.

#![expect(clippy::disallowed_methods, reason = "is a door to files; whoever asks knows the path")]

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::tree::folder::{Kind, not_a_file};

pub(super) fn write_all(mut file: File, content: &[u8]) -> io::Result<()> {
    io::Write::write_all(&mut file, content)
}

#[derive(Debug)]
pub(super) struct Held(PathBuf);

impl Held {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if !path.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self(path.to_owned()))
    }

    /// The path to something below, no part of which is a symbolic link.
    fn beneath(&self, path: &str) -> io::Result<PathBuf> {
        let mut whole = self.0.clone();
        for part in path.split('/') {
            whole.push(part);
            if whole.is_symlink() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        Ok(whole)
    }

    pub(super) fn open_folder(&self, path: &str) -> io::Result<Self> {
        Self::open(&self.beneath(path)?)
    }

    pub(super) fn open_file(&self, path: &str) -> io::Result<File> {
        let path = self.beneath(path)?;
        if path.is_file() { File::open(path) } else { Err(not_a_file()) }
    }

    pub(super) fn kind(&self, path: &str) -> Option<Kind> {
        let kind = self.0.join(path).symlink_metadata().ok()?.file_type();
        Some(if kind.is_symlink() {
            Kind::Symlink
        } else if kind.is_dir() {
            Kind::Folder
        } else if kind.is_file() {
            Kind::File
        } else {
            Kind::Other
        })
    }

    pub(super) fn folders(&self) -> io::Result<Vec<String>> {
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.extend(entry.file_name().into_string());
            }
        }
        Ok(folders)
    }

    pub(super) fn new_folder(&self, path: &str) -> io::Result<()> {
        std::fs::create_dir(self.0.join(path))
    }

    pub(super) fn new_file(&self, path: &str, _executable: bool) -> io::Result<File> {
        File::options().write(true).create_new(true).open(self.0.join(path))
    }

    /// A new file that its owner can change.
    pub(super) fn new_own_file(
        &self,
        name: &str,
        permissions: Option<std::fs::Permissions>,
        content: &[u8],
    ) -> io::Result<()> {
        let file = self.new_file(name, false)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        write_all(file, content)
    }

    /// Opens a file whose content is about to be replaced; it is empty then.
    pub(super) fn open_to_replace(&self, name: &str) -> io::Result<File> {
        File::options().write(true).truncate(true).open(self.beneath(name)?)
    }

    pub(super) fn remove_file(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.0.join(name))
    }

    pub(super) fn remove_empty(&self, name: &str) -> io::Result<()> {
        std::fs::remove_dir(self.0.join(name))
    }

    /// Removes what is called so, and if it is a folder, everything in it.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match self.kind(name) {
            None => Ok(()),
            Some(Kind::Folder) => std::fs::remove_dir_all(self.0.join(name)),
            Some(_) => self.remove_file(name),
        }
    }

    pub(super) fn all_names(&self) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    pub(super) fn read_link(&self, path: &str) -> io::Result<PathBuf> {
        self.0.join(path).read_link()
    }

    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.0)?;
        let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
        Ok(names.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    pub(super) fn new_symlink(&self, target: &str, path: &str) -> io::Result<()> {
        // Most targets are files; folders need another call, and privileges.
        std::os::windows::fs::symlink_file(target, self.0.join(path))
    }

    pub(super) fn link(&self, path: &str, to: &Self) -> io::Result<()> {
        std::fs::hard_link(self.0.join(path), to.0.join(path))
    }

    pub(super) fn rename(&self, path: &str, to: &Self, new: &str) -> io::Result<()> {
        std::fs::rename(self.0.join(path), to.0.join(new))
    }

    pub(super) fn size_and_time(&self, path: &str) -> Option<(u64, SystemTime)> {
        let metadata = self.0.join(path).symlink_metadata().ok()?;
        metadata.is_file().then_some(())?;
        Some((metadata.len(), metadata.modified().ok()?))
    }
}
