//! The state of a folder in a checkout: its commit, and the differences from it. Publishing uses this.
//!
//! libgit2 reads the repository, and runs no program, whatever the checkout's configuration names. What it cannot read is read through
//! a [`StandIn`], by libgit2 or by `git`.

use std::path::Path;

use git2::{ErrorCode, Repository, StatusOptions};
use mu_provider::fs::canonicalize;
use mu_provider::{Commit, Programs};

use crate::oid;
use crate::programs::GitPrograms;
use crate::stand_in::{Place, StandIn, StandInError};
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
    /// Looks at `folder`; `None` if it is in no checkout. What libgit2 cannot read is read through a stand-in in mu's own folder
    /// `above`, if need be by `git` among `programs`.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn around(
        folder: &Path,
        programs: &Programs,
        above: &Path,
    ) -> Result<Option<Self>, SurroundingsError> {
        let place = Place::around(folder)?;
        let read =
            Repository::discover(folder).and_then(|repository| Self::read(&repository, folder));
        let error = match read {
            Ok(found) => return Ok(found),
            Err(error) if error.code() == ErrorCode::NotFound && place.is_none() => {
                return Ok(None);
            }
            Err(error) => error,
        };
        let unreadable = |root: &Path, source| SurroundingsError::Unreadable {
            root: root.to_owned(),
            library: error.message().to_owned(),
            source,
        };
        let Some(place) = place else { return Err(unreadable(folder, StandInError::NoCheckout)) };
        let programs = GitPrograms::new(programs.clone(), above);
        let stand_in = StandIn::new(&place, above)?;
        if stand_in.knows_head()
            && let Ok(found) = stand_in.open().and_then(|one| Self::read(&one, folder))
        {
            return Ok(found);
        }
        let Some(inside) = inside(&place.root, folder) else { return Ok(None) };
        let asked = stand_in.checked_out_commit(&programs).and_then(|commit| {
            let changed = stand_in.differing_files(&inside, &programs)?;
            Ok(Self { commit, changed: below(&inside, changed) })
        });
        asked.map(Some).map_err(|source| unreadable(&place.root, source))
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
