//! What a checkout says of a folder: its commit, what that has, and the differences from it (publishing uses this); how far a clone has gone from where it
//! began; and the modes that Git has recorded, where the file system has none.
//!
//! libgit2 reads the repository, and runs no program, whatever the checkout's configuration names. What it cannot read is read through
//! a [`StandIn`], by libgit2 or by `git`: see [`LocalGit`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use git2::{
    AttrCheckFlags, ErrorCode, IndexEntry, ObjectType, Oid, Repository, Status, StatusOptions,
    TreeWalkMode, TreeWalkResult,
};
use mu_provider::Commit;
use mu_provider::fs::{self, canonicalize};

use crate::config_text::says_no;
use crate::opened::{LocalGit, root_of};
use crate::ref_name;
use crate::stand_in::{EXCLUDE, StandIn, StandInError, text_of};
use crate::surroundings::SurroundingsError;
use crate::unsaved::{hidden_by_library, hidden_by_program};

/// A folder in a checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The root of the checkout.
    pub root: PathBuf,
    /// The checked-out commit; `None` before the first one.
    pub commit: Option<Commit>,
    /// Files of the folder that differ from the commit, relative to the folder, also those at which Git was told not to look.
    pub changed: Vec<String>,
    /// The files and links that the commit has in the folder, relative to it.
    pub files: BTreeSet<String>,
    /// The submodules that it has there, and their commits.
    pub submodules: Vec<(String, Commit)>,
}

/// What a commit has in a folder.
#[derive(Debug, Default)]
struct InCommit {
    files: BTreeSet<String>,
    submodules: Vec<(String, Commit)>,
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
            let mut changed = stand_in.differing_files(&inside, &local.programs)?;
            changed.extend(hidden_by_program(stand_in, &local.programs)?);
            let changed = below(&inside, changed);
            let InCommit { files, submodules } = match &commit {
                Some(commit) => listed(stand_in, commit, &inside, local)?,
                None => InCommit::default(),
            };
            Ok(Some(Self { root: stand_in.root().to_owned(), commit, changed, files, submodules }))
        };
        let read = |repository: &Repository| Self::read(repository, folder);
        let found = local.around(folder, &StandIn::knows_head, &read, &asked)?;
        Ok(found.flatten())
    }

    fn read(repository: &Repository, folder: &Path) -> Result<Option<Self>, git2::Error> {
        let root = root_of(repository);
        let Some(root) = root else { return Ok(None) };
        let Some(inside) = inside(&root, folder) else { return Ok(None) };
        let mut options = StatusOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).disable_pathspec_match(true);
        options.exclude_submodules(true);
        if !inside.is_empty() {
            options.pathspec(&inside);
        }
        let statuses = repository.statuses(Some(&mut options))?;
        // What a filter has made of a file is not what Git recorded.
        let is_filtered = |path: &str| {
            let flags = AttrCheckFlags::FILE_THEN_INDEX;
            repository.get_attr(Path::new(path), "filter", flags).is_ok_and(|name| name.is_some())
        };
        let index = repository.index()?;
        let is_as_checked_out = |path: &str| {
            is_filtered(path) && is_untouched(index.get_path(Path::new(path), 0), &root.join(path))
        };
        let changed = statuses.iter().filter_map(|status| {
            let path = status.path().ok()?;
            let is_changed = status.status() != Status::WT_MODIFIED || !is_as_checked_out(path);
            is_changed.then(|| path.to_owned())
        });
        let hidden = hidden_by_library(repository)?.into_iter().filter(|path| !is_filtered(path));
        let changed = below(&inside, changed.chain(hidden).collect());
        let head = repository.head().and_then(|head| head.peel_to_commit()).ok();
        let InCommit { files, submodules } = match &head {
            Some(head) => recorded(repository, head, &inside)?,
            None => InCommit::default(),
        };
        let commit = head.map(|head| ref_name::name(head.id()));
        Ok(Some(Self { root, commit, changed, files, submodules }))
    }
}

/// Whether a file has the time and the size that it had when Git wrote this entry of the index.
fn is_untouched(entry: Option<IndexEntry>, place: &Path) -> bool {
    let (Some(entry), Ok(found)) = (entry, fs::symlink_metadata(place)) else { return false };
    let modified = found.modified().ok();
    let since = modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let recorded = u64::try_from(entry.mtime.seconds()).ok();
    let is_of_then = since.is_some_and(|since| {
        Some(since.as_secs()) == recorded && since.subsec_nanos() == entry.mtime.nanoseconds()
    });
    is_of_then && u64::from(entry.file_size) == found.len()
}

