//! The packs of this machine: as releases to choose from, and as what a lock needs.
//!
//! They are releases in three cases: installed packages, if no registry can be reached; packs of the user and the
//! runtime, if no registry has a package; and packs that somebody has put into the workspace. For a lock, there are the
//! packs that it needs, where they are, and the search path that includes them. Nothing is installed here.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use mu_formats::Reading;
use mu_provider::Release;
use rustc_hash::FxHashSet;

use crate::formats;
use crate::lock::{LockedPackage, Lockfile, Source};
use crate::manifest::{Loaded, manifest_name};
use crate::ops::session::source::relative;
use crate::ops::{CommandError, OperationScope, Session, WorkspacePlaces};
use crate::packs::{PacksFolder, WantedPack, hash_folder};
use crate::reference::PackageId;
use crate::search::{FirstNames, InstalledPack, SearchPath};

/// The packs of this machine.
pub(crate) struct PacksHere {
    places: WorkspacePlaces,
    scope: OperationScope,
    own: PacksFolder,
    lock: Arc<Lockfile>,
    /// The first names below the packs folders of the workspace, of the user, and of the runtime.
    first_names: [OnceLock<FirstNames>; 3],
    /// The packs that mu itself has installed in the workspace.
    managed: OnceLock<FxHashSet<String>>,
    /// The packages that the settings patch.
    patched: BTreeSet<PackageId>,
}

impl PacksHere {
    /// The packs around a session.
    pub(crate) fn new(session: &Session) -> Self {
        Self {
            places: session.places.clone(),
            scope: session.scope,
            own: session.packs(),
            lock: session.lockfile().ok().flatten().unwrap_or_default(),
            first_names: Default::default(),
            managed: OnceLock::new(),
            patched: session.workspace.settings.patches.iter().map(|one| one.id.clone()).collect(),
        }
    }

    /// The installed versions of a package from a hub, in the order of the search path.
    ///
    /// A pack that is not exactly the package is left out, because its content would have another digest.
    pub(crate) fn installed(&self, id: &PackageId) -> Vec<Release> {
        self.found(id, 2).into_iter().map(|(_, release)| release).collect()
    }

    /// The versions of a package among the packs of the user and of the runtime, each once.
    pub(crate) fn of_user_and_runtime(&self, id: &PackageId) -> Vec<Release> {
        let mut releases: Vec<Release> = Vec::new();
        for (_, release) in self.found(id, self.first_elsewhere()) {
            if !releases.iter().any(|known| known.full_version() == release.full_version()) {
                releases.push(release);
            }
        }
        releases
    }

    /// The number of the first place that other workspaces have too. For the global packs themselves, that is
    /// the runtime's.
    fn first_elsewhere(&self) -> usize {
        // The eight places of a package, counted from 0, two in each folder (with the base, and without it):
        //
        //     0 1  the workspace itself      4 5  the packs of the user
        //     2 3  its packs                 6 7  the packs of the runtime
        match self.scope {
            OperationScope::Workspace => 4,
            OperationScope::Global => 6,
        }
    }

    /// The pack that somebody has put into the workspace for a package, and its folder; `None` for packs that
    /// mu installed, and for packages that the lock has from elsewhere.
    pub(crate) fn placed_pack(&self, id: &PackageId) -> Option<(PathBuf, Release)> {
        // A patched pack has other content than its registry lists; whether it is that of the patch is known once it was applied.
        if self.scope == OperationScope::Global
            || !self.may_be_in(0, id)
            || self.patched.contains(id)
        {
            return None;
        }
        // What the lock has from elsewhere is installed by mu, even if somebody has changed it since.
        let is_locked = |package: &LockedPackage| !package.source.is_placed_pack();
        if self.lock.find(id).any(is_locked) || self.lock.replacement(id).is_some() {
            return None;
        }
        let places = self.places.search().package_places(id);
        let has_manifest = |folder: &Path| !matches!(formats::locate_manifest(folder), Ok(None));
        let there = places[2..4].iter().filter(|place| has_manifest(&place.folder));
        let there: Vec<&PathBuf> = there.map(|place| &place.folder).collect();
        // Vendored packs come with the checkout, also those that another branch has locked: nobody has put them there
        // by hand.
        if there.is_empty() || self.own.is_vendored() {
            return None;
        }
        // mu's own: what its record names, what a killed run was about to install, and what the lock names.
        let managed = self.managed.get_or_init(|| {
            let state = self.own.state();
            let named = named(&self.lock).into_iter().map(|pack| pack.place);
            state.packs.into_keys().chain(state.pending).chain(named).collect()
        });
        let is_own = |folder: &Path| managed.contains(&relative(self.own.path(), folder));
        let mut there = there.into_iter().filter(|folder| !is_own(folder));
        there.find_map(|folder| {
            let is_linked = self.places.search().link_on_the_way(folder).is_some();
            (!is_linked).then(|| release(folder, id)).flatten().map(|found| (folder.clone(), found))
        })
    }

