//! `edit`: makes a package that the workspace uses editable, as a clone of its repository, and ends that again.
//!
//! [`begin`] clones and places, [`end_edits`] ends an edit if nothing would be lost, [`restore`] takes one out of the
//! trash, and [`list`] shows all of them. `Origin` says where the repository of a package is. No committed file
//! changes: what is edited is in `.mu/edits.json` and in Git's own file of patterns. Installing what is used then is
//! the caller's part.

mod begin;
mod done;

pub use self::begin::{BeginRequest, begin};
pub use self::done::{DoneRequest, Ended, end_edits, prune_trash, restore};

use mu_formats::Reading;
use mu_provider::{Commit, InnerPath, Lead, NamedBy, PlaceKind};
use mu_provider_git::TagName;
use schemars::JsonSchema;
use serde::Serialize;

use crate::formats;
use crate::index::Candidate;
use crate::lock::LockedPackage;
use crate::ops::apply::fetch::{bring_locked, location_in_settings};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::locked::{PackageName, Purpose, ambiguous};
use crate::ops::{Code, CommandError, Session};
use crate::reference::PackageId;
use crate::workspace::edits::{Edit, RecordedEdits, State};
use crate::workspace::root::local_git;

/// One edit, and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Edited {
    /// The package.
    pub id: PackageId,
    /// The version that is locked for everyone.
    pub version: String,
    /// Its folder, relative to the workspace's root.
    pub folder: String,
    /// The root of its clone, relative to the workspace's root.
    pub clone: String,
    /// Where it was cloned from; nothing for one that was made from a pack.
    pub url: Option<String>,
    /// The commit that it began at.
    pub commit: String,
    /// The branch that is checked out; nothing if none is, or the folder is not there.
    pub branch: Option<String>,
    /// What has become of it.
    pub state: Is,
    /// How many commits it is ahead of where it began, if that is known.
    pub ahead: Option<usize>,
    /// How many files differ from the last commit.
    pub changed: usize,
    /// Its name in the trash, for `mu edit --restore`.
    pub trash: Option<String>,
}

/// What has become of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Is {
    /// It is used instead of the locked package.
    InUse,
    /// Its folder stays, and is not used.
    Kept,
    /// Its folder is in the trash.
    InTrash,
    /// Its folder is gone.
    Missing,
}

/// All edits of the workspace, in the order in which they were made.
pub fn list(session: &Session) -> Result<Vec<Edited>, CommandError> {
    let edits = RecordedEdits::read(&session.workspace.root)?;
    edits.edits.iter().map(|edit| seen(session, edit)).collect()
}

/// An edit and its state.
fn seen(session: &Session, edit: &Edit) -> Result<Edited, CommandError> {
    let root = &session.workspace.root;
    let state = edit.state_on_disk(root);
    let folder = root.join(&edit.folder);
    let is_there = matches!(state, State::InUse | State::Kept);
    let local = local_git(&session.environment);
    let work = is_there.then(|| local.work_state(&root.join(&edit.clone)).ok()).flatten();
    let work = work.unwrap_or_default();
    let ahead = || local.commits_ahead(root, &folder, Some(&edit.commit)).ok().flatten();
    Ok(Edited {
        id: package_of(edit)?,
        version: edit.version.clone(),
        folder: edit.folder.to_string(),
        clone: edit.clone.to_string(),
        url: edit.url.clone(),
        commit: edit.commit.to_string(),
        branch: work.branch,
        state: match state {
            State::InUse => Is::InUse,
            State::Kept => Is::Kept,
            State::InTrash => Is::InTrash,
            State::Missing => Is::Missing,
        },
        ahead: is_there.then(ahead).flatten(),
        changed: work.changed,
        trash: edit.trash.as_ref().filter(|_| state == State::InTrash).map(ToString::to_string),
    })
}

