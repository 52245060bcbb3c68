//! Whether a build may run: the settings must name the package, and the user must have agreed to all that would happen.
//!
//! The answers are in `~/.mu/trust/builds.json`, where no checkout can write. If anything that was agreed to changes, mu asks again, and says what it
//! is: whoever takes over a package or one that it depends on, or leads it to another place, cannot have a program run in silence.

use std::collections::BTreeMap;
use std::path::Path;

use mu_provider::{Digest, InnerPath};
use serde::{Deserialize, Serialize};

use crate::fs;
use crate::lock::LockedPackage;
use crate::manifest::BuildRecipe;
use crate::manifest::source::printable;
use crate::ops::apply::fetch::source_now;
use crate::ops::session::edits::ChangedManifests;
use crate::ops::session::shown::lines;
use crate::ops::{Code, CommandError, Session, Warning};
use crate::workspace::{CONFIG_FILE, ConfiguredRegistry, Untrusted};

/// The folder in `~/.mu`, and the file in it.
const FOLDER: &str = "trust";
const FILE: &str = "builds.json";

/// All that somebody agrees to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agreement {
    id: String,
    version: String,
    /// The digest of its content.
    digest: String,
    /// Where it comes from, without secrets.
    source: String,
    command: Vec<String>,
    /// The names of the variables that it gets.
    variables: Vec<String>,
    outputs: Vec<InnerPath>,
    confined: bool,
    /// The packages that it sees, by their ids.
    dependencies: BTreeMap<String, Seen>,
}

/// A package that a build sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    version: String,
    digest: String,
}

impl Agreement {
    /// What the build of a package needs; `dependencies` are what it sees.
    pub(super) fn new(
        session: &Session,
        package: &LockedPackage,
        digest: &Digest,
        build: &BuildRecipe,
        confined: bool,
        dependencies: &[(&LockedPackage, Digest)],
    ) -> Self {
        let seen = |(package, digest): &(&LockedPackage, Digest)| {
            let seen = Seen { version: package.version.clone(), digest: digest.to_string() };
            (package.id.to_string(), seen)
        };
        Self {
            id: package.id.to_string(),
            version: package.version.clone(),
            digest: digest.to_string(),
            source: source(session, package),
            command: build.command.clone(),
            variables: build.env.clone(),
            outputs: build.outputs.clone(),
            confined,
            dependencies: dependencies.iter().map(seen).collect(),
        }
    }

    /// What happens, for a person. What is foreign in it is escaped.
    fn shown(&self) -> String {
        let Self { id, version, digest, source, .. } = self;
        let command = escaped_command(&self.command);
        let mut text =
            format!("the build of `{id}` {version} ({digest}) from `{source}` runs:\n  {command}");
        if !self.variables.is_empty() {
            text.push_str(&format!("\n  with your variables {}", self.variables.join(", ")));
        }
        if !self.dependencies.is_empty() {
            let one = |(id, seen): (&String, &Seen)| format!("{id} {}", seen.version);
            let all: Vec<String> = self.dependencies.iter().map(one).collect();
            text.push_str(&format!("\n  it can read and run {}", all.join(", ")));
        }
        text.push_str(match self.confined {
            true => "\nIt gets a copy of the package, and reaches neither the network nor your other files.",
            false => {
                "\nIt is not confined: it runs with all of your rights, can read, change and send away every file of yours, and reaches the network."
            }
        });
        text
    }

    /// Its variables whose names look like those of secrets.
    fn secrets(&self) -> Vec<&str> {
        let is_secret = |name: &&String| {
            let name = name.to_ascii_uppercase();
            ["SECRET", "TOKEN", "KEY", "PASSWORD", "PASSWD", "CREDENTIAL"]
                .iter()
                .any(|word| name.contains(word))
        };
        self.variables.iter().filter(is_secret).map(String::as_str).collect()
    }

    /// What is different from an earlier agreement.
    fn differences(&self, before: &Self) -> Vec<String> {
        let mut found = Vec::new();
        // Another version has other content anyway.
        if self.version != before.version {
            found.push(format!("it is now {}, and was {}", self.version, before.version));
        } else if self.digest != before.digest {
            found.push("its content has changed".to_owned());
        }
        if self.source != before.source {
            found.push(format!(
                "it now comes from `{}`, and came from `{}`",
                self.source, before.source
            ));
        }
        if self.command != before.command {
            found.push(format!("it ran `{}`", escaped_command(&before.command)));
        }
        for name in self.variables.iter().filter(|name| !before.variables.contains(name)) {
            found.push(format!("it now gets the variable {name}"));
        }
        if before.variables.iter().any(|name| !self.variables.contains(name)) {
            found.push("it gets fewer variables".to_owned());
        }
        if self.outputs != before.outputs {
            let outputs: Vec<String> = self.outputs.iter().map(InnerPath::to_string).collect();
            found.push(format!("it now makes {}", escaped_command(&outputs)));
        }
        match (self.confined, before.confined) {
            (false, true) => found.push("it was confined, and is not now".to_owned()),
            (true, false) => found.push("it was not confined, and is now".to_owned()),
            _ => {}
        }
        for (id, seen) in &self.dependencies {
            found.extend(match before.dependencies.get(id) {
                Some(earlier) if earlier == seen => None,
                Some(earlier) if earlier.version == seen.version => {
                    Some(format!("the content of the dependency `{id}` has changed"))
                }
                Some(earlier) => Some(format!(
                    "the dependency `{id}` is now {}, and was {}",
                    seen.version, earlier.version
                )),
                None => Some(format!("the dependency `{id}` {} is new", seen.version)),
            });
        }
        for id in before.dependencies.keys().filter(|id| !self.dependencies.contains_key(*id)) {
            found.push(format!("the dependency `{id}` is gone"));
        }
        found
    }
}

