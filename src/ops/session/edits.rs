//! How a session looks at its workspace: with or without the packages that only this machine uses instead of locked
//! ones, and with the manifests that a command would change.
//!
//! These are packages that mu has made editable, and those in folders that Git ignores. There are two views of such a
//! workspace, [`View`]. For the team there are no edits: this view chooses what Mu.lock and the manifests say. The
//! other view is what this machine uses; its lock is `.mu/edits.lock`. Git is asked only if a package of the workspace
//! shadows a locked one, or needs something and is new.
//!
//! [`ChangedManifests`] are as a command would leave them. The session keeps its own as they were read.

#![cfg_attr(
    not(feature = "git"),
    allow(
        dead_code,
        unused_imports,
        unused_variables,
        reason = "without Git, no package is found to be edited"
    )
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use mu_provider::{Commit, threads};

use super::Session;
use crate::contents::rules::Rules;
use crate::env::Environment;
use crate::lock::Lockfile;
use crate::manifest::Manifest;
use crate::ops::{Code, CommandError, OperationScope, Options, Warning, WorkspacePlaces};
use crate::reference::PackageId;
#[cfg(feature = "git")]
use crate::workspace::root::local_git;
use crate::workspace::{MU_FOLDER, Member, Workspace, edits, repository_around};

/// What Git says of a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Tracked,
    Ignored,
    Untracked,
    /// There is no Git here.
    Unknown,
}

impl Session {
    /// Finds the packages that only this machine uses, and takes them out of the workspace unless the view has them.
    pub(super) fn part_edits(&mut self, view: View) {
        self.edited = find(self);
        if self.edited.is_empty() {
            return;
        }
        let is_here = match &view {
            View::Here => true,
            View::Team => false,
            View::Around(name) => self.is_about_edit(name.as_deref()),
        };
        if is_here {
            self.view = View::Here;
            // Its lock is another one.
            *threads::lock(&self.lockfile) = None;
            return;
        }
        self.view = View::Team;
        let folders: Vec<_> =
            self.edited.iter().map(|edited| edited.member.folder.clone()).collect();
        self.workspace.set_aside(&|member| folders.contains(&member.folder));
        self.places = WorkspacePlaces::new(&self.workspace, &self.environment);
    }

    /// Whether `name`, or without one the current folder, means a package that only this machine uses.
    fn is_about_edit(&self, name: Option<&str>) -> bool {
        let current = &self.environment.current;
        self.edited.iter().any(|EditedPackage { id, member, .. }| match name {
            Some(name) => {
                let folder = crate::env::absolute(current, Path::new(name));
                let reference = crate::reference::Reference::parse(name).ok();
                let meant = reference.map(|reference| reference.id(&self.reference_defaults()));
                meant.is_some_and(|meant| meant == *id || meant == member.id)
                    || member.folder == folder
                    || member.place == name
            }
            None => current.starts_with(&member.folder),
        })
    }

    /// Whether there are packages that only this machine uses, and this session leaves them out.
    pub(crate) fn leaves_out_edits(&self) -> bool {
        self.view == View::Team && !self.edited.is_empty()
    }

    /// Whether this session's lock is that of the edits.
    pub(super) fn locks_edits(&self) -> bool {
        self.view == View::Here && !self.edited.is_empty()
    }

    /// This session in the workspace as this machine uses it, with these manifests of its members. Its lock
    /// is `previous`.
    pub(crate) fn with_edits<'m>(
        &self,
        changed: impl Iterator<Item = (usize, &'m Manifest)>,
        previous: Option<Lockfile>,
    ) -> Self {
        let mut workspace = self.workspace.clone();
        for (index, manifest) in changed {
            workspace.members[index].manifest = manifest.clone();
        }
        workspace.members.extend(self.edited.iter().map(|edited| edited.member.clone()));
        workspace.members.sort_by(|left, right| left.place.cmp(&right.place));
        workspace.warnings.clear();
        // `--locked` and `--frozen` are about Mu.lock, which the team's view holds; what edits use may change.
        let options = Options { locked: false, frozen: false, ..self.options.clone() };
        let events = std::sync::Arc::clone(&self.events);
        let mut here = Self::new(self.environment.clone(), options, self.scope, events, workspace);
        here.edited.clone_from(&self.edited);
        here.view = View::Here;
        *threads::lock(&here.lockfile) = Some(previous.map(std::sync::Arc::new));
        here
    }

