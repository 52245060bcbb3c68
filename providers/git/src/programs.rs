//! The programs that are run for the user: `git`, `ssh` and what stands in for it.
//!
//! They get the environment that the caller handed in, and nothing of this process's own. Programs
//! that a repository names are never run: `git` runs in mu's own folder, where it finds no repository
//! whose configuration it would obey.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mu_provider::fs;

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
    /// Where `git` runs; made when it first does.
    folder: PathBuf,
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The variables may hold tokens.
        formatter.debug_struct("Programs").finish_non_exhaustive()
    }
}

impl Programs {
    /// Programs that see these variables. `git` runs in `folder`, which is mu's own.
    pub(crate) fn new(variables: &BTreeMap<String, String>, folder: &Path) -> Self {
        let mut variables = variables.clone();
        variables.retain(|name, _| !OF_ONE_REPOSITORY.contains(&name.as_str()));
        Self { variables, folder: folder.to_owned() }
    }

    /// A variable of the caller's environment.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// `git`, which obeys the configuration of the user and of the system, and none of a repository around it.
    ///
    /// The current folder may be a checkout of somebody else, whose configuration names programs to run. So may
    /// a folder below one that only looks like a bare repository.
    pub(crate) fn git(&self) -> Command {
        let mut command = self.command("git");
        // Repositories are only those that a command names.
        command.args(["-c", "safe.bareRepository=explicit"]);
        // What a repository lacks is not fetched from where its configuration says.
        command.env("GIT_NO_LAZY_FETCH", "1");
        if let Some((folder, above)) = self.own_folder() {
            // The cache may lie in a checkout: repositories are not looked for in the folders above.
            command.current_dir(folder).env("GIT_CEILING_DIRECTORIES", above);
        } else {
            command.current_dir(self.folder.ancestors().last().unwrap_or(Path::new("/")));
        }
        command
    }

    /// The folder that `git` runs in and the one above it, if it is there and Git understands its path.
    fn own_folder(&self) -> Option<(&Path, &Path)> {
        let above = self.folder.parent().filter(|above| above.is_absolute())?;
        // Ceilings are a list of paths, whose separator cannot be escaped.
        let is_one = std::env::split_paths(above).count() == 1;
        let is_there = fs::create_folder(&self.folder).is_ok();
        (is_one && is_there).then_some((&*self.folder, above))
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
