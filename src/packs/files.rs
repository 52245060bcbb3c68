//! How the files of packs get into their folders.
//!
//! They come out of the store cloned, linked or copied. The store's list has the entries of a pack; no folder is walked here.
//!
//! Vendored packs are plain files instead of links to the store, and are committed with the workspace. `packs/vendored.json`
//! says so to every checkout, and contains what a checkout could not tell: which parts packs leave out to make room for others
//! inside them, and of what Git would follow. It is not trusted: files and left-out parts are hashed together and compared with
//! the lock, and a pack may leave out nothing else.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::SystemTime;

use mu_provider::{Digest, Entry, Folder, Mode};
use serde::{Deserialize, Serialize};

use crate::fs::{self, AtPath as _, FileError};
use crate::packs::state::{State, WantedPack, entries, is_below, lines};
use crate::packs::{PacksError, PacksFolder};
use crate::store::{Stored, TreeStoreError};
use crate::workspace::Link;

const FILE: &str = "vendored.json";

/// The name of the record of what packs leave out that are not vendored, in mu's own folder: it exists if a
/// pack leaves something out.
const PARTIAL: &str = "partial.json";

/// The newest format this program writes and reads.
const FORMAT: u32 = 2;

/// Packs are installed from the lock.
const NOT_COMMITTED: &str = "# Packs are installed from Mu.lock by `mu get`.\n*\n";

/// Packs are committed, whatever the workspace and its user ignore elsewhere; mu's own data is not, but the archives that are kept
/// beside packs.
const COMMITTED: &str = "# Packs are vendored by `mu vendor`: commit them. What mu keeps for itself is left out.\n!*\n/.mu/*\n!/.mu/archives/\n";

/// Git must not change or leave out anything, or digests would differ from one checkout to the next. This takes precedence over the
/// attributes of the folders around it.
const ATTRIBUTES: &str =
    "* -text -eol -ident -filter -working-tree-encoding -export-ignore -export-subst\n";

/// Files with which a package would tell Git to change or leave out its vendored files. They are left out of these, at each level.
const FOR_GIT: [&str; 2] = [".gitattributes", ".gitignore"];

/// Whether Git would take orders from a file of a package.
pub(super) fn is_for_git(entry: &Entry) -> bool {
    FOR_GIT.contains(&entry.path.rsplit('/').next().unwrap_or_default())
}

/// Packs that are not whole, by their places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartialPacks(BTreeMap<String, Part>);

/// What is recorded about a pack that makes room for others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    /// The digest of the whole package.
    digest: Digest,
    /// What is not in the folder.
    omitted: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct RecordFile {
    version: u32,
    #[serde(default)]
    partial: BTreeMap<String, PartLine>,
}

#[derive(Serialize, Deserialize)]
struct PartLine {
    digest: String,
    omitted: Vec<String>,
}

impl PartialPacks {
    /// The parts that the pack at `place`, with the package `digest`, leaves out for the packs at `others`
    /// that are inside it, and for Git.
    pub(super) fn omitted_parts(
        &self,
        place: &str,
        digest: &Digest,
        others: &[&str],
    ) -> Vec<Entry> {
        let Some(part) = self.0.get(place).filter(|part| part.digest == *digest) else {
            return Vec::new();
        };
        let inner =
            || others.iter().filter_map(|other| other.strip_prefix(place)?.strip_prefix('/'));
        let may_lack = |entry: &&Entry| {
            is_for_git(entry)
                || inner().any(|inner| entry.path == inner || is_below(&entry.path, inner))
        };
        part.omitted.iter().filter(may_lack).cloned().collect()
    }
}

impl PacksFolder {
    /// Whether the packs are committed with the workspace.
    pub fn is_vendored(&self) -> bool {
        self.record_path().exists()
    }

    /// Marks packs as committed; the next installation replaces links to the store by files.
    ///
    /// The caller holds the packs folder's lock.
    pub fn mark_vendored(&self) -> Result<(), PacksError> {
        let mut state = self.state();
        state.pending.extend(state.packs.keys().cloned());
        self.write_state(&state)?;
        Self::write_record_at(&self.record_path(), &state)?;
        Ok(self.write_gitignore()?)
    }

    /// Marks packs as not committed.
    pub fn unmark_vendored(&self) -> Result<(), FileError> {
        fs::write_atomic(&self.path().join(".gitignore"), NOT_COMMITTED.as_bytes())?;
        fs::remove_file(&self.path().join(".gitattributes"))?;
        fs::remove_file(&self.record_path())
    }

