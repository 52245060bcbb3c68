//! Takes a clone out of the trash, back to where it was.

use std::collections::BTreeSet;

use super::{Edited, seen};
use crate::ops::session::locked::ambiguous;
use crate::ops::{Code, CommandError, Session};
use crate::workspace::edits::{Edit, Edits, State, TRASH};

/// Restores the edit with this name in the trash, or the newest one of this package; returns all that were in the clone.
///
/// # Errors
///
/// When there is none, or something else is in its place now.
pub fn restore(session: &Session, name: &str) -> Result<Vec<Edited>, CommandError> {
    let root = &session.workspace.root;
    let mut edits = Edits::read(root)?;
    let in_trash = |edit: &&Edit| edit.state(root) == State::InTrash;
    let is_exact =
        |edit: &&Edit| edit.trash.as_ref().is_some_and(|trash| *trash == *name) || edit.id == name;
    let ends_so = |edit: &&Edit| edit.id.ends_with(&format!("/{name}"));
    let trashed = || edits.edits.iter().filter(in_trash);
    let mut named: Vec<&Edit> = trashed().filter(is_exact).collect();
    if named.is_empty() {
        named.extend(trashed().filter(ends_so));
        let ids: BTreeSet<&str> = named.iter().map(|edit| &*edit.id).collect();
        if ids.len() > 1 {
            return Err(ambiguous(name, ids));
        }
    }
    let Some(found) = named.into_iter().max_by_key(|edit| edit.trashed).cloned() else {
        let names: Vec<String> =
            trashed().filter_map(|edit| Some(edit.trash.as_ref()?.to_string())).collect();
        let error = CommandError::new(Code::NotFound, format!("there is no `{name}` in the trash"));
        return Err(match names.is_empty() {
            true => error.hint("the trash is empty"),
            false => error.hint(format!("in the trash are: {}", names.join(", "))),
        });
    };
    let opened = session.workspace.opened()?;
    // Only what is in the trash was found.
    let Some(name) = found.trash.clone() else { return Ok(Vec::new()) };
    let from = TRASH.join(&name);
    if opened.look_at(&found.clone)?.is_some() {
        let message = format!("`{}` is already there", found.clone);
        return Err(CommandError::new(Code::Conflict, message).hint(format!(
            "move it away; the clone is in `{}`",
            opened.path().join(&from).display()
        )));
    }
    session.ignore_edits(Some(&opened.path().join(&found.clone)))?;
    opened.move_inside(&from, &found.clone)?;
    let mut restored = Vec::new();
    for edit in edits.edits.iter_mut().filter(|edit| edit.trash.as_ref() == Some(&name)) {
        edit.trash = None;
        edit.trashed = None;
        restored.push(edit.clone());
    }
    edits.write(root)?;
    restored.iter().map(|edit| seen(session, edit)).collect()
}
