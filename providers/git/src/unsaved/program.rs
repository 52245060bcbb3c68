//! What `git` finds of work that only a clone has, where libgit2 cannot read the clone. It runs nothing that the clone names.

use std::collections::BTreeSet;

use mu_provider::Commit;
use mu_provider::fs;

use super::{
    Found, Kind, Looked, Own, PushedBranch, Tips, WorkState, came, first_place, is_inside,
};
use crate::programs::GitPrograms;
use crate::stand_in::{StandIn, StandInError};

/// What says that Git has begun something: a file or folder of its own, and what that is.
const BEGUN: [(&str, &str); 5] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("BISECT_LOG", "a bisect"),
    ("sequencer", "a cherry-pick"),
];

/// The references that say so.
const BEGUN_BY_NAME: [(&str, &str); 2] =
    [("CHERRY_PICK_HEAD", "a cherry-pick"), ("REVERT_HEAD", "a revert")];

/// What a clone has: its own work, and its submodules.
pub(super) fn look(
    stand_in: &StandIn,
    programs: &GitPrograms,
    base: Option<&Commit>,
    own: &Own<'_>,
    tips: &Tips<'_>,
) -> Result<Looked, StandInError> {
    // Status compares with it.
    stand_in.checked_out_commit(programs)?;
    let mut found = files(stand_in, programs, own)?;
    found.push((Kind::UnderWay, under_way(stand_in, programs)?));
    let worktrees = fs::entries_if_there(&stand_in.place().common.join("worktrees"))?;
    let worktrees = worktrees.iter().map(|one| one.file_name().to_string_lossy().into_owned());
    found.push((Kind::Worktree, worktrees.collect()));
    found.extend(git_program_history(stand_in, programs, base, tips)?);
    let entries = stand_in.entries(programs)?.into_iter();
    let submodules = entries.filter(|entry| entry.is_submodule()).map(|entry| entry.path);
    Ok(Looked { found, submodules: submodules.collect() })
}

/// The stashes and commits of a repository, which may be bare.
pub(super) fn git_program_history(
    stand_in: &StandIn,
    programs: &GitPrograms,
    base: Option<&Commit>,
    tips: &Tips<'_>,
) -> Result<Found, StandInError> {
    let stashes = stand_in.stashes(programs)?;
    let (commits, silent) = commits(stand_in, programs, base, tips)?;
    Ok(vec![(Kind::Stashed, stashes), (Kind::Commits, commits), (Kind::Remote, silent)])
}

/// Files that are not as the commit has them.
fn files(stand_in: &StandIn, programs: &GitPrograms, own: &Own<'_>) -> Result<Found, StandInError> {
    let [mut staged, mut changed, mut untracked, mut ignored] = [const { Vec::new() }; 4];
    for (letters, path) in stand_in.statuses(true, programs)? {
        let mut letters = letters.chars();
        match (letters.next().unwrap_or(' '), letters.next().unwrap_or(' ')) {
            ('?', _) => untracked.push(path),
            ('!', _) if own(&path) => {}
            ('!', _) => ignored.push(path),
            (index, files) => {
                if files != ' ' && index != 'U' && files != 'U' {
                    changed.push(path.clone());
                }
                if index != ' ' || files == 'U' {
                    staged.push(path);
                }
            }
        }
    }
    for path in hidden(stand_in, programs)? {
        if !changed.contains(&path) {
            changed.push(path);
        }
    }
    Ok(vec![
        (Kind::Staged, staged),
        (Kind::Changed, changed),
        (Kind::Untracked, untracked),
        (Kind::Ignored, ignored),
    ])
}

/// Changed files at which Git was told not to look.
pub(crate) fn hidden(
    stand_in: &StandIn,
    programs: &GitPrograms,
) -> Result<Vec<String>, StandInError> {
    let unwatched = stand_in.unwatched(programs)?;
    let kind = |path: &str| fs::symlink_metadata(&stand_in.root().join(path)).ok();
    // One that is not there holds no work.
    let (files, others): (Vec<&String>, Vec<&String>) = (unwatched.iter())
        .filter(|path| kind(path).is_some())
        .partition(|path| kind(path).is_some_and(|found| found.is_file()) && !path.contains('\n'));
    let mut changed: Vec<String> = others.into_iter().cloned().collect();
    if !files.is_empty() {
        let paths: Vec<&str> = files.iter().map(|path| path.as_str()).collect();
        let now = stand_in.hashes(&paths, programs)?;
        let entries = stand_in.entries(programs)?;
        let is_same = |path: &str, oid: &String| {
            entries.iter().any(|entry| entry.path == path && entry.oid == *oid)
        };
        let differing = paths.iter().zip(&now).filter(|(path, oid)| !is_same(path, oid));
        changed.extend(differing.map(|(path, _)| (*path).to_owned()));
    }
    Ok(changed)
}