    /// The parts of its package that the pack `wanted` leaves out for the packs at `others` that are inside
    /// it.
    pub fn omitted(
        &self,
        state: &State,
        record: &PartialPacks,
        wanted: &WantedPack,
        others: &[&str],
    ) -> Vec<Entry> {
        let installed = state.packs.get(&wanted.place).filter(|pack| wanted.accepts(&pack.digest));
        match installed {
            Some(pack) => pack.omitted.clone(),
            None => record.omitted_parts(&wanted.place, &wanted.digest, others),
        }
    }

    /// What packs leave out; empty if the record is damaged.
    pub fn record(&self) -> Result<PartialPacks, PacksError> {
        let path = if self.is_vendored() { self.record_path() } else { self.partial_path() };
        let Some(text) = fs::read_text_if_there(&path)? else { return Ok(PartialPacks::default()) };
        let Ok(file) = serde_json::from_str::<RecordFile>(&text) else {
            return Ok(PartialPacks::default());
        };
        if file.version > FORMAT {
            return Err(PacksError::NewerRecord { path, version: file.version, known: FORMAT });
        }
        let parts = file.partial.into_iter().filter_map(|(place, line)| {
            let digest = line.digest.parse().ok()?;
            Some((place, Part { digest, omitted: entries(&line.omitted)? }))
        });
        Ok(PartialPacks(parts.collect()))
    }

    /// Writes what cannot be derived from the packs in `state` and the lock.
    pub(super) fn write_record(&self, state: &State) -> Result<(), FileError> {
        if self.is_vendored() {
            return Self::write_record_at(&self.record_path(), state);
        }
        if state.packs.values().all(|pack| pack.omitted.is_empty()) {
            return fs::remove_file(&self.partial_path());
        }
        Self::write_record_at(&self.partial_path(), state)
    }

    fn write_record_at(path: &Path, state: &State) -> Result<(), FileError> {
        let partial = state.packs.iter().filter(|(_, pack)| !pack.omitted.is_empty());
        let partial = partial.map(|(place, pack)| {
            let line = PartLine { digest: pack.digest.to_string(), omitted: lines(&pack.omitted) };
            (place.clone(), line)
        });
        let file = RecordFile { version: FORMAT, partial: partial.collect() };
        // One field a line, so that two branches merge.
        let mut text =
            serde_json::to_string_pretty(&file).expect("strings and numbers always serialise");
        text.push('\n');
        fs::write_atomic(path, text.as_bytes())
    }

    /// Writes which part of the packs folder is committed.
    pub(super) fn write_gitignore(&self) -> Result<(), FileError> {
        let path = self.path().join(".gitignore");
        if self.is_vendored() {
            fs::write_atomic(&self.path().join(".gitattributes"), ATTRIBUTES.as_bytes())?;
            return fs::write_atomic(&path, COMMITTED.as_bytes());
        }
        if path.exists() { Ok(()) } else { fs::write_atomic(&path, NOT_COMMITTED.as_bytes()) }
    }

    fn record_path(&self) -> PathBuf {
        self.path().join(FILE)
    }

    fn partial_path(&self) -> PathBuf {
        self.own_folder().join(PARTIAL)
    }
}

/// Creates the files of packs, and remembers what the file system does not support.
#[derive(Debug)]
pub(super) struct Linker {
    /// The best way that may still work; see `CLONE` and the others.
    way: AtomicU8,
    fallback: u8,
}

const CLONE: u8 = 0;
const HARD_LINK: u8 = 1;
const COPY: u8 = 2;

impl Linker {
    pub(super) fn new(mode: Link) -> Self {
        let (way, fallback) = match mode {
            Link::Auto | Link::Symlink => (CLONE, HARD_LINK),
            Link::Clone => (CLONE, COPY),
            Link::Hardlink => (HARD_LINK, COPY),
            Link::Copy => (COPY, COPY),
        };
        Self { way: AtomicU8::new(way), fallback }
    }