    /// The folders of packages that only this machine uses, and of their clones.
    #[cfg(feature = "hub")]
    pub(crate) fn folders_of_edits(&self) -> Vec<std::path::PathBuf> {
        let edits = self.workspace.edits.iter();
        let clones = edits.map(|edit| self.workspace.root.join(&edit.clone));
        self.edited.iter().map(|edited| edited.member.folder.clone()).chain(clones).collect()
    }

    /// Whether a package is one that only this machine uses.
    pub(crate) fn is_edited(&self, id: &PackageId) -> bool {
        self.edited.iter().any(|edited| edited.id == *id)
    }

    /// The names and folders of the edits in use, for messages; of all of them if none takes the place of a locked package.
    pub(crate) fn names_of_edits(&self) -> String {
        let is_any_used = self.edited.iter().any(|edited| edited.is_used);
        let named = self.edited.iter().filter(|edited| edited.is_used || !is_any_used);
        let names: Vec<String> = named
            .map(|edited| format!("`{}` in `{}`", self.short_name(&edited.id), edited.member.place))
            .collect();
        names.join(", ")
    }

    /// Refuses edits where the result is for others.
    pub fn refuse_edits(&self, what: &str) -> Result<(), CommandError> {
        if !self.edited.iter().any(|edited| edited.is_used) || self.options.allow_edits {
            return Ok(());
        }
        let folders: BTreeMap<_, _> =
            self.edited.iter().map(|edited| (&edited.id, &edited.member.place)).collect();
        let message = format!("{what} while packages are edited here: {}", self.names_of_edits());
        Err(CommandError::new(Code::Conflict, message)
            .hint("others do not have these folders; `--allow-edits` goes on with them")
            .with_details(serde_json::json!({ "edits": folders })))
    }

    /// Refuses edits in continuous integration.
    pub(super) fn refuse_edits_in_integration(&self) -> Result<(), CommandError> {
        match self.environment.variable("CI") {
            Some("true" | "1") => {
                self.refuse_edits("mu does not install in continuous integration (CI is set)")
            }
            _ => Ok(()),
        }
    }

    /// Makes Git ignore what belongs to edits, in this clone alone.
    pub(crate) fn ignore_edits(&self, clone: Option<&Path>) -> Result<(), CommandError> {
        #[cfg(feature = "git")]
        if let Some(around) = git_around(self, &self.workspace.root)? {
            let mu = self.workspace.root.join(MU_FOLDER);
            let file = mu.join(edits::EDITS_FILE);
            let (lock, folder) =
                (mu.join(edits::EDITS_LOCK), self.workspace.root.join(edits::EDIT_FOLDER.as_str()));
            let mut paths: Vec<(&Path, bool)> =
                vec![(&file, false), (&lock, false), (&folder, true)];
            paths.extend(clone.map(|clone| (clone, true)));
            let ignored = around.ignore(&paths);
            ignored.map_err(|error| CommandError::from_error(Code::Io, error))?;
        }
        Ok(())
    }
}