/// What Git has begun and not ended.
fn under_way(stand_in: &StandIn, programs: &GitPrograms) -> Result<Vec<String>, StandInError> {
    let mut begun = BTreeSet::new();
    for (name, what) in BEGUN {
        if fs::exists(&stand_in.place().own.join(name))? {
            begun.insert(what);
        }
    }
    for (name, what) in BEGUN_BY_NAME {
        if stand_in.has_begun(name, programs)? {
            begun.insert(what);
        }
    }
    Ok(begun.into_iter().map(str::to_owned).collect())
}

/// The commits that anything in the clone leads to and no remote has, and the remotes that could not be asked.
fn commits(
    stand_in: &StandIn,
    programs: &GitPrograms,
    base: Option<&Commit>,
    tips: &Tips<'_>,
) -> Result<(Vec<String>, Vec<String>), StandInError> {
    let references = stand_in.named_commits(programs)?.into_iter();
    // The stash is reported separately.
    let own =
        references.filter(|one| !one.name.starts_with("refs/remotes/") && one.name != "refs/stash");
    let mut local: BTreeSet<Commit> = own.map(|one| one.commit).collect();
    local.extend(stand_in.checked_out_commit(programs)?);
    local.extend(stand_in.heads_before(programs)?);
    let mut known: Vec<Commit> = base.cloned().into_iter().collect();
    known.extend(came(&stand_in.place().common));
    let mut silent = Vec::new();
    for url in urls(stand_in)?.iter().filter(|url| !is_inside(stand_in.root(), url)) {
        match tips(url) {
            Ok(tips) => known.extend(tips),
            Err(error) => silent.push(super::why_silent(&error)),
        }
    }
    let commits = stand_in.commits(&local, &known, programs)?;
    let commits: Vec<String> =
        commits.iter().map(|(commit, subject)| super::shown(commit, subject)).collect();
    // Nothing is lost that only a silent remote could have.
    if commits.is_empty() {
        silent.clear();
    }
    Ok((commits, silent))
}

/// Everything that anything in the repository leads to.
pub(super) fn git_program_commits(
    stand_in: &StandIn,
    programs: &GitPrograms,
) -> Result<Vec<Commit>, StandInError> {
    let named = stand_in.named_commits(programs)?.into_iter();
    let mut all: BTreeSet<Commit> = named.map(|one| one.commit).collect();
    all.extend(stand_in.checked_out_commit(programs)?);
    all.extend(stand_in.heads_before(programs)?);
    Ok(all.into_iter().collect())
}

/// The URLs that the remotes are written to.
fn urls(stand_in: &StandIn) -> Result<BTreeSet<String>, StandInError> {
    let remotes = stand_in.remotes()?.into_iter();
    Ok(remotes.filter_map(|remote| remote.push.or(remote.url)).collect())
}

/// Where the commit that is checked out was pushed to.
pub(super) fn git_program_pushed_branch(
    stand_in: &StandIn,
    programs: &GitPrograms,
) -> Result<Option<PushedBranch>, StandInError> {
    let Some(head) = stand_in.checked_out_commit(programs)? else { return Ok(None) };
    let own = stand_in.checked_out_branch(programs)?.unwrap_or_default();
    let (remotes, references) = (stand_in.remotes()?, stand_in.named_commits(programs)?);
    let mut places = Vec::new();
    for remote in remotes {
        let Some(url) = remote.url else { continue };
        let start = format!("refs/remotes/{}/", remote.name);
        for reference in references.iter().filter(|one| one.commit == head) {
            if let Some(branch) = reference.name.strip_prefix(&start) {
                places.push((remote.name.clone(), url.clone(), branch.to_owned()));
            }
        }
    }
    Ok(first_place(places, &own))
}

/// The branch, the commit, and how many files differ from it.
pub(super) fn git_program_work_state(
    stand_in: &StandIn,
    programs: &GitPrograms,
) -> Result<WorkState, StandInError> {
    let head = stand_in.checked_out_commit(programs)?;
    let changed = stand_in.statuses(false, programs)?.len();
    Ok(WorkState { branch: stand_in.checked_out_branch(programs)?, head, changed })
}
