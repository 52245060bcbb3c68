//! Hashing a folder on disk into the same digest that its archive or commit had.
//!
//! Used to check packs and the store; nothing is trusted from names or times here.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use mu_provider::{Entry, FileDigest, Folder, Mode, Tree};
use sha2::{Digest as _, Sha256};

use crate::fs::{self, AtPath as _, FileError};

/// How many bytes of a file are read at once.
const BUFFER: usize = 64 << 10;

/// Why a folder could not be hashed.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    /// Something in it cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something in it cannot be in a package.
    #[error("`{}` is neither a file nor a link, or its name is not UTF-8", path.display())]
    Kind {
        /// The entry.
        path: std::path::PathBuf,
    },
}

/// The tree of the files below `folder`, without the folders and files in `skip` (absolute paths).
///
/// # Errors
///
/// When something cannot be read.
pub fn hash_folder(folder: &Path, skip: &HashSet<std::path::PathBuf>) -> Result<Tree, HashError> {
    let mut entries = Vec::new();
    let root = fs::canonicalize(folder)?;
    let walk = walkdir::WalkDir::new(&root).into_iter().filter_entry(|entry| {
        let path = folder.join(entry.path().strip_prefix(&root).unwrap_or(entry.path()));
        !skip.contains(&path)
    });
    for entry in walk {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_owned();
            FileError::new("read", path, error.into())
        })?;
        if entry.file_type().is_dir() {
            continue;
        }
        let path = entry.path();
        let kind = || HashError::Kind { path: path.to_owned() };
        let relative = path.strip_prefix(&root).ok().and_then(Path::to_str).ok_or_else(kind)?;
        let relative = relative.replace(std::path::MAIN_SEPARATOR, "/");
        if entry.file_type().is_symlink() {
            let target = fs::read_link(path)?;
            let target = target.to_str().ok_or_else(kind)?;
            entries.push(Entry {
                path: relative,
                mode: Mode::Symlink,
                sha256: FileDigest::from_bytes(Sha256::digest(target.as_bytes()).into()),
                size: target.len() as u64,
            });
        } else if entry.file_type().is_file() {
            let (sha256, size) = hash_file(path)?;
            let is_executable = fs::is_executable(&fs::metadata(path)?);
            let mode = if is_executable { Mode::Executable } else { Mode::File };
            entries.push(Entry { path: relative, mode, sha256, size });
        } else {
            return Err(kind());
        }
    }
    Ok(Tree::new(entries))
}

/// Whether the file of an entry below `folder` has the content that it says, and may be executed if it says so.
pub(super) fn file_matches(folder: &Folder, entry: &Entry) -> bool {
    // Where every file is executable, nothing is wrong with one that need not be.
    let has_mode = |metadata: &std::fs::Metadata| {
        !cfg!(unix) || entry.mode != Mode::Executable || fs::is_executable(metadata)
    };
    folder.open_file(&entry.path).is_ok_and(|(mut file, metadata)| {
        metadata.len() == entry.size
            && has_mode(&metadata)
            && hash_opened(&mut file, entry.size, entry.size)
                .is_ok_and(|(sha256, _)| sha256 == entry.sha256)
    })
}

/// Whether a link that leads to `target` is the one that `entry` says.
pub(super) fn is_target(target: &Path, entry: &Entry) -> bool {
    let target = target.to_str().map(|target| Sha256::digest(target.as_bytes()).into());
    target.is_some_and(|digest| FileDigest::from_bytes(digest) == entry.sha256)
}

/// The digest of a file, and its bytes.
pub(crate) fn hash_file(path: &Path) -> Result<(FileDigest, u64), FileError> {
    let mut file = fs::open(path)?;
    let expected = file.metadata().at("read", path)?.len();
    hash_opened(&mut file, expected, u64::MAX).at("read", path)
}

/// The digest of the first bytes of a file, at most `most`, and their number; it probably has `expected` ones.
fn hash_opened(file: &mut File, expected: u64, most: u64) -> io::Result<(FileDigest, u64)> {
    let mut hash = Sha256::new();
    // Most files are small, and clearing a large buffer would take longer than reading them; one byte more shows the end.
    let length = usize::try_from(expected).unwrap_or(BUFFER).saturating_add(1).min(BUFFER);
    let mut buffer = vec![0; length];
    let mut size = 0;
    while size < most {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        size += count as u64;
        hash.update(&buffer[..count]);
    }
    Ok((FileDigest::from_bytes(hash.finalize().into()), size))
}
