//! The eight places of a package, as folders. `candidate` checks whether anything is there.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use super::SearchPath;
use crate::fs;
use crate::reference::PackageId;
use crate::workspace::{MU_FOLDER, Namespace};

/// One of the eight places where a package may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// 1 to 8, of which the lowest wins; [`Place::ELSEWHERE`] for any other folder.
    pub number: u8,
    /// The folder.
    pub folder: PathBuf,
}

impl Place {
    /// The number of a folder of the workspace that a reference names itself.
    pub const ELSEWHERE: u8 = 0;

    /// Whether it is in the workspace itself, where packages are developed, not installed.
    pub fn is_workspace(&self) -> bool {
        self.number <= 2
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}. {}", self.number, self.folder.display())
    }
}

/// The first names below packs folders. Most packages are in none of them, and one listing of each folder says so for all
/// packages.
#[derive(Debug, Default)]
pub struct FirstNames(FxHashSet<OsString>);

impl FirstNames {
    /// Reads the packs folders. A folder that cannot be read has no packs.
    pub fn read(folders: &[PathBuf]) -> Self {
        let entries = folders.iter().filter_map(|folder| fs::entries(folder).ok()).flatten();
        // Files are mu's own.
        let folders = entries.filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_file()));
        let names = folders.map(|entry| entry.file_name());
        Self(names.filter(|name| name != MU_FOLDER).collect())
    }

    /// Whether a pack of this package may be there: below the name of its base, or the first part of its own.
    pub fn may_hold(&self, id: &PackageId) -> bool {
        let name = id.name_str();
        let first = name.split('/').next().unwrap_or(name);
        let has = |name: &str| self.0.contains(OsStr::new(name));
        !self.0.is_empty() && (has(first) || has(&id.base().folder_name()))
    }
}

impl SearchPath {
    /// The eight places of a package, in order.
    pub fn package_places(&self, id: &PackageId) -> [Place; 8] {
        let name = id.name_str();
        let in_base = format!("{}/{name}", id.base().folder_name());
        let [workspace, user, runtime] = &self.packs;
        let folders = [
            self.workspace.join(&in_base),
            self.unprefixed(id),
            workspace.join(&in_base),
            workspace.join(name),
            user.join(&in_base),
            user.join(name),
            runtime.join(&in_base),
            runtime.join(name),
        ];
        let mut number = 0;
        folders.map(|folder| {
            number += 1;
            Place { number, folder }
        })
    }

    /// The place of a name in the workspace, which need not repeat the workspace's namespace.
    fn unprefixed(&self, id: &PackageId) -> PathBuf {
        match Namespace::unprefixed(self.namespace.as_ref(), id) {
            "" => self.workspace.clone(),
            place => self.workspace.join(place),
        }
    }
}

/// The packs of the runtime: `lib/packs`, else `bin/packs` if only that exists.
pub(super) fn runtime_packs(mu_root: &Path) -> PathBuf {
    let usual = mu_root.join("lib").join("packs");
    let other = mu_root.join("bin").join("packs");
    if !usual.is_dir() && other.is_dir() { other } else { usual }
}
