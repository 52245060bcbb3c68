//! The state of a folder in a checkout: its commit, and the differences from it. Publishing uses this.
//!
//! libgit2 reads the repository, and runs no program, whatever the checkout's configuration names. What it cannot read is read through
//! a [`StandIn`], by libgit2 or by `git`: see [`LocalGit`].

use std::path::Path;

use git2::{Repository, StatusOptions};
use mu_provider::Commit;
use mu_provider::fs::canonicalize;

use crate::oid;
use crate::opened::LocalGit;
use crate::stand_in::StandIn;
use crate::surroundings::SurroundingsError;

/// A folder in a checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The checked-out commit; `None` before the first one.
    pub commit: Option<Commit>,
    /// Files of the folder that differ from the commit, relative to the folder.
    pub changed: Vec<String>,
}

impl Checkout {
    /// Looks at `folder`; `None` if it is in no checkout.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn around(folder: &Path, local: &LocalGit) -> Result<Option<Self>, SurroundingsError> {
        let asked = |stand_in: &StandIn| {
            let Some(inside) = inside(stand_in.root(), folder) else { return Ok(None) };
            let commit = stand_in.checked_out_commit(&local.programs)?;
            let changed = stand_in.differing_files(&inside, &local.programs)?;
            Ok(Some(Self { commit, changed: below(&inside, changed) }))
        };
        let read = |repository: &Repository| Self::read(repository, folder);
        let found = local.around(folder, &StandIn::knows_head, &read, &asked)?;
        Ok(found.flatten())
    }

    fn read(repository: &Repository, folder: &Path) -> Result<Option<Self>, git2::Error> {
        let inside =
            repository.workdir().and_then(|root| inside(&canonicalize(root).ok()?, folder));
        let Some(inside) = inside else { return Ok(None) };
        let mut options = StatusOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).disable_pathspec_match(true);
        if !inside.is_empty() {
            options.pathspec(&inside);
        }
        let statuses = repository.statuses(Some(&mut options))?;
        let changed = statuses.iter().filter_map(|status| status.path().ok().map(str::to_owned));
        let changed = below(&inside, changed.collect());
        let head = repository.head().and_then(|head| head.peel_to_commit());
        Ok(Some(Self { commit: head.ok().map(|head| oid::name(head.id())), changed }))
    }
}

/// The path of a folder in the checkout with this root.
fn inside(root: &Path, folder: &Path) -> Option<String> {
    let folder = canonicalize(folder).ok()?;
    folder.strip_prefix(root).ok()?.to_str().map(str::to_owned)
}

/// Those of `paths` that are below the folder `inside`, as seen from there.
fn below(inside: &str, paths: Vec<String>) -> Vec<String> {
    let prefix = if inside.is_empty() { String::new() } else { format!("{inside}/") };
    paths.iter().filter_map(|path| path.strip_prefix(&prefix).map(str::to_owned)).collect()
}
