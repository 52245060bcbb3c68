//! Patches of packages, in the format of `git diff`: the working copy in which a person makes the changes, making a patch from
//! it, and applying one to the files of a package.
//!
//! A working copy is a folder with a repository of its own, so that a person can use Git there. Its first commit is the package
//! as it came; a patch is the difference between that and the files in the folder, whatever was committed since.
//!
//! libgit2 makes and applies patches in memory, so nothing depends on a person's configuration of Git, and no program runs. This
//! module does not know where packages and patches are kept.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use git2::{
    ApplyOptions, Delta, Diff, DiffFormat, DiffOptions, FileMode, Index, IndexEntry, IndexTime,
    Odb, Oid, Repository, RepositoryInitOptions, Signature,
};
use mu_provider::fs::FileError;
use mu_provider::{Mode, ProviderError, fs};

/// A file of a package: its mode, and its content, or the target of a link.
pub type PatchFile = (Mode, Vec<u8>);

/// What a patch does with one path: the file after it, or `None` if the file is gone.
pub type Patched = (String, Option<PatchFile>);

/// Why a patch does not apply.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The text is not a patch.
    #[error("it is not a patch in Git's format: {0}")]
    Unreadable(String),
    /// The patch has no change, or its changes leave every file as it is.
    #[error("it changes nothing")]
    Empty,
    /// A path in it is not inside the package.
    #[error("it would write outside the package: `{0}`")]
    Outside(String),
    /// It creates a file that the package already has.
    #[error("it creates `{0}`, which the package already has")]
    Exists(String),
    /// It changes a file that the package does not have.
    #[error("it changes `{0}`, which the package does not have")]
    Missing(String),
    /// A part of it does not fit.
    #[error("`{path}` is not what it expects: {reason}")]
    Rejected {
        /// The file.
        path: String,
        /// Which part does not fit.
        reason: String,
    },
    /// A file of the package could not be read.
    #[error(transparent)]
    Read(#[from] ProviderError),
}

/// Applies a patch to the files of a package, which `read` returns (`None` if there is no such file). Every line must be where
/// the patch expects it.
///
/// # Errors
///
/// When the patch is not one, changes nothing, leaves the package, or does not fit.
pub fn apply(
    patch: &[u8],
    read: &dyn Fn(&str) -> Result<Option<PatchFile>, ProviderError>,
) -> Result<Vec<Patched>, PatchError> {
    let unreadable = |error: git2::Error| PatchError::Unreadable(error.message().to_owned());
    let diff = Diff::from_buffer(&with_quoted_names(patch)).map_err(unreadable)?;
    // libgit2 applies patches to trees of repositories only. So there is one in memory, with a tree of just the files that the patch
    // names, as they are before: no other file plays a part, and nothing is on disk.
    let odb = Odb::new().map_err(unreadable)?;
    odb.add_new_mempack_backend(1).map_err(unreadable)?;
    let repository = Repository::from_odb(odb).map_err(unreadable)?;
    let (mut paths, mut before) = (BTreeSet::new(), Index::new().map_err(unreadable)?);
    let mut had = std::collections::BTreeMap::new();
    for delta in diff.deltas() {
        let [old, new] = [delta.old_file(), delta.new_file()]
            .map(|file| file.path_bytes().map(<[u8]>::to_owned));
        let mut known = Vec::new();
        for path in [&old, &new].into_iter().flatten() {
            let path = inside(path)?;
            if paths.insert(path.clone())
                && let Some(file) = read(&path)?
            {
                before
                    .add(&entry(&repository, &path, &file).map_err(unreadable)?)
                    .map_err(unreadable)?;
                had.insert(path.clone(), file);
            }
            known.push(path);
        }
        // It would apply a patch to a file that is not there as if that were empty, and one that creates a file over another one.
        let creates = matches!(delta.status(), Delta::Added | Delta::Renamed | Delta::Copied);
        match (known.last(), known.first()) {
            (Some(new), _) if creates && had.contains_key(new) => {
                return Err(PatchError::Exists(new.clone()));
            }
            (_, Some(old)) if delta.status() != Delta::Added && !had.contains_key(old) => {
                return Err(PatchError::Missing(old.clone()));
            }
            _ => {}
        }
    }
    let tree = before
        .write_tree_to(&repository)
        .and_then(|tree| repository.find_tree(tree))
        .map_err(unreadable)?;
    let at = RefCell::new(String::new());
    let mut options = ApplyOptions::new();
    options.delta_callback(|delta| {
        let path = delta.and_then(|delta| {
            let path = delta.old_file().path_bytes().or(delta.new_file().path_bytes());
            path.map(|path| String::from_utf8_lossy(path).into_owned())
        });
        *at.borrow_mut() = path.unwrap_or_default();
        true
    });
    let applied = repository.apply_to_tree(&tree, &diff, Some(&mut options));
    drop(options);
    let after = applied.map_err(|error| PatchError::Rejected {
        path: at.into_inner(),
        reason: error.message().to_owned(),
    })?;
    // What the patch leaves as it is is no part of the answer: a patch may name a file and change nothing in it.
    let mut result = Vec::new();
    for path in paths {
        let found = after.get_path(Path::new(&path), 0);
        let file = found.map(|found| content(&repository, &diff, &path, &found, had.get(&path)));
        let file = file.transpose()?;
        if file.as_ref() != had.get(&path) {
            result.push((path, file));
        }
    }
    if result.is_empty() { Err(PatchError::Empty) } else { Ok(result) }
}

