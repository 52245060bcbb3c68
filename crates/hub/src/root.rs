//! `hub.json` as its writers see it: its public keys, and how current the derived files are.
//!
//! Keys that are not known here stay as they are.

use bytes::Bytes;
use mu_provider_hub::wire::{
    CLOSURES, CatalogProgress, HUB_VERSION, HubFile, SNAPSHOT_FILE, digests_path,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::HubError;
use crate::derived::CatalogChange;
pub(crate) use crate::file::HUB_FILE;
use crate::file::{CATALOG_FILE, closure_file};
use crate::files::Files;
use crate::snapshot::SnapshotChange;

/// The folder of the log in a hub that names none.
const LOG: &str = "log/";

/// The key for the catalog's progress, or for the generation at which the hub had become too large for one.
const CATALOG: &str = "catalog";

/// The highest generation from which to count on. No real hub gets there. Beyond it, numbers would run out,
/// and programs that use floating-point numbers would confuse them.
const HIGHEST_GENERATION: u64 = 1 << 53;

/// What `hub.json` says.
#[derive(Debug, Clone)]
pub struct Root {
    map: Map<String, Value>,
    file: HubFile,
}

/// The key for the snapshot.
const SNAPSHOT: &str = "snapshot";

/// The key for the snapshot's generation. It stays, alone, when a hub has become too large for a snapshot.
const SNAPSHOT_GENERATION: &str = "snapshotGeneration";

/// The progress of a derived file that is not written at every change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct DerivedFileProgress {
    /// The file contains every change up to this generation.
    pub(crate) generation: u64,
    /// How long the file is, in bytes.
    pub(crate) bytes: u64,
}

impl Root {
    /// The root of a new hub.
    pub(crate) fn new() -> Self {
        let file = HubFile {
            generation: Some(0),
            log: Some(LOG.to_owned()),
            closures: Some(CLOSURES.to_owned()),
            ..HubFile::default()
        };
        let Ok(Value::Object(map)) = serde_json::to_value(&file) else {
            unreachable!("a struct of texts and numbers is an object")
        };
        Self { map, file }
    }

    /// Reads `hub.json`.
    pub async fn read(files: &Files) -> Result<Self, HubError> {
        match files.read(HUB_FILE).await? {
            Some(read) => Self::parse(&read.bytes, files),
            None => Err(HubError::Missing { place: files.name.to_string() }),
        }
    }

    /// Reads `hub.json` in order to increase its generation.
    pub(crate) async fn read_to_write(files: &Files) -> Result<Self, HubError> {
        let root = Self::read(files).await?;
        if root.counts_on() {
            return Ok(root);
        }
        let reason = root.too_high();
        Err(files.broken(HUB_FILE, format!("{reason}; `mu hub check --repair` counts again")))
    }

