//! Finds by hashing what a packs folder contains, and which of it mu has installed.
//!
//! [`hash_folder`] hashes a folder on disk into the same digest that its archive or commit had, to check packs and the
//! store. Nothing is trusted from names or times.
//!
//! Packs are hashed if the state is not known, and always if they are vendored. The state is unknown in a checkout, in
//! a folder that was moved or copied, and after the cache was cleaned. Vendored packs change with the checkout, so
//! earlier results about them prove nothing.
//!
//! What mu has installed is told from what a user has put in its place, before either is replaced or removed. A state
//! that names a pack proves nothing about what is in its folder now, so the folder is hashed. Files that tools have
//! added to a pack, such as caches, go with it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use mu_provider::threads::at_once;
use mu_provider::{Digest, Entry, FileDigest, Folder, Kind, Mode, Tree};
use sha2::{Digest as _, Sha256};

use crate::formats::manifest_names;
use crate::fs::{self, AtPath as _, FileError};
use crate::manifest::{Manifest, YAML_NAME, manifest_name};
use crate::packs::files::is_for_git;
use crate::packs::install::Installation;
use crate::packs::state::{Pack, State, WantedPack, is_below};
use crate::packs::{Folders, PacksError, PacksFolder};
use crate::store::Store;
use crate::workspace::Link;

impl PacksFolder {
    /// Whether every pack in `wanted` is here as the state says, and nothing else is.
    ///
    /// Reads one or two files of each pack and hashes nothing.
    pub fn is_current(&self, state: &State, wanted: &[WantedPack]) -> bool {
        let mut folders = Folders::around_packs(self);
        state.pending.is_empty()
            && state.packs.len() == wanted.len()
            && wanted.iter().all(|wanted| self.is_installed(state, wanted, &mut folders))
    }

    /// The packs of `wanted` that are not here as the state says.
    pub fn missing<'wanted>(
        &self,
        state: &State,
        wanted: &'wanted [WantedPack],
    ) -> Vec<&'wanted WantedPack> {
        let mut folders = Folders::around_packs(self);
        wanted.iter().filter(|wanted| !self.is_installed(state, wanted, &mut folders)).collect()
    }

    /// Whether one pack is here as the state says. A pack that cannot be read is not.
    fn is_installed(&self, state: &State, wanted: &WantedPack, folders: &mut Folders<'_>) -> bool {
        !state.pending.contains(&wanted.place)
            && state.packs.get(&wanted.place).is_some_and(|pack| {
                // What is no longer vendored is whole again.
                let is_whole = || !pack.omitted.iter().any(is_for_git);
                wanted.accepts(&pack.digest)
                    && pack.version == wanted.version
                    && (is_whole() || self.is_vendored())
            })
            && match folders.kind(&wanted.place) {
                Ok(Some(Kind::Folder)) => has_manifest(folders, &wanted.place),
                Ok(Some(Kind::Symlink)) => {
                    wanted.possible_digests().any(|digest| self.is_stored(&wanted.place, &digest))
                }
                _ => false,
            }
    }

    /// What is installed here; `locked` returns what the lock beside these packs names, if that is needed.
    pub fn recognized(
        &self,
        locked: impl FnOnce() -> Vec<WantedPack>,
    ) -> Result<State, PacksError> {
        Ok(self.find_state(locked)?.0)
    }

    /// The state, and whether it is new.
    fn find_state(
        &self,
        locked: impl FnOnce() -> Vec<WantedPack>,
    ) -> Result<(State, bool), PacksError> {
        let is_vendored = self.is_vendored();
        let mut state = match self.known_state() {
            Some(state) if !is_vendored => return Ok((state, false)),
            known => known.unwrap_or_default(),
        };
        let (before, locked) = (state.packs.clone(), locked());
        let record = self.record()?;
        let places: Vec<&str> = locked.iter().map(|pack| &*pack.place).collect();
        let mut folders = Folders::around_packs(self);
        // Whether all that is found is a link to the store, and something is.
        let mut are_links = None;
        for pack in &locked {
            let kind = folders.kind(&pack.place)?;
            if state.pending.contains(&pack.place) {
                continue;
            }
            let found = pack.possible_digests().find_map(|digest| {
                let omitted = record.omitted_parts(&pack.place, &digest, &places);
                let is_it = || {
                    let found = self.digest_of(&pack.place, &places, &omitted, &digest);
                    found.is_ok_and(|found| found == digest)
                };
                let is_there = match kind {
                    Some(Kind::Folder) => is_it(),
                    // Trees in the store were hashed.
                    Some(Kind::Symlink) => !is_vendored && self.is_stored(&pack.place, &digest),
                    _ => false,
                };
                is_there.then(|| Pack { digest, ..Pack::new(pack, omitted) })
            });
            if let Some(found) = found {
                are_links = Some(kind == Some(Kind::Symlink) && are_links.unwrap_or(true));
                state.packs.insert(pack.place.clone(), found);
            } else if state.packs.get(&pack.place).is_some_and(|one| pack.accepts(&one.digest)) {
                state.packs.remove(&pack.place);
            }
        }
        if are_links == Some(true) {
            state.link.get_or_insert(Link::Symlink);
        }
        let is_news = state.packs != before;
        Ok((state, is_news))
    }

    /// Records what [`PacksFolder::recognized`] finds, and returns whether that was new.
    ///
    /// Does nothing if the state is known and packs are not vendored. The caller holds the packs folder's
    /// lock.
    pub fn recognize(
        &self,
        locked: impl FnOnce() -> Vec<WantedPack>,
    ) -> Result<(State, bool), PacksError> {
        let (state, is_news) = self.find_state(locked)?;
        if is_news {
            self.write_state(&state)?;
        }
        Ok((state, is_news))
    }
}

