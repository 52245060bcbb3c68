//! Finds the commit that a revision names, with all its digits or some.

use std::collections::BTreeSet;

use git2::Oid;
use mu_provider::{ErrorKind, Progress, ProviderError};

use crate::oid::{FULL, parse};
use crate::repository::Repository;

/// Fewer digits than Git itself would print are anything but certain.
const SHORTEST: usize = 7;

/// Finds the commit that `revision` names, and makes sure that it is in the database.
pub(crate) fn find(
    repository: &Repository,
    revision: &str,
    progress: &dyn Progress,
) -> Result<Oid, ProviderError> {
    let prefix = revision.to_ascii_lowercase();
    let is_hex = prefix.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex || !(SHORTEST..=FULL).contains(&prefix.len()) {
        let text = format!("`{revision}` is not a commit of `{}`", repository.remote);
        return Err(ProviderError::new(ErrorKind::NotFound, text)
            .hint(format!("a commit is written with {SHORTEST} to {FULL} hex digits")));
    }
    if let Some(commit) = parse(Some(&prefix)) {
        if !repository.has_commit(commit) && !repository.offline {
            // A ref to the commit also gives its version, and every server sends the commits of refs.
            repository.advertisement(progress)?;
        }
        repository.ensure(commit, progress)?;
        return Ok(commit);
    }
    if let Some(commit) = only(repository, &prefix, repository.database.commits_beginning(&prefix))?
    {
        return Ok(commit);
    }
    let listed = if repository.offline { None } else { Some(repository.advertisement(progress)?) };
    let refs = listed.iter().flat_map(|listed| &listed.refs);
    let tips =
        refs.map(|other| other.commit).filter(|commit| commit.to_string().starts_with(&prefix));
    let mut found = only(repository, &prefix, tips.collect())?;
    if found.is_none() {
        found = only(repository, &prefix, repository.search(&prefix, progress)?)?;
    }
    let commit = found.ok_or_else(|| repository.no_such_commit(&prefix))?;
    repository.ensure(commit, progress)?;
    Ok(commit)
}

/// The only element of `commits`, if any; several are an error that names them.
fn only(
    repository: &Repository,
    prefix: &str,
    commits: BTreeSet<Oid>,
) -> Result<Option<Oid>, ProviderError> {
    const NAMED: usize = 5;
    if commits.len() < 2 {
        return Ok(commits.into_iter().next());
    }
    let mut names: Vec<String> =
        commits.iter().take(NAMED).map(|commit| format!("`{commit}`")).collect();
    if commits.len() > NAMED {
        names.push(format!("{} more", commits.len() - NAMED));
    }
    let text = format!(
        "several commits of `{}` begin with {prefix}: {}",
        repository.remote,
        names.join(", ")
    );
    Err(ProviderError::new(ErrorKind::NotFound, text).hint("write more digits"))
}
