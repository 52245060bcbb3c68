//! A hub in a folder for the tests: packages, archives, and hostile ones.

use std::fs;
use std::path::{Path, PathBuf};

use mu_provider::conformance::read_tree;
use mu_provider::{ArchiveDigest, Digest, Lead, Location, Release, SafeUrl};
use mu_testing::write;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// A hub with no packages yet.
pub(crate) struct Hub {
    folder: TempDir,
}

/// One file of a package: path, content, and whether it is executable.
pub(crate) type File<'text> = (&'text str, &'text [u8], bool);

impl Hub {
    /// A hub with this `hub.json`.
    pub(crate) fn new(hub_file: &str) -> Self {
        let hub = Self { folder: tempfile::tempdir().expect("a temporary folder can be made") };
        hub.write("hub.json", hub_file);
        hub
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The hub as a folder on this machine.
    pub(crate) fn file_url(&self) -> String {
        format!("file://{}/", self.path().display())
    }

    /// Writes a file of the hub.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.path().join(path);
        fs::create_dir_all(file.parent().expect("is below the hub")).expect("can be made");
        fs::write(&file, content).expect("can be written");
        file
    }

    /// Adds a line to an index.
    pub(crate) fn list(&self, release: &Release) {
        let path = format!("index/{}.jsonl", release.name);
        let mut lines = fs::read(self.path().join(&path)).unwrap_or_default();
        serde_json::to_writer(&mut lines, release).expect("can be printed");
        lines.push(b'\n');
        self.write(&path, lines);
    }

    /// Publishes an archive in its usual place.
    pub(crate) fn publish(&self, name: &str, version: &str, archive: &[u8]) -> Release {
        let release = Release {
            name: name.to_owned(),
            version: version.to_owned(),
            archive: Some(sha256(archive).to_string()),
            size: Some(archive.len() as u64),
            ..Release::default()
        };
        let path = mu_provider_hub::wire::archive_path(name, &release);
        self.write(&format!("packs/{path}"), archive);
        self.list(&release);
        release
    }
}

/// A package of this hub.
pub(crate) fn at(root: &str, name: &str) -> Location {
    Location::new(Lead::of_user(SafeUrl::parse(root).expect("is a URL")), name)
}

pub(crate) fn sha256(bytes: &[u8]) -> ArchiveDigest {
    ArchiveDigest::from_bytes(Sha256::digest(bytes).into())
}

/// The part of a release that a lock has.
pub(crate) fn locked(release: &Release) -> Release {
    Release {
        version: release.version.clone(),
        archive: release.archive.clone(),
        ..Release::default()
    }
}

/// An archive of these files.
pub(crate) fn archive(files: &[File<'_>]) -> Vec<u8> {
    mu_testing::tar_gz(files.iter().map(|(path, content, is_program)| {
        ((*path).to_owned(), (if *is_program { 'x' } else { 'f' }, content.to_vec()))
    }))
}

/// The content digest that these files have.
pub(crate) fn digest_of(files: &[File<'_>]) -> Digest {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for (path, content, is_program) in files {
        let path = if *is_program { format!("{path}*") } else { (*path).to_owned() };
        write(folder.path(), &path, content);
    }
    read_tree(folder.path()).digest()
}

/// Bytes that cannot be compressed, the same ones for the same seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // Xorshift, which is enough to look random to gzip.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
