//! Command lines that a user can paste.

use crate::ops::Session;
use crate::ops::session::error::quoted;

/// The command that writes a requirement into a manifest.
pub(super) const ADD: &str = "mu add";

/// A command line.
pub(super) struct Command {
    /// The program, the command, and everything before the references.
    pub(super) front: String,
    /// The references that it is about.
    pub(super) references: Vec<String>,
    /// The flags after them.
    pub(super) back: String,
}

impl Command {
    pub(super) fn new(front: String, reference: String) -> Self {
        Self { front, references: vec![reference], back: String::new() }
    }

    /// Merges a command into the one that does the same, if there is one.
    pub(super) fn join(commands: &mut Vec<Self>, command: Self) {
        let same = |known: &&mut Self| known.front == command.front && known.back == command.back;
        match commands.iter_mut().find(same) {
            Some(known) => known.references.extend(command.references),
            None => commands.push(command),
        }
    }

    /// The command line, with the flags of the failed command, except some. `is_any_age` says whether it
    /// allows young versions, and `edits_more` whether other commands that edit manifests follow. In that
    /// case, a command that edits a manifest does nothing else: before the other manifests are edited, there
    /// may be no versions to choose.
    pub(super) fn print(
        &self,
        session: &Session,
        without: &str,
        is_any_age: bool,
        edits_more: bool,
    ) -> String {
        let without = if self.front.contains(" -C ") { "-C" } else { without };
        let (age, no_age) =
            if is_any_age { (" --exclude-newer 0", "--exclude-newer") } else { ("", "") };
        let references: String =
            self.references.iter().map(|text| format!(" {}", quoted(text))).collect();
        let repeated = repeated(session, &[without, no_age]);
        let only_edits = if edits_more && self.front.starts_with(ADD) { " --frozen" } else { "" };
        format!("{}{references}{}{only_edits}{age}{repeated}", self.front, self.back)
    }
}

/// The flags that commands to run next need, without some.
pub(super) fn repeated(session: &Session, without: &[&str]) -> String {
    let flags = session.options.repeated.iter().filter(|(flag, _)| !without.contains(flag));
    let text = flags.map(|(flag, value)| match value {
        Some(value) => format!(" {flag} {}", quoted(value)),
        None => format!(" {flag}"),
    });
    text.collect()
}

/// What narrows a requirement in addition to its version, as flags.
pub(super) fn narrowing(
    channel: Option<&str>,
    app_version: Option<&str>,
    prerelease: bool,
) -> String {
    let mut flags = String::new();
    for (flag, value) in [("--channel", channel), ("--app-version", app_version)] {
        if let Some(value) = value {
            flags.push_str(&format!(" {flag} {}", quoted(value)));
        }
    }
    if prerelease {
        flags.push_str(" --pre");
    }
    flags
}
