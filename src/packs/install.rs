//! The transaction that installs exactly the wanted packs.
//!
//! All packs are built in staging first, some of them while others are fetched; only when all of them are
//! complete are they renamed into place, outer folders before those inside them. A failure before that
//! changes nothing; a crash at any point leaves whole or absent packs and a state that names the places to
//! check again.
//!
//! The packs of a base that has none are built below one folder, and moved into place by one rename for all of
//! them: each rename of a folder from one parent to another blocks all others.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use mu_provider::threads::{at_once, into_inner, lock};
use mu_provider::{Entry, Folder};

use crate::formats::manifest_names;
use crate::fs::{self, AtPath as _, FileError};
use crate::manifest::YAML_NAME;
use crate::packs::adopt::{VersionOfContent, adopt, refuse_files};
use crate::packs::files::{Linker, is_for_git};
use crate::packs::state::{Pack, State, WantedPack, first_from, folders_above, is_below};
use crate::packs::{Folders, OWN, PacksError, PacksFolder};
use crate::store::{Store, Stored, TreeStoreError};
use crate::workspace::Link;

/// Where packs are built, inside mu's own folder.
const STAGING: &str = "staging";

/// Refuses a tree of the store that is not the wanted package.
pub type RefuseTree<'check> =
    dyn Fn(&WantedPack, &Stored) -> Result<(), PacksError> + Sync + 'check;

/// The necessary changes, as a value: created by [`Installation::plan`], and carried out by
/// [`Installation::begin`] and [`Building::finish`].
#[derive(Debug)]
pub struct Installation<'packs> {
    pub(super) packs: &'packs PacksFolder,
    pub(super) state: State,
    pub(super) wanted: Vec<WantedPack>,
    pub(super) install: Vec<WantedPack>,
    pub(super) remove: BTreeSet<String>,
    /// Whether unknown packs were found in place.
    adopted: bool,
    /// How packs come out of the store.
    link: Link,
    is_vendored: bool,
}

impl<'packs> Installation<'packs> {
    /// Compares what is wanted with what is installed. Packs that were installed in another way than by
    /// `link` are made again; vendored ones are files, whatever `link` is. A folder of which mu has no record may be replaced if
    /// `published` knows its content.
    pub fn plan(
        packs: &'packs PacksFolder,
        mut wanted: Vec<WantedPack>,
        link: Link,
        published: &VersionOfContent<'_>,
    ) -> Result<Self, PacksError> {
        let mut state = packs.state();
        let is_vendored = packs.is_vendored();
        let is_linked = is_vendored || state.is_linked_by(link);
        wanted.sort_by(|left, right| left.place.cmp(&right.place));
        let known = state.packs.clone();
        adopt(packs, &mut state, &wanted, published)?;
        let adopted = state.packs != known;
        let remove: BTreeSet<String> = state
            .packs
            .keys()
            .chain(&state.pending)
            .filter(|place| first_from(&wanted, place) != Some(place.as_str()))
            .cloned()
            .collect();
        let changed =
            if is_linked { packs.missing(&state, &wanted) } else { wanted.iter().collect() };
        refuse_files(packs, &state, &changed)?;
        // Packs can be inside packs, and a pack is built and renamed as a whole, with all that is inside of it. So what changes
        // takes along the outermost pack around it, and everything in that one is made again: `together` are these outermost ones.
        let changed = changed.iter().map(|pack| &*pack.place);
        let touched: Vec<&str> = changed.chain(remove.iter().map(String::as_str)).collect();
        let together = outermost(&wanted, &remove, &touched);
        let install = wanted
            .iter()
            .filter(|pack| with_above(&pack.place).any(|place| together.contains(place)))
            .cloned()
            .collect();
        let link = if is_vendored { Link::Copy } else { link };
        Ok(Self { packs, state, wanted, install, remove, adopted, link, is_vendored })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.install.is_empty() && self.remove.is_empty()
    }

    /// The packs that will be made.
    pub fn installs(&self) -> &[WantedPack] {
        &self.install
    }

    /// The places that will be emptied.
    pub fn removals(&self) -> impl Iterator<Item = &str> {
        self.remove.iter().map(String::as_str)
    }

