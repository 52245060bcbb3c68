//! The only door to the environment, the home folder, the current folder and the clock.
//!
//! The library takes an [`Environment`] as a value; only the program creates one from its process. Other
//! modules interpret the values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::fs::{self, FileError};

/// What mu knows about the machine and the process that it runs in.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The user's home folder.
    pub home: PathBuf,
    /// `~/.mu`, or `$MU_HOME`: settings, global packs and their lock.
    pub mu_home: PathBuf,
    /// `$MUROOT`: the packs that came with the runtime.
    pub mu_root: PathBuf,
    /// `$MU_CACHE_DIR`, or the platform's cache folder for mu: index, repositories, store.
    pub cache: PathBuf,
    /// The folder that the run starts in.
    pub current: PathBuf,
    /// Now, in seconds since 1970 UTC.
    pub now: i64,
    /// The users' numbers: for a superuser by `sudo`, both. Empty on systems without user numbers.
    pub users: Vec<u32>,
    /// Environment variables.
    pub variables: Arc<BTreeMap<String, String>>,
}

/// What mu keeps in its cache.
pub const IN_CACHE: &[&str] = &[
    "advisories",
    "builds",
    "catalogs",
    "charts",
    "downloads",
    "evidence",
    "git",
    "hub-catalogs",
    "hub-staging",
    "index",
    "mirrors",
    "operators",
    "packs",
    "plugins",
    "registries",
    "store",
    "told",
    "trust",
];

/// Makes the cache folder, in which a file says that it is one: whoever has it inside a workspace, as CI systems want it, wants no
/// package of it there.
pub fn create_cache(cache: &Path) -> Result<(), FileError> {
    fs::create_private_folder(cache, &[IN_CACHE, &[fs::CACHE_TAG]].concat())?;
    // Without it, nothing but such a workspace is worse off.
    let _ = fs::mark_as_cache(cache);
    Ok(())
}

/// What is in `~/.mu`.
pub const IN_HOME: &[&str] = &[
    "Mu.lock",
    "config.yaml",
    "credentials.json",
    "credentials.lock",
    "packs",
    "plugins",
    "trust",
];

/// The process lacks something that mu needs.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// There is no current folder.
    #[error("cannot tell the current folder")]
    Current(#[source] std::io::Error),
    /// There is no home folder.
    #[error("cannot tell the home folder; set HOME, or MU_HOME and MU_CACHE_DIR")]
    Home,
    /// A variable of mu's is no text, so that it would count as not set.
    #[error(
        "{name} is not UTF-8, and mu would do as if it was not set: write it in UTF-8, or unset it"
    )]
    NotText {
        /// The variable.
        name: String,
    },
    /// A variable begins as only a shell understands it, which has not seen it.
    #[error("{name} is `{}`, but `~` is the home folder in a shell only: write `{}`", value.display(), meant.display())]
    Tilde {
        /// The variable.
        name: &'static str,
        /// What it is.
        value: PathBuf,
        /// The path that is probably meant.
        meant: PathBuf,
    },
}

/// Where the runtime is if `$MUROOT` is not set.
const DEFAULT_MU_ROOT: &str = "/usr/local/mu";

impl Environment {
    /// Reads the environment of this process.
    pub fn from_process() -> Result<Self, EnvironmentError> {
        let mut variables = BTreeMap::new();
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => {
                    variables.insert(name, value);
                }
                // Another folder than the one that somebody has named would be used, or no token.
                Err(_) if name == "MUROOT" || name.starts_with("MU_") => {
                    return Err(EnvironmentError::NotText { name });
                }
                Err(_) => {}
            }
        }
        #[cfg(debug_assertions)]
        if let Some(Ok(number)) = variables.get("MU_TEST_END_AT_CHANGE").map(|text| text.parse()) {
            crate::fs::end_at_change(number);
        }
        let current = std::env::current_dir().map_err(EnvironmentError::Current)?;
        // A relative home would be another folder in each folder.
        let bases = directories::BaseDirs::new().filter(|bases| bases.home_dir().is_absolute());
        let home = bases.as_ref().map(|bases| bases.home_dir().to_owned());
        let folder = |name: &'static str| {
            let value = variables.get(name).filter(|value| !value.is_empty());
            let Some(value) = value.map(PathBuf::from) else { return Ok(None) };
            match value.strip_prefix("~") {
                // A file that a tool of CI has read keeps it, and a folder `~` in the checkout is what nobody wants.
                Ok(rest) => {
                    let home = home.clone().unwrap_or_else(|| PathBuf::from("/home/NAME"));
                    Err(EnvironmentError::Tilde { name, meant: home.join(rest), value })
                }
                Err(_) => Ok(Some(absolute(&current, &value))),
            }
        };
        let mu_home = folder("MU_HOME")?.or_else(|| home.as_ref().map(|home| home.join(".mu")));
        let cache = folder("MU_CACHE_DIR")?
            .or_else(|| bases.as_ref().map(|bases| bases.cache_dir().join("mu")));
        let mu_root = folder("MUROOT")?.unwrap_or_else(|| PathBuf::from(DEFAULT_MU_ROOT));
        let (Some(mu_home), Some(cache)) = (mu_home, cache) else {
            return Err(EnvironmentError::Home);
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Ok(Self {
            home: home.unwrap_or_else(|| mu_home.clone()),
            mu_home,
            mu_root,
            cache,
            current,
            users: users(&variables),
            now: i64::try_from(now).unwrap_or(i64::MAX),
            variables: Arc::new(variables),
        })
    }

    /// A variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// This environment, started in `folder` (`-C`).
    #[must_use]
    pub fn started_in(mut self, folder: &Path) -> Self {
        self.current = absolute(&self.current, folder);
        self
    }
}

#[cfg(unix)]
fn users(variables: &BTreeMap<String, String>) -> Vec<u32> {
    let user = rustix::process::getuid().as_raw();
    let before = variables.get("SUDO_UID").filter(|_| user == 0);
    std::iter::once(user).chain(before.and_then(|text| text.parse().ok())).collect()
}

#[cfg(not(unix))]
fn users(_variables: &BTreeMap<String, String>) -> Vec<u32> {
    Vec::new()
}

/// `path` relative to `base`, with `.` and `..` resolved if no link can change their meaning.
pub fn absolute(base: &Path, path: &Path) -> PathBuf {
    let joined = base.join(path);
    let mut folded = PathBuf::new();
    for component in joined.components() {
        match component {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir if !folded.is_symlink() => {
                folded.pop();
            }
            other => folded.push(other),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_paths() {
        for (base, path, expected) in [
            ("/a/b", "c", "/a/b/c"),
            ("/a/b", "./c/.", "/a/b/c"),
            ("/a/b", "../c", "/a/c"),
            ("/a/b", "/c", "/c"),
            ("/a", "../../..", "/"),
        ] {
            assert_eq!(
                absolute(Path::new(base), Path::new(path)),
                Path::new(expected),
                "{base} {path}"
            );
        }
    }
}