    /// Whether a pack of this package may be in one of the packs folders: the workspace's, the user's, the runtime's.
    fn may_be_in(&self, number: usize, id: &PackageId) -> bool {
        let folder = &self.places.search().packs[number];
        let read = || FirstNames::read(std::slice::from_ref(folder));
        self.first_names[number].get_or_init(read).may_hold(id)
    }

    /// Where a version of a package is among these packs, as written in a lock.
    pub(crate) fn pack_source(&self, id: &PackageId, version: &str) -> Option<Source> {
        let [own, user, runtime] = &self.places.search().packs;
        if let Some((folder, _)) = self.placed_pack(id) {
            let place = format!("{}{}", Source::IN_WORKSPACE, relative(own, &folder));
            return Some(Source::new(Source::PACK, place));
        }
        let found = self.found(id, self.first_elsewhere());
        let (folder, _) =
            found.into_iter().find(|(_, release)| release.full_version() == version)?;
        let place = if folder.starts_with(user) {
            format!("{}{}", Source::USER_PLACE_PREFIX, relative(user, &folder))
        } else {
            format!("{}{}", Source::IN_RUNTIME, relative(runtime, &folder))
        };
        Some(Source::new(Source::PACK, place))
    }

    /// The versions of a package from the place with this number on (counted from 0), with their folders.
    fn found(&self, id: &PackageId, first: usize) -> Vec<(PathBuf, Release)> {
        // Two places after another are in one packs folder; the first two are in none.
        let is_there = |place: usize| self.may_be_in(place / 2 - 1, id);
        if !(first..8).step_by(2).any(is_there) {
            return Vec::new();
        }
        let search = self.places.search();
        let places = search.package_places(id).into_iter().enumerate().skip(first);
        let places = places.filter(|(place, _)| is_there(*place));
        let folders = places.map(|(_, place)| place.folder);
        let folders = folders.filter(|folder| search.link_on_the_way(folder).is_none());
        folders
            .filter_map(|folder| Some((release(&folder, id)?, folder)))
            .map(|(one, at)| (at, one))
            .collect()
    }
}

fn release(folder: &Path, id: &PackageId) -> Option<Release> {
    let Loaded { manifest, path, .. } = formats::load(folder, &Reading::default()).ok()??;
    let format = formats::format_of_manifest(&path);
    let name = id.name_str();
    // In another ecosystem, the name of a package is the last segment of its name here.
    let name = if format.is_some() { name.rsplit('/').next().unwrap_or(name) } else { name };
    let is_named_so = manifest.name.name().as_str() == name;
    // A manifest that mu has made, or packs inside: the files here are not the package's alone, so their digest is not
    // its digest.
    if !is_named_so || manifest.generated || manifest.version.is_none() || holds_others(folder) {
        return None;
    }
    let digest = hash_folder(folder, &HashSet::new()).ok()?.digest().to_string();
    let format = format.map(|format| format.name.to_owned());
    Some(Release { digest: Some(digest), format, ..manifest.to_release() })
}

/// Whether there are packages in folders below, which are probably separate packs.
fn holds_others(folder: &Path) -> bool {
    let mut below = walkdir::WalkDir::new(folder).min_depth(2).into_iter().flatten();
    below.any(|entry| entry.file_name().to_str().and_then(manifest_name).is_some())
}