    /// Prepares to build the packs.
    ///
    /// The caller holds the packs folder's lock. `generate` returns the manifest of a package without its
    /// own. `check` refuses a tree that was already in the store and is not the wanted package.
    pub fn begin<'build>(
        self,
        store: &'build Store,
        generate: &'build (dyn Fn(&WantedPack) -> String + Sync),
        check: &'build RefuseTree<'build>,
    ) -> Result<Building<'build>, PacksError>
    where
        'packs: 'build,
    {
        // A link in the path of a pack is reported before anything is changed.
        let mut folders = Folders::around_packs(self.packs);
        for place in self.install.iter().map(|pack| &pack.place).chain(&self.remove) {
            folders.folder_at(place)?;
        }
        let own = self.packs.make()?.open_or_make(OWN);
        let own = own.map_err(|error| self.packs.not_opened(OWN, error))?;
        let staging = own.path().join(STAGING);
        fs::remove_folder(&staging)?;
        let staging = own.open_or_make(STAGING).at("open", &staging)?;
        if self.link == Link::Symlink && !self.is_empty() {
            // Before the link exists, so that pruning always knows it.
            store.note_linked(self.packs.path())?;
        }
        let bases = NewBases::find(self.packs, &self.install);
        let built = Mutex::new(self.install.iter().map(|_| None).collect());
        let linker = Linker::new(self.link);
        Ok(Building { plan: self, store, generate, check, staging, bases, linker, built })
    }
}

/// An [`Installation`] whose packs are being built in staging. No installed pack was changed yet.
pub struct Building<'build> {
    plan: Installation<'build>,
    store: &'build Store,
    generate: &'build (dyn Fn(&WantedPack) -> String + Sync),
    check: &'build RefuseTree<'build>,
    staging: Folder,
    bases: NewBases,
    linker: Linker,
    /// For each pack that was built so far, by its number in the plan, the parts of its package that it leaves out.
    built: Mutex<Vec<Option<Vec<Entry>>>>,
}

