//! What would be lost if a clone were gone: everything in it that is not on one of its remotes.
//!
//! libgit2 reads the clone, and runs no program. The caller asks the remotes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::{
    ErrorCode, IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag, ObjectType, Oid, Repository,
    RepositoryState, Status, StatusOptions,
};
use mu_provider::fs::{self, canonicalize};
use mu_provider::{Commit, ProviderError};

use crate::oid;

/// One kind of work that only the clone has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsaved {
    /// What it is.
    pub kind: Kind,
    /// The submodule that has it; empty for the clone itself.
    pub inside: String,
    /// The files, commits, branches and so on.
    pub names: Vec<String>,
}

/// A kind of work that only a clone has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Changes that are staged, and not committed.
    Staged,
    /// Changes that are not staged.
    Changed,
    /// Files that Git does not track.
    Untracked,
    /// Files that Git ignores.
    Ignored,
    /// Stashed changes.
    Stashed,
    /// A merge, rebase, cherry-pick, revert or bisect under way.
    UnderWay,
    /// Linked worktrees.
    Worktree,
    /// Commits that no remote has.
    Commits,
    /// A remote that could not be asked.
    Remote,
}

/// Asks a remote for the commits that it has.
pub type Tips<'a> = dyn Fn(&str) -> Result<Vec<Commit>, ProviderError> + 'a;

/// Finds what would be lost if the clone in `folder` were gone.
///
/// `base` is a commit that came from elsewhere; `own` are ignored files that hold no work; `tips` asks a remote.
///
/// # Errors
///
/// When the clone cannot be read.
pub fn unsaved(
    folder: &Path,
    base: Option<&Commit>,
    own: &dyn Fn(&str) -> bool,
    tips: &Tips<'_>,
) -> Result<Vec<Unsaved>, git2::Error> {
    let mut found = Vec::new();
    look_into(&mut Repository::open(folder)?, "", base, own, tips, &mut found)?;
    Ok(found)
}

fn look_into(
    repository: &mut Repository,
    inside: &str,
    base: Option<&Commit>,
    own: &dyn Fn(&str) -> bool,
    tips: &Tips<'_>,
    found: &mut Vec<Unsaved>,
) -> Result<(), git2::Error> {
    let mut note = |kind: Kind, names: Vec<String>| {
        if !names.is_empty() {
            found.push(Unsaved { kind, inside: inside.to_owned(), names });
        }
    };
    for (kind, names) in files(repository, own)? {
        note(kind, names);
    }
    note(Kind::UnderWay, under_way(repository.state()).into_iter().map(str::to_owned).collect());
    let worktrees = repository.worktrees()?;
    note(Kind::Worktree, worktrees.iter().flatten().flatten().map(str::to_owned).collect());
    look_into_history(repository, inside, base, tips, found)?;
    let below = |path: &str| {
        if inside.is_empty() { path.to_owned() } else { format!("{inside}/{path}") }
    };
    let mut seen = Vec::new();
    for submodule in repository.submodules()? {
        let Ok(mut repository) = submodule.open() else { continue };
        seen.extend(canonicalize(repository.path()));
        let inside = below(&submodule.path().to_string_lossy());
        look_into(&mut repository, &inside, None, &|_| false, tips, found)?;
    }
    let modules = repository.path().join("modules");
    for folder in repositories_in(&modules) {
        let is_seen = canonicalize(&folder).is_ok_and(|folder| seen.contains(&folder));
        // The files of this submodule are gone, but not what was committed in it.
        if !is_seen && let Ok(mut repository) = Repository::open_bare(&folder) {
            let name = folder.strip_prefix(&modules).unwrap_or(&folder).to_string_lossy();
            look_into_history(&mut repository, &below(&name), None, tips, found)?;
        }
    }
    Ok(())
}

/// Finds stashes and commits.
fn look_into_history(
    repository: &mut Repository,
    inside: &str,
    base: Option<&Commit>,
    tips: &Tips<'_>,
    found: &mut Vec<Unsaved>,
) -> Result<(), git2::Error> {
    let mut stashes = Vec::new();
    repository.stash_foreach(|_, message, _| {
        stashes.push(message.to_owned());
        true
    })?;
    let (commits, silent) = commits(repository, base, tips)?;
    let all = [(Kind::Stashed, stashes), (Kind::Commits, commits), (Kind::Remote, silent)];
    for (kind, names) in all.into_iter().filter(|(_, names)| !names.is_empty()) {
        found.push(Unsaved { kind, inside: inside.to_owned(), names });
    }
    Ok(())
}

/// The repositories of submodules, at any depth: a name may contain slashes.
fn repositories_in(modules: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::entries(modules).unwrap_or_default() {
        let folder = entry.path();
        if folder.join("HEAD").is_file() && folder.join("objects").is_dir() {
            found.push(folder);
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(repositories_in(&folder));
        }
    }
    found
}

