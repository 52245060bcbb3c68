//! The programs that mu runs for the user: `git`, and `ssh` or its replacement.
//!
//! They get the environment that the caller passed in, and nothing of this process's own. Programs that a
//! repository names or brings are never run: `git` runs in mu's own folder, where there is no repository whose
//! configuration it would use, and nothing is found in a folder of the workspace.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use git2::Config;
use mu_provider::{Program, Programs, fs};

use crate::stand_in::Place;
use crate::words::printable_end;

/// Variables about one repository, which a hook has, for example; mu's programs run for other repositories.
/// (`git rev-parse --local-env-vars` lists them. Settings in the environment are kept, but not the file that `git config` alone would
/// read.)
const OF_ONE_REPOSITORY: [&str; 14] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
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

/// Creates commands with the right environment.
#[derive(Debug, Clone)]
pub(crate) struct GitPrograms {
    programs: Programs,
    /// Where `git` runs; created when it first runs.
    folder: PathBuf,
    /// Where the user works.
    current: Option<PathBuf>,
    /// The files of the user's configuration that count only there, once Git was asked.
    included: Arc<OnceLock<BTreeSet<String>>>,
}

impl GitPrograms {
    /// Creates commands of these programs. They run in `folder`, which is mu's own.
    pub(crate) fn new(programs: Programs, folder: &Path) -> Self {
        Self { programs, folder: folder.to_owned(), current: None, included: Arc::default() }
    }

    /// These programs for a user who works in `current`.
    pub(crate) fn for_work_in(self, current: Option<PathBuf>) -> Self {
        Self { current, ..self }
    }

    /// Has `git` use from now on what the configuration of the user and the system includes for the repository that the user works in,
    /// as with `includeIf "gitdir:~/work/"`. Returns whether there is such a file.
    pub(crate) fn include_by_conditions(&self) -> bool {
        let included = self.included.get_or_init(|| {
            let current = self.current.as_ref();
            let place = current.and_then(|current| Place::around(current).ok().flatten());
            let Some(place) = place.filter(Place::has_plain_configuration) else {
                return BTreeSet::new();
            };
            let elsewhere = self.configuration_files(None);
            let mut files = self.configuration_files(Some(&place));
            files.retain(|file| !elsewhere.contains(file));
            files
        });
        !included.is_empty()
    }

    /// The files that the configuration of the user and the system consists of, in the repository at `place` or in none. Nothing that its
    /// own configuration says counts.
    fn configuration_files(&self, place: Option<&Place>) -> BTreeSet<String> {
        let files = ["--system", "--global"].map(|scope| {
            let Ok(mut command) = self.git() else { return Vec::new() };
            if let Some(place) = place {
                command.current_dir(&place.root).env("GIT_DIR", &place.own);
            }
            command.args(["config", scope, "--includes", "--null", "--show-origin", "--name-only"]);
            command.arg("--list").stdin(Stdio::null());
            let output = command.output().map(|output| output.stdout).unwrap_or_default();
            let text = String::from_utf8_lossy(&output);
            let origins = text.split('\0').filter_map(|part| part.strip_prefix("file:"));
            origins.map(str::to_owned).collect()
        });
        files.into_iter().flatten().collect()
    }

    /// Whether Git has settings for every repository that libgit2 does not find: in variables, or in files that these name. Files without
    /// text, such as `/dev/null`, replace only files that are there.
    pub(crate) fn has_other_settings(&self) -> bool {
        let is_stated = |name: &&str| self.variable(name).is_some_and(|value| !value.is_empty());
        let has_text =
            |file: &str| fs::metadata(Path::new(file)).is_ok_and(|found| found.len() > 0);
        let is_replaced = |name: &str, usual: &[fn() -> Result<PathBuf, git2::Error>]| {
            let is_there = || usual.iter().any(|find| find().is_ok());
            self.variable(name).is_some_and(|file| has_text(file) || is_there())
        };
        ["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"].iter().any(is_stated)
            || is_replaced("GIT_CONFIG_GLOBAL", &[Config::find_global, Config::find_xdg])
            || is_replaced("GIT_CONFIG_SYSTEM", &[Config::find_system])
            || self.is_on("GIT_CONFIG_NOSYSTEM") && Config::find_system().is_ok()
    }

