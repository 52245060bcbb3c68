//! `config`, `env` and `registry`: each setting and variable, its value, and where that comes from, and edits of the
//! settings.
//!
//! `config` and `env` show. `config set`, `registry add` and `registry remove` edit the settings of the workspace or of
//! the user, and keep what a person wrote. A registry that nothing could be fetched from is refused. What a setting
//! means is known in `workspace`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mu_provider::http::TOKEN_PREFIX;
use mu_provider::{SafeUrl, without_secrets};
use schemars::JsonSchema;
use serde::Serialize;

use crate::env::Environment;
use crate::fs;
use crate::index::RouteError;
use crate::manifest::source::{Document, SourceError, TextProblem, nearest};
use crate::ops::explain::unserved;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::source::relative;
use crate::ops::{Code, CommandError, Session, Warning};
use crate::workspace::edit::{
    self, NewRegistry, Part, Set, remove_registry, set_key, set_registry, unset_key,
};
use crate::workspace::{ConfiguredRegistry, Key, LOCK_FILE, find_root};

/// A setting or variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Setting {
    /// Its name: `resolution`, `runtime.kubernetes`, `MU_HOME`.
    pub key: String,
    /// Its value, as it is written.
    pub value: String,
    /// Where it comes from: `FILE:LINE`, a variable, or `default`.
    pub from: String,
}

/// Settings with a default value.
const DEFAULTS: [(&str, &str); 7] = [
    (Key::base, "hub.mu.com/"),
    (Key::fresh_for, "10 minutes"),
    (Key::link, "auto"),
    (Key::majors, "one"),
    (Key::members, "[\"**\"]"),
    (Key::minimum_release_age, "0"),
    (Key::resolution, "highest"),
];

/// Settings that are maps with entries.
const MAPS: [&str; 8] = [
    Key::aliases,
    Key::allow_replaces,
    Key::overrides,
    Key::packages,
    Key::patches,
    Key::registries,
    Key::runtime,
    Key::trust,
];

/// All settings, by key: those of the workspace, else those of the user, else the defaults.
pub fn all_settings(session: &Session) -> Result<Vec<Setting>, CommandError> {
    let mut all: BTreeMap<String, Setting> = BTreeMap::new();
    let mut add = |setting: Setting| drop(all.insert(setting.key.clone(), setting));
    // Later ones take the place of earlier ones: the defaults, the user's, the workspace's, and variables.
    for (key, value) in DEFAULTS {
        add(Setting { key: key.into(), value: value.into(), from: "default".into() });
    }
    for path in [session.settings_file(true), session.settings_file(false)] {
        if let Some(text) = fs::read_text_if_there(&path)? {
            said(&path, &text)?.into_iter().for_each(&mut add);
        }
    }
    for (variable, key) in [("MU_RESOLUTION", Key::resolution), ("MU_OFFLINE", OFFLINE)] {
        if let Some(value) = session.environment.variable(variable) {
            add(Setting { key: key.into(), value: value.into(), from: variable.into() });
        }
    }
    Ok(all.into_values().collect())
}

/// The settings of one file, with an entry for each item of a map.
fn said(path: &Path, text: &str) -> Result<Vec<Setting>, SourceError> {
    let document = Document::read(path, text)?;
    let root = document.root_value();
    let mut found = Vec::new();
    if root.is_null() {
        return Ok(found);
    }
    let mut add = |key: String, span: std::ops::Range<usize>| {
        let words: Vec<&str> = text[span.clone()].split_whitespace().collect();
        let value = without_secrets(&words.join(" ")).trim_matches(['"', '\'']).to_owned();
        let from = format!("{}:{}", path.display(), document.line_of(span.start));
        found.push(Setting { key, value, from });
    };
    for (key, value) in root.entries()? {
        if !value.is_table() {
            add(key.as_str().to_owned(), value.span());
            continue;
        }
        for (inner, value) in value.entries()? {
            add(format!("{}.{}", key.as_str(), inner.as_str()), value.span());
        }
    }
    Ok(found)
}

