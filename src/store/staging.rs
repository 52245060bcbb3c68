//! Where a run writes trees before they are checked.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use mu_provider::Folder;

use tempfile::TempDir;

use crate::fs::{AtPath as _, FileError, RunFolder, private_folder};

/// The content of a tree's folder: the files, and the list of them.
pub(super) const FILES: &str = "files";
pub(super) const LIST: &str = "list";

/// The staging folder of this run.
#[derive(Debug)]
pub(super) struct StoreStaging {
    held: Folder,
    _run: Made,
    next: AtomicU32,
}

/// The staging folder of a run, which is removed with this.
#[derive(Debug)]
enum Made {
    /// In the store.
    Inside { _folder: RunFolder },
    /// Among the temporary files of the machine.
    Aside { _folder: TempDir },
}

/// A folder in it, for one tree.
#[derive(Debug)]
pub(super) struct Staged<'run> {
    run: &'run Folder,
    name: String,
}

impl StoreStaging {
    /// Creates a folder for this run below `parent`, and removes those of runs that died.
    pub(super) fn new(parent: &Path) -> Result<Self, FileError> {
        let run = RunFolder::new(parent)?;
        let held = Folder::open(run.path()).at("open", run.path())?;
        Ok(Self { held, _run: Made::Inside { _folder: run }, next: AtomicU32::new(0) })
    }

    /// Creates a folder for this run outside of the store, which cannot be written.
    pub(super) fn aside() -> Result<Self, FileError> {
        let run =
            private_folder().tempdir().at("make a folder in", Path::new("the temporary files"))?;
        let held = Folder::open(run.path()).at("open", run.path())?;
        Ok(Self { held, _run: Made::Aside { _folder: run }, next: AtomicU32::new(0) })
    }

    /// Creates a folder in it for one tree.
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

    /// Creates the folder for the tree's files.
    pub(super) fn create_tree_folder(&self) -> Result<Folder, FileError> {
        let path = [&self.name, "/", FILES].concat();
        let made = self.run.make_folder(&path).and_then(|()| self.run.open_folder(&path));
        made.map_err(|error| self.error("make the folder", FILES, error))
    }

    /// Writes the tree's list. The tree counts as checked from its time on.
    pub(super) fn write_list(&self, list: &str) -> Result<(), FileError> {
        let path = [&self.name, "/", LIST].concat();
        let written = self.run.write_file(&path, false, list.as_bytes());
        written.map_err(|error| self.error("write", LIST, error))
    }

    fn error(&self, action: &'static str, inside: &str, error: io::Error) -> FileError {
        FileError::new(action, self.path().join(inside), error)
    }
}
