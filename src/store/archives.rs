//! Which content each archive had that was unpacked on this machine: of archives whose listing says only their own digest.
//!
//! So no such archive is fetched again while its tree is here. A note is made only after the archive had its digest, and counts
//! only while the tree is there.

use mu_provider::{Digest, FileDigest};
use sha2::{Digest as _, Sha256};

use super::Store;
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
