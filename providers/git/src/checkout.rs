//! The state of a folder in a checkout: its commit, and the differences from it. Publishing uses this.
//!
//! libgit2 reads the repository, and runs no program, whatever the checkout's configuration names.

use std::path::Path;

use git2::{ErrorCode, Repository, StatusOptions};
use mu_provider::Commit;
use mu_provider::fs::canonicalize;

use crate::oid;
use crate::stand_in::{Place, StandIn};

/// A folder in a checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The checked-out commit; `None` before the first one.
    pub commit: Option<Commit>,
    /// Files of the folder that differ from the commit, relative to the folder.
    pub changed: Vec<String>,
}

impl Checkout {
    /// Looks at `folder`; `None` if it is in no checkout. What libgit2 cannot open is read through a stand-in in mu's own folder
    /// `above`.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn around(folder: &Path, above: &Path) -> Result<Option<Self>, git2::Error> {
        let read = match Repository::discover(folder) {
            Ok(repository) => Self::read(&repository, folder),
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
            Err(error) => Err(error),
        };
        read.or_else(|error| {
            let stand_in = Place::around(folder).ok().flatten();
            let stand_in = stand_in.and_then(|place| StandIn::new(&place, above).ok());
            match stand_in.filter(StandIn::knows_head) {
                Some(stand_in) => stand_in
                    .open()
                    .and_then(|repository| Self::read(&repository, folder))
                    .map_err(|_| error),
                None => Err(error),
            }
        })
    }

    fn read(repository: &Repository, folder: &Path) -> Result<Option<Self>, git2::Error> {
        let inside = repository.workdir().and_then(|root| {
            let (root, folder) = (canonicalize(root).ok()?, canonicalize(folder).ok()?);
            folder.strip_prefix(root).ok()?.to_str().map(str::to_owned)
        });
        let Some(inside) = inside else { return Ok(None) };
        let mut options = StatusOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).disable_pathspec_match(true);
        let prefix = if inside.is_empty() { String::new() } else { format!("{inside}/") };
        if !inside.is_empty() {
            options.pathspec(&inside);
        }
        let statuses = repository.statuses(Some(&mut options))?;
        let changed = statuses.iter().filter_map(|status| {
            let path = status.path().ok()?;
            path.strip_prefix(&prefix).map(str::to_owned)
        });
        let changed = changed.collect();
        let head = repository.head().and_then(|head| head.peel_to_commit());
        Ok(Some(Self { commit: head.ok().map(|head| oid::name(head.id())), changed }))
    }
}
