//! What would be lost if a clone were gone: everything in it that is not on one of its remotes.
//!
//! libgit2 reads the clone (`library.rs`), or else `git` (`program.rs`). Neither runs a program that the clone names. The caller asks the
//! remotes.

mod library;
mod program;

use std::path::{Path, PathBuf};

use git2::Repository;
use mu_provider::fs::{self, canonicalize};
use mu_provider::{Commit, ProviderError};

pub(crate) use self::library::hidden as hidden_by_library;
pub(crate) use self::program::hidden as hidden_by_program;
use crate::opened::LocalGit;
use crate::ref_name;
use crate::remote_url::without_login;
use crate::stand_in::{Place, StandIn};
use crate::surroundings::SurroundingsError;

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

/// The file beside Git's own that has the commits which came with a clone, a line each. They are nobody's work in it, also after the
/// branches and tags that led to them have moved on or gone from the remote.
const CAME: &str = "mu-cloned";

/// Asks a remote for the commits that it has.
pub type Tips<'a> = dyn Fn(&str) -> Result<Vec<Commit>, ProviderError> + 'a;

/// Whether an ignored file holds no work.
type Own<'a> = dyn Fn(&str) -> bool + 'a;

/// What was found of each kind; of some nothing.
type Found = Vec<(Kind, Vec<String>)>;

/// What a clone has.
struct Looked {
    found: Found,
    /// The paths of its submodules.
    submodules: Vec<String>,
}

impl LocalGit {
    /// Finds what would be lost if the clone in `folder` were gone.
    ///
    /// `base` is a commit that came from elsewhere, as those are that [`Self::note_cloned`] has noted; `own` are ignored files that hold no
    /// work; `tips` asks a remote.
    ///
    /// # Errors
    ///
    /// When the clone cannot be read.
    pub fn unsaved(
        &self,
        folder: &Path,
        base: Option<&Commit>,
        own: &dyn Fn(&str) -> bool,
        tips: &Tips<'_>,
    ) -> Result<Vec<Unsaved>, SurroundingsError> {
        let mut all = Vec::new();
        self.look_into(folder, "", base, own, tips, &mut all)?;
        Ok(all)
    }

    /// Notes what the clone in `folder`, in which nobody has worked yet, and its submodules have from elsewhere.
    ///
    /// # Errors
    ///
    /// When the clone cannot be read, or the note not be written.
    pub fn note_cloned(&self, folder: &Path) -> Result<(), SurroundingsError> {
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            let Some(Place { common, .. }) = Place::of(&folder) else { continue };
            let by_program =
                |stand_in: &StandIn| program::git_program_commits(stand_in, &self.programs);
            let came = self.of(&folder, &library::git2_commits, &by_program)?;
            let lines: String = came.iter().map(|commit| format!("{commit}\n")).collect();
            fs::write_atomic(&common.join(CAME), lines.as_bytes())?;
            open.extend(repositories_in(&common.join("modules")));
        }
        Ok(())
    }

    fn look_into(
        &self,
        folder: &Path,
        inside: &str,
        base: Option<&Commit>,
        own: &dyn Fn(&str) -> bool,
        tips: &Tips<'_>,
        all: &mut Vec<Unsaved>,
    ) -> Result<(), SurroundingsError> {
        let by_library = |repository: &Repository| library::look(repository, base, own, tips);
        let by_program =
            |stand_in: &StandIn| program::look(stand_in, &self.programs, base, own, tips);
        let Looked { found, submodules } = self.of(folder, &by_library, &by_program)?;
        note(inside, found, all);
        let below = |path: &str| {
            if inside.is_empty() { path.to_owned() } else { format!("{inside}/{path}") }
        };
        let mut seen = Vec::new();
        for path in submodules {
            let place = folder.join(&path);
            // One that is not cloned has no repository.
            let Some(there) = place.join(".git").exists().then(|| Place::of(&place)).flatten()
            else {
                continue;
            };
            seen.extend(canonicalize(&there.own));
            self.look_into(&place, &below(&path), None, &|_| false, tips, all)?;
        }
        let Some(Place { common, .. }) = Place::of(folder) else { return Ok(()) };
        let modules = common.join("modules");
        for folder in repositories_in(&modules) {
            let is_seen = canonicalize(&folder).is_ok_and(|folder| seen.contains(&folder));
            // The files of this submodule are gone, but not what was committed in it.
            if !is_seen {
                let name = folder.strip_prefix(&modules).unwrap_or(&folder).to_string_lossy();
                let by_library = |repository: &Repository| library::history(repository, None, tips);
                let by_program = |stand_in: &StandIn| {
                    program::git_program_history(stand_in, &self.programs, None, tips)
                };
                note(&below(&name), self.of(&folder, &by_library, &by_program)?, all);
            }
        }
        Ok(())
    }

    /// Where the commit that is checked out was pushed to, as far as the clone knows: first to `origin`, and to a branch of the
    /// same name.
    ///
    /// # Errors
    ///
    /// When the clone cannot be read.
    pub fn pushed_to(&self, folder: &Path) -> Result<Option<PushedBranch>, SurroundingsError> {
        let by_program =
            |stand_in: &StandIn| program::git_program_pushed_branch(stand_in, &self.programs);
        self.of(folder, &library::git2_pushed_branch, &by_program)
    }

    /// Looks at the clone in `folder`, without asking any remote.
    ///
    /// # Errors
    ///
    /// When the clone cannot be read.
    pub fn work_state(&self, folder: &Path) -> Result<WorkState, SurroundingsError> {
        let by_program =
            |stand_in: &StandIn| program::git_program_work_state(stand_in, &self.programs);
        self.of(folder, &library::git2_work_state, &by_program)
    }
}

fn note(inside: &str, found: Found, all: &mut Vec<Unsaved>) {
    for (kind, names) in found.into_iter().filter(|(_, names)| !names.is_empty()) {
        all.push(Unsaved { kind, inside: inside.to_owned(), names });
    }
}

/// A commit, for its author.
fn shown(commit: &Commit, subject: &str) -> String {
    format!("{} {subject}", commit.get(..7).unwrap_or(commit))
}

/// Why a remote could not be asked.
fn why_silent(error: &ProviderError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Of the branches of remotes that have a commit (the remote, its URL, the branch), the one that it was pushed to: first of `origin`, and
/// one called like its `own` branch.
fn first_place(places: Vec<(String, String, String)>, own: &str) -> Option<PushedBranch> {
    let places = places.into_iter().filter(|(_, _, branch)| branch != "HEAD");
    let first = places.min_by_key(|(name, _, branch)| (name != "origin", branch != own));
    first.map(|(_, url, branch)| PushedBranch { url: without_login(&url), branch })
}

/// The commits that came with the clone whose data is in `common`, as it was noted then; none if it was not, or in a file that is not
/// mu's.
fn came(common: &Path) -> Vec<Commit> {
    let text = fs::read_text_if_there(&common.join(CAME)).ok().flatten().unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
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

/// Whether a remote is a folder in the clone, which would be gone together with it.
fn is_inside(root: &Path, url: &str) -> bool {
    let folder = root.join(url.strip_prefix("file://").unwrap_or(url));
    match (canonicalize(root), canonicalize(&folder)) {
        (Ok(root), Ok(folder)) => folder.starts_with(root),
        _ => false,
    }
}

/// A branch of a remote: the URL of the remote, and the branch's name there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedBranch {
    /// The URL.
    pub url: String,
    /// The name.
    pub branch: String,
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
    Ok(ref_name::name(commit))
}
