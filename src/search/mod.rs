//! The search path: the eight places where a package may be, and which of them wins.
//!
//! | | the workspace | packs of the workspace | packs of the user | packs of the runtime |
//! | --- | --- | --- | --- | --- |
//! | base and name | 1 `w/b/n` | 3 `w/.mu/packs/b/n` | 5 `~/.mu/packs/b/n` | 7 `$MUROOT/lib/packs/b/n` |
//! | name alone | 2 `w/n` | 4 `w/.mu/packs/n` | 6 `~/.mu/packs/n` | 8 `$MUROOT/lib/packs/n` |
//!
//! The lowest number with a manifest wins. A package in the workspace wins whatever version was requested,
//! with a warning. A pack must also satisfy the version, or else it is passed over. So is a folder of the
//! workspace where mu does not look for packages. Nothing here contacts a registry, writes, or knows locks:
//! the caller passes in what is known about installed packs. Local folders (`./x`) are not searched for; they
//! are where the path says.

mod candidate;
mod error;
mod find;
mod place;
mod satisfy;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::candidate::{Candidate, Hit, State};
pub use self::error::{MissingElement, SearchError};
pub use self::find::{Found, Note};
pub use self::place::Place;
pub use self::satisfy::{Installed, Reason};
use crate::fs;
use crate::reference::{Defaults, PackageId, Reference, VersionSpec};
use crate::workspace::LeftOut;

/// Where to search, and what is known about installed packs.
#[derive(Debug, Clone)]
pub struct SearchPath {
    workspace: PathBuf,
    namespace: Option<Reference>,
    /// Of the workspace, of the user, and of the runtime.
    packs: [PathBuf; 3],
    /// The store's trees, to which packs may be links.
    trees: Option<PathBuf>,
    has_many_majors: bool,
    installed: BTreeMap<PathBuf, Installed>,
    replaced: BTreeMap<PackageId, PackageId>,
    left_out: Arc<LeftOut>,
    /// Places of the workspace whose packages are in other folders.
    elsewhere: BTreeMap<PathBuf, PathBuf>,
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
    /// `namespace` is the workspace's: a name, or base and name.
    pub fn new(
        workspace: &Path,
        namespace: Option<&Reference>,
        mu_home: &Path,
        mu_root: &Path,
    ) -> Self {
        Self {
            workspace: workspace.to_owned(),
            namespace: namespace.cloned(),
            packs: [
                workspace.join(".mu").join("packs"),
                mu_home.join("packs"),
                place::runtime_packs(mu_root),
            ],
            trees: None,
            has_many_majors: false,
            installed: BTreeMap::new(),
            replaced: BTreeMap::new(),
            left_out: Arc::default(),
            elsewhere: BTreeMap::new(),
        }
    }

    /// The packs folders of the workspace, of the user, and of the runtime.
    pub fn packs(&self) -> &[PathBuf; 3] {
        &self.packs
    }

    /// Sets where the store's trees are: a pack of the workspace may be a link there, and nowhere else.
    #[must_use]
    pub fn with_store(mut self, trees: PathBuf) -> Self {
        self.trees = Some(trees);
        self
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

    /// Also looks for the packs of other majors, `n@MAJOR` (`majors: many`).
    #[must_use]
    pub fn with_many_majors(mut self) -> Self {
        self.has_many_majors = true;
        self
    }

    /// Sets which folders of the workspace contain none of its packages.
    #[must_use]
    pub fn with_left_out(mut self, left_out: Arc<LeftOut>) -> Self {
        self.left_out = left_out;
        self
    }

    /// Sets which packages of the workspace are found at a place although their folder is another one: the place, then the
    /// folder.
    #[must_use]
    pub fn with_elsewhere(mut self, elsewhere: BTreeMap<PathBuf, PathBuf>) -> Self {
        self.elsewhere = elsewhere;
        self
    }

    /// Sets what is known about packs, by their folders: the installed version, commit or tag is not always
    /// the one in the manifest.
    #[must_use]
    pub fn with_installed(mut self, installed: BTreeMap<PathBuf, Installed>) -> Self {
        self.installed = installed;
        self
    }

    /// Sets which packages were replaced by which: their packs are not hits, and lead to the replacement.
    #[must_use]
    pub fn with_replaced(mut self, replaced: BTreeMap<PackageId, PackageId>) -> Self {
        self.replaced = replaced;
        self
    }
}
