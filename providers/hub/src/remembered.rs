//! What mu remembers of a registry that has one index for all its packages: a file whose first line says what it is of, and then
//! the lines of each package.
//!
//! It only saves work: if the file cannot be read or written, mu continues without it. What the first line means is known to the
//! providers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use mu_provider::{FileDigest, fs};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// An index, split by package.
#[derive(Debug, Serialize, Deserialize)]
pub struct Remembered<Of> {
    /// What it is of.
    pub of: Of,
    packages: BTreeMap<String, Place>,
    #[serde(skip)]
    lines: Vec<u8>,
}

/// Where the lines of a package are, and their digest.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    lines: Range<usize>,
    digest: String,
}

/// The part of one package.
#[derive(Debug, Clone, Copy)]
pub struct Part<'index> {
    /// Its lines.
    pub lines: &'index [u8],
    /// The digest of the lines.
    pub digest: &'index str,
}

impl<Of: Serialize + DeserializeOwned> Remembered<Of> {
    /// Splits an index: the name and the lines of each package.
    pub fn new(of: Of, index: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let mut lines = Vec::new();
        let mut packages = BTreeMap::new();
        for (name, package) in index {
            let begin = lines.len();
            let digest = digest(&package);
            lines.extend(package);
            packages.insert(name, Place { lines: begin..lines.len(), digest });
        }
        Self { of, packages, lines }
    }

    /// Reads what `file` remembers; `None` if there is nothing that can be read.
    pub fn read(file: &Path) -> Option<Self> {
        let bytes = fs::read(file).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let (head, lines) = bytes.split_at_checked(end + 1)?;
        let head: Self = serde_json::from_slice(head).ok()?;
        Some(Self { lines: lines.to_vec(), ..head })
    }

    /// Writes it into `file`, whose folder is made if it is not there. If that fails, the next run reads the index again.
    pub fn write(&self, file: &Path) {
        let mut bytes = serde_json::to_vec(self).expect("texts and numbers can be printed");
        bytes.push(b'\n');
        bytes.extend(&self.lines);
        if let Some(folder) = file.parent()
            && fs::create_folder(folder).is_ok()
        {
            let _ = fs::write_atomic(file, &bytes);
        }
    }

    /// The part of a package.
    pub fn package(&self, name: &str) -> Option<Part<'_>> {
        self.part(self.packages.get(name)?)
    }

    /// All packages, by name.
    pub fn packages(&self) -> impl Iterator<Item = (&str, Part<'_>)> {
        self.packages.iter().filter_map(|(name, place)| Some((&**name, self.part(place)?)))
    }

    fn part<'index>(&'index self, place: &'index Place) -> Option<Part<'index>> {
        Some(Part { lines: self.lines.get(place.lines.clone())?, digest: &place.digest })
    }
}

/// The SHA-256 of bytes, as text.
pub fn digest(bytes: &[u8]) -> String {
    FileDigest::from_bytes(Sha256::digest(bytes).into()).to_string()
}
