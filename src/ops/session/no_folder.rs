//! The error of a path that should be a folder, but is not, with what is there.

use std::path::{Path, PathBuf};

use super::error::{Code, CommandError};
use crate::fs;
use crate::manifest::source::nearest;
use crate::ops::Session;

/// More folders than this are not listed.
const LISTED: usize = 8;

/// The folder of this machine that a reference of the command line names.
///
/// # Errors
///
/// When it is not there.
pub(crate) fn local_folder(session: &Session, path: &str) -> Result<PathBuf, CommandError> {
    let folder = crate::env::absolute(&session.environment.current, path.as_ref());
    if !folder.is_dir() {
        return Err(no_folder(&folder));
    }
    session.folders.name(&folder);
    Ok(folder)
}

/// The error of a path that should be a folder, but is not.
pub(crate) fn no_folder(folder: &Path) -> CommandError {
    let shown = folder.display();
    if folder.is_file() {
        let error = CommandError::new(Code::NotFound, format!("`{shown}` is a file, not a folder"));
        let is_manifest = folder.file_stem().is_some_and(|stem| stem == "Mu");
        return match folder.parent().filter(|_| is_manifest) {
            Some(parent) => {
                error.hint(format!("name the folder that it is in: `{}`", parent.display()))
            }
            None => error.hint(
                "a package is a folder: name one, or a package of a registry, such as `aws/ec2`",
            ),
        };
    }
    let error = CommandError::new(Code::NotFound, format!("there is no folder `{shown}`"));
    // A bare repository of Git has these two in its root. Its branches have folders, but the disk does not.
    let is_bare = |at: &&Path| at.join("HEAD").is_file() && at.join("objects").is_dir();
    error.hint(match folder.ancestors().skip(1).find(is_bare) {
        Some(repository) => format!(
            "`{}` is a Git repository; to use a folder in it, write `git+file://{shown}`",
            repository.display()
        ),
        None => what_is_there(folder),
    })
}

/// The folder that was probably meant, or those beside it.
fn what_is_there(folder: &Path) -> String {
    // The first folder on the way that is not there: the one that was misspelt.
    let missing = folder.ancestors().take_while(|at| !at.is_dir()).last();
    let parts = missing.and_then(|at| Some((at, at.parent()?, at.file_name()?)));
    let Some((missing, above, name)) = parts else {
        return "expected the path of a folder".to_owned();
    };
    let mut names: Vec<String> = fs::entries(above)
        .unwrap_or_default()
        .into_iter()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    let near = nearest(&name.to_string_lossy(), names.iter().map(String::as_str));
    if let Some(near) = near {
        let near = above.join(near);
        let whole = folder.strip_prefix(missing).map(|rest| near.join(rest));
        let meant = whole.ok().filter(|whole| whole.is_dir()).unwrap_or(near);
        return format!("did you mean `{}`?", meant.display());
    }
    let above = above.display();
    let listed: Vec<String> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    match &listed[..] {
        [] => format!("`{above}` contains no folders"),
        [one] => format!("`{above}` has one folder: {one}"),
        _ => {
            let more = if names.len() > LISTED { ", …" } else { "" };
            format!("the folders in `{above}` are: {}{more}", listed.join(", "))
        }
    }
}
