//! The programs that are run for the user: `git`, `ssh` and what stands in for it.
//!
//! They get the environment that the caller handed in, and nothing of this process's own. Programs
//! that a repository names are never run.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// Variables that speak of one repository, such as a hook has; the programs run for other ones.
/// (`git rev-parse --local-env-vars` names them. Settings in the environment are kept.)
const OF_ONE_REPOSITORY: [&str; 13] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_INTERNAL_SUPER_PREFIX",
];

/// Makes commands with the right environment.
#[derive(Clone)]
pub(crate) struct Programs {
    variables: BTreeMap<String, String>,
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The variables may hold tokens.
        formatter.debug_struct("Programs").finish_non_exhaustive()
    }
}

impl Programs {
    /// Programs that see these variables.
    pub(crate) fn new(variables: &BTreeMap<String, String>) -> Self {
        let mut variables = variables.clone();
        variables.retain(|name, _| !OF_ONE_REPOSITORY.contains(&name.as_str()));
        Self { variables }
    }

    /// A variable of the caller's environment.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// A command that asks nobody anything, speaks English, and has no terminal.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(&self.variables)
            .env("LC_ALL", "C")
            .env_remove("LANGUAGE")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("SSH_ASKPASS_REQUIRE", "never")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}
