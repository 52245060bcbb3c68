//! Where archives are unpacked to be looked at: for this user's eyes alone, and gone with the run.
//!
//! Each process has a folder of its own and holds a lock in it for as long as it lives. A folder whose lock is free
//! belongs to a process that was killed, and the next one removes it. Where no place was given, that is the system's
//! folder for temporary files, where nobody looks for what others left.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

/// The file whose lock tells a living process's folder from a dead one's.
const LOCK: &str = "lock";

/// The folders of one hub's archives.
#[derive(Debug)]
pub(crate) struct Staging {
    parent: Option<PathBuf>,
    run: Mutex<Option<Run>>,
}

/// The folder of this process. What is unpacked goes before its lock does.
#[derive(Debug)]
struct Run {
    folder: TempDir,
    _lock: File,
}

impl Staging {
    /// Folders below `parent`, which is made when it is needed.
    pub(crate) fn new(parent: Option<PathBuf>) -> Self {
        Self { parent, run: Mutex::default() }
    }

    /// A new folder, which only this user can look into.
    ///
    /// # Errors
    ///
    /// When the disk refuses.
    pub(crate) fn folder(&self) -> io::Result<TempDir> {
        let Some(parent) = &self.parent else { return private().tempdir() };
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have cleaned up under a server that has run for months.
        let run = match run.take().filter(|run| run.folder.path().is_dir()) {
            Some(known) => run.insert(known),
            None => run.insert(Run::new(parent)?),
        };
        private().tempdir_in(run.folder.path())
    }
}

impl Run {
    fn new(parent: &Path) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(parent)?;
        // One at a time: a folder without a lock yet must not look like a dead process's.
        let guard = lock_file(&parent.join(LOCK))?;
        guard.lock()?;
        remove_dead(parent)?;
        let folder = private().tempdir_in(parent)?;
        let lock = lock_file(&folder.path().join(LOCK))?;
        lock.lock()?;
        Ok(Self { folder, _lock: lock })
    }
}

/// Makes folders that only this user can look into.
fn private() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("mu-hub-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder
}

/// Opens a file to lock, which only this user can: a lock needs no more than that it can be opened.
fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn remove_dead(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)?.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        // What cannot be removed now is another's, or the next one removes it.
        let lock = lock_file(&entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_by_the_next_and_the_living_are_spared() {
        let parent = tempfile::tempdir().expect("there is room");
        let dead = parent.path().join("mu-hub-dead");
        fs::create_dir_all(dead.join("mu-hub-1/files")).expect("is ours");
        let first = Staging::new(Some(parent.path().to_owned()));
        let living = first.folder().expect("can be made");
        assert!(!dead.exists());
        let second = Staging::new(Some(parent.path().to_owned()));
        let other = second.folder().expect("can be made");
        assert!(living.path().exists() && other.path().exists());
        let again = first.folder().expect("can be made");
        assert_eq!(again.path().parent(), living.path().parent());
        drop((living, again, first, other, second));
        let left: Vec<_> = fs::read_dir(parent.path()).expect("is there").flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_look_into_a_folder() {
        use std::os::unix::fs::PermissionsExt as _;

        let parent = tempfile::tempdir().expect("there is room");
        for place in [None, Some(parent.path().to_owned())] {
            let staging = Staging::new(place);
            let folder = staging.folder().expect("can be made");
            let mode =
                |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
            assert_eq!(mode(folder.path()), 0o700);
            if staging.parent.is_some() {
                let run = folder.path().parent().expect("is in the run's");
                assert_eq!((mode(run), mode(&run.join(LOCK))), (0o700, 0o600));
                assert_eq!(mode(&parent.path().join(LOCK)), 0o600);
            }
        }
    }
}