impl Building<'_> {
    /// The number of the pack at `place`, if it is to be built.
    pub fn number(&self, place: &str) -> Option<usize> {
        self.plan.install.binary_search_by(|pack| pack.place.as_str().cmp(place)).ok()
    }

    /// Builds the pack with this number, from a tree that has just arrived in the store: that is faster while
    /// both are in memory.
    pub fn build(&self, number: usize, stored: &Stored) -> Result<(), PacksError> {
        let omitted = self.build_from(number, stored)?;
        lock(&self.built)[number] = Some(omitted);
        Ok(())
    }

    /// Cancels without any change.
    pub fn cancel(self) {
        // Removing the staging folder is optional: the next run would remove it.
        let _ = fs::remove_folder(self.staging.path());
    }

    /// Builds the remaining packs, and moves all into place. The store has every tree.
    pub fn finish(self, threads: usize) -> Result<(), PacksError> {
        if self.plan.is_empty() {
            let Installation { packs, state, adopted, .. } = &self.plan;
            if *adopted {
                packs.write_state(state)?;
            }
            return Ok(fs::remove_folder(self.staging.path())?);
        }
        if let Err(error) = self.build_rest(threads) {
            self.cancel();
            return Err(error);
        }
        let Self { plan, staging, bases, built, .. } = self;
        let Installation { packs, mut state, install, remove, link, .. } = plan;
        packs.write_gitignore()?;
        state.pending =
            install.iter().map(|pack| pack.place.clone()).chain(remove.clone()).collect();
        packs.write_state(&state)?;
        let mut trash = Trash { staging: &staging, folder: None, next: 0 };
        let mut folders = Folders::around_packs(packs);
        for place in &remove {
            if let Some((folder, leaf)) = folders.folder_at(place)? {
                trash.take(folder, leaf)?;
            }
            state.packs.remove(place);
        }
        bases.move_into_place(packs, &staging)?;
        let mut folders = Folders::around_packs(packs);
        let built = into_inner(built);
        for (number, (wanted, omitted)) in install.into_iter().zip(built).enumerate() {
            let omitted = omitted.expect("every pack was built, as nothing failed");
            if !bases.holds(&wanted.place) {
                // Packs are sorted, so no folder that is open here is removed with an older pack.
                let (folder, leaf) = folders.make_at(&wanted.place)?;
                trash.replace(folder, leaf, &number.to_string())?;
            }
            let pack = Pack::new(&wanted, omitted);
            state.packs.insert(wanted.place, pack);
        }
        for place in &remove {
            remove_empty_parents(packs.path(), place);
        }
        state.pending.clear();
        state.link = Some(link);
        packs.write_record(&state)?;
        packs.write_state(&state)?;
        fs::remove_folder(staging.path()).map_err(PacksError::from)
    }

    fn build_rest(&self, threads: usize) -> Result<(), PacksError> {
        let left: Vec<usize> = {
            let built = lock(&self.built);
            let left = built.iter().enumerate().filter(|(_, built)| built.is_none());
            left.map(|(number, _)| number).collect()
        };
        let corrupt = Mutex::new(None);
        at_once(threads, &left, |&number| {
            let wanted = &self.plan.install[number];
            let stored = self.store.find(&wanted.digest)?;
            let built = match stored {
                Some(stored) => {
                    (self.check)(wanted, &stored)?;
                    self.build(number, &stored)
                }
                None => {
                    let path = self.store.tree_path(&wanted.digest);
                    Err(TreeStoreError::Corrupt { path }.into())
                }
            };
            match built {
                // The store has dropped the tree. The others are looked at all the same, so that one more attempt
                // fetches all that it lacks then.
                Err(PacksError::Store(error @ TreeStoreError::Corrupt { .. })) => {
                    lock(&corrupt).get_or_insert(error);
                    Ok(())
                }
                built => built,
            }
        })?;
        into_inner(corrupt).map_or(Ok(()), |error| Err(error.into()))
    }

    fn build_from(&self, number: usize, stored: &Stored) -> Result<Vec<Entry>, PacksError> {
        let (pack, wanted) = (&self.plan.install[number], &self.plan.wanted);
        let place = self.bases.staged(&pack.place, number);
        let unmade = |error: io::Error| {
            FileError::new("make the folder", self.staging.path().join(&place), error)
        };
        let below = format!("{}/", pack.place);
        let inner: Vec<&str> = wanted[wanted.partition_point(|other| other.place < below)..]
            .iter()
            .map_while(|other| other.place.strip_prefix(&below))
            .collect();
        let needs_manifest = !has_manifest(stored);
        if self.plan.link == Link::Symlink && inner.is_empty() && !needs_manifest {
            if let Some((above, _)) = place.rsplit_once('/') {
                self.staging.make_folders(above).map_err(unmade)?;
            }
            let checked = self.linker.check(stored, &self.open(stored, pack)?);
            self.dropped_if_corrupt(pack, checked)?;
            fs::symlink_folder(&stored.folder, &self.staging.path().join(&place))?;
            return Ok(Vec::new());
        }
        let folder = self.staging.make_folders(&place);
        let folder = folder.and_then(|()| self.staging.open_folder(&place)).map_err(unmade)?;
        let is_vendored = self.plan.is_vendored;
        let is_inner = |entry: &Entry| {
            inner.iter().any(|inner| entry.path == *inner || is_below(&entry.path, inner))
        };
        let belongs = |entry: &Entry| !(is_inner(entry) || is_vendored && is_for_git(entry));
        let source = self.open(stored, pack)?;
        let filled = self.linker.fill_folder(stored, &source, &folder, &belongs);
        self.dropped_if_corrupt(pack, filled)?;
        if needs_manifest {
            fs::write_atomic(&folder.path().join(YAML_NAME), (self.generate)(pack).as_bytes())?;
        }
        let omitted = stored.tree.entries().iter().filter(|entry| !belongs(entry));
        Ok(omitted.cloned().collect())
    }

    fn open(&self, stored: &Stored, pack: &WantedPack) -> Result<Folder, PacksError> {
        self.dropped_if_corrupt(pack, self.store.open(stored).map_err(PacksError::from))
    }

    /// Makes the store drop a tree that was changed.
    fn dropped_if_corrupt<T>(
        &self,
        pack: &WantedPack,
        result: Result<T, PacksError>,
    ) -> Result<T, PacksError> {
        if let Err(PacksError::Store(TreeStoreError::Corrupt { .. })) = &result {
            self.store.remove(&pack.digest)?;
        }
        result
    }
}

