//! Where a run writes trees before they are checked.
//!
//! Each run has a folder of its own and holds a lock in it for as long as it lives. A folder whose
//! lock is free belongs to a run that died, and the next run removes it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use mu_provider::Folder;

use super::{FILES, LIST};
use crate::fs::{self, AtPath as _, FileError, Lock, Sharing};

const LOCK: &str = "lock";

/// The staging folder of this run.
#[derive(Debug)]
pub(super) struct Staging {
    held: Folder,
    _folder: tempfile::TempDir,
    next: AtomicU32,
    _lock: Lock,
}

/// A folder in it, for one tree.
#[derive(Debug)]
pub(super) struct Staged<'run> {
    run: &'run Folder,
    name: String,
}

impl Staging {
    /// Makes a folder for this run below `parent`, and removes those of runs that died.
    pub(super) fn new(parent: &Path) -> Result<Self, FileError> {
        fs::create_folder(parent)?;
        // One at a time: a folder without a lock yet must not look like a dead run's.
        let _guard = Lock::acquire(&parent.join(LOCK), Sharing::Exclusive, &mut || {})?;
        remove_dead(parent)?;
        let folder = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(parent)
            .at("make a folder in", parent)?;
        let lock = Lock::acquire(&folder.path().join(LOCK), Sharing::Exclusive, &mut || {})?;
        let held = Folder::open(folder.path()).at("open", folder.path())?;
        Ok(Self { held, _folder: folder, next: AtomicU32::new(0), _lock: lock })
    }

    /// Makes a folder in it for one tree.
    pub(super) fn folder(&self) -> Result<Staged<'_>, FileError> {
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let staged = Staged { run: &self.held, name };
        let made = staged.run.make_folder(&staged.name);
        made.map_err(|error| FileError::new("make the folder", staged.path(), error))?;
        Ok(staged)
    }
}

impl Staged<'_> {
    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        self.run.path().join(&self.name)
    }

    /// Moves it to `name` in `folder`.
    pub(super) fn move_to(&self, folder: &Folder, name: &str) -> io::Result<()> {
        self.run.rename(&self.name, folder, name)
    }

    /// Makes the folder for the tree's files.
    pub(super) fn files(&self) -> Result<Folder, FileError> {
        let path = [&self.name, "/", FILES].concat();
        let made = self.run.make_folder(&path).and_then(|()| self.run.open_folder(&path));
        made.map_err(|error| self.error("make the folder", FILES, error))
    }

    /// Writes the tree's list. Its time is the one from which on the tree counts as checked.
    pub(super) fn write_list(&self, list: &str) -> Result<(), FileError> {
        let path = [&self.name, "/", LIST].concat();
        let written = self.run.write_file(&path, false, list.as_bytes());
        written.map_err(|error| self.error("write", LIST, error))
    }

    fn error(&self, action: &'static str, inside: &str, error: io::Error) -> FileError {
        FileError::new(action, self.path().join(inside), error)
    }
}

fn remove_dead(parent: &Path) -> Result<(), FileError> {
    for entry in std::fs::read_dir(parent).at("read the folder", parent)?.flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        let lock = Lock::try_acquire(&path.join(LOCK), Sharing::Exclusive)?;
        if lock.is_some() {
            fs::remove_folder(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_what_a_dead_run_left_and_spares_the_living() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let dead = parent.path().join("run-dead");
        std::fs::create_dir_all(dead.join("0/half")).expect("makes");
        let living = Staging::new(parent.path()).expect("makes");
        assert!(!dead.exists());
        let second = Staging::new(parent.path()).expect("makes");
        assert!(living.held.path().exists() && second.held.path().exists());
    }
}