/// The packages that only this machine uses.
fn find(session: &Session) -> Vec<EditedPackage> {
    let workspace = &session.workspace;
    // The root alone can take no locked package's place: most workspaces end here.
    let is_root_alone = workspace.members.iter().all(|member| member.found_at().is_empty());
    if session.scope == OperationScope::Global || workspace.edits.is_empty() && is_root_alone {
        return Vec::new();
    }
    // The code that needs it reports why it cannot be read.
    let lock = session.lockfile().ok().flatten().unwrap_or_default();
    // Reading Git's index takes time in a large repository. So Git is asked only about folders for which the answer
    // matters: those that take a locked package's place, new ones, and, if one of these is ignored, all others.
    let edit_of = |member: &Member| workspace.edit_around(&member.folder);
    let shadowing = shadowing(session, &lock);
    let mut standing: BTreeMap<&Path, Standing> = BTreeMap::new();
    let asked: Vec<&Member> = workspace
        .members
        .iter()
        .filter(|member| shadowing.contains_key(&*member.folder) && edit_of(member).is_none())
        .collect();
    if !asked.is_empty() {
        standing = standings(session, &asked);
    }
    note_untracked(session, &standing, &shadowing, &lock);
    standing.extend(new_and_ignored(session, &lock));
    note_ignored(session, &lock);
    if standing.values().any(|standing| *standing == Standing::Ignored) {
        // Now that Git was asked anyway: packages beside an edit are nobody else's either.
        let is_teams = |member: &Member| {
            lock.find(&member.id).any(|package| package.source.is_workspace_folder())
                || member.place.is_empty()
                || edit_of(member).is_some()
        };
        let others: Vec<&Member> = workspace
            .members
            .iter()
            .filter(|member| !is_teams(member) && !standing.contains_key(&*member.folder))
            .collect();
        standing.extend(standings(session, &others));
    }
    let edited = workspace.members.iter().filter_map(|member| {
        let edit = edit_of(member);
        let is_ignored = standing.get(&*member.folder) == Some(&Standing::Ignored);
        if edit.is_none() && !is_ignored {
            return None;
        }
        let shadowed = shadowing.get(&*member.folder);
        // Of a clone that mu has made, it knows the package. Any other folder is used as the locked package whose place
        // it takes; one that takes no place is only kept out of what is the team's.
        let made =
            workspace.edits.iter().find(|edit| workspace.root.join(&edit.folder) == member.folder);
        let id = made.and_then(edits::Edit::package).or_else(|| shadowed.cloned());
        let locked = shadowed.and_then(|id| lock.find(id).last());
        let base = edit.map(|edit| edit.commit.clone());
        Some(EditedPackage {
            is_used: id.is_some(),
            id: id.unwrap_or_else(|| member.id.clone()),
            member: member.clone(),
            base: base.or_else(|| locked.and_then(|package| package.commit.clone())),
        })
    });
    edited.collect()
}

/// The packages of the workspace that would take the place of a locked package, or of one that is not locked yet: their
/// folders, and the packages that they would be used as.
fn shadowing<'s>(session: &'s Session, lock: &Lockfile) -> BTreeMap<&'s Path, PackageId> {
    let mut shadowing = BTreeMap::new();
    // First, folders that references find before a locked package.
    let locked = lock.packages.iter().filter(|package| !package.source.is_workspace_folder());
    for package in locked {
        if let Some(local) = session.places.member_of(&package.id) {
            shadowing.insert(&*local.folder, package.id.clone());
        }
    }
    // Then, folders that a manifest's dependency leads to, and that nothing locked is about: a colleague has cloned
    // something beside the packages, and requires it for the first time.
    let is_known =
        |id: &PackageId| lock.find(id).next().is_some() || lock.replacement(id).is_some();
    for member in &session.workspace.members {
        let defaults = member.defaults.clone();
        for dependency in member.manifest.all_dependencies() {
            if dependency.reference.local().is_some() {
                continue;
            }
            let id = dependency.reference.id(&defaults);
            let Some(local) = session.places.member_of(&id) else { continue };
            if local.folder != member.folder && !is_known(&id) && !is_known(&local.id) {
                shadowing.entry(&*local.folder).or_insert(id);
            }
        }
    }
    shadowing
}

