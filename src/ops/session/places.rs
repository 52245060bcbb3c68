//! Which packages of the workspace references point to: the first two of the eight locations, without reading
//! again what opening the workspace has read. And what is wrong with the place of a package, as data.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::env::Environment;
use crate::reference::{PackageId, Reference, Version};
use crate::search::{SearchPath, UnsatisfiedReason};
use crate::store::trees_in;
use crate::workspace::{MU_FOLDER, Majors, Member, Namespace, WORKSPACE_FILE, Workspace};

/// A package of the workspace, found by its place.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalPackage {
    /// Its name in its manifest.
    pub id: PackageId,
    /// Its folder.
    pub folder: PathBuf,
    /// Its folder relative to the workspace's root.
    pub place: String,
    /// The version in its manifest.
    pub version: Option<Version>,
}

/// Why a package on this machine is not used as somebody may expect. It is a warning, and a hint of errors about the package, so it has
/// its own words.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is")]
pub enum Misplacement {
    #[error(
        "`{name}` points to the folder `{}`, whose package is named `{own}`; if you did not mean that package, move it to where its name points",
        folder_for_people(.place)
    )]
    OtherName { name: String, place: String, own: Reference },
    // The setting would lead to where it is.
    #[error(
        "the workspace has `{name}` in `{}`, but packages are found by their path, and references to it point to `{right}`: move it there{}",
        folder_for_people(.place), or_set(.setting.as_deref())
    )]
    OtherPlace { name: String, place: String, right: String, setting: Option<String> },
    #[error("`{id}` is not taken from `{}`: {why}", .folder.display())]
    PassedOver { id: PackageId, folder: PathBuf, why: UnsatisfiedReason },
}

fn or_set(setting: Option<&str>) -> String {
    let text = |setting| format!(", or set `{setting}` in `{MU_FOLDER}/{WORKSPACE_FILE}`");
    setting.map(text).unwrap_or_default()
}

/// A folder of the workspace for people. If a folder is named like a host, it must not look like the name of
/// a package.
pub(crate) fn folder_for_people(place: &str) -> Cow<'_, str> {
    match place.split_once('/') {
        _ if place.is_empty() => Cow::Borrowed("."),
        Some((first, _)) if first.contains('.') => Cow::Owned(format!("./{place}")),
        _ => Cow::Borrowed(place),
    }
}

/// The search path of a workspace, and its members by folder.
#[derive(Debug, Clone)]
pub struct WorkspacePlaces {
    search: SearchPath,
    members: Arc<HashMap<PathBuf, LocalPackage>>,
    /// The last parts of the members' folders.
    leaves: Arc<FxHashSet<OsString>>,
}

impl WorkspacePlaces {
    pub(crate) fn new(workspace: &Workspace, environment: &Environment) -> Self {
        // The clone of an edit need not be where references look for its package: `found_at` is there.
        let found = |member: &Member| match &member.found_at {
            Some(place) => workspace.root.join(place),
            None => member.folder.clone(),
        };
        let leaf = |member: &Member| found(member).file_name().map(OsStr::to_owned);
        let leaves = workspace.members.iter().filter_map(leaf).collect();
        let members = workspace.members.iter().map(|member| {
            let package = LocalPackage {
                id: member.id.clone(),
                folder: member.folder.clone(),
                place: member.place.clone(),
                version: member.manifest.version.clone(),
            };
            (found(member), package)
        });
        let other_folders = workspace.members.iter().filter(|member| member.found_at.is_some());
        let other_folders =
            other_folders.map(|member| (found(member), member.folder.clone())).collect();
        let Environment { mu_home, mu_root, cache, .. } = environment;
        let namespace = workspace.namespace.as_ref();
        let search = SearchPath {
            trees: Some(trees_in(cache)),
            has_many_majors: workspace.settings.majors == Majors::Many,
            left_out: Arc::clone(&workspace.left_out),
            other_folders,
            ..SearchPath::new(&workspace.root, namespace, mu_home, mu_root)
        };
        Self { search, members: Arc::new(members.collect()), leaves: Arc::new(leaves) }
    }

    /// The package of the workspace whose manifest says that it is `id`, wherever it is.
    pub fn member_called(&self, id: &PackageId, workspace: &Workspace) -> Option<&LocalPackage> {
        let folder = &workspace.member(id)?.folder;
        self.members
            .get(folder)
            .or_else(|| self.members.values().find(|package| package.folder == *folder))
    }

    /// The eight locations.
    pub fn search(&self) -> &SearchPath {
        &self.search
    }

    /// The package of the workspace that `id` points to.
    pub fn member_of(&self, id: &PackageId) -> Option<&LocalPackage> {
        // Most packages are not in the workspace: a name has the same end as the folder that it points to.
        // The name of the namespace means the workspace itself.
        let is_root = |namespace: &Namespace| namespace.name.as_str() == id.name_str();
        let namespace = self.search.namespace.as_ref();
        if !self.leaves.contains(OsStr::new(id.leaf())) && !namespace.is_some_and(is_root) {
            return None;
        }
        self.search.package_places(id)[..2].iter().find_map(|place| self.members.get(&place.folder))
    }

    /// The id of the workspace's package that `id` points to: the one in its manifest, if that points to the
    /// same folder; else `id`, because a folder that takes the place of a package is that package.
    pub fn own_name(&self, id: PackageId) -> PackageId {
        let Some(found) = self.member_of(&id).filter(|found| found.id != id) else { return id };
        let is_same = |other: &LocalPackage| other.folder == found.folder;
        let leads_there = self.member_of(&found.id).is_some_and(is_same);
        if leads_there && found.id.base() == id.base() { found.id.clone() } else { id }
    }

    /// The id that a reference written in the folder `from` means.
    ///
    /// A local folder with a package of the workspace is that package.
    pub fn id_of(
        &self,
        reference: &Reference,
        defaults: &crate::reference::Defaults,
        from: &Path,
        workspace: &Workspace,
    ) -> PackageId {
        let Some(folder) = reference.local() else {
            return reference.id(defaults);
        };
        let folder = crate::env::absolute(from, Path::new(folder));
        let member = workspace.members.iter().find(|member| member.folder == folder);
        member.map_or_else(|| PackageId::local(&folder), |member| member.id.clone())
    }
}
