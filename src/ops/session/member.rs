//! Which manifest a command edits.

use std::path::Path;

use crate::manifest::Manifest;
use crate::ops::session::named::{PackageName, Purpose};
use crate::ops::{Code, CommandError, Session};
use crate::workspace::{Member, Workspace};

/// The place in the workspace's members of the package called `name` (by name, id or folder), or of
/// the one around the current folder. `example` is how the command names one, for hints.
///
/// # Errors
///
/// When there is none, or it is unclear which is meant.
pub(crate) fn target(
    session: &Session,
    name: Option<&str>,
    example: &str,
) -> Result<usize, CommandError> {
    let members = &session.workspace.members;
    if let Some(name) = name {
        // A path comes first, because a shell completes it: `lib` is the folder here, even if a package elsewhere is
        // called so.
        let folder = crate::env::absolute(&session.environment.current, Path::new(name));
        let is_there = |member: &Member| member.folder == folder || member.place == name;
        if let Some(found) = members.iter().position(is_there) {
            return Ok(found);
        }
        // A name with a version is refused with what to write instead. What is no reference at all gets the list of
        // names.
        let named = match PackageName::without_version(name, Purpose::Member) {
            Err(error) if error.code == Code::Usage => return Err(error),
            named => named.ok(),
        };
        let id = named.map(|named| named.reference().id(&session.reference_defaults()));
        return members.iter().position(|member| Some(&member.id) == id.as_ref()).ok_or_else(
            || {
                let message = format!("`{name}` is not a package of this workspace");
                CommandError::new(Code::NotFound, message)
                    .hint(format!("its packages are: {}", names(session)))
            },
        );
    }
    match (around(session)?, members.len()) {
        (Some(index), _) => Ok(index),
        (None, 1) => Ok(0),
        (None, 0) => Err(CommandError::new(
            Code::NotFound,
            format!("there is no package in `{}`", session.workspace.root.display()),
        )
        .hint("`mu init NAME` creates a package here")),
        (None, _) => Err(CommandError::new(
            Code::Usage,
            format!(
                "`{}` has several packages, and this folder is in none of them",
                session.workspace.root.display()
            ),
        )
        .hint(format!("name one, as in `{example}`: {}", names(session)))),
    }
}

/// The place in the workspace's members of the package around the current folder.
///
/// # Errors
///
/// When the package around it does not belong to the workspace.
pub(crate) fn around(session: &Session) -> Result<Option<usize>, CommandError> {
    let Workspace { root, members, .. } = &session.workspace;
    let inside = session.environment.current.ancestors().take_while(|at| at.starts_with(root));
    for folder in inside {
        if let Some(index) = members.iter().position(|member| member.folder == folder) {
            return Ok(Some(index));
        }
        if let Ok(Some(path)) = Manifest::locate(folder) {
            return Err(left_out(&path, session));
        }
    }
    Ok(None)
}

fn left_out(path: &Path, session: &Session) -> CommandError {
    let message = format!("`{}` is not a package of this workspace", path.display());
    let error = CommandError::new(Code::Workspace, message);
    let why = path.parent().and_then(|folder| session.workspace.left_out.reason_left_out(folder));
    match why {
        Some(why) => error.hint(why.to_string()),
        None => error.hint("hidden folders are not searched for packages"),
    }
}

fn names(session: &Session) -> String {
    let names: Vec<String> = session
        .workspace
        .members
        .iter()
        .map(|member| format!("`{}`", member.manifest.name))
        .collect();
    names.join(", ")
}
