//! What libgit2 finds of work that only a clone has. It runs no program.

use std::collections::BTreeSet;

use git2::{
    ErrorCode, IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag, ObjectType, Oid, Repository,
    RepositoryState, Status, StatusOptions,
};
use mu_provider::Commit;
use mu_provider::fs;

use super::{
    Found, Kind, Looked, Own, PushedBranch, Tips, WorkState, came, first_place, is_inside,
};
use crate::line_ends::turned;
use crate::ref_name;

/// What a clone has: its own work, and its submodules.
pub(super) fn look(
    repository: &Repository,
    base: Option<&Commit>,
    own: &Own<'_>,
    tips: &Tips<'_>,
) -> Result<Looked, git2::Error> {
    let mut found: Found = files(repository, own)?.into_iter().collect();
    let begun = under_way(repository.state()).map(str::to_owned);
    found.push((Kind::UnderWay, begun.into_iter().collect()));
    let worktrees = repository.worktrees()?;
    found.push((Kind::Worktree, worktrees.iter().flatten().flatten().map(str::to_owned).collect()));
    found.extend(history(repository, base, tips)?);
    let submodules = repository.submodules()?;
    let submodules = submodules.iter().map(|one| one.path().to_string_lossy().into_owned());
    Ok(Looked { found, submodules: submodules.collect() })
}

/// The stashes and commits of a repository, which may be bare.
pub(super) fn history(
    repository: &Repository,
    base: Option<&Commit>,
    tips: &Tips<'_>,
) -> Result<Found, git2::Error> {
    let mut stashes = Vec::new();
    // Only whoever could change the repository may look through its stashes.
    Repository::open(repository.path())?.stash_foreach(|_, message, _| {
        stashes.push(message.to_owned());
        true
    })?;
    let (commits, silent) = commits(repository, base, tips)?;
    Ok(vec![(Kind::Stashed, stashes), (Kind::Commits, commits), (Kind::Remote, silent)])
}

/// Files that are not as the commit has them.
fn files(repository: &Repository, own: &Own<'_>) -> Result<[(Kind, Vec<String>); 4], git2::Error> {
    let mut options = StatusOptions::new();
    options
        .include_untracked(true)
        .recurse_untracked_dirs(true)
        .include_ignored(true)
        .recurse_ignored_dirs(false)
        .renames_head_to_index(false);
    let mut files = [Kind::Staged, Kind::Changed, Kind::Untracked, Kind::Ignored]
        .map(|kind| (kind, Vec::new()));
    let staged = Status::INDEX_NEW
        | Status::INDEX_MODIFIED
        | Status::INDEX_DELETED
        | Status::INDEX_RENAMED
        | Status::INDEX_TYPECHANGE
        | Status::CONFLICTED;
    let changed =
        Status::WT_MODIFIED | Status::WT_DELETED | Status::WT_TYPECHANGE | Status::WT_RENAMED;
    for entry in repository.statuses(Some(&mut options))?.iter() {
        let status = entry.status();
        let path = String::from_utf8_lossy(entry.path_bytes()).into_owned();
        for (kind, names) in &mut files {
            let is_it = match kind {
                Kind::Staged => status.intersects(staged),
                Kind::Changed => status.intersects(changed),
                Kind::Untracked => status.contains(Status::WT_NEW),
                _ => status.contains(Status::IGNORED) && !own(&path),
            };
            if is_it {
                names.push(path.clone());
            }
        }
    }
    let [_, (_, changed), ..] = &mut files;
    for path in hidden(repository)? {
        if !changed.contains(&path) {
            changed.push(path);
        }
    }
    Ok(files)
}

/// Changed files at which Git was told not to look (`git update-index --assume-unchanged` or `--skip-worktree`).
pub(crate) fn hidden(repository: &Repository) -> Result<Vec<String>, git2::Error> {
    let Some(root) = repository.workdir() else { return Ok(Vec::new()) };
    let is_hidden = |entry: &IndexEntry| {
        IndexEntryFlag::from_bits_truncate(entry.flags).is_valid()
            || IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended).is_skip_worktree()
    };
    let mut changed = Vec::new();
    for entry in repository.index()?.iter().filter(is_hidden) {
        let path = String::from_utf8_lossy(&entry.path).into_owned();
        let place = root.join(&path);
        // One that is not there holds no work.
        let now = match fs::symlink_metadata(&place) {
            Ok(metadata) if metadata.is_file() => fs::read(&place).ok(),
            Ok(metadata) if metadata.is_symlink() => fs::read_link(&place)
                .ok()
                .map(|target| target.to_string_lossy().into_owned().into()),
            _ => continue,
        };
        let is_recorded =
            |bytes: &[u8]| Oid::hash_object(ObjectType::Blob, bytes).is_ok_and(|id| id == entry.id);
        // Git may have turned line ends when it checked the file out.
        if now.is_none_or(|now| !is_recorded(&now) && !is_recorded(&turned(&now))) {
            changed.push(path);
        }
    }
    Ok(changed)
}

/// What Git has begun and not ended.
fn under_way(state: RepositoryState) -> Option<&'static str> {
    Some(match state {
        RepositoryState::Clean => return None,
        RepositoryState::Merge => "a merge",
        RepositoryState::Revert | RepositoryState::RevertSequence => "a revert",
        RepositoryState::CherryPick | RepositoryState::CherryPickSequence => "a cherry-pick",
        RepositoryState::Bisect => "a bisect",
        RepositoryState::Rebase
        | RepositoryState::RebaseInteractive
        | RepositoryState::RebaseMerge => "a rebase",
        RepositoryState::ApplyMailbox | RepositoryState::ApplyMailboxOrRebase => "a mailbox",
    })
}

