//! `registry add` and `registry remove`: edits of the settings that keep what a person wrote.

use std::path::{Path, PathBuf};

use mu_provider::{SafeUrl, without_secrets};

use crate::fs;
use crate::index::RouteError;
use crate::manifest::source::TextProblem;
use crate::ops::explain::unserved;
use crate::ops::session::source::relative;
use crate::ops::{Code, CommandError, Session};
use crate::workspace::ConfiguredRegistry;
use crate::workspace::edit::{NewRegistry, Part, Set, remove_registry, set_registry};

/// The result of setting a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedRegistry {
    /// The file that was written.
    pub file: PathBuf,
    /// The registry as it was set there before, if it was.
    pub before: Option<ConfiguredRegistry>,
    /// The registry as it is set now.
    pub now: ConfiguredRegistry,
}

/// Sets a registry in the workspace's settings, or in those of the user.
///
/// # Errors
///
/// When the prefix or the registry is not valid, nothing can be fetched from it, or the file cannot be
/// changed.
pub fn add(
    session: &Session,
    prefix: &str,
    registry: &NewRegistry,
    global: bool,
) -> Result<AddedRegistry, CommandError> {
    let path = session.settings_file(global);
    let text = fs::read_text_if_there(&path)?.unwrap_or_default();
    if let Err((part, problem)) = registry.check(prefix, &session.workspace.root) {
        let url = registry.url.as_deref().unwrap_or_default();
        let (before, word, after) = match part {
            Part::Prefix => ("mu registry add ".to_owned(), prefix, url),
            Part::Url => (format!("mu registry add {prefix} "), url, ""),
        };
        return Err(misread(&before, word, after, problem));
    }
    // The settings are relative to where they are, and a command line to where it is typed.
    let url = registry.url.as_deref().map(|url| from_file(session, url, global));
    let registry = NewRegistry { url, ..registry.clone() };
    let Set { text, before, now } = set_registry(&path, &text, prefix, &registry)?;
    // Before it is written: a registry that nothing can ask would make every later command fail.
    check(session, &now)?;
    let url = now.url.as_ref().map(|url| url.as_url().as_str());
    let rest = url.and_then(|url| url.split_once("file://"));
    let rest = rest.filter(|(format, _)| format.is_empty() || format.ends_with('+'));
    let folder = rest.and_then(|(_, rest)| SafeUrl::parse(&format!("file://{rest}")).ok());
    let folder = folder.and_then(|url| url.as_url().to_file_path().ok());
    // Only a warning: it may be a share that is not mounted, or a hub that is made next.
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        session
            .events
            .warning(&format!("`{prefix}` leads to `{}`, which is not there", folder.display()));
    }
    if global {
        fs::create_private_folder(&session.environment.mu_home, crate::env::IN_HOME)?;
    }
    fs::write_through_links(&path, text.as_bytes())?;
    Ok(AddedRegistry { file: path, before, now })
}

/// The place of a registry as the settings have it: a folder of the command line is relative to the current folder, one in the
/// workspace's settings to its root, and the user's own settings name folders in full.
fn from_file(session: &Session, place: &str, global: bool) -> String {
    let is_relative =
        matches!(place, "." | "..") || place.starts_with("./") || place.starts_with("../");
    let (current, root) = (&session.environment.current, &session.workspace.root);
    if !is_relative || (!global && current == root) {
        return place.to_owned();
    }
    let folder = crate::env::absolute(current, Path::new(place));
    if global {
        return folder.display().to_string();
    }
    let place = relative(root, &folder);
    if place.starts_with('.') { place } else { format!("./{place}") }
}

/// The error about a word of a command line, with carets under the wrong part.
fn misread(before: &str, word: &str, after: &str, problem: TextProblem) -> CommandError {
    let line = format!("{before}{word} {after}");
    let span = problem.span.unwrap_or(0..word.len());
    let characters = |text: Option<&str>| text.map_or(0, |text| text.chars().count());
    let column = before.chars().count() + characters(word.get(..span.start));
    let carets = "^".repeat(characters(word.get(span)).max(1));
    let mut message = problem.message;
    // A text with secrets is not repeated, so there is nothing to point at.
    if problem.hidden.is_none() && without_secrets(&line) == line {
        message.push_str(&format!("\n  {}\n  {:column$}{carets}", line.trim_end(), ""));
    }
    problem.help.into_iter().fold(CommandError::new(Code::Usage, message), CommandError::hint)
}

/// Refuses a registry that nothing could be fetched from: with an unknown protocol or provider, or over plain
/// http to another machine.
fn check(session: &Session, registry: &ConfiguredRegistry) -> Result<(), CommandError> {
    let scheme = registry.url.as_ref().map(|url| url.scheme());
    if let Err(error) = session.index().provider_of(registry) {
        let RouteError::NoProvider { name, known, .. } = error else {
            return Err(CommandError::from_error(Code::Usage, error));
        };
        let (message, hint) = unserved::registry(registry, &name, &known);
        return Err(CommandError::new(Code::Usage, message).hint(hint));
    }
    let url = registry.url.as_ref().filter(|_| matches!(scheme, Some("http" | "git+http")));
    if let Some(url) = url.filter(|url| !registry.insecure && !url.is_loopback()) {
        let message = format!("`{url}` is refused: plain http can be read and changed in transit");
        return Err(CommandError::new(Code::Usage, message)
            .hint("use https, or accept the risk with `--insecure`"));
    }
    Ok(())
}

/// Removes a registry from the workspace's settings, or from those of the user; returns the file.
///
/// # Errors
///
/// When it is not set there, or the file cannot be changed.
pub fn remove(session: &Session, prefix: &str, global: bool) -> Result<PathBuf, CommandError> {
    let path = session.settings_file(global);
    let text = fs::read_text_if_there(&path)?.unwrap_or_default();
    let Some(text) = remove_registry(&path, &text, prefix)? else {
        let error = CommandError::new(
            Code::NotFound,
            format!("`{}` has no registry `{prefix}`", path.display()),
        );
        return Err(
            error.hint("`mu registry list` shows what there is to remove, and where each is set")
        );
    };
    fs::write_through_links(&path, text.as_bytes())?;
    Ok(path)
}
