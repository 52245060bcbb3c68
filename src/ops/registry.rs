//! `registry add` and `registry remove`: edits of the settings that keep what a person wrote.

use std::path::PathBuf;

use crate::fs;
use crate::ops::{Code, CommandError, Session};
use crate::workspace::edit::{NewRegistry, remove_registry, set_registry};
use crate::workspace::{CONFIG_FILE, MU_FOLDER, WORKSPACE_FILE};

/// Sets a registry in the workspace's settings, or in those of the user; returns the file.
///
/// # Errors
///
/// When the prefix or the registry is wrong, or the file cannot be changed.
pub fn add(
    session: &Session,
    prefix: &str,
    registry: &NewRegistry,
    global: bool,
) -> Result<PathBuf, CommandError> {
    let path = file(session, global);
    let text = fs::read_text_if_there(&path)?.unwrap_or_default();
    let text = set_registry(&path, &text, prefix, registry)?;
    if global {
        fs::create_private_folder(&session.environment.mu_home, crate::env::IN_HOME)?;
    }
    fs::write_through_links(&path, text.as_bytes())?;
    Ok(path)
}

/// Takes a registry out of the workspace's settings, or of those of the user; returns the file.
///
/// # Errors
///
/// When it is not set there, or the file cannot be changed.
pub fn remove(session: &Session, prefix: &str, global: bool) -> Result<PathBuf, CommandError> {
    let path = file(session, global);
    let text = fs::read_text_if_there(&path)?.unwrap_or_default();
    let Some(text) = remove_registry(&path, &text, prefix)? else {
        let error = CommandError::new(
            Code::NotFound,
            format!("`{}` sets no registry `{prefix}`", path.display()),
        );
        return Err(error.hint("`mu registry list` shows where each is set"));
    };
    fs::write_through_links(&path, text.as_bytes())?;
    Ok(path)
}

fn file(session: &Session, global: bool) -> PathBuf {
    if global {
        session.environment.mu_home.join(CONFIG_FILE)
    } else {
        session.workspace.root.join(MU_FOLDER).join(WORKSPACE_FILE)
    }
}
