//! Patches of packages, in the format of `git diff`: making one from a working copy, and applying one to the files of a
//! package.
//!
//! libgit2 does both in memory, so nothing depends on a person's configuration of Git, and no program runs. This module does
//! not know where packages and patches are kept.

mod draft;

use git2::{ApplyOptions, Delta, Diff, FileMode, Index, IndexEntry, IndexTime, Odb, Repository};
use mu_provider::{Mode, ProviderError};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

pub use self::draft::{Draft, DraftError};

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
    let diff = Diff::from_buffer(patch).map_err(unreadable)?;
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
        let path = delta.and_then(|delta| delta.old_file().path_bytes().map(<[u8]>::to_owned));
        *at.borrow_mut() = String::from_utf8_lossy(&path.unwrap_or_default()).into_owned();
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
