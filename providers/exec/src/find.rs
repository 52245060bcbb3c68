//! Where mu looks for plugins.
//!
//! A workspace can name a plugin, but cannot say where its program is: otherwise, whoever writes a file in a
//! checkout could run any program. So folders of `PATH` that are relative, or inside the workspace or its
//! packs, do not count.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mu_provider::fs;

/// The beginning of the names of plugins' programs.
pub const PREFIX: &str = "mu-provider-";

/// The places where mu looks for plugins.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Programs that the user's own settings name, by the plugin's name.
    pub named: BTreeMap<String, PathBuf>,
    /// The folder of plugins in the user's `.mu`.
    pub folder: PathBuf,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    /// Folders that no program is run from: the workspace and its packs.
    pub never: Vec<PathBuf>,
}

impl Places {
    /// The program of a plugin, if there is one.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        if !is_name(name) {
            return None;
        }
        if let Some(program) = self.named.get(name) {
            return Some(program.clone());
        }
        let file = format!("{PREFIX}{name}{}", std::env::consts::EXE_SUFFIX);
        let mut programs = self.folders().map(|folder| folder.join(&file));
        // What was put among the plugins is one: it says why it cannot be run.
        let unfit = || Some(self.folder.join(&file)).filter(|path| is_file(path));
        programs.find(|program| is_program(program)).or_else(unfit)
    }

    /// The names of all plugins, with their programs.
    pub fn all(&self) -> BTreeMap<String, PathBuf> {
        let mut all = self.named.clone();
        let unfit = named_in(&self.folder).filter(|(_, path)| is_file(path));
        let programs = self.folders().flat_map(named_in).filter(|(_, path)| is_program(path));
        for (name, path) in programs.chain(unfit) {
            all.entry(name).or_insert(path);
        }
        all
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        let path = self.path.iter().filter(|folder| {
            let real = fs::canonicalize(folder).unwrap_or_else(|_| (*folder).clone());
            let is_in = |never: &PathBuf| folder.starts_with(never) || real.starts_with(never);
            folder.is_absolute() && !self.never.iter().any(is_in)
        });
        std::iter::once(&self.folder).chain(path).map(PathBuf::as_path)
    }
}

/// What has the name of a plugin in a folder; one that cannot be read has nothing to run.
fn named_in(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let entries = fs::entries_if_there(folder).unwrap_or_default();
    entries.into_iter().filter_map(|entry| {
        let file = entry.file_name();
        let name = file.to_str()?.strip_prefix(PREFIX)?;
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

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    is_file(path)
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}
