//! A packs folder: what is installed in a workspace, or globally.
//!
//! Installing is a transaction: the intended changes are written down, every pack is built beside the others,
//! then each is renamed into place, and at last the state is written. A run that is killed leaves packs that
//! are whole or absent, and the next run knows which ones to check again. Where packs come from, and which
//! ones are wanted, is decided elsewhere.
//!
//! A packs folder may have come with a checkout, so nothing in it says what was verified or what may be
//! removed: the state is in the cache. Its folders are opened one inside the other, and no symbolic link is
//! followed on the way.
//!
//! ```text
//! packs/BASE/NAME/…      a pack
//! packs/.gitignore       packs are not committed, unless they are vendored
//! packs/vendored.json    packs are committed; there only if they are
//! packs/.mu/lock         held by the run that changes packs
//! packs/.mu/partial.json what packs leave out that make room for others
//! packs/.mu/staging/     packs on their way
//! CACHE/packs/HEX.json   what mu installed in one packs folder
//! ```

mod adopt;
mod error;
mod folder;
mod folders;
mod hash;
mod install;
mod link;
mod own;
mod recognize;
mod state;
#[cfg(test)]
mod tests;
mod vendored;
mod wanted;

pub use crate::packs::adopt::VersionOfContent;
pub use crate::packs::error::PacksError;
pub use crate::packs::folder::PacksFolder;
pub(crate) use crate::packs::hash::hash_file;
pub use crate::packs::hash::{HashError, hash_folder};
pub use crate::packs::install::{Building, Installation, RefuseTree};
pub(crate) use crate::packs::link::make_writable;
pub use crate::packs::state::{Pack, State, remove_orphans};
pub use crate::packs::vendored::PartialPacks;
pub use crate::packs::wanted::WantedPack;
