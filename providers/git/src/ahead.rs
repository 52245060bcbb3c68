//! How far a clone has gone from where it began.

use std::path::Path;

use git2::{Oid, Repository};
use mu_provider::Commit;
use mu_provider::fs::canonicalize;

/// The number of commits in the clone around `folder` that are not part of `base`; without a base that it knows, of the
/// branch that it follows. `None` if there is no clone below `workspace`, or nothing to compare with.
pub fn commits_ahead(workspace: &Path, folder: &Path, base: Option<&Commit>) -> Option<usize> {
    let repository = Repository::discover(folder).ok()?;
    let root = canonicalize(repository.workdir()?).ok()?;
    let around = canonicalize(workspace).ok()?;
    if root == around || !root.starts_with(&around) {
        return None;
    }
    let head = repository.head().ok()?;
    let tip = head.peel_to_commit().ok()?.id();
    let base = base.and_then(|text| Oid::from_str(text).ok());
    let base = base.filter(|base| repository.find_commit(*base).is_ok());
    let upstream = || {
        let upstream = git2::Branch::wrap(head).upstream().ok()?;
        Some(upstream.get().peel_to_commit().ok()?.id())
    };
    let base = base.or_else(upstream)?;
    Some(repository.graph_ahead_behind(tip, base).ok()?.0)
}
