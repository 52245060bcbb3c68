//! Vendored packs: plain files that are committed with the workspace, instead of links to the store.
//!
//! `packs/vendored.json` says so to every checkout, and contains what a checkout could not tell: which parts
//! packs leave out to make room for others inside them, and of what Git would follow. It is not trusted: files and left-out parts
//! are hashed together and compared with the lock, and a pack may leave out nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mu_provider::{Digest, Entry};
use serde::{Deserialize, Serialize};

use crate::fs::{self, FileError};
use crate::packs::PacksError;
use crate::packs::folder::PacksFolder;
use crate::packs::state::{State, WantedPack, entries, is_below, lines};

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
