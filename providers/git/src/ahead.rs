//! How far a clone has gone from where it began.

use std::path::Path;

use git2::{Oid, Repository};
use mu_provider::Commit;
use mu_provider::fs::canonicalize;

use crate::opened::LocalGit;
use crate::stand_in::{StandIn, StandInError};
use crate::surroundings::SurroundingsError;

impl LocalGit {
    /// The number of commits in the clone around `folder` that are not part of `base`; without a base that it knows, of the
    /// branch that it follows. `None` if there is no clone below `workspace`, or nothing to compare with.
    ///
    /// # Errors
    ///
    /// When the clone cannot be read.
    pub fn commits_ahead(
        &self,
        workspace: &Path,
        folder: &Path,
        base: Option<&Commit>,
    ) -> Result<Option<usize>, SurroundingsError> {
        let around = canonicalize(workspace)?;
        let is_clone = |root: &Path| *root != *around && root.starts_with(&around);
        let by_library = |repository: &Repository| {
            let root = repository.workdir().and_then(|root| canonicalize(root).ok());
            match root.is_some_and(|root| is_clone(&root)) {
                true => by_library(repository, base),
                false => Ok(None),
            }
        };
        let by_program = |stand_in: &StandIn| match is_clone(stand_in.root()) {
            true => by_program(stand_in, self, base),
            false => Ok(None),
        };
        // Only the clone itself has references.
        Ok(self.around(folder, &|_| false, &by_library, &by_program)?.flatten())
    }
}

fn by_library(
    repository: &Repository,
    base: Option<&Commit>,
) -> Result<Option<usize>, git2::Error> {
    let Ok(head) = repository.head() else { return Ok(None) };
    let tip = head.peel_to_commit()?.id();
    let base = base.and_then(|text| Oid::from_str(text).ok());
    let base = base.filter(|base| repository.find_commit(*base).is_ok());
    let upstream = || {
        let upstream = git2::Branch::wrap(head).upstream().ok()?;
        Some(upstream.get().peel_to_commit().ok()?.id())
    };
    let Some(base) = base.or_else(upstream) else { return Ok(None) };
    Ok(Some(repository.graph_ahead_behind(tip, base)?.0))
}

fn by_program(
    stand_in: &StandIn,
    local: &LocalGit,
    base: Option<&Commit>,
) -> Result<Option<usize>, StandInError> {
    let Some(tip) = stand_in.checked_out_commit(&local.programs)? else { return Ok(None) };
    let known = match base {
        Some(base) => stand_in.has_commit(base, &local.programs)?,
        None => false,
    };
    let base = match base.filter(|_| known) {
        Some(base) => Some(base.clone()),
        None => stand_in.upstream(&local.programs)?,
    };
    let Some(base) = base else { return Ok(None) };
    Ok(Some(stand_in.commits(&[tip].into(), &[base], &local.programs)?.len()))
}
