//! Whether a build may run: the settings must name the package, and the user must have agreed to exactly this content and command.
//!
//! The answers are in `~/.mu/trust/builds.json`, where no checkout can write. A new version has other content, so it is asked about again:
//! whoever takes over a package cannot have a program run in silence.

use std::collections::BTreeMap;
use std::path::Path;

use mu_provider::Digest;

use crate::fs;
use crate::lock::LockedPackage;
use crate::manifest::Build;
use crate::manifest::source::printable;
use crate::ops::{Code, CommandError, Session};
use crate::workspace::{CONFIG_FILE, Registry, Untrusted};

/// The folder in `~/.mu`, and the file in it.
const FOLDER: &str = "trust";
const FILE: &str = "builds.json";

/// Which commands the user has agreed to, by the digest of the package's content.
type Agreed = BTreeMap<String, Vec<String>>;

/// Whether the settings name a package as one whose build may run, and it comes from where the user expects it.
pub(super) fn is_named(session: &Session, package: &LockedPackage) -> bool {
    session.workspace.settings.untrusted(&package.id).is_none()
}

/// The error about builds that the settings do not name.
pub(super) fn not_named(session: &Session, packages: &[&LockedPackage]) -> CommandError {
    let names: Vec<String> =
        packages.iter().map(|one| format!("`{}` {}", one.id, one.version)).collect();
    let message = match names.as_slice() {
        [one] => format!("the build of {one} is not trusted, so it does not run"),
        several => {
            format!("these builds are not trusted, so they do not run: {}", several.join(", "))
        }
    };
    let mut error = CommandError::new(Code::Untrusted, message);
    let mut unnamed = Vec::new();
    for one in packages {
        match session.workspace.settings.untrusted(&one.id) {
            None | Some(Untrusted::Unnamed) => unnamed.push(one.id.as_str()),
            Some(Untrusted::Led(Registry { prefix, url, .. })) => {
                let place = url.as_ref().map(ToString::to_string).unwrap_or_default();
                error = error.hint(format!(
                    "you trust `{}`, but this workspace leads `{prefix}` to `{place}`: if that is right, lead it there in `~/.mu/{CONFIG_FILE}`, too",
                    one.id
                ));
            }
            Some(Untrusted::Overridden) => {
                error = error.hint(format!(
                    "you trust `{0}`, but `overrides` of this workspace uses something else: if that is right, override `{0}` in `~/.mu/{CONFIG_FILE}`, too",
                    one.id
                ));
            }
        }
    }
    if !unnamed.is_empty() {
        error = error.hint(format!(
            "if you trust their authors, write into `~/.mu/{CONFIG_FILE}`: trust: {{build: [{}]}}",
            unnamed.join(", ")
        ));
    }
    error
}

/// Asks for consent, unless it was given for this content and command before.
///
/// # Errors
///
/// When it is not given.
pub(super) fn ask(
    session: &Session,
    package: &LockedPackage,
    digest: &Digest,
    build: &Build,
) -> Result<(), CommandError> {
    let path = session.environment.mu_home.join(FOLDER).join(FILE);
    let mut agreed: Agreed = match fs::read_text_if_there(&path)? {
        Some(text) => serde_json::from_str(&text).unwrap_or_default(),
        None => Agreed::new(),
    };
    let key = digest.to_string();
    if agreed.get(&key) == Some(&build.command) {
        return Ok(());
    }
    let LockedPackage { id, version, .. } = package;
    let command = shown(&build.command);
    let variables = match build.env.as_slice() {
        [] => String::new(),
        names => format!("\n  with your variables {}", names.join(", ")),
    };
    let question = format!(
        "the build of `{id}` {version} ({key}) runs:\n  {command}{variables}\n\
         It gets a copy of the package, and reaches neither the network nor your other files.\nRun it?"
    );
    if !session.options.yes && !session.events.confirm(&question) {
        let message =
            format!("nobody has agreed to the build of `{id}` {version}, which runs `{command}`");
        return Err(CommandError::new(Code::Untrusted, message)
            .hint("run `mu build` on a terminal to be asked, or with `--yes` to agree")
            .hint(format!("mu remembers the answer for exactly this content, in `{}`", path.display()))
            .with_details(serde_json::json!({ "id": id.to_string(), "version": version, "digest": key, "command": build.command })));
    }
    agreed.insert(key, build.command.clone());
    if let Err(error) = keep(session, &path, agreed) {
        session
            .events
            .warning(&format!("mu will ask again, because it cannot keep the answer: {error}"));
    }
    Ok(())
}

/// Adds to the answers in the file.
fn keep(session: &Session, path: &Path, new: Agreed) -> Result<(), fs::FileError> {
    fs::create_private_folder(&session.environment.mu_home, crate::env::IN_HOME)?;
    fs::create_private_folder(&session.environment.mu_home.join(FOLDER), &[FILE, "folders.json"])?;
    // Another process may have added to it meanwhile.
    let text = fs::read_text_if_there(path)?.unwrap_or_default();
    let mut agreed: Agreed = serde_json::from_str(&text).unwrap_or_default();
    agreed.extend(new);
    let text = serde_json::to_string_pretty(&agreed).expect("texts always serialise");
    fs::write_private(path, text.as_bytes())
}

/// A command as people read it: foreign, so escaped.
pub(super) fn shown(command: &[String]) -> String {
    let word = |word: &String| {
        let word = printable(word);
        let is_plain = |c: char| c.is_alphanumeric() || "/.-_:@+=,%".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.into_owned(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    };
    command.iter().map(word).collect::<Vec<_>>().join(" ")
}
