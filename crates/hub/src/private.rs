//! What only its owner may open: the private files in a hub's folder (the lock of its writers, and its tokens), and the folder in
//! which archives are unpacked for checking, which is removed with the run.
//!
//! Whoever can open a file can lock it and keep every writer waiting. So only those who may write into the hub's folder can open
//! it. Systems without Unix's modes have their own rules. By default, archives are unpacked in the system's folder for temporary
//! files.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use mu_provider::fs::{self, AtPath as _, FileError, RunFolder, private_folder};
use mu_provider::threads::lock;
use tempfile::TempDir;

/// The folder of what only the hub's owner reads.
const FOLDER: &str = "private";

/// Opens the file at `path`, in the hub's `folder`, to be locked.
///
/// # Errors
///
/// When the system refuses.
pub(crate) fn open_lock(folder: &Path, path: &Path) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = fs::open_with(path, &options)?;
    restrict(folder, path, 0o777);
    Ok(file)
}

/// Creates the private folder in the hub's `folder`, before anything is written into it.
///
/// # Errors
///
/// When the system refuses.
pub(crate) fn make(folder: &Path) -> Result<(), FileError> {
    fs::create_private_folder(&folder.join(FOLDER), &[])?;
    keep(folder);
    Ok(())
}

/// Restricts the private folder in the hub's `folder`, and all files in it. The folder need not exist.
pub(crate) fn keep(folder: &Path) {
    let private = folder.join(FOLDER);
    restrict(folder, &private, 0o770);
    for entry in fs::entries(&private).unwrap_or_default() {
        restrict(folder, &entry.path(), 0o770);
    }
}

/// Allows those who may write into the hub's `folder` to open what is at `path`, with at most the modes
/// `most`. Files of other users stay as they are.
#[cfg(unix)]
fn restrict(folder: &Path, path: &Path, most: u32) {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};

    let (Ok(hub), Ok(own)) = (fs::metadata(folder), fs::symlink_metadata(path)) else { return };
    if own.is_symlink() {
        return;
    }
    // Gives files of an administrator to the user that serves the hub. Nobody else can change the owner.
    if (own.uid(), own.gid()) != (hub.uid(), hub.gid()) && own.uid() == 0 {
        let _ = lchown(path, Some(hub.uid()), Some(hub.gid()));
    }
    let writers = (hub.mode() & 0o222 | 0o200) & most;
    let mode = writers | writers << 1 | if own.is_dir() { writers >> 1 } else { 0 };
    if own.mode() & 0o777 != mode {
        let special = own.mode() & 0o7000;
        let _ = fs::set_permissions(path, Permissions::from_mode(special | mode));
    }
}

#[cfg(not(unix))]
fn restrict(_: &Path, _: &Path, _: u32) {}

/// The folders of one hub's archives.
#[derive(Debug)]
pub struct Staging {
    parent: Option<PathBuf>,
    run: Mutex<Option<RunFolder>>,
}

impl Staging {
    /// Folders below `parent`, which is created when needed.
    pub(crate) fn new(parent: Option<PathBuf>) -> Self {
        Self { parent, run: Mutex::default() }
    }

    /// A new folder, which only this user can look into.
    ///
    /// # Errors
    ///
    /// When the disk refuses.
    pub(crate) fn folder(&self) -> Result<TempDir, FileError> {
        let Some(parent) = &self.parent else {
            return private_folder().tempdir().at("make a folder in", &std::env::temp_dir());
        };
        let mut run = lock(&self.run);
        // Somebody may have cleaned up while a server ran for months.
        let run = match run.take().filter(|run| run.path().is_dir()) {
            Some(known) => run.insert(known),
            None => run.insert(RunFolder::new(parent)?),
        };
        private_folder().tempdir_in(run.path()).at("make a folder in", run.path())
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("is there").permissions().mode() & 0o777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("is ours");
    }

    #[test]
    fn only_who_may_write_the_hub_opens_its_lock_and_its_tokens() {
        let folder = tempfile::tempdir().expect("there is room");
        let (hub, lock) = (folder.path(), folder.path().join("hub.lock"));
        let (private, tokens) = (hub.join("private"), hub.join("private/tokens.json"));
        fs::create_dir(&private).expect("is ours");
        fs::write(&tokens, "{}").expect("is ours");
        fs::write(&lock, "").expect("is ours");
        for (hub_mode, lock_mode, private_mode, tokens_mode) in [
            (0o755, 0o600, 0o700, 0o600),
            (0o775, 0o660, 0o770, 0o660),
            (0o777, 0o666, 0o770, 0o660),
            (0o500, 0o600, 0o700, 0o600),
        ] {
            set(hub, hub_mode);
            // As they were created earlier, and with a umask that lets everyone in.
            for (path, mode) in [(&lock, 0o644), (&private, 0o755), (&tokens, 0o666)] {
                set(path, mode);
            }
            drop(open_lock(hub, &lock).expect("is ours"));
            make(hub).expect("is ours");
            let found = (mode(&lock), mode(&private), mode(&tokens));
            assert_eq!(found, (lock_mode, private_mode, tokens_mode), "{hub_mode:o}");
        }
        set(hub, 0o700);
    }

    #[test]
    fn archives_of_a_run_share_its_folder_which_goes_with_it() {
        let parent = tempfile::tempdir().expect("there is room");
        let staging = Staging::new(Some(parent.path().to_owned()));
        let first = staging.folder().expect("can be made");
        let again = staging.folder().expect("can be made");
        assert_eq!(again.path().parent(), first.path().parent());
        std::fs::remove_dir_all(first.path().parent().expect("is in the run's")).expect("is ours");
        assert!(staging.folder().expect("is made anew").path().is_dir());
        drop((first, again, staging));
        let left: Vec<_> = std::fs::read_dir(parent.path()).expect("is there").flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_look_into_a_folder() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt as _;
        use std::path::Path;

        let parent = tempfile::tempdir().expect("there is room");
        for place in [None, Some(parent.path().to_owned())] {
            let staging = Staging::new(place);
            let folder = staging.folder().expect("can be made");
            let mode =
                |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
            assert_eq!(mode(folder.path()), 0o700);
            if staging.parent.is_some() {
                let run = folder.path().parent().expect("is in the run's");
                assert_eq!((mode(run), mode(&run.join("lock"))), (0o700, 0o600));
                assert_eq!(mode(&parent.path().join("lock")), 0o600);
            }
        }
    }
}