/// The packs that a lock needs, with their places in its packages.
pub fn needed_packs(lock: &Lockfile) -> impl Iterator<Item = (usize, WantedPack)> {
    lock.packages.iter().enumerate().filter_map(|(index, package)| {
        // mu does not install a pack that somebody has put there.
        let digest = package.installed_digest().filter(|_| !package.source.is_placed_pack())?;
        let place = place(lock, index);
        let (id, version) = (package.id.to_string(), package.version.clone());
        Some((index, WantedPack { place, id, version, digest, built: package.built }))
    })
}

/// The packs of replaced packages that may still be there.
pub(crate) fn replaced_packs(lock: &Lockfile) -> impl Iterator<Item = WantedPack> {
    let kept = lock.replaced.iter().filter_map(|replaced| replaced.kept.as_ref());
    kept.filter_map(|kept| {
        let (place, id) = (folder_of(&kept.id), kept.id.to_string());
        Some(WantedPack {
            place,
            id,
            version: kept.version.clone(),
            digest: kept.installed_digest()?,
            built: kept.built,
        })
    })
}

/// All packs that a lock names, to recognize an unknown packs folder.
pub fn named(lock: &Lockfile) -> Vec<WantedPack> {
    needed_packs(lock).map(|(_, wanted)| wanted).chain(replaced_packs(lock)).collect()
}

/// The path of a locked package's pack below the packs folder. If there are several majors, all but the
/// highest have their major in the name, and those that stand beside others of their major their version.
pub(crate) fn place(lock: &Lockfile, index: usize) -> String {
    let package = &lock.packages[index];
    let place = folder_of(&package.id);
    // Packages come sorted by id.
    let is_other = |index: usize| lock.packages.get(index).is_some_and(|one| one.id == package.id);
    if !is_other(index.wrapping_sub(1)) && !is_other(index + 1) {
        return place;
    }
    // Of `aws/ec2` in the majors 1 and 2, the highest is in `aws/ec2`, and the other one in `aws/ec2@1`. So files can
    // name the path of the current one, whatever else there is.
    let mut others = lock.find(&package.id).filter(|other| other.version != package.version);
    let Some(first) = others.next() else { return place };
    let version = package.parsed_version();
    match &version {
        Some(own) if !others.chain([first]).all(|other| other.parsed_version() < version) => {
            match package.beside.is_empty() {
                true => format!("{place}@{}", own.major()),
                false => format!("{place}@{}", package.version),
            }
        }
        _ => place,
    }
}

/// The folder of a package below a packs folder: `hub.mu.com/aws/ec2`, `localhost+8080/a`.
pub fn folder_of(id: &PackageId) -> String {
    let (base, _) = id.as_str().split_at(id.as_str().len() - id.name_str().len());
    // Only ports and addresses have characters that are replaced in a folder's name.
    if base.as_bytes().contains(&b':') {
        return [&id.base().folder_name(), "/", id.name_str()].concat();
    }
    id.as_str().to_owned()
}

/// The search path, with what the locks say about installed packs.
pub(crate) fn search_path(session: &Session) -> Result<SearchPath, CommandError> {
    let mut known = BTreeMap::new();
    let mut replaced = BTreeMap::new();
    let home = &session.environment.mu_home;
    let global = PacksFolder::for_user(home, &session.environment.cache);
    let global = (Lockfile::read(home)?.map(Arc::new), global);
    for (lock, packs) in [global, (session.lockfile()?, session.packs())] {
        let Some(lock) = lock else { continue };
        known.extend(installed(&lock, &packs));
        let pairs = lock.replaced.iter().map(|replaced| (replaced.id.clone(), replaced.by.clone()));
        replaced.extend(pairs);
    }
    Ok(SearchPath { installed: known, replaced, ..session.places.search().clone() })
}

fn installed(lock: &Lockfile, packs: &PacksFolder) -> Vec<(PathBuf, InstalledPack)> {
    needed_packs(lock)
        .map(|(index, wanted)| {
            let package = &lock.packages[index];
            let installed = InstalledPack {
                version: package.parsed_version(),
                commit: package.revision().map(Cow::into_owned),
                reference: package.reference.clone(),
            };
            (packs.pack_path(&wanted.place), installed)
        })
        .collect()
}
