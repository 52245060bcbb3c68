//! Where mu looks for plugins.
//!
//! A workspace can name a plugin, but cannot say where its program is: otherwise, whoever writes a file in a
//! checkout could run any program. So only folders of `PATH` count that are outside of the workspace and its packs
//! ([`Programs`]).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mu_provider::{Program, Programs, fs};

/// The beginning of the names of plugins' programs.
pub const PLUGIN_PROGRAM_PREFIX: &str = "mu-provider-";

/// The places where mu looks for plugins.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Programs that the user's own settings name, by the plugin's name.
    pub named: BTreeMap<String, PathBuf>,
    /// The folder of plugins in the user's `.mu`.
    pub folder: PathBuf,
    /// The folders of `PATH`.
    pub programs: Programs,
}

impl Places {
    /// The program of a plugin, if there is one.
    pub fn find(&self, name: &str) -> Option<Program> {
        if !is_name(name) {
            return None;
        }
        if let Some(program) = self.named.get(name) {
            return Program::at(program);
        }
        let called = format!("{PLUGIN_PROGRAM_PREFIX}{name}");
        // What was put among the plugins is one: it says why it cannot be run.
        let file = self.folder.join(format!("{called}{}", std::env::consts::EXE_SUFFIX));
        let unfit = || Program::at(&file).filter(|_| is_file(&file));
        let mut programs = self.folders().map(|folder| Program::named(folder, &called));
        programs.find_map(|program| program).or_else(unfit)
    }

    /// The names of all plugins, with their programs.
    pub fn all(&self) -> BTreeMap<String, PathBuf> {
        let mut all = self.named.clone();
        let unfit = named_in(&self.folder).filter(|(_, path)| is_file(path));
        let names = self.folders().flat_map(named_in).chain(unfit);
        for (name, _) in names {
            if let (false, Some(program)) = (all.contains_key(&name), self.find(&name)) {
                all.insert(name, program.path().to_owned());
            }
        }
        all
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.folder).chain(self.programs.folders()).map(PathBuf::as_path)
    }
}

/// What has the name of a plugin in a folder; one that cannot be read has nothing to run.
fn named_in(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let entries = fs::entries_if_there(folder).unwrap_or_default();
    entries.into_iter().filter_map(|entry| {
        let file = entry.file_name();
        let name = file.to_str()?.strip_prefix(PLUGIN_PROGRAM_PREFIX)?;
        let name = name.trim_end_matches(std::env::consts::EXE_SUFFIX);
        is_name(name).then(|| (name.to_owned(), entry.path()))
    })
}

/// Whether a plugin can have this name: it must be a valid URL scheme.
fn is_name(name: &str) -> bool {
    let is_inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(is_inner)
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}
