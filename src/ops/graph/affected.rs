//! `affected`: the packages of the workspace that a branch can change the behaviour of, so that CI builds and tests these alone.
//!
//! A package is affected by its own files, by entries of Mu.lock that it needs directly or through others, and by packages of the
//! workspace that it needs. What settings do shows in Mu.lock only in part, so a change of them affects every package.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mu_provider_git::{ChangesSince, CheckoutChanges};
use schemars::JsonSchema;
use serde::Serialize;

use crate::contents::{Kind, Owned, Source, links_out, would_choose};
use crate::lock::{FILE_NAME, LockedPackage, Lockfile};
use crate::ops::apply::outcome::lock_changes;
use crate::ops::graph::{Graph, Node};
use crate::ops::session::edits::unreadable;
use crate::ops::session::locked::version_of;
use crate::ops::{Change, Code, CommandError, Session};
use crate::reference::PackageId;
use crate::workspace::root::local_git;
use crate::workspace::{MU_FOLDER, Member, WORKSPACE_FILE};

/// The packages of the workspace that are affected since a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Affected {
    /// What was asked for.
    pub since: String,
    /// The last commit that it has in common with the checkout: the state that is compared with.
    pub commit: String,
    /// Whether the settings of the workspace have changed, so that all packages are affected.
    pub settings: bool,
    /// The packages, by their folders.
    pub packages: Vec<AffectedMember>,
}

/// A package of the workspace, and what affects it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AffectedMember {
    /// Its name.
    pub name: String,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// Its folder, relative to the root of the workspace.
    pub path: String,
    /// Those of its files that have changed, relative to its folder.
    pub files: Vec<String>,
    /// The changed packages of Mu.lock that it needs, directly or through others.
    pub changes: Vec<Change>,
    /// The packages of the workspace that it needs, directly or through others, and whose files have changed.
    pub members: Vec<String>,
}

/// Finds the packages that are affected since the checkout left the history of `since`.
pub fn affected(session: &Session, since: &str) -> Result<Affected, CommandError> {
    let changed = changed_since(session, since)?;
    let own = OwnChanges::sort(session, &changed);
    let (graph, lock) = Graph::load(session)?;
    let before = match &changed.before {
        Some(text) => Lockfile::read_former(session.lock_folder(), text).map_err(|error| {
            let what = format!("the {FILE_NAME} of commit {} cannot be read", changed.commit);
            CommandError::from(error).while_doing(what)
        })?,
        None => Lockfile::default(),
    };
    let mut changes: BTreeMap<PackageId, Change> =
        lock_changes(&before, &lock).into_iter().map(|one| (one.id.clone(), one)).collect();
    let mut moved: BTreeSet<Node> = BTreeSet::new();
    // The locked packages that are not what they were; those of the workspace are known by their files.
    for package in &lock.packages {
        if package.source.is_workspace_folder() {
            continue;
        }
        let has_changed = changes.contains_key(&package.id)
            || before.find(&package.id).all(|former| makes_other_packs(former, package))
            || is_in_changed_folder(session, package, &changed);
        if has_changed {
            let version = Some(version_of(package));
            let is_it =
                |node: &Node| graph.vertices.get(*node).is_some_and(|one| one.version == version);
            moved.extend(graph.find(&package.id).into_iter().filter(is_it));
            changes.entry(package.id.clone()).or_insert_with(|| {
                let version = Some(package.version.clone());
                Change::new(package.id.clone(), version.clone(), version)
            });
        }
    }
    let members = session.workspace.members.iter().enumerate().filter_map(|(node, member)| {
        let files = own.files.get(&node).cloned().unwrap_or_default();
        let needed = reached(&graph, node);
        let needs = needed.iter().filter(|node| moved.contains(node));
        let ids: BTreeSet<&PackageId> =
            needs.filter_map(|node| graph.vertices.get(*node)?.id.as_ref()).collect();
        let others = needed.iter().filter(|other| **other != node && own.files.contains_key(other));
        let one = AffectedMember {
            name: member.manifest.name.to_string(),
            version: member.manifest.version.as_ref().map(ToString::to_string),
            path: if member.place.is_empty() { ".".to_owned() } else { member.place.clone() },
            changes: ids.into_iter().filter_map(|id| changes.get(id).cloned()).collect(),
            members: others.map(|other| graph.vertices[*other].name.clone()).collect(),
            files,
        };
        let is_affected = own.settings
            || !one.files.is_empty()
            || !one.changes.is_empty()
            || !one.members.is_empty();
        is_affected.then_some(one)
    });
    Ok(Affected {
        since: since.to_owned(),
        commit: changed.commit.to_string(),
        settings: own.settings,
        packages: members.collect(),
    })
}

