//! The programs of this machine that mu runs: where it looks for them, and how they start.
//!
//! Nothing that a checkout brings is run because it has a name that mu looks for. So folders of `PATH` that are
//! relative, empty or inside of the workspace and its packs do not count, neither for mu nor for what it starts; and
//! no program starts in a folder of the checkout. This is the only file that starts processes, apart from builds:
//! these are meant to run what a package brings, confined. It does not know which programs there are, or what they do.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use crate::fs;

/// The variable that names the folders of programs.
const PATH: &str = "PATH";

/// Where programs are looked for, and the environment of those that get it whole.
#[derive(Clone, Default)]
pub struct Programs(Arc<Given>);

/// Finds the folders whose programs are never run.
type Refused = Box<dyn Fn() -> Vec<PathBuf> + Send + Sync>;

/// What is looked at once a program is needed: most runs need none.
#[derive(Default)]
struct Given {
    variables: Arc<BTreeMap<String, String>>,
    never: Option<Refused>,
    looked_at: OnceLock<LookedAt>,
}

struct LookedAt {
    folders: Vec<PathBuf>,
    /// The folders of `PATH` that do not count.
    refused: Vec<PathBuf>,
    /// The environment, in which `PATH` has only the folders that count.
    variables: BTreeMap<String, String>,
}

// The variables may hold tokens.
crate::debug_fields!(Programs {});

/// A program outside of the workspace, by its absolute path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(PathBuf);

impl Programs {
    /// The programs in the folders of `PATH` in these variables, without those inside of one of the folders that `never` finds
    /// once a program is needed: the workspace and its packs.
    pub fn new(
        variables: &Arc<BTreeMap<String, String>>,
        never: impl Fn() -> Vec<PathBuf> + Send + Sync + 'static,
    ) -> Self {
        let (variables, never) = (Arc::clone(variables), Some(Box::new(never) as Refused));
        Self(Arc::new(Given { variables, never, looked_at: OnceLock::new() }))
    }

    fn looked_at(&self) -> &LookedAt {
        self.0.looked_at.get_or_init(|| {
            let never = self.0.never.as_ref().map(|never| never()).unwrap_or_default();
            LookedAt::new(&self.0.variables, &never)
        })
    }

    /// The program with this name, in the first folder that has one.
    pub fn find(&self, name: &str) -> Option<Program> {
        self.folders().iter().find_map(|folder| Program::named(folder, name))
    }

    /// The program with this name that is not run, because of the folder of `PATH` that it is in; it may be relative.
    pub fn passed_over(&self, name: &str) -> Option<PathBuf> {
        let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        let mut files = self.looked_at().refused.iter().map(|folder| folder.join(&file));
        files.find(|file| is_program(file))
    }

    /// The folders of `PATH` that count.
    pub fn folders(&self) -> &[PathBuf] {
        &self.looked_at().folders
    }

    /// The environment, in which `PATH` has only the folders that count.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.looked_at().variables
    }

    /// A variable of the environment that is not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let variables = if name == PATH { self.variables() } else { &*self.0.variables };
        variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

impl LookedAt {
    fn new(variables: &BTreeMap<String, String>, never: &[PathBuf]) -> Self {
        let real = |folder: &Path| fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let never: Vec<PathBuf> =
            never.iter().flat_map(|folder| [folder.clone(), real(folder)]).collect();
        let counts = |folder: &PathBuf| {
            let real = real(folder);
            let is_in = |never: &PathBuf| folder.starts_with(never) || real.starts_with(never);
            folder.is_absolute() && !never.iter().any(is_in)
        };
        let path = variables.get(PATH).map(String::as_str).unwrap_or_default();
        let (folders, refused): (Vec<PathBuf>, Vec<PathBuf>) =
            std::env::split_paths(path).partition(counts);
        let mut variables = variables.clone();
        variables.remove(PATH);
        // An empty list would mean the folder that a program runs in.
        let kept = std::env::join_paths(&folders).ok().and_then(|path| path.into_string().ok());
        if let Some(path) = kept.filter(|path| !path.is_empty()) {
            variables.insert(PATH.to_owned(), path);
        }
        Self { folders, refused, variables }
    }
}

impl Program {
    /// The program that the user's own settings name by its absolute path, wherever it is.
    pub fn at(path: &Path) -> Option<Self> {
        path.is_absolute().then(|| Self(path.to_owned()))
    }

    /// The program with this name in one folder.
    pub fn named(folder: &Path, name: &str) -> Option<Self> {
        let is_name = !name.is_empty() && !name.contains(std::path::is_separator);
        let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        (is_name && is_program(&path)).then_some(()).and_then(|()| Self::at(&path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A command that runs it with only these variables. It runs at the top of the file system, unless its caller has a
    /// folder of mu's own for it.
    #[expect(clippy::disallowed_methods, reason = "is the one place that starts programs")]
    pub fn command<Name: AsRef<OsStr>, Value: AsRef<OsStr>>(
        &self,
        variables: impl IntoIterator<Item = (Name, Value)>,
    ) -> Command {
        let mut command = Command::new(&self.0);
        command.env_clear().envs(variables);
        command.current_dir(self.0.ancestors().last().unwrap_or(Path::new("/")));
        command
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn program(folder: &Path, name: &str, mode: u32) {
        std::fs::create_dir_all(folder).expect("is made");
        std::fs::write(folder.join(name), "#!/bin/sh\n").expect("is written");
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.join(name), mode).expect("is set");
    }

    #[test]
    fn only_absolute_folders_outside_of_the_workspace_have_programs() {
        let place = tempfile::tempdir().expect("is made");
        let [workspace, inside, outside] =
            ["work", "work/bin", "tools"].map(|name| place.path().join(name));
        program(&inside, "git", 0o755);
        program(&outside, "git", 0o755);
        program(&outside, "notes", 0o644);
        let [to_workspace, to_inside] = ["link", "other"].map(|name| place.path().join(name));
        symlink(&workspace, &to_workspace).expect("is made");
        symlink(&inside, &to_inside).expect("is made");
        let text = |path: &Path| path.display().to_string();
        let first = [
            text(&inside),
            text(&to_inside),
            text(&to_workspace.join("bin")),
            String::new(),
            "bin".into(),
        ];
        for root in [&workspace, &to_workspace] {
            for folder in &first {
                let path = format!("{folder}:{}", text(&outside));
                let variables = BTreeMap::from([("PATH".to_owned(), path)]);
                let never = vec![root.clone()];
                let programs = Programs::new(&Arc::new(variables), move || never.clone());
                let found = programs.find("git").expect("is found");
                assert_eq!(found.path(), outside.join("git"), "{folder}");
                assert_eq!(programs.variable("PATH"), Some(&*text(&outside)), "{folder}");
                let command = found.command(programs.variables());
                assert_eq!(command.get_current_dir(), Some(Path::new("/")));
                for name in ["notes", "absent", "", "../tools/git", "/bin/sh"] {
                    assert_eq!(programs.find(name), None, "{name}");
                }
            }
            let variables = BTreeMap::from([("PATH".to_owned(), text(&inside))]);
            let never = vec![root.clone()];
            let programs = Programs::new(&Arc::new(variables), move || never.clone());
            assert_eq!((programs.find("git"), programs.variable("PATH")), (None, None));
            assert_eq!(programs.passed_over("git"), Some(inside.join("git")));
        }
        assert_eq!(Program::at(Path::new("bin/git")), None);
    }
}