    /// Fills the folder `target`, which is empty, with the entries of `stored` that `wanted` accepts; its files are in
    /// `source`.
    pub(super) fn fill_folder(
        &self,
        stored: &Stored,
        source: &Folder,
        target: &Folder,
        wanted: &dyn Fn(&Entry) -> bool,
    ) -> Result<(), PacksError> {
        let mut made = "";
        // A new name counts as a change of the file, and a check that was made now as one of all.
        let mut is_new_check = false;
        for entry in stored.tree.entries().iter().filter(|entry| wanted(entry)) {
            // Entries are sorted, so a folder's files are together.
            if let Some(parent) = entry.parent()
                && parent != made
            {
                for folder in Folder::to_make(parent, made) {
                    target.make_folder(folder).map_err(|error| {
                        FileError::new("make the folder", target.path().join(folder), error)
                    })?;
                }
                made = parent;
            }
            let is_file = entry.mode != Mode::Symlink;
            let is_unchanged =
                is_file && stored.checked.is_none_or(|since| is_unchanged(source, entry, since));
            let corrupt = || TreeStoreError::Corrupt { path: stored.folder.join(&entry.path) };
            // A file in the store that someone changed after it was checked is not installed.
            if is_file && !is_unchanged && !super::recognize::file_matches(source, entry) {
                return Err(corrupt().into());
            }
            let is_linked = is_file && self.way.load(Ordering::Relaxed) == HARD_LINK;
            if is_linked && source.link(&entry.path, target).is_ok() {
                is_new_check = true;
                continue;
            }
            let (from, to) = (stored.folder.join(&entry.path), target.path().join(&entry.path));
            if !is_file {
                let leads_to = fs::read_link(&from)?;
                if !super::recognize::is_target(&leads_to, entry) {
                    return Err(corrupt().into());
                }
                fs::symlink_file(&leads_to, &to)?;
                continue;
            }
            let way = self.make(&from, &to, entry.mode)?;
            is_new_check |= way == HARD_LINK || !is_unchanged;
        }
        if is_new_check {
            stored.was_checked();
        }
        Ok(())
    }

    /// Checks that a tree that will be linked as a whole has not changed since it was checked.
    pub(super) fn check(&self, stored: &Stored, source: &Folder) -> Result<(), PacksError> {
        let Some(since) = stored.checked else { return Ok(()) };
        let mut is_new_check = false;
        for entry in stored.tree.entries().iter().filter(|entry| entry.mode != Mode::Symlink) {
            if is_unchanged(source, entry, since) {
                continue;
            }
            if !super::recognize::file_matches(source, entry) {
                let path = stored.folder.join(&entry.path);
                return Err(TreeStoreError::Corrupt { path }.into());
            }
            is_new_check = true;
        }
        if is_new_check {
            stored.was_checked();
        }
        Ok(())
    }

    /// Makes a file, and returns the way that worked.
    fn make(&self, from: &Path, to: &Path, mode: Mode) -> Result<u8, FileError> {
        loop {
            let way = self.way.load(Ordering::Relaxed);
            let result = match way {
                CLONE => reflink_copy::reflink(from, to)
                    .at("write", to)
                    .and_then(|()| make_writable(to, mode)),
                HARD_LINK => fs::hard_link(from, to),
                _ => fs::copy(from, to).and_then(|()| make_writable(to, mode)),
            };
            match result {
                Err(error) if way != COPY && !is_final(error.kind()) => {
                    // It is not supported here, either across file systems or by this one.
                    let next = if way == CLONE { self.fallback } else { COPY };
                    self.way.store(next, Ordering::Relaxed);
                    let _ = fs::remove_file(to);
                }
                result => return result.map(|()| way),
            }
        }
    }
}

/// Whether the stored file has certainly not changed since it was checked.
fn is_unchanged(source: &Folder, entry: &Entry, checked: SystemTime) -> bool {
    source
        .size_and_time(&entry.path)
        .is_some_and(|(size, modified)| size == entry.size && modified <= checked)
}

/// Errors that another way of copying would have as well.
fn is_final(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::NotFound | ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Lets the owner of a file change it.
#[cfg(unix)]
pub(crate) fn make_writable(path: &Path, mode: Mode) -> Result<(), FileError> {
    use std::os::unix::fs::PermissionsExt as _;
    let bits = if mode == Mode::Executable { 0o755 } else { 0o644 };
    match fs::set_permissions(path, std::fs::Permissions::from_mode(bits)) {
        // The file is mu's own: this file system has no permissions that can be set.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

/// Lets the owner of a file change it.
#[cfg(not(unix))]
pub(crate) fn make_writable(_path: &Path, _mode: Mode) -> Result<(), FileError> {
    Ok(())
}
