//! What earlier runs have read of the blobs of other ecosystems' artifacts: small ones as they are, of large ones the few files
//! that say what a package needs.
//!
//! A blob never changes, so nothing here becomes old. Only blobs get here whose bytes had their digest. If something cannot be
//! read or written here, only a download is lost.
//!
//! Registries that keep no lists of referrers are also remembered. Most have never heard of such lists, and every run would ask them again. A registry may learn it, so after a
//! day it is asked once more. What is remembered only saves a request: nothing is found that way or missed, because a version
//! without an entry in a list is read from its own manifest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mu_archive::ArchiveWriter;
use mu_archive::pick;
use mu_archive::remembered::digest;
use mu_provider::fs;

use crate::wire;

/// The largest file here, in bytes.
const LARGEST: usize = 16 << 20;

/// Where to keep what was read of blobs.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// A folder; created when needed. Without one, nothing is kept.
    pub folder: Option<PathBuf>,
}

impl Kept {
    /// A blob that was kept as it is.
    pub(crate) fn blob(&self, blob: &str) -> Option<Vec<u8>> {
        let bytes = read(&self.file(blob, "blob")?)?;
        (wire::digest(&bytes) == blob).then_some(bytes)
    }

    /// Keeps a blob as it is.
    pub(crate) fn keep_blob(&self, blob: &str, bytes: &[u8]) {
        self.write(self.file(blob, "blob"), bytes);
    }

    /// The files of a layer with these names, if exactly these were looked for.
    pub(crate) fn files(&self, layer: &str, names: &[&str]) -> Option<BTreeMap<String, Vec<u8>>> {
        let packed = read(&self.file(layer, &suffix(names))?)?;
        pick(&packed, &|path| names.contains(&path), u64::MAX).ok()
    }

    /// Keeps the files of a layer that have these names.
    pub(crate) fn keep_files(
        &self,
        layer: &str,
        names: &[&str],
        files: &BTreeMap<String, Vec<u8>>,
    ) {
        let pack = || {
            let mut writer = ArchiveWriter::new(Vec::new());
            for (name, bytes) in files {
                writer.file(name, false, bytes.len() as u64, &**bytes)?;
            }
            writer.finish()
        };
        if let Ok(packed) = pack() {
            self.write(self.file(layer, &suffix(names)), &packed);
        }
    }

    fn file(&self, blob: &str, suffix: &str) -> Option<PathBuf> {
        let hex = blob.strip_prefix("sha256:").filter(|_| wire::is_digest(blob))?;
        Some(self.folder.as_deref()?.join(format!("{hex}.{suffix}")))
    }

    fn write(&self, file: Option<PathBuf>, bytes: &[u8]) {
        let Some(file) = file.filter(|_| bytes.len() <= LARGEST) else { return };
        if fs::create_folder(file.parent().unwrap_or(Path::new(""))).is_ok() {
            let _ = fs::write_atomic(&file, bytes);
        }
    }
}

/// The end of the name of a file with what was found under these names.
fn suffix(names: &[&str]) -> String {
    format!("{:.16}.files", digest(names.join("\n").as_bytes()))
}

fn read(file: &Path) -> Option<Vec<u8>> {
    fs::read_if_there(file).ok().flatten()
}

/// For how many seconds a registry is not asked again.
const DAY: i64 = 24 * 60 * 60;

/// Where to remember registries that keep no lists of referrers, and what time it is.
#[derive(Debug, Clone, Default)]
pub struct WithoutLists {
    /// A folder with a file for each registry; created when needed. Without one, nothing is remembered.
    pub folder: Option<PathBuf>,
    /// The time, in seconds since 1970.
    pub now: i64,
}

impl WithoutLists {
    fn file(&self, host: &str) -> Option<PathBuf> {
        let folder = self.folder.as_deref()?;
        Some(folder.join(format!("{}.without-lists", digest(host.as_bytes()))))
    }

    /// Whether a registry was found to keep no lists less than a day ago.
    pub(crate) fn has(&self, host: &str) -> bool {
        let said = self.file(host).and_then(|file| fs::read_text_if_there(&file).ok().flatten());
        let since = said.and_then(|text| text.trim().parse::<i64>().ok());
        // A time to come is that of a clock that was wrong.
        since.is_some_and(|since| (0..DAY).contains(&self.now.saturating_sub(since)))
    }

    /// Remembers that a registry keeps no lists.
    pub(crate) fn add(&self, host: &str) {
        let Some(file) = self.file(host) else { return };
        if fs::create_folder(file.parent().unwrap_or(Path::new(""))).is_ok() {
            let _ = fs::write_atomic(&file, format!("{}\n", self.now).as_bytes());
        }
    }

    /// Forgets it, because the registry has shown that it keeps them.
    pub(crate) fn remove(&self, host: &str) {
        if let Some(file) = self.file(host) {
            let _ = fs::remove_file(&file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_of_a_blob_is_found_again_by_its_digest_and_what_was_asked() {
        let folder = tempfile::tempdir().expect("can be made");
        let kept = Kept { folder: Some(folder.path().join("blobs")) };
        let layer = wire::digest(b"a layer");
        let files = BTreeMap::from([
            ("kcl.mod".to_owned(), b"[package]\n".to_vec()),
            ("lib/a b.k".to_owned(), vec![0xff, 0]),
        ]);
        let names = ["kcl.mod", "lib/a b.k", "missing"];
        assert_eq!(kept.files(&layer, &names), None);
        kept.keep_files(&layer, &names, &files);
        assert_eq!(kept.files(&layer, &names), Some(files));
        assert_eq!(kept.files(&layer, &names[..1]), None);
        assert_eq!(kept.files(&wire::digest(b"another"), &names), None);
        let nothing = BTreeMap::new();
        kept.keep_files(&layer, &["missing"], &nothing);
        assert_eq!(kept.files(&layer, &["missing"]), Some(nothing));

        let config = wire::digest(b"{}");
        kept.keep_blob(&config, b"{}");
        assert_eq!(kept.blob(&config), Some(b"{}".to_vec()));
        let file = kept.file(&config, "blob").expect("has a place");
        std::fs::write(file, "{\"changed\":1}").expect("can be written");
        assert_eq!(kept.blob(&config), None);
    }

    #[test]
    fn without_a_folder_nothing_is_kept() {
        let (kept, blob) = (Kept::default(), wire::digest(b"{}"));
        kept.keep_blob(&blob, b"{}");
        assert_eq!(kept.blob(&blob), None);
    }
}