/// The folders of packages that the lock does not know yet, and that Git ignores: what these need, and what they are in conflict with,
/// is not the team's either. Git is not asked about the others, which everyone has.
fn new_and_ignored<'s>(session: &'s Session, lock: &Lockfile) -> Vec<(&'s Path, Standing)> {
    // The lock may know a member only as the one who requires something: nothing depends on it.
    let known: BTreeSet<&str> = lock.all_requested().map(|(_, requested)| &*requested.by).collect();
    let is_new = |member: &&Member| {
        let short = session.short_name(&member.id);
        let mut names = [&*short, member.id.as_str()].into_iter();
        let is_known = lock.find(&member.id).next().is_some();
        !member.place.is_empty() && !is_known && !names.any(|name| known.contains(name))
    };
    let new: Vec<&Member> = session.workspace.members.iter().filter(is_new).collect();
    if new.is_empty() {
        return Vec::new();
    }
    #[cfg(feature = "git")]
    if let Ok(Some(around)) = git_around(session, &session.workspace.root) {
        let is_ignored = |member: &&&Member| around.ignores(&member.folder).unwrap_or(false);
        let ignored = new.iter().filter(is_ignored);
        return ignored.map(|member| (&*member.folder, Standing::Ignored)).collect();
    }
    Vec::new()
}

/// The Git repository around a folder of the workspace, if there is one.
#[cfg(feature = "git")]
pub(crate) fn git_around(
    session: &Session,
    folder: &Path,
) -> Result<Option<mu_provider_git::Surroundings>, CommandError> {
    let around = mu_provider_git::Surroundings::of(folder, local_git(&session.environment));
    around.map_err(unreadable)
}

/// The error about a repository that nothing can read.
#[cfg(feature = "git")]
pub(crate) fn unreadable(error: mu_provider_git::SurroundingsError) -> CommandError {
    CommandError::from_error(Code::Io, error)
        .hint("see what `git status` says there; a newer `git` in `PATH` may read it")
}

/// What Git says of the folders of `members`. If nothing can read the repository, that is said, and nothing is known.
fn standings<'m>(session: &Session, members: &[&'m Member]) -> BTreeMap<&'m Path, Standing> {
    #[cfg(feature = "git")]
    {
        let ask = || {
            let Some(around) = git_around(session, &session.workspace.root)? else {
                return Ok(BTreeMap::new());
            };
            let standing = |member: &&'m Member| {
                let standing = match around.folder_standing(&member.folder).map_err(unreadable)? {
                    None => Standing::Unknown,
                    Some(mu_provider_git::FolderStanding::Tracked) => Standing::Tracked,
                    Some(mu_provider_git::FolderStanding::Ignored) => Standing::Ignored,
                    Some(mu_provider_git::FolderStanding::Untracked) => Standing::Untracked,
                };
                Ok::<_, CommandError>((&*member.folder, standing))
            };
            members.iter().map(standing).collect()
        };
        match ask() {
            Ok(standings) => return standings,
            Err(error) => {
                let why = mu_provider::with_causes(error.error.as_ref());
                session.events.warning(&Warning::IgnoredUnknown { why });
            }
        }
    }
    members.iter().map(|member| (&*member.folder, Standing::Unknown)).collect()
}

