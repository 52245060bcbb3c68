//! What the store has beside its trees: where a run writes trees before they are checked, and notes, which say which content each archive had
//! that was unpacked on this machine, and which packs folders contain links to whole trees.
//!
//! The notes on archives are of those whose listing says only their own digest: no such archive is fetched again while its tree is here. A note is made only after the archive had its digest, and counts
//! only while the tree is there.
//!
//! Those on packs folders keep those trees from pruning. A hard link is counted in its file; a symbolic link is not. So each packs folder with such links is
//! recorded here, as a link to it whose name is a hash of its path.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use mu_provider::{Digest, FileDigest, Folder};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::Store;
use crate::fs::{self, AtPath as _, FileError, RunFolder, private_folder};

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

/// The folder of the notes.
const ARCHIVES: &str = "archives";

/// An archive, and how it is unpacked: another way would give another tree.
#[derive(Debug, Clone, Copy)]
pub struct Unpacking<'a> {
    /// The provider that unpacks it.
    pub provider: &'a str,
    /// Its digest.
    pub archive: &'a str,
    /// What tells the provider how.
    pub locator: Option<&'a str>,
}

impl Store {
    /// The digest of the tree that an archive had, if that tree is here.
    pub fn unpacked(&self, archive: Unpacking<'_>) -> Option<Digest> {
        let note = fs::read_text_if_there(&self.note_of(archive)).ok()??;
        note.trim_end().parse().ok().filter(|digest| self.contains(digest))
    }

    /// Notes the digest of the tree that an archive had.
    pub fn note_unpacked(&self, archive: Unpacking<'_>, digest: &Digest) -> Result<(), FileError> {
        if self.is_read_only() {
            return Ok(());
        }
        fs::create_folder(&self.folder().join(ARCHIVES))?;
        fs::write_atomic(&self.note_of(archive), format!("{digest}\n").as_bytes())
    }

    /// Removes the notes about trees that are no longer here.
    pub fn remove_old_notes(&self) -> Result<(), FileError> {
        for entry in fs::entries_if_there(&self.folder().join(ARCHIVES))? {
            let note = fs::read_text_if_there(&entry.path()).ok().flatten();
            let digest: Option<Digest> = note.and_then(|note| note.trim_end().parse().ok());
            if !digest.is_some_and(|digest| self.contains(&digest)) {
                fs::remove_file(&entry.path())?;
            }
        }
        Ok(())
    }

    fn note_of(&self, archive: Unpacking<'_>) -> std::path::PathBuf {
        let Unpacking { provider, archive, locator } = archive;
        let key = [provider, archive, locator.unwrap_or_default()].join("\n");
        let name = FileDigest::from_bytes(Sha256::digest(key).into()).to_string();
        self.folder().join(ARCHIVES).join(name)
    }
}

impl Store {
    /// Records that packs in the folder `packs` may be links to trees.
    pub fn note_linked(&self, packs: &Path) -> Result<(), FileError> {
        let hash = Sha256::digest(packs.as_os_str().as_encoded_bytes());
        let name = FileDigest::from_bytes(hash.into()).to_string();
        let note = self.folder().join(LINKED).join(name);
        if self.is_read_only() || fs::read_link(&note).is_ok_and(|noted| noted == packs) {
            return Ok(());
        }
        fs::create_folder(&self.folder().join(LINKED))?;
        fs::remove_file(&note)?;
        match fs::symlink_folder(packs, &note) {
            // Another run was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result,
        }
    }

    /// The trees that packs are links to; forgets packs folders that no longer exist.
    pub fn linked(&self) -> Result<Vec<Digest>, FileError> {
        let mut linked = HashSet::new();
        for note in fs::entries_if_there(&self.folder().join(LINKED))? {
            let note = note.path();
            let Ok(packs) = fs::read_link(&note) else { continue };
            if !fs::exists(&packs)? {
                fs::remove_file(&note)?;
                continue;
            }
            for entry in walkdir::WalkDir::new(&packs) {
                let entry = entry.map_err(io::Error::from).at("read the folder", &packs)?;
                if entry.path_is_symlink()
                    && let Ok(target) = fs::read_link(entry.path())
                    && let Some(name) = target.parent().and_then(Path::file_name)
                {
                    linked.insert(name.to_owned());
                }
            }
        }
        let mut digests = self.digests()?;
        digests.retain(|digest| {
            self.folder_of(digest).file_name().is_some_and(|name| linked.contains(name))
        });
        Ok(digests)
    }
}

const LINKED: &str = "linked";