/// One setting; of a map without an entry, all of its entries.
pub fn setting(session: &Session, key: &str) -> Result<Vec<Setting>, CommandError> {
    let all = all_settings(session)?;
    let below = format!("{key}.");
    let known: Vec<String> = all.iter().map(|setting| setting.key.clone()).collect();
    let found: Vec<Setting> = all
        .into_iter()
        .filter(|setting| setting.key == key || setting.key.starts_with(&below))
        .collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let known = known.iter().map(String::as_str);
    if let Some(error) = unknown(key) {
        return Err(error);
    }
    Err(not_set(key, known, |error| error.hint("`mu config list` shows all settings")))
}

/// The error about a key that no settings have, whatever is set; `None` for a known one.
fn unknown(key: &str) -> Option<CommandError> {
    let first = key.split('.').next().unwrap_or(key);
    if Key::KEYS.contains(&first) || first == OFFLINE {
        return None;
    }
    let error = CommandError::new(Code::NotFound, format!("there is no setting `{first}`"));
    Some(match nearest(first, Key::KEYS.iter().copied()) {
        Some(near) => {
            let meant = key.replacen(first, near, 1);
            error.hint(format!("did you mean `{meant}`?"))
        }
        None => error.hint("`mu schema workspace` lists the known keys"),
    })
}

/// What a variable says, and no file.
const OFFLINE: &str = "offline";

/// The error about a setting or a variable that is not set: with the near one that is, or else with the hint that `otherwise` adds.
fn not_set<'k>(
    name: &str,
    known: impl Iterator<Item = &'k str>,
    otherwise: impl FnOnce(CommandError) -> CommandError,
) -> CommandError {
    let error = CommandError::new(Code::NotFound, format!("`{name}` is not set"));
    match nearest(name, known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => otherwise(error),
    }
}

/// Sets a setting in the workspace's file, or in that of the user; returns the file.
pub fn set(
    session: &Session,
    key: &str,
    value: &str,
    global: bool,
) -> Result<PathBuf, CommandError> {
    let path = session.settings_file(global);
    let maps = [Key::packages, Key::registries];
    let is_map = key.split_once('.').is_some_and(|(map, _)| maps.contains(&map));
    if MAPS.contains(&key) || is_map {
        return Err(not_one_value(key, value, &path));
    }
    // The settings are relative to where they are, and a command line to where it is typed.
    let is_override = key.split_once('.').is_some_and(|(map, _)| map == Key::overrides);
    let value = &match is_override {
        true => from_file(session, value, global),
        false => value.to_owned(),
    };
    let text = fs::read_text_if_there(&path)?.unwrap_or_default();
    // What is wrong with the value says more than that it does not fit where another one is.
    let alone = |error| set_key(&path, "", key, edit::value(value)).and(Err(error));
    let text = set_key(&path, &text, key, edit::value(value)).or_else(alone).map_err(|error| {
        // The place in a file that was never written helps nobody.
        let error = CommandError::from(error);
        let Some(source) = error.in_source() else { return error };
        let message = format!("cannot set `{key}` to `{value}`: {}", source.message());
        let refused = CommandError::new(Code::Usage, message);
        if source.message().starts_with("expected a list, found text") {
            let list = format!("[{value}]");
            let command = format!("`mu config set {key} {}`", quoted_for_shell(&list));
            return refused.hint(format!("write `{list}`, such as in {command}"));
        }
        let is_unknown = source.message().starts_with("unknown key");
        // Other help with an unknown key is for those who edit the file.
        let help = source.help_text();
        match help.filter(|help| !is_unknown || help.starts_with("did you mean")) {
            Some(help) => refused.hint(help),
            None if is_unknown => refused.hint("`mu schema workspace` lists the known keys"),
            None => refused,
        }
    })?;
    if global {
        fs::create_private_folder(&session.environment.mu_home, crate::env::IN_HOME)?;
    }
    fs::write_through_links(&path, text.as_bytes())?;
    Ok(path)
}