    /// Whether a variable has one of Git's words for yes.
    fn is_on(&self, name: &str) -> bool {
        let words = ["true", "yes", "on", "1"];
        self.variable(name).is_some_and(|word| words.contains(&&*word.to_ascii_lowercase()))
    }

    /// All settings that Git has for the repository at `place`, as `git config --null --list` prints them; `None` if there is no `git`, or
    /// the files could make it wait.
    ///
    /// # Errors
    ///
    /// When it cannot read them: with its words.
    pub(crate) fn configuration(&self, place: &Place) -> Result<Option<String>, String> {
        let Ok(mut command) = self.git() else { return Ok(None) };
        if !place.has_plain_configuration() {
            return Ok(None);
        }
        command.current_dir(&place.root).env("GIT_DIR", &place.own);
        command.args(["config", "--null", "--list"]).stdin(Stdio::null());
        let output = command.output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned())),
            false => Err(format!("`git config` says: {}", printable_end(&output.stderr))),
        }
    }

    /// A variable of the caller's environment.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.programs.variable(name)
    }

    /// `git`, which uses the configuration of the user and the system, but not that of a repository around
    /// it.
    ///
    /// The current folder may be somebody else's checkout, whose configuration names programs to run. So may
    /// a folder below it that only looks like a bare repository.
    ///
    /// # Errors
    ///
    /// When there is no `git`.
    pub(crate) fn git(&self) -> io::Result<Command> {
        let mut command = self.command(&self.find("git")?);
        // Git must use only the repositories that a command names, and no remote that is a program.
        command.args(["-c", "safe.bareRepository=explicit", "-c", "protocol.ext.allow=never"]);
        // Git must not fetch missing objects from where a repository's configuration says.
        command.env("GIT_NO_LAZY_FETCH", "1");
        for file in self.included.get().into_iter().flatten() {
            command.args(["-c", &format!("include.path={file}")]);
        }
        if let Some((_, above)) = self.own_folder() {
            // The cache may be inside a checkout, so Git must not look for repositories in the folders above.
            command.env("GIT_CEILING_DIRECTORIES", above);
        }
        Ok(command)
    }

    /// The program with this name.
    ///
    /// # Errors
    ///
    /// When there is none, or only one that the workspace brings.
    pub(crate) fn find(&self, name: &str) -> io::Result<Program> {
        self.programs.find(name).ok_or_else(|| {
            let text = match self.programs.passed_over(name) {
                Some(path) => format!(
                    "`{}` is not run, because it is in a folder of `PATH` that is relative or in the workspace",
                    path.display()
                ),
                None => format!("no folder of `PATH` has a program `{name}`"),
            };
            io::Error::new(io::ErrorKind::NotFound, text)
        })
    }

    /// The folder that programs run in and the one above it, if they exist and Git understands the path.
    fn own_folder(&self) -> Option<(&Path, &Path)> {
        let above = self.folder.parent().filter(|above| above.is_absolute())?;
        // Ceilings are a list of paths, whose separator cannot be escaped.
        let is_one = std::env::split_paths(above).count() == 1;
        let is_there = fs::create_folder(&self.folder).is_ok();
        (is_one && is_there).then_some((&*self.folder, above))
    }

    /// A command that asks no questions, speaks English, and has no terminal.
    pub(crate) fn command(&self, program: &Program) -> Command {
        let is_general =
            |(name, _): &(&String, &String)| !OF_ONE_REPOSITORY.contains(&name.as_str());
        let mut command = program.command(self.programs.variables().iter().filter(is_general));
        if let Some((folder, _)) = self.own_folder() {
            command.current_dir(folder);
        }
        command
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
