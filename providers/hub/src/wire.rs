//! The format of a hub's files, for readers and writers.
//!
//! An index line is a [`mu_provider::Release`]. Unknown keys are ignored.

use mu_provider::Release;
use mu_provider::publishable::is_in_archive_name;
use serde::{Deserialize, Serialize};

/// The version of hubs that is read and written here.
pub const HUB_VERSION: u32 = 1;

/// Lines in one file of the log.
pub const LOG_LINES: u64 = 1_000;

/// The usual place of the snapshot.
pub const SNAPSHOT_FILE: &str = "snapshot.jsonl.gz";

/// The bytes in the file of digests for each line of the snapshot: the content's digest, the archive's
/// digest, and the size, little endian. Unknown values are zero.
pub const SNAPSHOT_ROW: usize = 72;

/// The usual folder of closures.
pub const CLOSURES: &str = "closures/";

/// The first line of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotHead {
    /// The generation that its lines belong to.
    pub generation: u64,
    /// SHA-256 of the file of digests, as hexadecimal digits.
    pub digests: String,
}

/// The file of digests that belongs to a snapshot.
pub fn digests_path(snapshot: &str) -> String {
    format!("{}.digests", snapshot.trim_end_matches(".gz").trim_end_matches(".jsonl"))
}

/// `hub.json`: it marks a folder as a hub, and says where everything is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubFile {
    /// The version of the layout.
    pub hub: u32,
    /// The folder of the index files, relative to the hub's root.
    #[serde(default = "default_index")]
    pub index: String,
    /// The folder of the archives, relative to the hub's root.
    #[serde(default = "default_packs")]
    pub packs: String,
    /// The path for changes, if the hub accepts any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The number of changes so far, if the hub counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The folder of the log, which says what each change was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The file with all index lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The size of that file and its digests together in bytes, so that readers know whether it is worth it.
    #[serde(default, rename = "snapshotBytes", skip_serializing_if = "Option::is_none")]
    pub snapshot_bytes: Option<u64>,
    /// The size of the file of lines alone, in bytes: readers need the digests of what they choose, and may find them elsewhere.
    #[serde(default, rename = "snapshotLines", skip_serializing_if = "Option::is_none")]
    pub snapshot_lines: Option<u64>,
    /// The folder of the closures, which list the packages that each package can reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closures: Option<String>,
    /// Which changes the catalog has, if it is not written at each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogProgress>,
    /// The hub from which its server brings what it has not, and of which its lists say nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
}

/// How far a catalog is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogProgress {
    /// It has every change up to this generation.
    pub generation: u64,
    /// Whether there is none, because it would be too long: the hub's server searches its own.
    #[serde(default, rename = "tooLarge", skip_serializing_if = "std::ops::Not::not")]
    pub too_large: bool,
}

impl Default for HubFile {
    fn default() -> Self {
        Self {
            hub: HUB_VERSION,
            index: default_index(),
            packs: default_packs(),
            api: None,
            generation: None,
            log: None,
            snapshot: None,
            snapshot_bytes: None,
            snapshot_lines: None,
            closures: None,
            catalog: None,
            upstream: None,
        }
    }
}

fn default_index() -> String {
    "index/".to_owned()
}

fn default_packs() -> String {
    "packs/".to_owned()
}

/// The index file of a package, below the index folder.
pub fn index_path(name: &str) -> String {
    format!("{name}.jsonl")
}

/// The path of a release's archive below the packs folder: its name has the app version, if a file name can
/// contain that, and the version. For a composite package, the version is the app version and the revision.
pub fn archive_path(name: &str, release: &Release) -> String {
    let leaf = name.rsplit('/').next().unwrap_or(name);
    let is_composite = release.versioning.as_deref() == Some("composite");
    let app = release.app_version.as_deref();
    match app.filter(|app| is_composite || is_in_archive_name(app)) {
        Some(app) => [name, "/", leaf, "-", app, "-", &release.version, ".tgz"].concat(),
        None => [name, "/", leaf, "-", &release.version, ".tgz"].concat(),
    }
}

/// The file with the providers of a capability (`GROUP/VERSION/KIND`), relative to the hub's root.
pub fn providers_path(capability: &str) -> String {
    format!("capabilities/{capability}.json")
}

/// Who provides a capability.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvidersFile {
    /// The packages' names, the preferred first.
    pub packages: Vec<String>,
}

/// The most names in a closure. Writers leave out the rest.
pub const LARGEST_CLOSURE: usize = 4_096;

/// The file with a package's closure, below the folder of closures.
pub fn closure_path(name: &str) -> String {
    format!("{name}.json")
}

/// The packages of the hub that some version of a package needs, directly or through others, as far as this
/// was known when it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosureFile {
    /// Their names.
    pub packages: Vec<String>,
}

/// The log file with a generation, below the log folder, and the line in it, counted from 0. Generations are
/// counted from 1.
pub fn log_path(generation: u64) -> (String, usize) {
    let before = generation.saturating_sub(1);
    let line = usize::try_from(before % LOG_LINES).expect("a file has 1,000 lines");
    (format!("{:06}.txt", before / LOG_LINES), line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_named_by_name_and_version() {
        let mut release = Release { version: "1.2.0".to_owned(), ..Release::default() };
        assert_eq!(archive_path("aws/ec2", &release), "aws/ec2/ec2-1.2.0.tgz");
        release.app_version = Some("8.11".to_owned());
        assert_eq!(archive_path("elk", &release), "elk/elk-8.11-1.2.0.tgz");
        release.app_version = Some("8.11 (../LTS)".to_owned());
        assert_eq!(archive_path("elk", &release), "elk/elk-1.2.0.tgz");
        release.app_version = Some("8.11".to_owned());
        release.versioning = Some("composite".to_owned());
        assert_eq!(archive_path("elk", &release), "elk/elk-8.11-1.2.0.tgz");
    }

    #[test]
    fn a_log_file_tells_of_a_thousand_generations() {
        for (generation, path, line) in
            [(1, "000000.txt", 0), (1_000, "000000.txt", 999), (1_001, "000001.txt", 0)]
        {
            assert_eq!(log_path(generation), (path.to_owned(), line), "{generation}");
        }
    }

    #[test]
    fn what_a_hub_leaves_out_has_defaults() {
        let file: HubFile =
            serde_json::from_str(r#"{"hub": 1, "colour": "red"}"#).expect("is fine");
        assert_eq!(file, HubFile::default());
        let text = serde_json::to_string(&file).expect("prints");
        assert_eq!(text, r#"{"hub":1,"index":"index/","packs":"packs/"}"#);
        assert!(serde_json::from_str::<HubFile>("{}").is_err());
    }
}