fn package_of(edit: &Edit) -> Result<PackageId, CommandError> {
    edit.package().ok_or_else(|| {
        CommandError::new(
            Code::Workspace,
            format!("`{}` in `.mu/edits.json` is not a package id", edit.id),
        )
    })
}

/// The place in `edits` of the one that a reference means: by its id, or by the end of its name if no other ends so.
fn find(session: &Session, edits: &RecordedEdits, text: &str) -> Result<usize, CommandError> {
    let name = PackageName::without_version(text, Purpose::Done)?;
    let reference = name.reference();
    let id = session.id_of_argument(reference);
    let name = reference.name().as_str();
    let root = &session.workspace.root;
    // An edit in the trash has ended.
    let known = |edit: &Edit| edit.state_on_disk(root) != State::InTrash;
    let exact = edits.edits.iter().position(|edit| known(edit) && edit.id == id.as_str());
    if let Some(exact) = exact {
        return Ok(exact);
    }
    let ends = |edit: &Edit| known(edit) && edit.id.ends_with(&format!("/{name}"));
    let meant: Vec<usize> = (0..edits.edits.len()).filter(|at| ends(&edits.edits[*at])).collect();
    match meant.as_slice() {
        [one] => Ok(*one),
        [] => {
            let message = format!("`{id}` is not being edited here");
            Err(CommandError::new(Code::NotFound, message).hint("`mu edit` lists what is"))
        }
        several => Err(ambiguous(name, several.iter().map(|at| &edits.edits[*at].id))),
    }
}

/// Where the source of a package is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    /// The URL of the repository.
    url: String,
    /// The folder of the package in it; `None` for its root.
    folder: Option<InnerPath>,
    /// The commit, if it is known.
    commit: Option<Commit>,
    /// Tags that have the version otherwise.
    tags: Vec<TagName>,
    /// Whether the package is called what its manifest says.
    is_named: bool,
}

impl Origin {
    /// Finds it: for a Git package in the lock, for others in what they say of themselves; or where `url` says.
    fn find(
        session: &Session,
        package: &LockedPackage,
        url: Option<&str>,
    ) -> Result<Self, CommandError> {
        let insecure = session.options.allow_insecure;
        let mut named_by = None;
        let in_git = git_place(session, package)?;
        let is_named = in_git.is_none();
        let (text, folder, commit) = match (url, in_git) {
            // The user names the repository. Which commit is meant, only the lock or the package can say.
            (Some(url), in_git) => {
                let (url, folder) = split(url);
                name_folder(session, &url);
                let inside = in_git.map(|(_, folder)| folder).unwrap_or_default();
                let commit = match &package.commit {
                    Some(commit) => Some(commit.clone()),
                    None => said(session, package)?.1,
                };
                (url, folder.unwrap_or(inside), commit)
            }
            // It comes from Git: the lock has the commit.
            (None, Some((root, folder))) => {
                let url = root.to_string();
                if root.named_by() == NamedBy::User {
                    name_folder(session, &url);
                }
                (url, folder, package.commit.clone())
            }
            // No registry has it, and its owner changes it where it is.
            (None, None) if package.source.is_outside_folder() => {
                return Err(in_folder(session, package));
            }
            (None, None) => {
                // It comes from a registry, where its author says which repository it was made from.
                let (repository, commit) = said(session, package)?;
                let Some(repository) = repository else { return Err(unknown(session, package)) };
                let (url, folder) = split(&repository);
                if !is_remote(&url) {
                    return Err(unknown(session, package));
                }
                // The package says so, and not the user.
                named_by = Some(location_in_settings(session, package)?.root);
                (url, folder.unwrap_or_default(), commit)
            }
        };
        let url = match &named_by {
            None => mu_provider_git::checked_url(&text, insecure)?,
            Some(place) => mu_provider_git::named_url(&text, place, insecure).map_err(|error| {
                let hint = format!(
                    "`mu edit {} --url URL` clones the repository that you name",
                    session.short_name(&package.id)
                );
                CommandError::from(error).hint(hint)
            })?,
        };
        let version = &package.version;
        // In a repository with several packages, tags have the folder in front, as with Go's modules: `db/v1.2.0`.
        let mut tags = vec![format!("v{version}")];
        if !folder.is_empty() {
            tags.insert(0, format!("{folder}/v{version}"));
        }
        let folder = Some(folder).filter(|folder| !folder.is_empty());
        let folder =
            folder.map(|folder| InnerPath::parse(&folder)).transpose().map_err(|error| {
                let message = format!("this is not a folder in a repository: {error}");
                CommandError::new(Code::Reference, message)
            })?;
        let tags = tags.iter().filter_map(|tag| TagName::new(tag)).collect();
        Ok(Self { url, folder, commit, tags, is_named })
    }
}

