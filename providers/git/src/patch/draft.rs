//! A working copy of a package, in which a person makes the changes that become a patch.
//!
//! It is a folder with a repository of its own, so that a person can use Git there. Its first commit is the package as it
//! came; a patch is the difference between that and the files in the folder, whatever was committed since.

use std::io;
use std::path::{Path, PathBuf};

use git2::{DiffFormat, DiffOptions, Oid, Repository, RepositoryInitOptions, Signature};
use mu_provider::Mode;
use mu_provider::fs::{self, FileError};

use super::mode_bits;

/// The reference to the commit that is the package as it came.
const BASELINE: &str = "refs/mu/baseline";

/// Why a working copy cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The disk refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// It has no repository with the package as it came.
    #[error("`{}` is not a working copy that `mu patch` made", .0.display())]
    Not(PathBuf),
    /// Its repository cannot be read or written.
    #[error("the repository in `{}` cannot be used: {}", .0.display(), .1.message())]
    Repository(PathBuf, git2::Error),
    /// Its name is not UTF-8, or it is neither a file nor a link.
    #[error("`{}` is neither a file nor a link, or its name is not UTF-8", .0.display())]
    Kind(PathBuf),
}

/// A working copy of a package.
pub struct Draft {
    folder: PathBuf,
    repository: Repository,
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Draft").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Draft {
    /// Makes `folder`, which holds the files of a package, a working copy; `message` says which package it is.
    ///
    /// # Errors
    ///
    /// When the repository cannot be written, or the folder not be read.
    pub fn create(folder: &Path, message: &str) -> Result<Self, DraftError> {
        let failed = |error| DraftError::Repository(folder.to_owned(), error);
        let mut options = RepositoryInitOptions::new();
        options.external_template(false).no_reinit(true).initial_head("main");
        let repository = Repository::init_opts(folder, &options).map_err(failed)?;
        let draft = Self { folder: folder.to_owned(), repository };
        let tree = draft.tree(folder, "", &|_| false)?.unwrap_or(Oid::ZERO_SHA1);
        draft.commit(tree, message).map_err(failed)?;
        Ok(draft)
    }

    fn commit(&self, tree: Oid, message: &str) -> Result<(), git2::Error> {
        let repository = &self.repository;
        let tree = match tree.is_zero() {
            true => repository.treebuilder(None)?.write()?,
            false => tree,
        };
        let tree = repository.find_tree(tree)?;
        let signature = Signature::now("mu", "mu@localhost")?;
        let commit =
            repository.commit(Some("HEAD"), &signature, &signature, message, &tree, &[])?;
        repository.reference(BASELINE, commit, false, "the package as it came")?;
        // So that `git status` shows only what was changed since.
        let mut index = repository.index()?;
        index.read_tree(&tree)?;
        index.write()
    }

    /// Opens the working copy in `folder`.
    ///
    /// # Errors
    ///
    /// [`DraftError::Not`] if it is not one.
    pub fn open(folder: &Path) -> Result<Self, DraftError> {
        let not = |_| DraftError::Not(folder.to_owned());
        let flags = git2::RepositoryOpenFlags::NO_SEARCH;
        let repository = Repository::open_ext(folder, flags, &[] as &[&Path]).map_err(not)?;
        repository.find_reference(BASELINE).map_err(not)?;
        Ok(Self { folder: folder.to_owned(), repository })
    }

    /// Which package it is, as passed to [`Draft::create`].
    ///
    /// # Errors
    ///
    /// When its repository cannot be read.
    pub fn message(&self) -> Result<String, DraftError> {
        let commit =
            self.repository.find_reference(BASELINE).and_then(|base| base.peel_to_commit());
        let commit = commit.map_err(|error| self.failed(error))?;
        Ok(commit.message().unwrap_or_default().to_owned())
    }

    /// What was changed since the package came, as `git diff` shows it; empty if nothing was. Files that the package did not
    /// have and that its `.gitignore` ignores are left out.
    ///
    /// # Errors
    ///
    /// When a file or the repository cannot be read.
    pub fn patch(&self) -> Result<Vec<u8>, DraftError> {
        let failed = |error| self.failed(error);
        let base = self.repository.find_reference(BASELINE).and_then(|base| base.peel_to_tree());
        let base = base.map_err(failed)?;
        let is_ignored = |path: &str| {
            base.get_path(Path::new(path)).is_err()
                && self.repository.is_path_ignored(path).unwrap_or(false)
        };
        let now = self.tree(&self.folder, "", &is_ignored)?;
        let now = now.map(|tree| self.repository.find_tree(tree)).transpose().map_err(failed)?;
        let mut options = DiffOptions::new();
        options.show_binary(true).id_abbrev(40);
        let diff = self.repository.diff_tree_to_tree(Some(&base), now.as_ref(), Some(&mut options));
        let mut text = Vec::new();
        diff.and_then(|diff| {
            diff.print(DiffFormat::Patch, |_, _, line| {
                if matches!(line.origin(), '+' | '-' | ' ') {
                    text.push(line.origin() as u8);
                }
                text.extend_from_slice(line.content());
                true
            })
        })
        .map_err(failed)?;
        Ok(text)
    }

    fn failed(&self, error: git2::Error) -> DraftError {
        DraftError::Repository(self.folder.clone(), error)
    }

    /// The files of a folder as a tree of the repository, byte for byte: no filter is applied. `None` if there are none.
    fn tree(
        &self,
        folder: &Path,
        prefix: &str,
        is_left_out: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Oid>, DraftError> {
        let failed = |error| self.failed(error);
        let mut tree = self.repository.treebuilder(None).map_err(failed)?;
        for entry in fs::entries(folder)? {
            let path = entry.path();
            let kind = || DraftError::Kind(path.clone());
            let name = entry.file_name().into_string().map_err(|_| kind())?;
            let inside = format!("{prefix}{name}");
            let metadata = fs::symlink_metadata(&path)?;
            if name == ".git" {
                continue;
            }
            let (id, bits) = if metadata.is_dir() {
                match self.tree(&path, &format!("{inside}/"), is_left_out)? {
                    Some(below) => (below, 0o040_000),
                    None => continue,
                }
            } else if is_left_out(&inside) {
                continue;
            } else {
                let (mode, content) = read_entry(&path, &metadata)?.ok_or_else(kind)?;
                (self.repository.blob(&content).map_err(failed)?, mode_bits(mode).cast_signed())
            };
            tree.insert(&name, id, bits).map_err(failed)?;
        }
        if tree.is_empty() { Ok(None) } else { tree.write().map(Some).map_err(failed) }
    }
}

/// The mode and the content of a file or link; `None` for anything else.
fn read_entry(
    path: &Path,
    metadata: &std::fs::Metadata,
) -> Result<Option<super::PatchFile>, FileError> {
    if metadata.is_symlink() {
        let target = fs::read_link(path)?;
        let target = target.to_str().ok_or_else(|| {
            FileError::new("read", path, io::Error::other("its target is not UTF-8"))
        })?;
        return Ok(Some((Mode::Symlink, target.as_bytes().to_owned())));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    let mode = if fs::is_executable(metadata) { Mode::Executable } else { Mode::File };
    Ok(Some((mode, fs::read(path)?)))
}
