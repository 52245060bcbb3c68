//! A packs folder: what is installed in a workspace, or globally.
//!
//! Installing is a transaction: what will change is written down, every pack is built beside the
//! others, then each is renamed into place, and at last the state is written. A run that dies leaves
//! packs that are whole or absent, and the next run knows which ones to look at again. Where packs
//! come from, and which ones are wanted, is decided elsewhere.
//!
//! ```text
//! packs/BASE/NAME/…      a pack
//! packs/.gitignore       packs are not committed, unless they are vendored
//! packs/vendored.json    packs are committed; there only if they are
//! packs/.mu/lock         held by the run that changes packs
//! packs/.mu/state.json   what mu installed here
//! packs/.mu/staging/     packs on their way
//! ```

mod adopt;
mod bases;
mod hash;
mod install;
mod link;
mod state;
mod vendored;

use std::path::{Path, PathBuf};

use mu_provider::Digest;

use crate::fs::{self, FileError, Lock, Sharing};
use crate::manifest::{JSON_NAME, YAML_NAME};
use crate::store::StoreError;

pub use crate::packs::hash::{HashError, hash_folder};
pub use crate::packs::install::{Building, Installation, Wanted};
pub use crate::packs::state::{Pack, State};
pub use crate::packs::vendored::Record;

/// Why packs could not be installed or checked.
#[derive(Debug, thiserror::Error)]
pub enum PacksError {
    /// The disk refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store does not have, or no longer has, what a pack is made of.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A folder that mu did not make is where a pack belongs.
    #[error("`{}` is in the way: mu did not install it, and its content is not {digest}", path.display())]
    InTheWay {
        /// The folder.
        path: PathBuf,
        /// What belongs there.
        digest: Digest,
    },
    /// The state was written by a newer mu.
    #[error("`{}` was written by a newer mu (format {version}; this one knows {known})", path.display())]
    NewerState {
        /// The state file.
        path: PathBuf,
        /// The format it has.
        version: u32,
        /// The newest format this program knows.
        known: u32,
    },
}

/// A folder of packs.
#[derive(Debug, Clone)]
pub struct PacksFolder {
    folder: PathBuf,
}

impl PacksFolder {
    /// The packs folder `folder`; makes nothing yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Where the pack at `place` (such as `hub.mu.com/aws/ec2`) is.
    pub fn pack_path(&self, place: &str) -> PathBuf {
        self.folder.join(place)
    }

    /// Makes this run the only one that changes these packs, until the lock is dropped.
    ///
    /// # Errors
    ///
    /// When the lock file cannot be made.
    pub fn lock(&self, waiting: &mut dyn FnMut()) -> Result<Lock, FileError> {
        Lock::acquire(&self.own_folder().join("lock"), Sharing::Exclusive, waiting)
    }

    /// What mu installed here.
    ///
    /// # Errors
    ///
    /// When the state cannot be read, or a newer mu wrote it. A damaged one counts as empty.
    pub fn state(&self) -> Result<State, PacksError> {
        State::read(&self.own_folder().join("state.json"))
    }

    /// Whether every pack in `wanted` is here as the state says, and nothing else is.
    ///
    /// Looks at one file a pack and hashes nothing.
    pub fn is_current(&self, state: &State, wanted: &[Wanted]) -> bool {
        state.pending.is_empty()
            && state.packs.len() == wanted.len()
            && wanted.iter().all(|wanted| self.is_installed(state, wanted))
    }

    /// Whether one pack is here as the state says.
    pub fn is_installed(&self, state: &State, wanted: &Wanted) -> bool {
        !state.pending.contains(&wanted.place)
            && state.packs.get(&wanted.place).is_some_and(|pack| pack.digest == wanted.digest)
            && has_manifest(&self.pack_path(&wanted.place))
    }

    /// The folders that taking the lock will make, innermost first.
    pub fn missing_folders(&self) -> Vec<PathBuf> {
        let own = self.own_folder();
        let folders = own.ancestors().take_while(|folder| !folder.exists());
        folders.map(Path::to_owned).collect()
    }

    /// Removes `folders`, which taking the lock has made, if nothing was ever installed here.
    ///
    /// The caller holds the lock, and lets it go right after.
    pub fn remove_traces(&self, folders: &[PathBuf]) {
        let own = self.own_folder();
        let Ok(entries) = std::fs::read_dir(&own) else { return };
        if folders.is_empty() || entries.flatten().any(|entry| entry.file_name() != "lock") {
            return;
        }
        // Each fails, and ends it, where something else is in the folder.
        let _ = fs::remove_file(&own.join("lock"));
        for folder in folders {
            if std::fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }

    fn own_folder(&self) -> PathBuf {
        self.folder.join(".mu")
    }

    fn write_state(&self, state: &State) -> Result<(), FileError> {
        state.write(&self.own_folder().join("state.json"))
    }
}

fn has_manifest(folder: &Path) -> bool {
    [YAML_NAME, JSON_NAME].iter().any(|name| folder.join(name).symlink_metadata().is_ok())
}

/// Whether folder `inner` is somewhere below `outer` (both slash-separated).
fn is_below(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}
