//! Which programs of this machine mu runs: none that the checkout around the current folder brings.

use std::path::{Path, PathBuf};

use mu_provider::Programs;

use super::{MU_FOLDER, root_around};
use crate::env::Environment;
use crate::fs;

/// The programs of this machine. The workspace around the current folder counts for global commands, too.
pub(crate) fn programs(environment: &Environment) -> Programs {
    let Environment { current, home, mu_home, mu_root, variables, .. } = environment.clone();
    Programs::new(&variables, move || brought(&current, &home, &mu_home, &mu_root))
}

/// What reads the Git repositories of this machine.
#[cfg(feature = "git")]
pub(crate) fn local_git(environment: &Environment) -> mu_provider_git::LocalGit {
    let own = environment.cache.join("git");
    mu_provider_git::LocalGit::new(&programs(environment), &own)
}

/// The folders whose content is not the user's own.
fn brought(current: &Path, home: &Path, mu_home: &Path, mu_root: &Path) -> Vec<PathBuf> {
    let workspace = root_around(current, home, mu_home);
    // The folders beside the workspace in its repository have the same author.
    let is_repository = |folder: &&Path| fs::exists(&folder.join(".git")).unwrap_or(true);
    let start = workspace.as_deref().unwrap_or(current);
    let repository = start.ancestors().find(is_repository).map(Path::to_owned);
    // What is around the home folder, such as a repository of its settings, is the user's own.
    let brought = [workspace, repository]
        .into_iter()
        .flatten()
        .map(|folder| if home.starts_with(&folder) { folder.join(MU_FOLDER) } else { folder });
    brought.chain([mu_root.to_owned(), mu_home.join("packs")]).collect()
}
