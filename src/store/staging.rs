//! Where a run writes trees before they are checked.
//!
//! Each run has a folder of its own and holds a lock in it for as long as it lives. A folder whose
//! lock is free belongs to a run that died, and the next run removes it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::FILES;
use crate::fs::{self, AtPath as _, FileError, Lock, Sharing};

const LOCK: &str = "lock";

/// The staging folder of this run.
#[derive(Debug)]
pub(super) struct Staging {
    folder: tempfile::TempDir,
    next: AtomicU32,
    _lock: Lock,
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
        Ok(Self { folder, next: AtomicU32::new(0), _lock: lock })
    }

    /// Makes a folder in it for one tree, with an empty one for the tree's files.
    pub(super) fn folder(&self) -> Result<PathBuf, FileError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.path().join(number.to_string());
        fs::create_folder(&path)?;
        fs::create_folder(&path.join(FILES))?;
        Ok(path)
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
        assert!(living.folder.path().exists() && second.folder.path().exists());
    }
}