/// What a commit has in the folder `inside`.
fn recorded(
    repository: &Repository,
    commit: &git2::Commit<'_>,
    inside: &str,
) -> Result<InCommit, git2::Error> {
    let mut found = InCommit::default();
    let mut tree = commit.tree()?;
    if !inside.is_empty() {
        tree = match tree.get_path(Path::new(inside)) {
            Ok(entry) if entry.kind() == Some(ObjectType::Tree) => {
                repository.find_tree(entry.id())?
            }
            Ok(_) => return Ok(found),
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(found),
            Err(error) => return Err(error),
        };
    }
    tree.walk(TreeWalkMode::PreOrder, |folder, entry| {
        let path = format!("{folder}{}", String::from_utf8_lossy(entry.name_bytes()));
        match entry.kind() {
            Some(ObjectType::Blob) => drop(found.files.insert(path)),
            Some(ObjectType::Commit) => found.submodules.push((path, ref_name::name(entry.id()))),
            _ => {}
        }
        TreeWalkResult::Ok
    })?;
    Ok(found)
}

/// The same, as `git` lists it.
fn listed(
    stand_in: &StandIn,
    commit: &Commit,
    inside: &str,
    local: &LocalGit,
) -> Result<InCommit, StandInError> {
    let mut found = InCommit::default();
    let prefix = if inside.is_empty() { String::new() } else { format!("{inside}/") };
    for entry in stand_in.entries_of_commit(commit, inside, &local.programs)? {
        let Some(path) = entry.path.strip_prefix(&prefix).map(str::to_owned) else { continue };
        match entry.is_submodule() {
            true => found.submodules.extend(entry.oid.parse().ok().map(|commit| (path, commit))),
            false => drop(found.files.insert(path)),
        }
    }
    Ok(found)
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
            let root = root_of(repository);
            match root.is_some_and(|root| is_clone(&root)) {
                true => ahead_by_library(repository, base),
                false => Ok(None),
            }
        };
        let by_program = |stand_in: &StandIn| match is_clone(stand_in.root()) {
            true => ahead_by_program(stand_in, self, base),
            false => Ok(None),
        };
        // Only the clone itself has references.
        Ok(self.around(folder, &|_| false, &by_library, &by_program)?.flatten())
    }
}

fn ahead_by_library(
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

fn ahead_by_program(
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

impl LocalGit {
    /// Those of the files at `places`, paths without links, that Git ignores and does not track, if this user or this clone ignores anything
    /// that others do not (`core.excludesFile`, `info/exclude`); none if Git ignores `folder` itself, in whose checkout they are.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn ignored_files(
        &self,
        folder: &Path,
        places: &[PathBuf],
    ) -> Result<BTreeSet<PathBuf>, SurroundingsError> {
        let folder = &canonicalize(folder)?;
        let library = |repository: &Repository| {
            let root = root_of(repository);
            let Some(root) = root.filter(|_| self.has_own_rules(repository)) else {
                return Ok(BTreeSet::new());
            };
            let index = repository.index()?;
            let is_ignored = |place: &Path, slash: &str| match inside(&root, place) {
                Some(path) if !path.is_empty() => {
                    let is_ignored = repository.is_path_ignored(format!("{path}{slash}"))?;
                    Ok::<_, git2::Error>(
                        is_ignored && index.get_path(Path::new(&path), 0).is_none(),
                    )
                }
                _ => Ok(false),
            };
            let mut found = BTreeSet::new();
            if !is_ignored(folder, "/")? {
                for place in places {
                    if is_ignored(place, "")? {
                        found.insert(place.clone());
                    }
                }
            }
            Ok(found)
        };
        let program = |stand_in: &StandIn| {
            let root = stand_in.root();
            let Some(own) = inside(root, folder) else { return Ok(BTreeSet::new()) };
            let paths = places.iter().filter_map(|place| inside(root, place));
            match stand_in.ignored_files(&own, paths, &self.programs) {
                Ok(ignored) => Ok(ignored.iter().map(|path| root.join(path)).collect()),
                // Without Git, nothing is ignored.
                Err(StandInError::Run(_)) => Ok(BTreeSet::new()),
                Err(error) => Err(error),
            }
        };
        Ok(self.around(folder, &|_| true, &library, &program)?.unwrap_or_default())
    }

    /// Whether this user or this clone has rules that others do not have.
    fn has_own_rules(&self, repository: &Repository) -> bool {
        let usual = || {
            let variable = |name: &str| self.programs.variable(name).map(Path::new);
            let home = || Some(variable("HOME")?.join(".config"));
            let folder = variable("XDG_CONFIG_HOME").map(Path::to_owned).or_else(home);
            folder.map(|folder| folder.join("git/ignore"))
        };
        let set = repository.config().and_then(|config| config.get_path("core.excludesfile"));
        let files = [Some(repository.commondir().join(EXCLUDE)), set.ok().or_else(usual)];
        files.into_iter().flatten().any(|file| {
            let text = text_of(&file).ok().flatten().unwrap_or_default();
            text.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#'))
        })
    }
}

/// Any of the permissions to execute a file.
const EXECUTABLE: u32 = 0o111;

/// Whether each file may be executed, by its path; `None` if the file system tells, or nothing says that it does not.
type Modes = Option<BTreeMap<PathBuf, bool>>;

impl LocalGit {
    /// Whether each file of the repository around a folder that Git tracks may be executed, by its path, if Git has found that the file system does not
    /// tell (`core.fileMode=false`); `None` if it tells, or nothing says so.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn recorded_modes(&self, folder: &Path) -> Result<Modes, SurroundingsError> {
        let asked = |stand_in: &StandIn| match modes_by_program(stand_in, self) {
            // Without Git, files are as they are there.
            Err(StandInError::Run(_)) => Ok(None),
            found => found,
        };
        Ok(self.around(folder, &|_| true, &modes_by_library, &asked)?.flatten())
    }
}

