//! Tells what mu has installed from what a user has put in its place, before either is replaced or removed.
//!
//! A state that names a pack proves nothing about what is in its folder now, so the folder is hashed. Files
//! that tools have added to a pack, such as caches, go with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use mu_provider::threads::at_once;
use mu_provider::{Digest, Entry, Kind, Mode, Tree};

use crate::manifest::{Manifest, YAML_NAME, manifest_name};
use crate::packs::error::PacksError;
use crate::packs::folders::Folders;
use crate::packs::install::Installation;
use crate::packs::state::Pack;
use crate::packs::wanted::{WantedPack, is_below};
use crate::store::Store;

/// A file as it is compared; whether it is executable does not count.
type Content<'entry> = (bool, &'entry [u8; 32]);

impl Installation<'_> {
    /// Refuses the plan if it would replace or remove what mu did not install. `before` are the packs that
    /// the lock named before; another process may have installed these.
    ///
    /// # Errors
    ///
    /// When there is such a thing, or the path of a pack contains a link.
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
