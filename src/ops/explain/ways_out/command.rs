//! Command lines that a user can paste.

use crate::ops::Session;
use crate::ops::requirements::steps::CommandChange;
use crate::ops::session::error::quoted_for_shell;

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
    /// What each changes in files that mu can try it on; none if it does something else.
    pub(super) steps: Option<Vec<CommandChange>>,
}

impl Command {
    pub(super) fn new(front: String, reference: String) -> Self {
        Self { front, references: vec![reference], back: String::new(), steps: None }
    }

    /// This command, which changes this in a file.
    pub(super) fn with_step(self, step: CommandChange) -> Self {
        Self { steps: Some(vec![step]), ..self }
    }

    /// Merges a command into the one that does the same, if there is one. What it says already is not said again.
    pub(super) fn join(commands: &mut Vec<Self>, command: Self) {
        // `mu add 'a#^2'` and `mu add 'b#^3'` become `mu add 'a#^2' 'b#^3'`. If one of them cannot be tried, neither
        // can both.
        let same = |known: &&mut Self| known.front == command.front && known.back == command.back;
        let Some(known) = commands.iter_mut().find(same) else {
            commands.push(command);
            return;
        };
        known.steps = known.steps.take().zip(command.steps).map(|(mut steps, more)| {
            steps.extend(more);
            steps
        });
        let new = command.references.into_iter();
        let new: Vec<String> = new.filter(|text| !known.references.contains(text)).collect();
        known.references.extend(new);
    }

    /// Whether it names a package without the version, which it is to find.
    pub(super) fn has_open(&self) -> bool {
        self.front.starts_with(ADD) && self.references.iter().any(|text| !text.contains('#'))
    }

    /// What all commands change; none if one of them does something else.
    pub(super) fn all_steps(commands: &[Self]) -> Option<Vec<CommandChange>> {
        let steps = commands.iter().map(|command| command.steps.clone());
        Some(steps.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// The command line, with the flags of the failed command, except some. `is_any_age` says whether it
    /// allows young versions, and `edits_more` whether other commands that edit manifests follow. In that
    /// case, a command that edits a manifest does nothing else: before the other manifests are edited, there
    /// may be no versions to choose.
    pub(super) fn command_text(
        &self,
        session: &Session,
        without: &str,
        is_any_age: bool,
        edits_more: bool,
    ) -> String {
        // A flag that the command has by itself is not given a second time.
        let without = if self.front.contains(" -C ") { "-C" } else { without };
        let (age, no_age) =
            if is_any_age { (" --exclude-newer 0", "--exclude-newer") } else { ("", "") };
        let references: String =
            self.references.iter().map(|text| format!(" {}", quoted_for_shell(text))).collect();
        let repeated = repeated_flags(session, &[without, no_age]);
        let only_edits = if edits_more && self.front.starts_with(ADD) { " --frozen" } else { "" };
        format!("{}{references}{}{only_edits}{age}{repeated}", self.front, self.back)
    }
}

/// The flags that commands to run next need, without some.
pub(super) fn repeated_flags(session: &Session, without: &[&str]) -> String {
    let flags = session.options.repeated.iter().filter(|(flag, _)| !without.contains(flag));
    let text = flags.map(|(flag, value)| match value {
        Some(value) => format!(" {flag} {}", quoted_for_shell(value)),
        None => format!(" {flag}"),
    });
    text.collect()
}

/// What narrows a requirement in addition to its version, as flags.
pub(super) fn narrowing_flags(
    channel: Option<&str>,
    app_version: Option<&str>,
    prerelease: bool,
) -> String {
    let mut flags = String::new();
    for (flag, value) in [("--channel", channel), ("--app-version", app_version)] {
        if let Some(value) = value {
            flags.push_str(&format!(" {flag} {}", quoted_for_shell(value)));
        }
    }
    if prerelease {
        flags.push_str(" --pre");
    }
    flags
}