impl LocalGit {
    /// The files of the checkout around a folder that Git has recorded as links, by their paths, if it makes none (`core.symlinks=false`):
    /// what such a file has is where the link leads.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn recorded_links(&self, folder: &Path) -> Result<BTreeSet<PathBuf>, SurroundingsError> {
        let library = |repository: &Repository| {
            let root = root_of(repository);
            let makes_links = repository.config()?.get_bool("core.symlinks").unwrap_or(true);
            let Some(root) = root.filter(|_| !makes_links) else { return Ok(BTreeSet::new()) };
            let index = repository.index()?;
            let links = index.iter().filter(|entry| entry.mode == LINK);
            let paths = links.filter_map(|entry| String::from_utf8(entry.path).ok());
            Ok(paths.map(|path| root.join(path)).collect())
        };
        let program = |stand_in: &StandIn| {
            let makes_links = stand_in.setting("core.symlinks", &self.programs);
            match makes_links.map(|said| said.is_some_and(|said| says_no(&said))) {
                Ok(true) => {
                    let entries = stand_in.entries(&self.programs)?.into_iter();
                    let links = entries.filter(|entry| entry.mode == LINK);
                    Ok(links.map(|entry| stand_in.root().join(&entry.path)).collect())
                }
                // Without Git, files are as they are there.
                Ok(false) | Err(StandInError::Run(_)) => Ok(BTreeSet::new()),
                Err(error) => Err(error),
            }
        };
        Ok(self.around(folder, &|_| true, &library, &program)?.unwrap_or_default())
    }
}

/// The mode of a link in an index.
const LINK: u32 = 0o120_000;

fn modes_by_library(repository: &Repository) -> Result<Modes, git2::Error> {
    let Some(root) = root_of(repository) else {
        return Ok(None);
    };
    if repository.config()?.get_bool("core.filemode").unwrap_or(true) {
        return Ok(None);
    }
    let index = repository.index()?;
    let recorded = index.iter().filter_map(|entry| {
        let path = root.join(std::str::from_utf8(&entry.path).ok()?);
        Some((path, entry.mode & EXECUTABLE != 0))
    });
    Ok(Some(recorded.collect()))
}

fn modes_by_program(stand_in: &StandIn, local: &LocalGit) -> Result<Modes, StandInError> {
    let tells = stand_in.setting("core.filemode", &local.programs)?;
    if !tells.is_some_and(|said| says_no(&said)) {
        return Ok(None);
    }
    let entries = stand_in.entries(&local.programs)?;
    let recorded = entries
        .into_iter()
        .map(|entry| (stand_in.root().join(&entry.path), entry.mode & EXECUTABLE != 0));
    Ok(Some(recorded.collect()))
}