/// The outermost packs around the touched places.
///
/// Everything in one of them is made again together: a pack inside a folder that is replaced or removed goes with it, and a
/// pack around one that is added or removed has other files.
fn outermost<'places>(
    wanted: &[WantedPack],
    remove: &BTreeSet<String>,
    touched: &[&'places str],
) -> BTreeSet<&'places str> {
    let is_pack = |place: &str| first_from(wanted, place) == Some(place) || remove.contains(place);
    touched.iter().filter_map(|place| with_above(place).find(|place| is_pack(place))).collect()
}

/// The folders above a place, from the outside to the inside, and the place itself.
fn with_above(place: &str) -> impl Iterator<Item = &str> {
    folders_above(place).chain([place])
}

fn has_manifest(stored: &Stored) -> bool {
    let entries = stored.tree.entries();
    let named = |name: &&str| crate::formats::says_its_name(name);
    manifest_names().filter(named).any(|name| {
        entries.binary_search_by(|entry| entry.path.as_bytes().cmp(name.as_bytes())).is_ok()
    })
}

/// Folders that were replaced, kept aside in staging until all is done.
struct Trash<'staging> {
    staging: &'staging Folder,
    folder: Option<Folder>,
    next: u32,
}

impl Trash<'_> {
    fn take(&mut self, folder: &Folder, leaf: &str) -> Result<(), FileError> {
        const OLD: &str = "old";
        if folder.kind(leaf).is_none() {
            return Ok(());
        }
        let trash = match self.folder.take() {
            Some(trash) => trash,
            None => {
                let path = self.staging.path().join(OLD);
                self.staging.open_or_make(OLD).at("make the folder", &path)?
            }
        };
        let name = self.next.to_string();
        self.next += 1;
        let moved = folder.rename(leaf, &trash, &name);
        self.folder = Some(trash);
        moved.at("move out of the way", &folder.path().join(leaf))
    }

    /// Moves `new` from staging to `leaf` in `folder`. Usually nothing is there, so this is not checked
    /// first.
    fn replace(&mut self, folder: &Folder, leaf: &str, new: &str) -> Result<(), FileError> {
        if self.staging.rename(new, folder, leaf).is_ok() {
            return Ok(());
        }
        self.take(folder, leaf)?;
        let moved = self.staging.rename(new, folder, leaf);
        moved.at("move into place", &folder.path().join(leaf))
    }
}

/// Removes the folders above `place` that are now empty.
fn remove_empty_parents(root: &Path, place: &str) {
    let mut parent = Path::new(place).parent();
    while let Some(folder) = parent.filter(|folder| !folder.as_os_str().is_empty()) {
        // Fails at a folder that is not empty, where this stops.
        if fs::remove_empty_folder(&root.join(folder)).is_err() {
            return;
        }
        parent = folder.parent();
    }
}

/// The bases that do not exist yet, such as `hub.mu.com`.
#[derive(Debug)]
struct NewBases {
    bases: BTreeSet<String>,
}

/// The folder in staging where they are built.
const NEW: &str = "new";

impl NewBases {
    /// Finds the bases of `install` that `packs` has no folder for.
    pub(super) fn find(packs: &PacksFolder, install: &[WantedPack]) -> Self {
        let bases: BTreeSet<&str> =
            install.iter().filter_map(|wanted| base(&wanted.place)).collect();
        let is_new = |base: &&str| fs::symlink_metadata(&packs.pack_path(base)).is_err();
        Self { bases: bases.into_iter().filter(is_new).map(str::to_owned).collect() }
    }

    /// Where in staging the pack at `place`, which has this number, is built.
    pub(super) fn staged(&self, place: &str, number: usize) -> String {
        if self.holds(place) { [NEW, "/", place].concat() } else { number.to_string() }
    }

    /// Whether the pack at `place` comes with its base.
    pub(super) fn holds(&self, place: &str) -> bool {
        base(place).is_some_and(|base| self.bases.contains(base))
    }

    /// Moves all bases from staging into place, each as a whole.
    pub(super) fn move_into_place(
        &self,
        packs: &PacksFolder,
        staging: &Folder,
    ) -> Result<(), PacksError> {
        let target = packs.make()?;
        for base in &self.bases {
            let moved = staging.rename(&[NEW, "/", base].concat(), &target, base);
            moved.at("move into place", &packs.pack_path(base))?;
        }
        Ok(())
    }
}

/// The first part of a place.
fn base(place: &str) -> Option<&str> {
    place.split_once('/').map(|(base, _)| base)
}