/// What the checkout around the workspace has changed, with the former text of Mu.lock.
fn changed_since(session: &Session, since: &str) -> Result<CheckoutChanges, CommandError> {
    let root = &session.workspace.root;
    let git = local_git(&session.environment);
    let found = ChangesSince::find(root, since, FILE_NAME, &git).map_err(unreadable)?;
    let refused = |message: String| CommandError::new(Code::NotFound, message);
    match found {
        Some(ChangesSince::Known(changed)) => Ok(changed),
        None => Err(CommandError::new(
            Code::NotFound,
            format!("`{}` is in no Git repository, so nothing says what has changed", root.display()),
        )
        .hint("mu compares with what Git has: make the folder a repository, and commit it")),
        Some(ChangesSince::NoSuchCommit) => {
            Err(refused(format!("this repository has no branch, tag or commit `{since}`")).hint(
                "in CI, have the checkout fetch it: `fetch-depth: 0` in GitHub Actions, `GIT_DEPTH: 0` in GitLab",
            ))
        }
        Some(ChangesSince::NothingInCommon) => Err(refused(format!(
            "the checkout and `{since}` have no commit in common, as far as their history is here"
        ))
        .hint(
            "if the history was cut off here, fetch the rest of it; in CI, `fetch-depth: 0` or `GIT_DEPTH: 0` does that",
        )),
    }
}

/// The changes of the workspace's own files.
#[derive(Debug, Default)]
struct OwnChanges {
    /// Whether its settings have changed.
    settings: bool,
    /// The changed files of each member, by its place in the workspace.
    files: BTreeMap<Node, Vec<String>>,
}

impl OwnChanges {
    fn sort(session: &Session, changed: &CheckoutChanges) -> Self {
        let mut own = Self::default();
        let workspace = &session.workspace;
        let Ok(root) = crate::fs::canonicalize(&workspace.root) else { return own };
        let settings = Path::new(MU_FOLDER).join(WORKSPACE_FILE);
        for path in &changed.paths {
            let Ok(path) = changed.root.join(path).strip_prefix(&root).map(Path::to_owned) else {
                continue;
            };
            own.settings |= path == settings;
            // What is in Mu.lock is compared entry by entry, and packs follow from it.
            if path.starts_with(MU_FOLDER) || path == Path::new(FILE_NAME) {
                continue;
            }
            let holding = workspace.members.iter().enumerate();
            let holding = holding.filter(|(_, member)| path.starts_with(&member.place));
            let deepest = holding.clone().map(|(_, member)| member.place.len()).max();
            for (node, member) in holding {
                let inside = path.strip_prefix(&member.place).unwrap_or(&path);
                // A package has the packages in its folder in it, unless it leaves them out.
                let is_own = Some(member.place.len()) == deepest;
                if is_own || packs(session, member, inside) {
                    own.files.entry(node).or_default().push(inside.display().to_string());
                }
            }
            // A submodule that packages are in is one path.
            for (node, member) in workspace.members.iter().enumerate() {
                if Path::new(&member.place).starts_with(&path) && !path.starts_with(&member.place) {
                    own.files.entry(node).or_default().push(".".to_owned());
                }
            }
        }
        own.add_linked(session, changed);
        own
    }

    /// Adds the links of members that lead to what has changed elsewhere in the repository.
    fn add_linked(&mut self, session: &Session, changed: &CheckoutChanges) {
        if changed.paths.is_empty() {
            return;
        }
        for (node, member) in session.workspace.members.iter().enumerate() {
            for (path, target) in links_out(&member.folder) {
                let mut paths = changed.paths.iter();
                if paths.any(|path| changed.root.join(path).starts_with(&target))
                    && packs(session, member, Path::new(&path))
                {
                    self.files.entry(node).or_default().push(path);
                }
            }
        }
    }
}

/// Whether what is at a path in the folder of a member is a part of its package. Of what other tools pack, everything is.
fn packs(session: &Session, member: &Member, path: &Path) -> bool {
    let folder = &*member.folder;
    let file = member.manifest_path.strip_prefix(folder).ok().and_then(Path::to_str);
    let (Some(path), Some(file), None) = (path.to_str(), file, &member.manifest.format) else {
        return true;
    };
    let Ok(owned) = Owned::around(folder, &session.environment) else { return true };
    let kind = Kind::Own { manifest: &member.manifest, file };
    let source = Source { folder, kind, owned: &owned, others: &[] };
    would_choose(&source, path, false).unwrap_or(true)
}

/// Whether a file has changed in the folder of a package that lies outside of the workspace.
fn is_in_changed_folder(
    session: &Session,
    package: &LockedPackage,
    changed: &CheckoutChanges,
) -> bool {
    if !package.source.is_outside_folder() {
        return false;
    }
    let folder = crate::env::absolute(session.lock_folder(), package.source.place.as_ref());
    let folder = crate::fs::canonicalize(&folder).unwrap_or(folder);
    changed.paths.iter().any(|path| changed.root.join(path).starts_with(&folder))
}

/// Whether a locked package installs something else than before, or needs other packages.
fn makes_other_packs(former: &LockedPackage, package: &LockedPackage) -> bool {
    (former.patch, former.patched, former.built) != (package.patch, package.patched, package.built)
        || former.beside != package.beside
        || former.dependencies != package.dependencies
}

/// The node, and all that it needs, directly or through others.
fn reached(graph: &Graph, from: Node) -> BTreeSet<Node> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        if found.insert(node) {
            let edges = graph.vertices.get(node).map_or(&[][..], |vertex| &vertex.edges);
            open.extend(edges.iter().map(|edge| edge.to));
        }
    }
    found
}