/// The commits that anything in the clone leads to and no remote has, and the remotes that could not be asked.
fn commits(
    repository: &Repository,
    base: Option<&Commit>,
    tips: &Tips<'_>,
) -> Result<(Vec<String>, Vec<String>), git2::Error> {
    let mut walk = repository.revwalk()?;
    for oid in local(repository)? {
        walk.push(oid)?;
    }
    let is_commit = |oid: &Oid| repository.find_commit(*oid).is_ok();
    let came = came(repository.commondir());
    let from_elsewhere = base.into_iter().chain(&came);
    for oid in from_elsewhere.filter_map(|commit| Oid::from_str(commit).ok()).filter(is_commit) {
        walk.hide(oid)?;
    }
    let mut silent = Vec::new();
    let root = repository.workdir().unwrap_or(repository.path());
    for url in remotes(repository)?.iter().filter(|url| !is_inside(root, url)) {
        match tips(url) {
            Ok(tips) => {
                let known = tips.iter().filter_map(|tip| Oid::from_str(tip).ok());
                for oid in known {
                    if let Some(commit) = peeled(repository, oid) {
                        walk.hide(commit)?;
                    }
                }
            }
            Err(error) => silent.push(super::why_silent(&error)),
        }
    }
    let mut commits = Vec::new();
    for oid in walk {
        let commit = repository.find_commit(oid?)?;
        let subject = commit.summary().ok().flatten().unwrap_or_default();
        commits.push(super::shown(&ref_name::name(commit.id()), subject));
    }
    // Nothing is lost that only a silent remote could have.
    if commits.is_empty() {
        silent.clear();
    }
    Ok((commits, silent))
}

/// Everything that branches, tags, HEAD, or what HEAD was before leads to.
fn local(repository: &Repository) -> Result<BTreeSet<Oid>, git2::Error> {
    // The stash is reported separately.
    named(repository, &|name| !name.starts_with(b"refs/remotes/") && name != b"refs/stash")
}

/// Everything that anything in the repository leads to.
pub(super) fn git2_commits(repository: &Repository) -> Result<Vec<Commit>, git2::Error> {
    Ok(named(repository, &|_| true)?.into_iter().map(ref_name::name).collect())
}

/// What the references with these names, HEAD, or what HEAD was before lead to.
fn named(
    repository: &Repository,
    is_meant: &dyn Fn(&[u8]) -> bool,
) -> Result<BTreeSet<Oid>, git2::Error> {
    let mut local = BTreeSet::new();
    for reference in repository.references()? {
        let reference = reference?;
        let is_meant = is_meant(reference.name_bytes());
        if let Some(commit) = reference.peel_to_commit().ok().filter(|_| is_meant) {
            local.insert(commit.id());
        }
    }
    if let Ok(head) = repository.head()
        && let Ok(commit) = head.peel_to_commit()
    {
        local.insert(commit.id());
    }
    let reflog = match repository.reflog("HEAD") {
        Ok(reflog) => reflog,
        Err(error) if error.code() == ErrorCode::NotFound => return Ok(local),
        Err(error) => return Err(error),
    };
    for entry in reflog.iter() {
        local.extend(
            [entry.id_old(), entry.id_new()].into_iter().filter_map(|oid| peeled(repository, oid)),
        );
    }
    Ok(local)
}

fn peeled(repository: &Repository, oid: Oid) -> Option<Oid> {
    let object = repository.find_object(oid, None).ok()?;
    Some(object.peel_to_commit().ok()?.id())
}

/// The URLs of the remotes, for reading and for writing.
fn remotes(repository: &Repository) -> Result<BTreeSet<String>, git2::Error> {
    let mut urls = BTreeSet::new();
    for name in repository.remotes()?.iter().flatten().flatten() {
        let remote = repository.find_remote(name)?;
        urls.extend(remote.pushurl().ok().flatten().or(remote.url().ok()).map(str::to_owned));
    }
    Ok(urls)
}

/// Where the commit that is checked out was pushed to.
pub(super) fn git2_pushed_branch(
    repository: &Repository,
) -> Result<Option<PushedBranch>, git2::Error> {
    let head = repository.head()?;
    let (commit, own) = (head.peel_to_commit()?.id(), head.shorthand().unwrap_or_default());
    let settings = repository.config()?.snapshot()?;
    let mut places = Vec::new();
    for name in repository.remotes()?.iter().flatten().flatten() {
        // As it is written, and not as this user's `url.….insteadOf` leads it: others have to understand it, and a package is called by it.
        let Ok(url) = settings.get_str(&format!("remote.{name}.url")) else { continue };
        let start = format!("refs/remotes/{name}/");
        for reference in repository.references_glob(&format!("{start}*"))? {
            let reference = reference?;
            let branch = reference.name().ok().and_then(|name| name.strip_prefix(&start));
            if let Some(branch) = branch.filter(|_| reference.target() == Some(commit)) {
                places.push((name.to_owned(), url.to_owned(), branch.to_owned()));
            }
        }
    }
    Ok(first_place(places, own))
}

/// The branch, the commit, and how many files differ from it.
pub(super) fn git2_work_state(repository: &Repository) -> Result<WorkState, git2::Error> {
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true);
    let changed = repository.statuses(Some(&mut options))?.len();
    let head = repository.head().ok();
    let commit = head.as_ref().and_then(|head| head.peel_to_commit().ok());
    let branch = head.filter(git2::Reference::is_branch);
    Ok(WorkState {
        branch: branch.and_then(|head| Some(head.shorthand().ok()?.to_owned())),
        head: commit.map(|head| ref_name::name(head.id())),
        changed,
    })
}
