//! What has changed in a checkout since it left another branch: the paths of files, and one file as it was there.
//!
//! libgit2 reads the repository, and runs no program. What it cannot read is read through a [`StandIn`], also by `git`: see [`LocalGit`].
//! Files that Git ignores have not changed, and what a submodule has inside is its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::{Commit as Found, DiffOptions, ErrorCode, Repository};
use mu_provider::Commit;
use mu_provider::fs::canonicalize;

use crate::opened::{LocalGit, root_of};
use crate::programs::GitPrograms;
use crate::ref_name;
use crate::stand_in::{StandIn, StandInError};
use crate::surroundings::SurroundingsError;

/// What a checkout has changed since it left the history of another commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckoutChanges {
    /// The last commit that both have, with which the checkout is compared.
    pub commit: Commit,
    /// The root of the checkout.
    pub root: PathBuf,
    /// The paths of what was changed, added, moved or removed, also if it is not committed; as seen from the root, sorted. A
    /// submodule is one path.
    pub paths: Vec<String>,
    /// The text of the file that was asked for, as it was; `None` if it was not there.
    pub before: Option<String>,
}

/// What is known of the changes since a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesSince {
    /// The changes.
    Known(CheckoutChanges),
    /// The name leads to no commit here.
    NoSuchCommit,
    /// The checkout has no commit yet, or none in common with the other one, as far as the history is here.
    NothingInCommon,
}

impl ChangesSince {
    /// Compares the checkout around `folder` with the last commit that it has in common with `other`, a name of a commit as Git
    /// knows them; and reads `file` of the folder, as it was there. `None` if there is no checkout.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn find(
        folder: &Path,
        other: &str,
        file: &str,
        local: &LocalGit,
    ) -> Result<Option<Self>, SurroundingsError> {
        let library = |repository: &Repository| by_library(repository, folder, other, file);
        let program = |stand_in: &StandIn| by_program(stand_in, folder, other, file, local);
        // Only the repository itself has references.
        local.around(folder, &|_| false, &library, &program)
    }
}

/// The path of a file in the folder, as the checkout with this root has it.
fn place_of(root: &Path, folder: &Path, file: &str) -> Option<String> {
    let folder = canonicalize(folder).ok()?;
    let inside = folder.strip_prefix(root).ok()?.to_str()?;
    Some(if inside.is_empty() { file.to_owned() } else { format!("{inside}/{file}") })
}

fn by_library(
    repository: &Repository,
    folder: &Path,
    other: &str,
    file: &str,
) -> Result<ChangesSince, git2::Error> {
    let named = repository.revparse_single(other).and_then(|object| object.peel_to_commit());
    let Ok(named) = named else { return Ok(ChangesSince::NoSuchCommit) };
    let head = repository.head().and_then(|head| head.peel_to_commit());
    let Ok(head) = head else { return Ok(ChangesSince::NothingInCommon) };
    let base = match repository.merge_base(named.id(), head.id()) {
        Ok(base) => repository.find_commit(base)?,
        Err(error) if error.code() == ErrorCode::NotFound => {
            return Ok(ChangesSince::NothingInCommon);
        }
        Err(error) => return Err(error),
    };
    let root = root_of(repository);
    let root = root.ok_or_else(|| git2::Error::from_str("it has no checkout"))?;
    let place = place_of(&root, folder, file);
    Ok(ChangesSince::Known(CheckoutChanges {
        commit: ref_name::name(base.id()),
        paths: differing_paths(repository, &base)?,
        before: place.map(|place| text_at(repository, &base, &place)).transpose()?.flatten(),
        root,
    }))
}

fn differing_paths(repository: &Repository, base: &Found<'_>) -> Result<Vec<String>, git2::Error> {
    let mut options = DiffOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).include_typechange(true);
    let tree = base.tree()?;
    let found = repository.diff_tree_to_workdir_with_index(Some(&tree), Some(&mut options))?;
    let mut paths = BTreeSet::new();
    for delta in found.deltas() {
        for side in [delta.old_file(), delta.new_file()] {
            paths.extend(side.path().map(|path| path.to_string_lossy().into_owned()));
        }
    }
    Ok(paths.into_iter().collect())
}

fn text_at(
    repository: &Repository,
    commit: &Found<'_>,
    place: &str,
) -> Result<Option<String>, git2::Error> {
    let tree = commit.tree()?;
    let entry = match tree.get_path(Path::new(place)) {
        Ok(entry) => entry,
        Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let blob = entry.to_object(repository)?.peel_to_blob()?;
    Ok(Some(String::from_utf8_lossy(blob.content()).into_owned()))
}

fn by_program(
    stand_in: &StandIn,
    folder: &Path,
    other: &str,
    file: &str,
    local: &LocalGit,
) -> Result<ChangesSince, StandInError> {
    let programs = &local.programs;
    // To `git`, such a text is an option.
    if other.starts_with('-') {
        return Ok(ChangesSince::NoSuchCommit);
    }
    let named = format!("{other}^{{commit}}");
    let (0, named) =
        stand_in.ask_itself(&["rev-parse", "--verify", "--quiet", &named], programs)?
    else {
        return Ok(ChangesSince::NoSuchCommit);
    };
    let Some(head) = stand_in.checked_out_commit(programs)? else {
        return Ok(ChangesSince::NothingInCommon);
    };
    let base = match stand_in.ask_itself(&["merge-base", named.trim(), &head], programs)? {
        (0, base) => base.trim().to_owned(),
        (1, _) => return Ok(ChangesSince::NothingInCommon),
        (_, said) => return Err(StandInError::Failed(said)),
    };
    let commit: Commit = base.parse().map_err(|_| StandInError::Failed(base.clone()))?;
    let place = place_of(stand_in.root(), folder, file);
    Ok(ChangesSince::Known(CheckoutChanges {
        paths: listed_paths(stand_in, &commit, programs)?,
        before: match place {
            Some(place) => printed_text(stand_in, &commit, &place, programs)?,
            None => None,
        },
        root: stand_in.root().to_owned(),
        commit,
    }))
}

fn listed_paths(
    stand_in: &StandIn,
    commit: &Commit,
    programs: &GitPrograms,
) -> Result<Vec<String>, StandInError> {
    let mut paths = BTreeSet::new();
    for arguments in [
        // In submodules, `git` would use their own configuration.
        &[
            "diff",
            "--name-only",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=dirty",
            commit,
            "--",
        ][..],
        &["ls-files", "--others", "--exclude-standard", "-z"],
    ] {
        let (code, listed) = stand_in.ask(arguments, b"", programs)?;
        if code != 0 {
            return Err(StandInError::Failed(listed));
        }
        paths.extend(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned));
    }
    Ok(paths.into_iter().collect())
}

fn printed_text(
    stand_in: &StandIn,
    commit: &Commit,
    place: &str,
    programs: &GitPrograms,
) -> Result<Option<String>, StandInError> {
    let (code, listed) = stand_in.ask(&["ls-tree", "-z", commit, "--", place], b"", programs)?;
    if code != 0 {
        return Err(StandInError::Failed(listed));
    }
    // Such as `100644 blob OID`, a tab, and the path.
    let facts = listed.split('\t').next().unwrap_or_default();
    let Some(object) = facts.split(' ').nth(2) else { return Ok(None) };
    match stand_in.ask(&["cat-file", "blob", object], b"", programs)? {
        (0, text) => Ok(Some(text)),
        (_, said) => Err(StandInError::Failed(said)),
    }
}