/// Files that are not as the commit has them.
fn files(
    repository: &Repository,
    own: &dyn Fn(&str) -> bool,
) -> Result<[(Kind, Vec<String>); 4], git2::Error> {
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
fn hidden(repository: &Repository) -> Result<Vec<String>, git2::Error> {
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
            Ok(metadata) if metadata.is_file() => Oid::hash_file(ObjectType::Blob, &place).ok(),
            Ok(metadata) if metadata.is_symlink() => {
                fs::read_link(&place).ok().and_then(|target| {
                    Oid::hash_object(ObjectType::Blob, target.to_string_lossy().as_bytes()).ok()
                })
            }
            _ => continue,
        };
        if now != Some(entry.id) {
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
    if let Some(base) = base.and_then(|base| Oid::from_str(base).ok()).filter(is_commit) {
        walk.hide(base)?;
    }
    let mut silent = Vec::new();
    for url in remotes(repository)?.iter().filter(|url| !is_inside(repository, url)) {
        match tips(url) {
            Ok(tips) => {
                let known = tips.iter().filter_map(|tip| Oid::from_str(tip).ok());
                for oid in known {
                    if let Some(commit) = peeled(repository, oid) {
                        walk.hide(commit)?;
                    }
                }
            }
            Err(error) => silent.push(match std::error::Error::source(&error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            }),
        }
    }
    let mut commits = Vec::new();
    for oid in walk {
        let commit = repository.find_commit(oid?)?;
        let id = commit.id().to_string();
        let subject = commit.summary().ok().flatten().unwrap_or_default().to_owned();
        commits.push(format!("{} {subject}", id.get(..7).unwrap_or(&id)));
    }
    // Nothing is lost that only a silent remote could have.
    if commits.is_empty() {
        silent.clear();
    }
    Ok((commits, silent))
}

/// Everything that branches, tags, HEAD, or what HEAD was before leads to.
fn local(repository: &Repository) -> Result<BTreeSet<Oid>, git2::Error> {
    let mut local = BTreeSet::new();
    for reference in repository.references()? {
        let reference = reference?;
        let name = reference.name_bytes();
        // The stash is reported separately.
        let is_other = name.starts_with(b"refs/remotes/") || name == b"refs/stash";
        if let Some(commit) = reference.peel_to_commit().ok().filter(|_| !is_other) {
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

/// Whether a remote is a folder in the clone, which would be gone together with it.
fn is_inside(repository: &Repository, url: &str) -> bool {
    let root = repository.workdir().unwrap_or(repository.path());
    let folder = root.join(url.strip_prefix("file://").unwrap_or(url));
    match (canonicalize(root), canonicalize(&folder)) {
        (Ok(root), Ok(folder)) => folder.starts_with(root),
        _ => false,
    }
}

/// A branch of a remote: the URL of the remote, and the branch's name there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The URL.
    pub url: String,
    /// The name.
    pub branch: String,
}

/// Where the commit that is checked out was pushed to, as far as the clone knows: first to `origin`, and to a branch of the
/// same name.
///
/// # Errors
///
/// When the clone cannot be read.
pub fn pushed_to(folder: &Path) -> Result<Option<Pushed>, git2::Error> {
    let repository = Repository::open(folder)?;
    let head = repository.head()?;
    let (commit, own) = (head.peel_to_commit()?.id(), head.shorthand().unwrap_or_default());
    let mut places = Vec::new();
    for name in repository.remotes()?.iter().flatten().flatten() {
        let remote = repository.find_remote(name)?;
        let Ok(url) = remote.url() else { continue };
        let start = format!("refs/remotes/{name}/");
        for reference in repository.references_glob(&format!("{start}*"))? {
            let reference = reference?;
            let branch = reference.name().ok().and_then(|name| name.strip_prefix(&start));
            if let Some(branch) = branch.filter(|branch| *branch != "HEAD")
                && reference.target() == Some(commit)
            {
                let pushed = Pushed { url: url.to_owned(), branch: branch.to_owned() };
                places.push((name != "origin", branch != own, pushed));
            }
        }
    }
    places.sort_by_key(|(is_other, is_renamed, _)| (*is_other, *is_renamed));
    Ok(places.into_iter().map(|(_, _, pushed)| pushed).next())
}

/// The state of a clone, for its user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkState {
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// The commit that is checked out.
    pub head: Option<Commit>,
    /// How many files differ from it.
    pub changed: usize,
}

/// Looks at the clone in `folder`, without asking any remote.
///
/// # Errors
///
/// When the clone cannot be read.
pub fn work_state(folder: &Path) -> Result<WorkState, git2::Error> {
    let repository = Repository::open(folder)?;
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true);
    let changed = repository.statuses(Some(&mut options))?.len();
    let head = repository.head().ok();
    let commit = head.as_ref().and_then(|head| head.peel_to_commit().ok());
    let branch = head.filter(git2::Reference::is_branch);
    Ok(WorkState {
        branch: branch.and_then(|head| Some(head.shorthand().ok()?.to_owned())),
        head: commit.map(|head| oid::name(head.id())),
        changed,
    })
}

/// Makes a repository of the files in `folder`: one commit, on `branch`. Returns the commit.
///
/// # Errors
///
/// When it cannot be made.
pub fn begin_repository(folder: &Path, branch: &str, message: &str) -> Result<Commit, git2::Error> {
    let mut options = git2::RepositoryInitOptions::new();
    options.initial_head(branch).external_template(false);
    let repository = Repository::init_opts(folder, &options)?;
    let mut index = repository.index()?;
    // What the package has is committed, whatever its own `.gitignore` says.
    index.add_all(["*"], git2::IndexAddOption::FORCE, None)?;
    index.write()?;
    let tree = repository.find_tree(index.write_tree()?)?;
    let author = git2::Signature::now("mu", "mu@localhost")?;
    let commit = repository.commit(Some("HEAD"), &author, &author, message, &tree, &[])?;
    Ok(oid::name(commit))
}
