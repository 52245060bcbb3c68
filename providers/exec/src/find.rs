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
        self.folders().map(|folder| folder.join(&file)).find(|program| is_program(program))
    }

    /// The names of all plugins, with their programs.
    pub fn all(&self) -> BTreeMap<String, PathBuf> {
        let mut all = self.named.clone();
        for folder in self.folders() {
            // A folder that cannot be read has no programs to run.
            for entry in fs::entries_if_there(folder).unwrap_or_default() {
                let file = entry.file_name();
                let name = file.to_str().and_then(|file| file.strip_prefix(PREFIX));
                let name = name.map(|name| name.trim_end_matches(std::env::consts::EXE_SUFFIX));
                if let Some(name) = name.filter(|name| is_name(name))
                    && is_program(&entry.path())
                {
                    all.entry(name.to_owned()).or_insert_with(|| entry.path());
                }
            }
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
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}
