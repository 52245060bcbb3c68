//! The packs that a lock needs, where they are, and the search path that includes them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::lock::Lockfile;
use crate::ops::{CommandError, Session};
use crate::packs::{PacksFolder, WantedPack};
use crate::reference::PackageId;
use crate::search::{InstalledPack, SearchPath};

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
