//! Why packs could not be installed or checked.

use std::path::PathBuf;

use mu_provider::Digest;

use crate::fs::FileError;
use crate::store::TreeStoreError;

/// Why packs could not be installed or checked.
#[derive(Debug, thiserror::Error)]
pub enum PacksError {
    /// The disk refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store does not have, or no longer has, what a pack is made of.
    #[error(transparent)]
    Store(#[from] TreeStoreError),
    /// Folders that mu did not create are in the place of packs.
    #[error("`{}` is in the way: mu has no record of installing it, and its content is not {digest}{}", path.display(), more(others.len()))]
    InTheWay {
        /// The first folder.
        path: PathBuf,
        /// What belongs there.
        digest: Digest,
        /// The other folders.
        others: Vec<PathBuf>,
    },
    /// The folder of a pack that mu installed has other content now.
    #[error("`{}` is in the way: mu installed `{id}` {version} there, but that is not its content now", path.display())]
    NotOwn {
        /// The folder.
        path: PathBuf,
        /// The package that mu installed there.
        id: String,
        /// Its version.
        version: String,
    },
    /// A package that mu did not install is inside a pack.
    #[error("`{}` is in the way: mu has no record of installing it, and has to replace or remove `{}` around it", path.display(), around.display())]
    Inside {
        /// The folder.
        path: PathBuf,
        /// The folder of the pack.
        around: PathBuf,
    },
    /// A file is in the place of a pack.
    #[error("`{}` is in the way: it is a file, and mu did not put it there", path.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// A vendored pack is not what the lock says.
    #[error("the content of `{}`, which is vendored, is not what Mu.lock says: expected {digest}{}", path.display(), got(*.found))]
    Changed {
        /// The pack's folder.
        path: PathBuf,
        /// What belongs there.
        digest: Digest,
        /// What is there; `None` if it cannot be hashed.
        found: Option<Digest>,
    },
    /// A symbolic link is in the place of a pack or a folder of packs.
    #[error("`{}` is a symbolic link, and mu follows no links in a packs folder: it could lead out of the workspace", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A tree in the store is not the content of the pack. The caller that found this knows why.
    #[error("the store has another package or version for `{id}`")]
    Refused {
        /// The package's id.
        id: String,
    },
    /// What packs leave out was written by a newer mu.
    #[error("`{}` was written by a newer mu (format {version}; this one supports {known})", path.display())]
    NewerRecord {
        /// The file.
        path: PathBuf,
        /// The format it has.
        version: u32,
        /// The newest format that this program supports.
        known: u32,
    },
}

fn got(found: Option<Digest>) -> String {
    found.map_or_else(String::new, |found| format!(", got {found}"))
}

fn more(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "; and so is another folder".to_owned(),
        count => format!("; and so are {count} other folders"),
    }
}
