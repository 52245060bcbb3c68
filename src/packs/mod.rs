//! A packs folder: what is installed in a workspace, or globally.
//!
//! Installing is a transaction: the intended changes are written down, every pack is built beside the others, then each
//! is renamed into place, and at last the state is written. A run that is killed leaves packs that are whole or absent,
//! and the next run knows which ones to check again. [`PacksError`] says why packs could not be installed or checked.
//! Where packs come from, and which ones are wanted, is decided elsewhere.
//!
//! A packs folder may have come with a checkout, so nothing in it says what was verified or what may be removed: the
//! state is in the cache. Its folders are opened one inside the other, and no symbolic link is followed on the way.
//!
//! ```text
//! packs/BASE/NAME/…      a pack
//! packs/.gitignore       packs are not committed, unless they are vendored
//! packs/vendored.json    packs are committed; there only if they are
//! packs/.mu/lock         held by the run that changes packs
//! packs/.mu/partial.json what packs leave out that make room for others
//! packs/.mu/archives/    archives that are kept beside vendored packs; not this module's
//! packs/.mu/staging/     packs on their way
//! CACHE/packs/HEX.json   what mu installed in one packs folder
//! ```

mod adopt;
mod folder;
mod install;
mod link;
mod recognize;
mod state;
#[cfg(test)]
mod tests;
mod vendored;

use std::path::PathBuf;

use mu_provider::Digest;

use crate::fs::FileError;
use crate::store::TreeStoreError;

pub use crate::packs::adopt::VersionOfContent;
pub use crate::packs::folder::PacksFolder;
pub use crate::packs::install::{Building, Installation, RefuseTree};
pub(crate) use crate::packs::link::make_writable;
pub(crate) use crate::packs::recognize::hash_file;
pub use crate::packs::recognize::{HashError, hash_folder};
pub use crate::packs::state::{Pack, State, WantedPack, remove_orphans};
pub use crate::packs::vendored::PartialPacks;

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