fn has_manifest(folders: &mut Folders<'_>, place: &str) -> bool {
    let Ok(Some((folder, leaf))) = folders.folder_at(place) else { return false };
    manifest_names().any(|name| folder.kind(&[leaf, "/", name].concat()).is_some())
}

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

/// A file as it is compared; whether it is executable does not count.
type Content<'entry> = (bool, &'entry [u8; 32]);

impl Installation<'_> {
    /// Refuses the plan if it would replace or remove what mu did not install. `before` are the packs that
    /// the lock named before; another process may have installed these.
    pub fn check_own(
        &self,
        store: &Store,
        before: &[WantedPack],
        threads: usize,
    ) -> Result<(), PacksError> {
        let mut folders = Folders::around_packs(self.packs);
        let mut there = Vec::new();
        let replaced = self.install.iter().map(|pack| &pack.place).chain(&self.remove);
        for place in replaced.filter(|place| self.state.packs.contains_key(*place)) {
            match folders.kind(place)? {
                // Replacing a link loses nothing that it leads to.
                None | Some(Kind::Symlink) => {}
                Some(Kind::Folder) => there.push(place),
                Some(Kind::File | Kind::Other) => {
                    return Err(PacksError::NoFolder { path: self.packs.pack_path(place) });
                }
            }
        }
        at_once(threads, &there, |place| self.check_folder(place, store, before))
    }

    /// Refuses to replace or remove the folder at `place` if mu did not install what is there.
    fn check_folder(
        &self,
        place: &str,
        store: &Store,
        before: &[WantedPack],
    ) -> Result<(), PacksError> {
        let installed = &self.state.packs[place];
        let path = self.packs.pack_path(place);
        let known = self.wanted.iter().map(|pack| &pack.place).chain(self.state.packs.keys());
        let known: Vec<&String> = known.filter(|other| is_below(other, place)).collect();
        let Ok(tree) = self.packs.tree_of_pack(place, &known) else {
            return Err(self.foreign(path, installed, None));
        };
        let inner: Vec<&str> = known.iter().map(|other| &other[place.len() + 1..]).collect();
        let others = self.wanted.iter().chain(before).filter(|pack| pack.place == place);
        let digests: BTreeSet<Digest> =
            others.flat_map(WantedPack::possible_digests).chain([installed.digest]).collect();
        // What a killed run has put there is in the store.
        let is_pending = self.state.pending.contains(place);
        let is_own =
            |digest: &Digest| digests.contains(digest) || is_pending && store.contains(digest);
        let whole =
            |entries: Vec<Entry>| Tree::new([entries, installed.omitted.clone()].concat()).digest();
        // The manifest that mu generates is not part of the package.
        let head = Manifest::load_head(&path);
        let is_generated = head.is_ok_and(|head| head.is_some_and(|head| head.generated));
        let counts = |entry: &&Entry| {
            let is_inner = |inner: &&str| entry.path == **inner || is_below(&entry.path, inner);
            let is_other = is_generated && entry.path == YAML_NAME || inner.iter().any(is_inner);
            !is_other
        };
        let found = whole(tree.entries().iter().filter(counts).cloned().collect());
        if is_own(&found) || is_own(&whole(tree.entries().to_vec())) {
            return Ok(());
        }
        let there = files(&tree, &counts);
        for stored in digests.iter().filter_map(|digest| store.find(digest).ok().flatten()) {
            let own = files(&stored.tree, &counts);
            if holds(&own, &there) {
                return Ok(());
            }
            if holds(&there, &own) {
                let mut added = there.keys().filter(|file| !own.contains_key(*file));
                let Some(package) = added.find_map(|file| package_of(file)) else { return Ok(()) };
                return Err(PacksError::Inside { path: path.join(package), around: path });
            }
        }
        Err(self.foreign(path, installed, Some(found)))
    }

    fn foreign(&self, path: PathBuf, installed: &Pack, found: Option<Digest>) -> PacksError {
        let digest = installed.digest;
        match self.packs.is_vendored() {
            true => PacksError::Changed { path, digest, found },
            false => {
                let (id, version) = (installed.id.clone(), installed.version.clone());
                PacksError::NotOwn { path, id, version }
            }
        }
    }
}

/// The entries of a tree that `counts` accepts, by their paths.
fn files<'tree>(
    tree: &'tree Tree,
    counts: &dyn Fn(&&Entry) -> bool,
) -> BTreeMap<&'tree str, Content<'tree>> {
    let entries = tree.entries().iter().filter(counts);
    entries
        .map(|entry| (&*entry.path, (entry.mode == Mode::Symlink, entry.sha256.as_bytes())))
        .collect()
}

/// Whether `all` has everything that is in `some`.
fn holds(all: &BTreeMap<&str, Content<'_>>, some: &BTreeMap<&str, Content<'_>>) -> bool {
    some.iter().all(|(path, content)| all.get(path) == Some(content))
}

/// The folder, below that of a pack, of the package whose manifest this file is.
fn package_of(file: &str) -> Option<&str> {
    let (folder, name) = file.rsplit_once('/')?;
    manifest_name(name).map(|_| folder)
}
