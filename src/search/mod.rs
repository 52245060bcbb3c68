//! The search path: the eight places where a package may be, and which of them wins.
//!
//! | | the workspace | packs of the workspace | packs of the user | packs of the runtime |
//! | --- | --- | --- | --- | --- |
//! | base and name | 1 `w/b/n` | 3 `w/.mu/packs/b/n` | 5 `~/.mu/packs/b/n` | 7 `$MUROOT/lib/packs/b/n` |
//! | name alone | 2 `w/n` | 4 `w/.mu/packs/n` | 6 `~/.mu/packs/n` | 8 `$MUROOT/lib/packs/n` |
//!
//! The lowest number with a manifest wins. A package in the workspace wins whatever version was requested, with a
//! warning. A pack must also satisfy the version, or else it is passed over. So is a folder of the workspace where mu
//! does not look for packages. [`SearchPath`] gives the places of a package as folders; `candidate.rs` checks whether
//! anything is there. Nothing here contacts a registry, writes, or knows locks: the caller passes in what is known
//! about installed packs. Local folders (`./x`) are not searched for; they are where the path says.

mod candidate;
mod find;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::fs;
use crate::reference::{Defaults, PackageId, Reference, VersionSpec};
use crate::workspace::{LeftOutFolders, MU_FOLDER, Namespace};

pub use self::candidate::{Candidate, Hit, InstalledPack, State, UnsatisfiedReason};
pub use self::find::{Found, MissingElement, Note, SearchError};

/// Where to search, and what is known about installed packs.
#[derive(Debug, Clone)]
pub struct SearchPath {
    pub(crate) workspace: PathBuf,
    pub(crate) namespace: Option<Namespace>,
    /// The packs folders of the workspace, of the user, and of the runtime.
    pub(crate) packs: [PathBuf; 3],
    /// The store's trees: a pack of the workspace may be a link there, and nowhere else.
    pub(crate) trees: Option<PathBuf>,
    /// Whether packs of other majors, `n@MAJOR`, are looked for, too (`majors: many`).
    pub(crate) has_many_majors: bool,
    /// What is known about packs, by their folders: the installed version, commit or tag is not always the one in
    /// the manifest.
    pub(crate) installed: BTreeMap<PathBuf, InstalledPack>,
    /// Which packages were replaced by which: their packs are not hits, and lead to the replacement.
    pub(crate) replaced: BTreeMap<PackageId, PackageId>,
    /// Which folders of the workspace contain none of its packages.
    pub(crate) left_out: Arc<LeftOutFolders>,
    /// Places of the workspace whose packages are in other folders: the place, then the folder.
    pub(crate) other_folders: BTreeMap<PathBuf, PathBuf>,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Query {
    /// The package, or an element of one.
    pub id: PackageId,
    /// The versions that satisfy the request.
    pub spec: VersionSpec,
    /// Whether prereleases that nobody named are accepted too.
    pub prereleases: bool,
}

impl Query {
    /// The request of a reference.
    pub fn new(reference: &Reference, defaults: &Defaults) -> Self {
        Self { id: reference.id(defaults), spec: reference.spec(), prereleases: false }
    }
}

impl SearchPath {
    /// The search path of the workspace at `workspace`, with `~/.mu` and `$MUROOT`.
    ///
    /// `namespace` is the workspace's.
    pub fn new(
        workspace: &Path,
        namespace: Option<&Namespace>,
        mu_home: &Path,
        mu_root: &Path,
    ) -> Self {
        Self {
            workspace: workspace.to_owned(),
            namespace: namespace.cloned(),
            packs: [
                workspace.join(".mu").join("packs"),
                mu_home.join("packs"),
                runtime_packs(mu_root),
            ],
            trees: None,
            has_many_majors: false,
            installed: BTreeMap::new(),
            replaced: BTreeMap::new(),
            left_out: Arc::default(),
            other_folders: BTreeMap::new(),
        }
    }

    /// The symbolic link in the path of a pack of the workspace, if there is one that mu has not made itself.
    /// A checkout may bring such a link, and nothing below `.mu` is reached through it.
    pub fn link_on_the_way(&self, pack: &Path) -> Option<PathBuf> {
        let [packs, ..] = &self.packs;
        let inside = pack.strip_prefix(packs).ok()?;
        let is_own = |path: &Path| {
            path == pack
                && self.trees.as_ref().is_some_and(|trees| {
                    fs::read_link(path).is_ok_and(|target| target.starts_with(trees))
                })
        };
        let mut path = packs.clone();
        inside.components().find_map(|part| {
            path.push(part);
            (path.is_symlink() && !is_own(&path)).then(|| path.clone())
        })
    }
}

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
        if self.0.is_empty() {
            return false;
        }
        let name = id.name_str();
        let first = name.split('/').next().unwrap_or(name);
        let has = |name: &str| self.0.contains(OsStr::new(name));
        has(first) || has(&id.base().folder_name())
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
fn runtime_packs(mu_root: &Path) -> PathBuf {
    let usual = mu_root.join("lib").join("packs");
    let other = mu_root.join("bin").join("packs");
    if !usual.is_dir() && other.is_dir() { other } else { usual }
}
