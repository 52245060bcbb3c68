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
mod files;
mod install;
mod recognize;
mod state;
#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use mu_provider::{Digest, Folder, Kind};
use rustc_hash::FxHashSet;

use crate::fs::{self, AtPath as _, FileError, Lock, Sharing};
use crate::store::TreeStoreError;

pub use crate::packs::adopt::VersionOfContent;
pub use crate::packs::files::PartialPacks;
pub(crate) use crate::packs::files::make_writable;
pub use crate::packs::install::{Building, Installation, RefuseTree};
pub(crate) use crate::packs::recognize::hash_file;
pub use crate::packs::recognize::{HashError, hash_folder};
pub use crate::packs::state::{Pack, State, WantedPack, remove_orphans};

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

/// A folder of packs.
#[derive(Debug, Clone)]
pub struct PacksFolder {
    folder: PathBuf,
    /// The folder around it, below which no link is followed; `None` for the user's own folder.
    root: Option<PathBuf>,
    cache: PathBuf,
}

/// The packs folder of a workspace.
const IN_WORKSPACE: &str = ".mu/packs";

/// The folder for mu's own data in a packs folder.
const OWN: &str = ".mu";

impl PacksFolder {
    /// The packs folder of the workspace at `root`, with its state in `cache`; creates nothing yet.
    pub fn for_workspace(root: &Path, cache: &Path) -> Self {
        let folder = root.join(IN_WORKSPACE);
        Self { folder, root: Some(root.to_owned()), cache: cache.to_owned() }
    }

    /// The packs folder of the user with the folder `mu_home`, with its state in `cache`; creates nothing
    /// yet.
    pub fn for_user(mu_home: &Path, cache: &Path) -> Self {
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

    /// Locks these packs, so that only this run changes them until the lock is dropped.
    pub fn lock(&self, waiting: &mut dyn FnMut()) -> Result<Lock, PacksError> {
        let own = self.make()?.open_or_make(OWN);
        own.map_err(|error| self.not_opened(OWN, error))?;
        Ok(Lock::acquire(&self.own_folder().join("lock"), Sharing::Exclusive, waiting)?)
    }

    /// Whether the link at `place` points to the tree with this digest, and the store has that.
    fn is_stored(&self, place: &str, digest: &Digest) -> bool {
        let tree = crate::store::tree_in(&self.cache, digest);
        tree.is_some_and(|tree| fs::read_link(&self.pack_path(place)).is_ok_and(|to| to == tree))
    }

    /// The folders that taking the lock will create, innermost first.
    pub fn missing_folders(&self) -> Vec<PathBuf> {
        let own = self.own_folder();
        let folders = own.ancestors().take_while(|folder| !folder.exists());
        folders.map(Path::to_owned).collect()
    }

    /// Removes `folders`, which taking the lock has created, if nothing was installed here.
    ///
    /// The caller holds the lock, and releases it right after.
    pub fn remove_traces(&self, folders: &[PathBuf]) {
        let is_other = |name: &str, folder: &Path| {
            let entries = fs::entries(folder).unwrap_or_default();
            entries.iter().any(|entry| entry.file_name() != name)
        };
        if folders.is_empty() || is_other("lock", &self.own_folder()) || is_other(OWN, &self.folder)
        {
            return;
        }
        // This fails and stops at a folder that is not empty.
        let _ = fs::remove_file(&self.own_folder().join("lock"));
        for folder in folders {
            if fs::remove_empty_folder(folder).is_err() {
                return;
            }
        }
    }

    /// Opens the packs folder; `None` if it does not exist.
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

    /// Opens the packs folder, and creates it if necessary.
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

    /// Why `place` could not be opened: the first link in its path, or the system's error.
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

/// After how many looks into a folder it is listed instead: a listing takes some five system calls.
const LISTED_AFTER: u32 = 5;

/// Opens the folders around packs. The last one is kept, so sorted places open each folder once.
struct Folders<'packs> {
    packs: &'packs PacksFolder,
    /// The packs folder: not opened yet, absent, or open.
    base: Option<Option<Folder>>,
    last: Option<Last>,
}

/// The last folder below the packs folder that was opened.
struct Last {
    above: String,
    /// `None` if it does not exist.
    folder: Option<Folder>,
    looks: u32,
    /// Folders in it, once it is listed.
    listed: FxHashSet<String>,
}

impl Last {
    fn new(above: &str, folder: Option<Folder>) -> Self {
        Self { above: above.to_owned(), folder, looks: 0, listed: FxHashSet::default() }
    }

    /// The kind of what is at `leaf`. What the listing does not name as it is spelled here is looked at: file
    /// systems can hide kinds, and find a name by another spelling.
    fn kind(&mut self, leaf: &str) -> Option<Kind> {
        let folder = self.folder.as_ref()?;
        if self.looks == LISTED_AFTER {
            self.listed = folder.folders().unwrap_or_default().into_iter().collect();
        }
        self.looks = self.looks.saturating_add(1);
        if self.listed.contains(leaf) { Some(Kind::Folder) } else { folder.kind(leaf) }
    }
}

impl<'packs> Folders<'packs> {
    fn around_packs(packs: &'packs PacksFolder) -> Self {
        Self { packs, base: None, last: None }
    }

    /// The folder of the pack at `place`, and the pack's name in it; `None` if there is no such folder.
    fn folder_at<'place>(
        &mut self,
        place: &'place str,
    ) -> Result<Option<(&Folder, &'place str)>, PacksError> {
        let (above, leaf) = split(place);
        Ok(self.last(above)?.folder.as_ref().map(|folder| (folder, leaf)))
    }

    /// The kind of what is at `place`, if anything; a symbolic link is not followed.
    fn kind(&mut self, place: &str) -> Result<Option<Kind>, PacksError> {
        let (above, leaf) = split(place);
        Ok(self.last(above)?.kind(leaf))
    }

    fn last(&mut self, above: &str) -> Result<&mut Last, PacksError> {
        if self.last.as_ref().is_none_or(|last| last.above != above) {
            let folder = self.open(above)?;
            self.last = Some(Last::new(above, folder));
        }
        Ok(self.last.as_mut().expect("it was set just now"))
    }

    /// As [`Folders::at`], but creates the folder if necessary.
    fn make_at<'place>(
        &mut self,
        place: &'place str,
    ) -> Result<(&Folder, &'place str), PacksError> {
        let (above, leaf) = split(place);
        let is_there = |last: &Last| last.above == above && last.folder.is_some();
        if !self.last.as_ref().is_some_and(is_there) {
            let base = match self.base.take().flatten() {
                Some(base) => base,
                None => self.packs.make()?,
            };
            let made = base.open_or_make(above);
            self.base = Some(Some(base));
            let folder = made.map_err(|error| self.packs.not_opened(above, error))?;
            self.last = Some(Last::new(above, Some(folder)));
        }
        let folder = self.last.as_ref().and_then(|last| last.folder.as_ref());
        Ok((folder.expect("it was opened just now"), leaf))
    }

    fn open(&mut self, above: &str) -> Result<Option<Folder>, PacksError> {
        if self.base.is_none() {
            self.base = Some(self.packs.open()?);
        }
        let Some(base) = self.base.as_ref().and_then(Option::as_ref) else { return Ok(None) };
        match base.open_folder(above) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.packs.not_opened(above, error)),
        }
    }
}

/// A place's folder, and the name in it. Every place has both: a base and a name.
fn split(place: &str) -> (&str, &str) {
    place.rsplit_once('/').unwrap_or((".", place))
}
