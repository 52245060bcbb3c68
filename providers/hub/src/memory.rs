//! The last `hub.json` of each hub, kept between runs, so that an unchanged one is not sent again.
//!
//! It only saves bytes: whatever cannot be read or written is as if it was not there.

use std::path::{Path, PathBuf};

use mu_provider::fs;
use mu_provider::{FileDigest, SafeUrl};
use sha2::{Digest as _, Sha256};

use crate::document::{Document, Validator};

/// Where the `hub.json` of one hub is kept.
pub(crate) struct Memory(PathBuf);

impl Memory {
    /// The place for the hub at `url`, in `folder`.
    pub(crate) fn new(folder: &Path, url: &SafeUrl) -> Self {
        let name = FileDigest::from_bytes(Sha256::digest(url.to_string()).into());
        Self(folder.join(format!("hub-{name}.json")))
    }

    /// What was kept: a line that tells whether it is still the same, and the file.
    pub(crate) fn read(&self) -> Option<(Validator, Vec<u8>)> {
        let bytes = fs::read(&self.0).ok()?;
        let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
        let (validator, file) = (parts.next()?, parts.next()?);
        Some((Validator::parse(std::str::from_utf8(validator).ok()?), file.to_vec()))
    }

    /// Keeps a file, if there is a way to ask whether it is still the same.
    pub(crate) fn write(&self, document: &Document) {
        let Some(validator) = document.validator.to_text() else { return };
        let content = [validator.as_bytes(), b"\n", &document.bytes].concat();
        // What cannot be kept costs the next run a few bytes.
        let _ = fs::write_atomic(&self.0, &content);
    }
}