    pub(crate) fn parse(bytes: &[u8], files: &Files) -> Result<Self, HubError> {
        let broken = |reason: String| files.broken(HUB_FILE, reason);
        let map: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|error| broken(error.to_string()))?;
        let file: HubFile = serde_json::from_value(Value::Object(map.clone()))
            .map_err(|error| broken(error.to_string()))?;
        if file.hub != HUB_VERSION {
            let place = files.name.to_string();
            return Err(HubError::OtherVersion { place, version: file.hub, known: HUB_VERSION });
        }
        let optional = [&file.log, &file.closures].into_iter().flatten();
        for folder in [&file.index, &file.packs].into_iter().chain(optional) {
            let parts = folder.strip_suffix('/').unwrap_or(folder).split('/');
            if parts
                .clone()
                .any(|part| matches!(part, "" | "." | "..") || part.contains([':', '%', '\\']))
            {
                return Err(broken(format!("`{folder}` is not a folder inside the hub")));
            }
        }
        Ok(Self { map, file })
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        let mut text =
            serde_json::to_string(&self.map).expect("a map of JSON values can be printed");
        text.push('\n');
        text.into()
    }

    /// The index file of a package.
    pub fn index(&self, name: &str) -> String {
        format!("{}{name}.jsonl", self.index_folder())
    }

    /// The folder of the index, with a slash at its end.
    pub fn index_folder(&self) -> String {
        as_folder(&self.file.index)
    }

    /// The folder of the archives, with a slash at its end.
    pub fn packs_folder(&self) -> String {
        as_folder(&self.file.packs)
    }

    /// The folder of the log, with a slash at its end.
    pub fn log_folder(&self) -> String {
        as_folder(self.file.log.as_deref().unwrap_or(LOG))
    }

    /// Whether a path belongs to the hub's files, or is a folder above them. There may be other files beside
    /// them.
    pub(crate) fn owns(&self, path: &str) -> bool {
        let path = format!("{path}/");
        let stated = [self.index_folder(), self.packs_folder(), self.log_folder()];
        let usual =
            ["capabilities/", "closures/", "pending/", "private/", "signatures/", "upstream/"];
        let usual = usual.map(str::to_owned);
        let files = [HUB_FILE, CATALOG_FILE, SNAPSHOT_FILE, &digests_path(SNAPSHOT_FILE)]
            .map(|file| format!("{file}/"));
        let mut all = stated.iter().chain(&usual).chain(&files);
        all.any(|own| own.starts_with(&path) || path.starts_with(own))
    }

    /// The closure of a package, if the hub keeps closures.
    pub(crate) fn closure(&self, name: &str) -> Option<String> {
        Some(closure_file(&self.closures_folder()?, name))
    }

    /// The folder of the closures, with a slash at its end, if the hub keeps any.
    pub(crate) fn closures_folder(&self) -> Option<String> {
        self.file.closures.as_deref().map(as_folder)
    }

    /// Records that the hub keeps closures from now on.
    pub(crate) fn keep_closures(&mut self) {
        if self.file.closures.is_none() {
            self.file.closures = Some(CLOSURES.to_owned());
            self.map.insert("closures".to_owned(), CLOSURES.into());
        }
    }

    /// How many changes are known to be complete.
    pub fn generation(&self) -> u64 {
        self.file.generation.unwrap_or_default()
    }

    /// Whether the hub has a generation.
    pub fn counts(&self) -> bool {
        self.file.generation.is_some() && self.file.log.is_some()
    }

    /// Whether there can be a next generation.
    pub(crate) fn counts_on(&self) -> bool {
        self.generation() <= HIGHEST_GENERATION
    }

    /// The problem with a generation that cannot be increased.
    pub(crate) fn too_high(&self) -> String {
        format!("its generation {} is higher than any real one", self.generation())
    }

    /// Sets the generation to `generation`, whatever it was before.
    pub(crate) fn count_from(&mut self, generation: u64) {
        self.file.generation = Some(generation);
        self.map.insert("generation".to_owned(), generation.into());
    }

    /// The catalog's progress; `None` if there is no catalog yet, or if it claims to be ahead of the hub.
    pub(crate) fn catalog(&self) -> Option<DerivedFileProgress> {
        let progress = DerivedFileProgress::deserialize(self.map.get(CATALOG)?).ok()?;
        (progress.generation <= self.generation()).then_some(progress)
    }

    /// Whether the catalog, when it was last to be written, was too large. Then only a server searches the hub.
    pub fn is_too_large_for_a_catalog(&self) -> bool {
        self.file.catalog.as_ref().is_some_and(|catalog| catalog.too_large)
    }

    /// The length of the snapshot's lines, in bytes.
    pub(crate) fn length_of_snapshot_lines(&self) -> u64 {
        self.file.snapshot_lines.unwrap_or_default()
    }

    /// The snapshot's progress; `None` if there is no snapshot yet, or if it claims to be ahead of the hub.
    pub fn snapshot_progress(&self) -> Option<DerivedFileProgress> {
        let generation = self.map.get(SNAPSHOT_GENERATION)?.as_u64()?;
        let progress = DerivedFileProgress { generation, bytes: self.file.snapshot_bytes? };
        (generation <= self.generation()).then_some(progress)
    }

    /// The length of the longest file about all packages, in bytes.
    pub(crate) fn longest_about_all(&self) -> u64 {
        let files = [self.catalog(), self.snapshot_progress()];
        files.into_iter().flatten().map(|file| file.bytes).max().unwrap_or_default()
    }

    /// Whether the hub ever had a snapshot, or would have had one that was too large.
    pub(crate) fn knows_snapshots(&self) -> bool {
        self.map.contains_key(SNAPSHOT_GENERATION)
    }

    /// Whether the snapshot, when it was last to be written, was too large.
    pub(crate) fn is_too_large_for_a_snapshot(&self) -> bool {
        self.knows_snapshots() && !self.map.contains_key(SNAPSHOT)
    }

    /// Takes over what a write did to the snapshot.
    pub(crate) fn take_snapshot(&mut self, change: SnapshotChange) {
        let (progress, lines) = match change {
            SnapshotChange::Written { progress, lines } => (progress, lines),
            SnapshotChange::TooLarge { generation } => {
                self.file.snapshot_bytes = None;
                self.map.shift_remove(SNAPSHOT);
                self.map.shift_remove("snapshotBytes");
                self.map.shift_remove("snapshotLines");
                self.map.insert(SNAPSHOT_GENERATION.to_owned(), generation.into());
                return;
            }
        };
        if self.snapshot_progress().is_none_or(|known| known.generation <= progress.generation) {
            self.file.snapshot_bytes = Some(progress.bytes);
            self.map.insert(SNAPSHOT.to_owned(), SNAPSHOT_FILE.into());
            self.map.insert("snapshotBytes".to_owned(), progress.bytes.into());
            self.map.insert("snapshotLines".to_owned(), lines.into());
            self.map.insert(SNAPSHOT_GENERATION.to_owned(), progress.generation.into());
        }
    }

    /// Moves on to a generation; a higher one stays.
    pub(crate) fn advance_generation(&mut self, generation: u64, catalog: Option<CatalogChange>) {
        let generation = generation.max(self.generation());
        self.file.generation = Some(generation);
        self.map.insert("generation".to_owned(), generation.into());
        let log = self.log_folder();
        self.map.insert("log".to_owned(), log.clone().into());
        self.file.log = Some(log);
        let known = self.catalog().map(|known| known.generation);
        let (generation, too_large, value) = match catalog {
            None => return,
            Some(CatalogChange::Written(progress)) => {
                let DerivedFileProgress { generation, bytes } = progress;
                (generation, false, json!({ "generation": generation, "bytes": bytes }))
            }
            Some(CatalogChange::TooLarge { generation }) => {
                (generation, true, json!({ "generation": generation, "tooLarge": true }))
            }
        };
        if known.is_none_or(|known| known <= generation) {
            self.file.catalog = Some(CatalogProgress { generation, too_large });
            self.map.insert(CATALOG.to_owned(), value);
        }
    }
}

fn as_folder(path: &str) -> String {
    format!("{}/", path.trim_end_matches('/'))
}
