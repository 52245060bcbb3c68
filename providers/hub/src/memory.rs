//! The last `hub.json` of each hub, stored between runs, so that an unchanged one is not sent again.
//!
//! This only saves bytes: if it cannot be read or written, mu continues without it.

use std::path::{Path, PathBuf};

use mu_provider::fs;
use mu_provider::{FileDigest, SafeUrl};
use sha2::{Digest as _, Sha256};

use mu_archive::document::{Document, Validator};

/// The stored `hub.json` of one hub.
pub(crate) struct Memory(PathBuf);

impl Memory {
    /// The place for the hub at `url`, in `folder`.
    pub(crate) fn new(folder: &Path, url: &SafeUrl) -> Self {
        let name = FileDigest::from_bytes(Sha256::digest(url.to_string()).into());
        Self(folder.join(format!("hub-{name}.json")))
    }

    /// The stored file, with its validator.
    pub(crate) fn read(&self) -> Option<(Validator, Vec<u8>)> {
        let bytes = fs::read(&self.0).ok()?;
        let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
        let (validator, file) = (parts.next()?, parts.next()?);
        Some((Validator::parse(std::str::from_utf8(validator).ok()?), file.to_vec()))
    }

    /// Stores a file, if there is a way to ask whether it is unchanged.
    pub(crate) fn write(&self, document: &Document) {
        let Some(validator) = document.validator.to_stored_text() else { return };
        let content = [validator.as_bytes(), b"\n", &document.bytes].concat();
        // If it cannot be stored, the next run needs a few more bytes.
        let _ = fs::write_atomic(&self.0, &content);
    }
}
