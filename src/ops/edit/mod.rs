//! `edit`: makes a package that the workspace uses editable, as a clone of its repository, and ends that again.
//!
//! [`begin`] clones and places, [`end_edits`] ends an edit if nothing would be lost, [`restore`] takes one out of the trash. No
//! committed file changes: what is edited is in `.mu/edits.json` and in Git's own file of patterns. Installing what is used
//! then is the caller's part.

mod begin;
mod done;
mod origin;

pub use self::begin::{BeginRequest, begin};
pub use self::done::{DoneRequest, Ended, end_edits, prune_trash, restore};

use schemars::JsonSchema;
use serde::Serialize;

use crate::ops::session::locked::ambiguous;
use crate::ops::session::named::{PackageName, Purpose};
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
///
/// # Errors
///
/// When they cannot be read.
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
