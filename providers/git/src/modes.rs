//! The modes that Git has recorded, where the file system has none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::Repository;
use mu_provider::fs::canonicalize;

/// Any of the permissions to execute a file.
const EXECUTABLE: u32 = 0o111;

/// Whether each file of the repository around a folder that Git tracks may be executed, by its path, if Git has found that the file system does not
/// tell (`core.fileMode=false`); `None` if it tells, or nothing says so.
pub fn recorded_modes(folder: &Path) -> Option<BTreeMap<PathBuf, bool>> {
    let repository = Repository::discover(folder).ok()?;
    let root = canonicalize(repository.workdir()?).ok()?;
    let tells = repository.config().ok()?.get_bool("core.filemode").ok()?;
    if tells {
        return None;
    }
    let index = repository.index().ok()?;
    let recorded = index.iter().filter_map(|entry| {
        let path = root.join(std::str::from_utf8(&entry.path).ok()?);
        Some((path, entry.mode & EXECUTABLE != 0))
    });
    Some(recorded.collect())
}
