//! A packs folder: what is installed in a workspace, or globally.
//!
//! Installing is a transaction: what will change is written down, every pack is built beside the
//! others, then each is renamed into place, and at last the state is written. A run that dies leaves
//! packs that are whole or absent, and the next run knows which ones to look at again. Where packs
//! come from, and which ones are wanted, is decided elsewhere.
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
//! packs/.mu/staging/     packs on their way
//! CACHE/packs/HEX.json   what mu installed in one packs folder
//! ```

mod adopt;
mod bases;
mod folders;
mod hash;
mod install;
mod link;
mod recognize;
mod state;
#[cfg(test)]
mod tests;
mod vendored;

use std::path::{Path, PathBuf};

use mu_provider::{Digest, Folder, Kind};

use crate::fs::{self, AtPath as _, FileError, Lock, Sharing};
use crate::manifest::{JSON_NAME, YAML_NAME};
use crate::packs::folders::Folders;
use crate::store::StoreError;

pub use crate::packs::hash::{HashError, hash_folder};
pub use crate::packs::install::{Building, Check, Installation, Wanted};
pub use crate::packs::state::{Pack, State, remove_orphans};
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
    /// A symbolic link is where a folder of packs belongs, or a pack.
    #[error("`{}` is a symbolic link, and mu follows none in a packs folder: it could lead out of the workspace", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A tree in the store is not what the pack should be. Whoever said so knows why.
    #[error("what the store has for `{id}` is another package or version")]
    Refused {
        /// The package's id.
        id: String,
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

fn got(found: Option<Digest>) -> String {
    found.map_or_else(String::new, |found| format!(", got {found}"))
}

/// A folder of packs.
#[derive(Debug, Clone)]
pub struct PacksFolder {
    folder: PathBuf,
    /// The folder around it, from which on no link is followed; `None` where the user keeps the folder itself.
    root: Option<PathBuf>,
    cache: PathBuf,
}

/// Where a workspace has its packs.
const IN_WORKSPACE: &str = ".mu/packs";

/// What mu keeps for itself in a packs folder.
const OWN: &str = ".mu";

impl PacksFolder {
    /// The packs folder of the workspace at `root`, whose state is kept in `cache`; makes nothing yet.
    pub fn of_workspace(root: &Path, cache: &Path) -> Self {
        let folder = root.join(IN_WORKSPACE);
        Self { folder, root: Some(root.to_owned()), cache: cache.to_owned() }
    }

    /// The packs folder of the user whose mu is at home in `mu_home`, with its state in `cache`; makes nothing yet.
    pub fn of_user(mu_home: &Path, cache: &Path) -> Self {
        Self { folder: mu_home.join("packs"), root: None, cache: cache.to_owned() }
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
    pub fn lock(&self, waiting: &mut dyn FnMut()) -> Result<Lock, PacksError> {
        let own = self.make()?.open_or_make(OWN);
        own.map_err(|error| self.not_opened(OWN, error))?;
        Ok(Lock::acquire(&self.own_folder().join("lock"), Sharing::Exclusive, waiting)?)
    }

    /// Whether every pack in `wanted` is here as the state says, and nothing else is.
    ///
    /// Looks at one or two files a pack and hashes nothing.
    pub fn is_current(&self, state: &State, wanted: &[Wanted]) -> bool {
        let mut folders = Folders::of(self);
        state.pending.is_empty()
            && state.packs.len() == wanted.len()
            && wanted.iter().all(|wanted| self.is_installed(state, wanted, &mut folders))
    }

    /// Those of `wanted` that are not here as the state says.
    pub fn missing<'wanted>(
        &self,
        state: &State,
        wanted: &'wanted [Wanted],
    ) -> Vec<&'wanted Wanted> {
        let mut folders = Folders::of(self);
        wanted.iter().filter(|wanted| !self.is_installed(state, wanted, &mut folders)).collect()
    }

    /// Whether one pack is here as the state says. What cannot be looked at is not.
    fn is_installed(&self, state: &State, wanted: &Wanted, folders: &mut Folders<'_>) -> bool {
        !state.pending.contains(&wanted.place)
            && state.packs.get(&wanted.place).is_some_and(|pack| pack.digest == wanted.digest)
            && folders.at(&wanted.place).ok().flatten().is_some_and(|(folder, leaf)| {
                match folder.kind(leaf) {
                    Some(Kind::Folder) => has_manifest(folder, leaf),
                    Some(Kind::Symlink) => self.is_stored(&wanted.place, &wanted.digest),
                    _ => false,
                }
            })
    }

    /// Whether the link at `place` leads to the tree with this digest, and the store has that.
    fn is_stored(&self, place: &str, digest: &Digest) -> bool {
        let tree = crate::store::tree_in(&self.cache, digest);
        tree.is_some_and(|tree| fs::read_link(&self.pack_path(place)).is_ok_and(|to| to == tree))
    }

    /// Whether a path leads into the store.
    fn is_in_store(&self, path: &Path) -> bool {
        path.starts_with(crate::store::trees_in(&self.cache))
    }

    /// The folders that taking the lock will make, innermost first.
    pub fn missing_folders(&self) -> Vec<PathBuf> {
        let own = self.own_folder();
        let folders = own.ancestors().take_while(|folder| !folder.exists());
        folders.map(Path::to_owned).collect()
    }

    /// Removes `folders`, which taking the lock has made, if nothing was installed here.
    ///
    /// The caller holds the lock, and lets it go right after.
    pub fn remove_traces(&self, folders: &[PathBuf]) {
        let is_other = |name: &str, folder: &Path| {
            let entries = fs::entries(folder).unwrap_or_default();
            entries.iter().any(|entry| entry.file_name() != name)
        };
        if folders.is_empty() || is_other("lock", &self.own_folder()) || is_other(OWN, &self.folder)
        {
            return;
        }
        // Each fails, and ends it, where something else is in the folder.
        let _ = fs::remove_file(&self.own_folder().join("lock"));
        for folder in folders {
            if fs::remove_empty_folder(folder).is_err() {
                return;
            }
        }
    }

    /// Opens the packs folder; `None` if it is not there.
    fn open(&self) -> Result<Option<Folder>, PacksError> {
        let opened = match &self.root {
            Some(root) => Folder::open(root).and_then(|root| root.open_folder(IN_WORKSPACE)),
            None => Folder::open(&self.folder),
        };
        match opened {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.not_opened("", error)),
        }
    }

    /// Opens the packs folder, and makes it if it is not there.
    fn make(&self) -> Result<Folder, PacksError> {
        match &self.root {
            Some(root) => {
                let opened = Folder::open(root).at("open the folder", root)?;
                let made = opened.open_or_make(IN_WORKSPACE);
                made.map_err(|error| self.not_opened("", error))
            }
            None => {
                if let Some(home) = self.folder.parent() {
                    fs::create_private_folder(home, crate::env::IN_HOME)?;
                }
                fs::create_folder(&self.folder)?;
                Ok(Folder::open(&self.folder).at("open the folder", &self.folder)?)
            }
        }
    }

    /// Why `place` could not be opened: the first link on the way, or what the system says.
    fn not_opened(&self, place: &str, error: std::io::Error) -> PacksError {
        let inside = self.folder.join(place);
        let root = self.root.as_deref().unwrap_or(&self.folder);
        let mut above: Vec<&Path> =
            inside.ancestors().take_while(|folder| *folder != root).collect();
        above.reverse();
        match above.into_iter().find(|folder| folder.is_symlink()) {
            Some(link) => PacksError::Link { path: link.to_owned() },
            None => FileError::new("open the folder", inside, error).into(),
        }
    }

    fn own_folder(&self) -> PathBuf {
        self.folder.join(OWN)
    }
}

fn has_manifest(folder: &Folder, pack: &str) -> bool {
    [YAML_NAME, JSON_NAME].iter().any(|name| folder.kind(&[pack, "/", name].concat()).is_some())
}

/// Whether folder `inner` is somewhere below `outer` (both slash-separated).
fn is_below(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}