/// The repository and the folder of a package that comes from Git.
fn git_place(
    session: &Session,
    package: &LockedPackage,
) -> Result<Option<(Lead, String)>, CommandError> {
    let provider = session.index().providers().get(&package.source.provider);
    if !provider.is_ok_and(|provider| provider.facts().kind == PlaceKind::Repository) {
        return Ok(None);
    }
    let location = location_in_settings(session, package)?;
    let folder = location.folder.or_else(|| package.folder.clone()).unwrap_or_default();
    Ok(Some((location.root, folder)))
}

/// The repository and the commit that a package says it was made of.
fn said(
    session: &Session,
    package: &LockedPackage,
) -> Result<(Option<String>, Option<Commit>), CommandError> {
    let index = session.index();
    let listed = package.parsed_version().and_then(|version| {
        let releases = index.published(&package.id).ok()?;
        let position = releases.position_of_version(&version)?;
        let candidate = Candidate::Release(position);
        Some(index.release_in_full(&package.id, candidate).ok()?.1)
    });
    let commit = listed.as_ref().and_then(|listed| listed.commit.clone());
    if let Some(repository) = listed.and_then(|listed| listed.repository.clone()) {
        return Ok((Some(repository), commit));
    }
    // A registry may not list it, and then only the manifest in the package can have it.
    let _store = session.use_store()?;
    let stored = bring_locked(session, package)?;
    let loaded = formats::load(&stored.folder, &Reading::default())?;
    Ok((loaded.and_then(|loaded| loaded.manifest.repository), commit))
}

/// A URL, and the folder after its `#`.
fn split(text: &str) -> (String, Option<String>) {
    match text.split_once('#') {
        Some((url, folder)) => (url.to_owned(), Some(folder.trim_matches('/').to_owned())),
        None => (text.to_owned(), None),
    }
}

/// Whether a repository is on another machine: what a package says of itself leads to no folder of this one.
fn is_remote(url: &str) -> bool {
    !url.starts_with('/') && !url.starts_with("file:") && !url.starts_with("git+file:")
}

/// Records that the user names a repository, if it is on this machine.
fn name_folder(session: &Session, url: &str) {
    if let Some(folder) = mu_provider_git::folder_of(url) {
        session.folders.name(&folder);
    }
}

fn in_folder(session: &Session, package: &LockedPackage) -> CommandError {
    let name = session.short_name(&package.id);
    let place = &package.source.place;
    CommandError::new(Code::Usage, format!("`{name}` is used from the folder `{place}`"))
        .hint("change its files there, and `mu get` takes them")
}

fn unknown(session: &Session, package: &LockedPackage) -> CommandError {
    let name = quoted_for_shell(&session.short_name(&package.id));
    let message = format!(
        "`{}` {} does not say in which repository its source is",
        session.short_name(&package.id),
        package.version
    );
    CommandError::new(Code::NotFound, message)
        .hint(format!("`mu edit {name} --url URL` clones that repository"))
        .hint(format!("`mu edit {name} --from-pack` begins a repository with the installed files"))
}