/// The patch with each name in quotes that has a space in it.
///
/// Git does not quote such a name. In the first line about a file, and in those about a renamed one, libgit2 ends a name at the first space, and
/// then does not know the file. Git itself splits the first line where both halves name the same file. A line of a hunk begins with a blank, `+`,
/// `-` or `\`, and one of a binary file has no space in it, so that no content looks like one of these lines.
fn with_quoted_names(patch: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(patch.len());
    let mut is_head = false;
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        let end =
            line.len() - line.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let (text, rest) = line.split_at(end);
        is_head = match text {
            [b'@', b'@', ..] => false,
            _ => is_head || text.starts_with(FILE_LINE),
        };
        match quoted_line(text).filter(|_| is_head) {
            Some(line) => quoted.extend(line),
            None => quoted.extend(text),
        }
        quoted.extend(rest);
    }
    quoted
}

/// How the first line about a file begins.
const FILE_LINE: &[u8] = b"diff --git ";

/// A line of a patch with its names in quotes, if it needs them.
fn quoted_line(line: &[u8]) -> Option<Vec<u8>> {
    let has_space =
        |name: &[u8]| name.contains(&b' ') && !name.iter().any(|byte| matches!(byte, b'"' | b'\\'));
    if let Some(names) = line.strip_prefix(FILE_LINE) {
        // Without the prefixes, `a` and `b`, both names are the same, or this is a renamed file, which other lines name.
        let after_prefix =
            |name: &[u8]| name.splitn(2, |byte| *byte == b'/').nth(1).map(<[u8]>::to_vec);
        let is_both = |(old, new): &(&[u8], &[u8])| {
            after_prefix(old).is_some_and(|old| Some(old) == after_prefix(new))
        };
        let spaces = names.iter().enumerate().filter(|(_, byte)| **byte == b' ');
        let mut halves = spaces.filter_map(|(at, _)| {
            let (old, rest) = names.split_at_checked(at)?;
            Some((old, rest.strip_prefix(b" ")?))
        });
        let (old, new) = halves.find(is_both).filter(|(old, _)| has_space(old))?;
        return Some([FILE_LINE, b"\"", old, b"\" \"", new, b"\""].concat());
    }
    let starts: [&[u8]; 4] = [b"rename from ", b"rename to ", b"copy from ", b"copy to "];
    let (start, name) =
        starts.into_iter().find_map(|start| Some((start, line.strip_prefix(start)?)))?;
    has_space(name).then(|| [start, b"\"", name, b"\""].concat())
}

