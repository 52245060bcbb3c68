//! Where archives are unpacked for checking: readable only for this user, and removed with the run.
//!
//! By default, this is the system's folder for temporary files.

use std::path::PathBuf;
use std::sync::Mutex;

use mu_provider::fs::{AtPath as _, FileError, RunFolder, private_folder};
use mu_provider::threads::lock;
use tempfile::TempDir;

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

#[cfg(test)]
mod tests {
    use super::*;

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
