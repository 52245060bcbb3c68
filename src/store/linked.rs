//! Which packs folders contain links to whole trees of the store, so that pruning keeps those trees.
//!
//! A hard link is counted in its file; a symbolic link is not. So each packs folder with such links is
//! recorded here, as a link to it whose name is a hash of its path.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use mu_provider::{Digest, FileDigest};
use sha2::{Digest as _, Sha256};

use super::Store;
use crate::fs::{self, AtPath as _, FileError};

impl Store {
    /// Records that packs in the folder `packs` may be links to trees.
    ///
    /// # Errors
    ///
    /// When the record cannot be written.
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
    ///
    /// # Errors
    ///
    /// When a packs folder exists and cannot be read, so that its content is unknown.
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