/// The error about a setting with more than one value, and how its entries are set.
fn not_one_value(key: &str, value: &str, path: &Path) -> CommandError {
    let message = format!("`{key}` has more than one value, and cannot be set here");
    let error = CommandError::new(Code::Usage, message);
    // `PKG=PLACE` is what other tools take at this place.
    let (name, value) = value.split_once('=').unwrap_or(("PKG", "REF"));
    let entry = |name: &str, value: &str| {
        let entry = quoted_for_shell(&format!("{key}.{}", name.trim()));
        format!("mu config set {entry} {}", quoted_for_shell(value.trim()))
    };
    match key {
        Key::overrides => error.hint(format!(
            "one override is set by `{}`: the package, and the folder, reference or version to use instead",
            entry(name, value)
        )),
        Key::runtime => error.hint(format!("one fact is set by `{}`", entry("NAME", "VALUE"))),
        Key::aliases => {
            error.hint(format!("one alias is set by `{}`", entry("PREFIX", "PREFIX")))
        }
        Key::patches => error.hint("`mu patch` makes patches"),
        key if key.starts_with(Key::registries) => {
            error.hint("`mu registry add PREFIX URL` sets a registry")
        }
        _ => error.hint(format!("edit `{}`", path.display())),
    }
}

/// Takes a setting out of the workspace's file, or out of that of the user; returns the file.
pub fn take_out(session: &Session, key: &str, global: bool) -> Result<PathBuf, CommandError> {
    let path = session.settings_file(global);
    let text = fs::read_text_if_there(&path)?.unwrap_or_default();
    match unset_key(&path, &text, key)? {
        Some(text) => {
            fs::write_through_links(&path, text.as_bytes())?;
            Ok(path)
        }
        None => {
            if let Some(error) = unknown(key) {
                return Err(error);
            }
            let message = format!("`{}` does not set `{key}`", path.display());
            Err(CommandError::new(Code::NotFound, message)
                .hint("`mu config list` shows what is set, and where"))
        }
    }
}

/// Those of [`environment_variables`] with these names.
pub fn named(environment: &Environment, names: &[String]) -> Result<Vec<Setting>, CommandError> {
    let all = environment_variables(environment);
    let one = |name: &String| {
        all.iter().find(|variable| variable.key == *name).cloned().ok_or_else(|| {
            let known = all.iter().map(|variable| &*variable.key);
            not_set(name, known, |error| error.hint("`mu env` shows all that is set"))
        })
    };
    names.iter().map(one).collect()
}

/// The variables that mu reads, and their defaults. Tokens and passwords are not shown.
pub fn environment_variables(environment: &Environment) -> Vec<Setting> {
    let Environment { current, home, mu_home, mu_root, cache, .. } = environment;
    let folders = [("MU_HOME", mu_home), ("MU_CACHE_DIR", cache), ("MUROOT", mu_root)];
    let mut all: Vec<Setting> = folders
        .into_iter()
        .map(|(name, folder)| {
            let from = environment.variable(name).map_or("default", |_| "variable");
            Setting { key: name.into(), value: folder.display().to_string(), from: from.into() }
        })
        .collect();
    let root = find_root(current, home, mu_home);
    let lock = root.join(LOCK_FILE);
    for (key, path) in [("workspace", root), ("lock", lock)] {
        let value = path.display().to_string();
        all.push(Setting { key: key.into(), value, from: "this folder".into() });
    }
    let names = [
        "MU_OFFLINE",
        "MU_RESOLUTION",
        "MU_STORE_READONLY",
        "MU_LOG",
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NO_COLOR",
        "FORCE_COLOR",
        "CLICOLOR_FORCE",
        "GIT_SSH_COMMAND",
    ];
    let is_named = |name: &str| names.contains(&name) || name.starts_with(TOKEN_PREFIX);
    for (name, value) in environment.variables.iter() {
        if value.is_empty() || !is_named(name) {
            continue;
        }
        // Proxies are URLs, which may have passwords.
        let value = match name.to_ascii_lowercase() {
            _ if name.starts_with(TOKEN_PREFIX) => "****".to_owned(),
            lower if lower.ends_with("_proxy") && lower != "no_proxy" => SafeUrl::parse(value)
                .map_or_else(|_| without_secrets(value).into_owned(), |url| url.to_string()),
            _ => value.clone(),
        };
        all.push(Setting { key: name.clone(), value, from: "variable".into() });
    }
    all
}

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
        let prefix = prefix.to_owned();
        session.events.warning(&Warning::RegistryWithoutFolder { prefix, folder });
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