/// Says which folders Mu.lock names that Git ignores: they were the team's once, and others do not have them.
fn note_ignored(session: &Session, lock: &Lockfile) {
    let root = &session.workspace.root;
    let locked = |member: &&Member| {
        !member.place.is_empty()
            && session.workspace.edit_around(&member.folder).is_none()
            && lock.find(&member.id).any(|package| package.source.is_workspace_folder())
    };
    let members: Vec<&Member> = session.workspace.members.iter().filter(locked).collect();
    let Some(top) = repository_around(root).filter(|_| !members.is_empty()) else { return };
    // Git is asked only about what rules seem to leave out. A file of rules that cannot be read is Git's business.
    let Ok(rules) = Rules::of_git(top) else { return };
    let seems_ignored = |member: &&Member| {
        rules.leave_out_on_the_way(top, &member.manifest_path, false).unwrap_or(false)
    };
    let members: Vec<&Member> = members.into_iter().filter(seems_ignored).collect();
    if members.is_empty() {
        return;
    }
    let standing = standings(session, &members);
    for member in members {
        if standing.get(&*member.folder) == Some(&Standing::Ignored) {
            let (id, place) = (member.id.clone(), member.place.clone());
            session.events.warning(&Warning::LockedIgnored { id, place });
        }
    }
}

/// Says how to keep folders to oneself that Git neither tracks nor ignores, and that take the place of locked packages.
fn note_untracked(
    session: &Session,
    standing: &BTreeMap<&Path, Standing>,
    shadowing: &BTreeMap<&Path, PackageId>,
    lock: &Lockfile,
) {
    for (folder, standing) in standing {
        let Some(id) = shadowing.get(folder).filter(|_| *standing == Standing::Untracked) else {
            continue;
        };
        if lock.find(id).next().is_none() {
            continue;
        }
        #[cfg(feature = "git")]
        if let Ok(Some(around)) = git_around(session, &session.workspace.root)
            && let Some((pattern, exclude)) = around.pattern(folder)
        {
            let place = super::source::relative(&session.workspace.root, folder);
            let id = id.clone();
            session.events.warning(&Warning::UsedUntracked { id, place, pattern, exclude });
        }
    }
}

/// Which packages count as the workspace's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum View {
    /// Also packages that only this machine uses.
    #[default]
    Here,
    /// Only packages that everyone has.
    Team,
    /// As [`View::Here`] if this package, or without one the package around the current folder, is only used here; else as
    /// [`View::Team`].
    Around(Option<String>),
}

/// A package that only this machine uses.
#[derive(Debug, Clone)]
pub(crate) struct EditedPackage {
    /// The package that it is used as.
    pub id: PackageId,
    /// The package itself.
    pub member: Member,
    /// The commit that its changes are counted from.
    #[cfg_attr(not(feature = "git"), allow(dead_code, reason = "only Git counts them"))]
    pub(super) base: Option<Commit>,
    /// Whether it is used instead of a locked package, or mu has made it.
    pub is_used: bool,
}

impl EditedPackage {
    /// How many commits it has beyond those of its origin, if that is known.
    #[cfg(feature = "git")]
    pub(crate) fn ahead(&self, environment: &Environment, root: &Path) -> Option<usize> {
        let local = local_git(environment);
        local.commits_ahead(root, &self.member.folder, self.base.as_ref()).ok().flatten()
    }

    /// How many commits it has beyond those of its origin: without Git, nobody knows.
    #[cfg(not(feature = "git"))]
    pub(crate) fn ahead(&self, _environment: &Environment, _root: &Path) -> Option<usize> {
        None
    }
}

/// The manifests that a command would change, as it would leave them; by the member's place in the workspace.
#[derive(Debug, Clone, Default)]
pub struct ChangedManifests(Arc<BTreeMap<usize, Manifest>>);

impl ChangedManifests {
    /// The manifest of a member: as the command would leave it, or as the workspace has it.
    pub(crate) fn manifest<'m>(&'m self, workspace: &'m Workspace, index: usize) -> &'m Manifest {
        self.0.get(&index).unwrap_or_else(|| &workspace.members[index].manifest)
    }

    /// Has the command leave the member's manifest so.
    pub(crate) fn set(&mut self, index: usize, manifest: Manifest) {
        Arc::make_mut(&mut self.0).insert(index, manifest);
    }

    /// The changed ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Manifest)> {
        self.0.iter().map(|(&index, manifest)| (index, manifest))
    }
}
