//! What the store notes beside its trees: which content each archive had that was unpacked on this machine, and which packs folders contain
//! links to whole trees.
//!
//! The first is of archives whose listing says only their own digest: no such archive is fetched again while its tree is here. A note is made only after the archive had its digest, and counts
//! only while the tree is there.
//!
//! The second keeps those trees from pruning. A hard link is counted in its file; a symbolic link is not. So each packs folder with such links is
//! recorded here, as a link to it whose name is a hash of its path.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use mu_provider::{Digest, FileDigest};
use sha2::{Digest as _, Sha256};

use super::Store;
use crate::fs::AtPath as _;
use crate::fs::{self, FileError};

/// The folder of the notes.
pub(super) const ARCHIVES: &str = "archives";

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
    ///
    /// # Errors
    ///
    /// When the note cannot be written.
    pub fn note_unpacked(&self, archive: Unpacking<'_>, digest: &Digest) -> Result<(), FileError> {
        if self.is_read_only() {
            return Ok(());
        }
        fs::create_folder(&self.folder().join(ARCHIVES))?;
        fs::write_atomic(&self.note_of(archive), format!("{digest}\n").as_bytes())
    }

    /// Removes the notes about trees that are no longer here.
    ///
    /// # Errors
    ///
    /// When the disk refuses.
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