/// Where a package comes from now, without secrets.
fn source(session: &Session, package: &LockedPackage) -> String {
    let now = source_now(session, &ChangedManifests::default(), package);
    let mut source = now.unwrap_or_else(|| package.source.clone());
    // The same words in another checkout mean another place.
    if !source.place.contains("://") && !source.is_pack() {
        let place = crate::env::absolute(session.lock_folder(), source.place.as_ref());
        source.place = place.display().to_string();
    }
    source.to_string()
}

/// Whether the settings name a package as one whose build may run, and it comes from where the user expects it.
pub(super) fn is_build_permitted(session: &Session, package: &LockedPackage) -> bool {
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
            Some(Untrusted::Led(ConfiguredRegistry { prefix, url, .. })) => {
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

/// Asks for consent, unless it was given for all of this before.
pub(super) fn ask(session: &Session, wanted: Agreement) -> Result<(), CommandError> {
    let path = session.environment.mu_home.join(FOLDER).join(FILE);
    // One file for all workspaces: what is agreed to is the content, wherever it is used.
    let known = read(&path)?;
    if known.contains(&wanted) {
        return Ok(());
    }
    let variables: Vec<String> = wanted.secrets().into_iter().map(str::to_owned).collect();
    if !variables.is_empty() {
        session.events.warning(&Warning::SecretsInBuild { package: wanted.id.clone(), variables });
    }
    // Of what was agreed to before, the most similar, and the latest of these.
    let earlier = known.iter().rev().filter(|known| known.id == wanted.id);
    let differences = earlier.map(|earlier| wanted.differences(earlier)).min_by_key(Vec::len);
    let differences = differences.unwrap_or_default();
    let mut text = wanted.shown();
    if !differences.is_empty() {
        text.push_str(&format!("\nYou agreed to it before, but{}", lines(&differences, 10)));
    }
    if session.options.yes {
        session.events.note(&text);
    } else if !session.events.confirm(&format!("{text}\nRun it?")) {
        let Agreement { id, version, command, .. } = &wanted;
        let command = escaped_command(command);
        let message = match wanted.confined {
            true => format!(
                "nobody has agreed to the build of `{id}` {version}, which runs `{command}`"
            ),
            false => format!(
                "nobody has agreed to the build of `{id}` {version}, which runs `{command}` with all of your rights"
            ),
        };
        let message = match differences.as_slice() {
            [] => message,
            some => format!("{message}; you agreed to it before, but{}", lines(some, 10)),
        };
        return Err(CommandError::new(Code::Untrusted, message)
            .hint("run `mu build` on a terminal to be asked, or with `--yes` to agree")
            .hint(format!("mu remembers the answer for exactly this, in `{}`", path.display()))
            .with_details(serde_json::json!({ "id": id, "version": version, "digest": wanted.digest, "command": wanted.command, "differences": differences })));
    }
    if let Err(error) = keep(session, &path, wanted) {
        session.events.warning(&Warning::AnswerNotKept { why: error.to_string() });
    }
    Ok(())
}

/// The answers in the file. One that mu cannot read says nothing.
fn read(path: &Path) -> Result<Vec<Agreement>, fs::FileError> {
    let text = fs::read_text_if_there(path)?.unwrap_or_default();
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

/// Adds to the answers in the file.
fn keep(session: &Session, path: &Path, new: Agreement) -> Result<(), fs::FileError> {
    fs::create_private_folder(&session.environment.mu_home, crate::env::IN_HOME)?;
    fs::create_private_folder(&session.environment.mu_home.join(FOLDER), &[FILE, "folders.json"])?;
    // Another process may have added to it meanwhile.
    let mut agreed = read(path)?;
    agreed.push(new);
    let text = serde_json::to_string_pretty(&agreed).expect("texts always serialise");
    fs::write_private(path, text.as_bytes())
}

/// A command as people read it: foreign, so escaped.
pub(super) fn escaped_command(command: &[String]) -> String {
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
