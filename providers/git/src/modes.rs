//! The modes that Git has recorded, where the file system has none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::Repository;
use mu_provider::fs::canonicalize;

use crate::config_text::settings;
use crate::opened::LocalGit;
use crate::stand_in::{StandIn, StandInError, text_of};
use crate::surroundings::SurroundingsError;

/// Any of the permissions to execute a file.
const EXECUTABLE: u32 = 0o111;

/// Whether each file may be executed, by its path; `None` if the file system tells, or nothing says that it does not.
type Modes = Option<BTreeMap<PathBuf, bool>>;

impl LocalGit {
    /// Whether each file of the repository around a folder that Git tracks may be executed, by its path, if Git has found that the file system does not
    /// tell (`core.fileMode=false`); `None` if it tells, or nothing says so.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn recorded_modes(&self, folder: &Path) -> Result<Modes, SurroundingsError> {
        let asked = |stand_in: &StandIn| by_program(stand_in, self);
        // A stand-in has its own configuration.
        Ok(self.around(folder, &|_| false, &by_library, &asked)?.flatten())
    }
}

fn by_library(repository: &Repository) -> Result<Modes, git2::Error> {
    let Some(root) = repository.workdir().and_then(|root| canonicalize(root).ok()) else {
        return Ok(None);
    };
    if repository.config()?.get_bool("core.filemode").unwrap_or(true) {
        return Ok(None);
    }
    let index = repository.index()?;
    let recorded = index.iter().filter_map(|entry| {
        let path = root.join(std::str::from_utf8(&entry.path).ok()?);
        Some((path, entry.mode & EXECUTABLE != 0))
    });
    Ok(Some(recorded.collect()))
}

fn by_program(stand_in: &StandIn, local: &LocalGit) -> Result<Modes, StandInError> {
    let place = stand_in.place();
    let mut tells = true;
    for file in [place.common.join("config"), place.own.join("config.worktree")] {
        let text = text_of(&file)?.unwrap_or_default();
        let said = settings(&text)
            .into_iter()
            .rfind(|one| (&*one.section, &*one.key) == ("core", "filemode") && one.name.is_none());
        if let Some(said) = said {
            tells = !["false", "no", "off", "0"].contains(&&*said.value.to_ascii_lowercase());
        }
    }
    if tells {
        return Ok(None);
    }
    let entries = stand_in.entries(&local.programs)?;
    let recorded = entries
        .into_iter()
        .map(|entry| (stand_in.root().join(&entry.path), entry.mode & EXECUTABLE != 0));
    Ok(Some(recorded.collect()))
}