/// A file after the patch.
fn content(
    repository: &Repository,
    diff: &Diff<'_>,
    path: &str,
    found: &IndexEntry,
    before: Option<&PatchFile>,
) -> Result<PatchFile, PatchError> {
    let unreadable = |error: git2::Error| PatchError::Unreadable(error.message().to_owned());
    let blob = repository.find_blob(found.id).map_err(unreadable)?;
    // A patch without a line for it leaves the mode as it is.
    let says_mode = diff.deltas().any(|delta| {
        let file = delta.new_file();
        file.path_bytes() == Some(path.as_bytes()) && file.mode() != FileMode::Unreadable
    });
    let mode = match before.filter(|_| !says_mode) {
        Some((mode, _)) => *mode,
        None => mode_of(found.mode).ok_or_else(|| PatchError::Rejected {
            path: path.to_owned(),
            reason: format!("mode {:o} is not that of a file or a link", found.mode),
        })?,
    };
    Ok((mode, blob.content().to_owned()))
}

/// A path of a patch, if it is inside the package.
fn inside(path: &[u8]) -> Result<String, PatchError> {
    let outside = || PatchError::Outside(String::from_utf8_lossy(path).into_owned());
    let text = std::str::from_utf8(path).map_err(|_| outside())?;
    let is_fine = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    if text.split('/').all(is_fine) { Ok(text.to_owned()) } else { Err(outside()) }
}

fn entry(
    repository: &Repository,
    path: &str,
    (mode, content): &PatchFile,
) -> Result<IndexEntry, git2::Error> {
    let id = repository.blob(content)?;
    Ok(IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: mode_bits(*mode),
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_owned(),
    })
}

/// Git's bits for a mode.
fn mode_bits(mode: Mode) -> u32 {
    match mode {
        Mode::File => 0o100_644,
        Mode::Executable => 0o100_755,
        Mode::Symlink => 0o120_000,
    }
}

fn mode_of(bits: u32) -> Option<Mode> {
    match bits {
        0o100_644 | 0o100_664 => Some(Mode::File),
        0o100_755 => Some(Mode::Executable),
        0o120_000 => Some(Mode::Symlink),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

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

mu_provider::debug_fields!(Draft { folder });

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

    /// What was changed since the package came, as `git diff` shows it, empty if nothing was; and the files that are left out: the package
    /// did not have them, and Git ignores them.
    ///
    /// # Errors
    ///
    /// When a file or the repository cannot be read.
    pub fn patch(&self) -> Result<(Vec<u8>, Vec<String>), DraftError> {
        let failed = |error| self.failed(error);
        let base = self.repository.find_reference(BASELINE).and_then(|base| base.peel_to_tree());
        let base = base.map_err(failed)?;
        let left_out = RefCell::new(Vec::new());
        let is_ignored = |path: &str| {
            let is_ignored = base.get_path(Path::new(path)).is_err()
                && self.repository.is_path_ignored(path).unwrap_or(false);
            if is_ignored {
                left_out.borrow_mut().push(path.to_owned());
            }
            is_ignored
        };
        let now = self.tree(&self.folder, "", &is_ignored)?;
        let now = now.map(|tree| self.repository.find_tree(tree)).transpose().map_err(failed)?;
        let mut options = DiffOptions::new();
        // The user's own configuration may want other prefixes, and none can be applied that has none.
        options.show_binary(true).id_abbrev(40).old_prefix("a").new_prefix("b");
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
        Ok((text, left_out.into_inner()))
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
fn read_entry(path: &Path, metadata: &std::fs::Metadata) -> Result<Option<PatchFile>, FileError> {
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
