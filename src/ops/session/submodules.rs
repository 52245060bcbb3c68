//! Submodules that are not checked out, as `git clone` leaves them: what lies in them is no less the workspace's for that, and nothing
//! from elsewhere may take its place.

use std::path::Path;

use crate::env::Environment;
use crate::fs;
use crate::ops::session::edits::unreadable;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError};
use crate::workspace::root::local_git;

/// Refuses to go on if `folder`, which is `what`, is in such a submodule.
pub(crate) fn refuse_in_submodule_without_files(
    environment: &Environment,
    folder: &Path,
    what: &str,
) -> Result<(), CommandError> {
    let found = local_git(environment).submodule_without_files(folder);
    let Some((root, path)) = found.map_err(unreadable)? else { return Ok(()) };
    let message = format!("`{path}` is a submodule that is not checked out, and {what} is in it");
    let command = checkout_command(environment, &root, &path);
    Err(CommandError::new(Code::Conflict, message)
        .hint(format!("`git {command}` checks it out"))
        .with_details(serde_json::json!({ "submodule": path })))
}

/// What `git` is given to check out the submodule at a path in a folder, for people.
pub(crate) fn checkout_command(environment: &Environment, within: &Path, path: &str) -> String {
    let real = |folder: &Path| fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let at = match real(within) == real(&environment.current) {
        true => String::new(),
        false => format!("-C {} ", quoted_for_shell(&within.display().to_string())),
    };
    format!("{at}submodule update --init {}", quoted_for_shell(path))
}
