//! The eight places of a package, as folders. `candidate` checks whether anything is there.

use std::fmt;
use std::path::{Path, PathBuf};

use super::SearchPath;
use crate::reference::PackageId;
use crate::workspace::Namespace;

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

impl SearchPath {
    /// The eight places of a package, in order.
    pub fn places(&self, id: &PackageId) -> [Place; 8] {
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
