//! `cache` and `fetch`: what mu keeps on this machine.
//!
//! `fetch` fills the store with what the lock names. It reads no manifest unless it has to, chooses nothing,
//! and writes neither packs nor the lock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mu_provider::Digest;
use schemars::JsonSchema;
use serde::Serialize;

use crate::env::IN_CACHE;
use crate::fs::{self, AtPath as _, FileError, Lock, Sharing};
use crate::lock::Lockfile;
use crate::ops::apply::fetch::fetch;
use crate::ops::apply::patched;
use crate::ops::session::shown;
use crate::ops::solve::question::Question;
use crate::ops::solve::record::Resolved;
use crate::ops::solve::{names, resolve};
use crate::ops::{Code, CommandError, Events, Session, Stage, requirements};
use crate::packs::remove_orphans;
use crate::store::Store;

/// What the cache folder holds, by part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CacheSize {
    /// The bytes of all parts.
    pub total: u64,
    /// The parts (see [`IN_CACHE`]) and their bytes; a file with several names
    /// counts once.
    pub parts: BTreeMap<String, u64>,
}

/// Measures the cache folder.
pub fn cache_size(cache: &Path) -> Result<CacheSize, FileError> {
    let mut size = CacheSize::default();
    for entry in fs::entries_if_there(cache)? {
        // It only says what the folder is, and stays.
        if entry.file_name() == fs::CACHE_TAG {
            continue;
        }
        let files = walkdir::WalkDir::new(entry.path()).into_iter().flatten();
        let bytes: u64 = files
            .filter(|file| file.file_type().is_file())
            .filter_map(|file| file.metadata().ok())
            .map(|metadata| metadata.len())
            .sum();
        size.total += bytes;
        size.parts.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
    }
    Ok(size)
}

/// What pruning removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pruned {
    /// Trees that no pack shares files with.
    #[serde(rename = "removed")]
    pub trees: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes trees that no pack is linked to, records of builds without results, and partial downloads; in a dry run, only counts
/// the trees.
pub fn prune(
    store: &Store,
    cache: &Path,
    dry_run: bool,
    events: &dyn Events,
) -> Result<Pruned, CommandError> {
    let _lock = if dry_run { None } else { Some(alone(store, events)?) };
    events.progress(Stage::Removing, 0, 0);
    let mut pruned = Pruned::default();
    // Two kinds of packs use a tree: links to it, which are noted in the store, and files that they share with it,
    // which have more than one name then.
    let linked = store.linked()?;
    for digest in store.digests()? {
        if linked.binary_search(&digest).is_ok() {
            continue;
        }
        let Some(stored) = store.find(&digest)? else { continue };
        let is_linked =
            stored.tree.entries().iter().any(|entry| links(&stored.folder.join(&entry.path)) > 1);
        if !is_linked {
            pruned.trees += 1;
            pruned.bytes += stored.tree.size();
            if !dry_run {
                store.remove(&digest)?;
            }
        }
    }
    if dry_run {
        return Ok(pruned);
    }
    store.remove_unlisted()?;
    store.remove_old_notes()?;
    remove_orphans(cache)?;
    remove_lost_builds(store, cache)?;
    fs::remove_folder(&cache.join("downloads"))?;
    Ok(pruned)
}

/// Removes everything in the cache folder; returns the number of bytes.
pub fn clean(store: &Store, cache: &Path, events: &dyn Events) -> Result<u64, CommandError> {
    // The file of the lock is removed last, with its folder.
    let lock = alone(store, events)?;
    events.progress(Stage::Removing, 0, 0);
    let before = cache_size(cache)?.total;
    // Each part is first moved out of the way as a whole: links or another run could still use a half-removed
    // part.
    let staging = store.folder().join("staging");
    fs::create_folder(&staging)?;
    let aside = tempfile::tempdir_in(&staging).at("make a folder in", &staging)?;
    let parts = IN_CACHE.iter().map(|part| cache.join(part)).filter(|part| part != store.folder());
    let of_store = ["trees", "linked", "archives"].map(|part| store.folder().join(part));
    for (number, part) in parts.chain(of_store).enumerate() {
        fs::move_away(&part, &aside.path().join(number.to_string()))?;
    }
    fs::remove_folder(&staging)?;
    drop(lock);
    Ok(before.saturating_sub(cache_size(cache)?.total))
}

/// Removes the records of builds whose results are no longer there.
fn remove_lost_builds(store: &Store, cache: &Path) -> Result<(), FileError> {
    for entry in fs::entries_if_there(&cache.join("builds"))? {
        let folder = entry.path();
        let result = fs::read_text_if_there(&folder.join("result"))?;
        let digest: Option<Digest> = result.and_then(|text| text.trim().parse().ok());
        let is_there = digest.is_some_and(|digest| store.contains(&digest));
        // A build that is running holds its lock.
        let lock = Lock::try_acquire(&folder.join("lock"), Sharing::Exclusive)?;
        if !is_there && lock.is_some() {
            fs::remove_folder(&folder)?;
        }
    }
    Ok(())
}

fn alone(store: &Store, events: &dyn Events) -> Result<Lock, CommandError> {
    if store.is_read_only() {
        let message = "--store-readonly (or MU_STORE_READONLY) forbids removing from the store";
        return Err(CommandError::new(Code::Usage, message));
    }
    Ok(store.lock(Sharing::Exclusive, &mut || {
        events.waiting("another mu process is using the store");
    })?)
}

#[cfg(unix)]
fn links(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::symlink_metadata(path).map_or(0, |metadata| metadata.nlink())
}

#[cfg(not(unix))]
fn links(_path: &Path) -> u64 {
    // If links cannot be counted, nothing counts as unused.
    2
}

/// What the store got.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Filled {
    /// Packages that came from a registry, repository or folder.
    pub fetched: usize,
    /// Packages whose content was on this machine.
    pub reused: usize,
    /// The locked packages, `ID VERSION`, that were not fetched: those that only `devDependencies` need, if requested, and those
    /// whose content is in a folder that is not here.
    pub left_out: Vec<String>,
    /// The store's folder.
    #[serde(serialize_with = "shown::path")]
    #[schemars(with = "String")]
    pub store: PathBuf,
}

/// Brings every package of the lock into the store.
pub fn fill(session: &Session) -> Result<Filled, CommandError> {
    let lock = session.lockfile()?.ok_or_else(|| {
        let folder = session.lock_folder();
        let message = format!("there is no Mu.lock in `{}` to fetch from", folder.display());
        CommandError::new(Code::NotFound, message)
            .hint("`mu get` chooses versions and writes Mu.lock")
    })?;
    let (locked, no_dev) = (session.options.locked, session.options.no_dev);
    let requirements = match locked || no_dev {
        true => Some(Rc::new(names::collect_looked_up(session, lock.extra.clone())?)),
        false => None,
    };
    let mut resolved = match &requirements {
        Some(requirements) if locked => {
            resolve(session, &Question::without_moves(Rc::clone(requirements)))?
        }
        _ => Resolved::keeping_lock(lock),
    };
    if let Some(requirements) = requirements.filter(|_| no_dev) {
        resolved.left_out = requirements::development_only(&requirements, &resolved.lock);
    }
    let absent = absent_folders(session, &resolved.lock);
    resolved.left_out.extend(absent);
    let left_out = resolved.left_out.iter().map(|index| &resolved.lock.packages[*index]);
    let left_out = left_out.map(|package| format!("{} {}", package.id, package.version)).collect();
    let _store = session.use_store()?;
    let counts = fetch(session, &mut resolved)?;
    patched::apply_patches(session, &mut resolved)?;
    session.save_index();
    let store = session.store.folder().to_owned();
    Ok(Filled { fetched: counts.fetched, reused: counts.reused, left_out, store })
}

/// The places in the lock of packages that are read where they are, and are not here: a lock is enough to fetch the others.
fn absent_folders(session: &Session, lock: &Lockfile) -> Vec<usize> {
    let root = session.lock_folder();
    let is_absent = |(_, package): &(usize, &crate::lock::LockedPackage)| {
        let source = &package.source;
        let folder = crate::env::absolute(root, source.place.as_ref());
        source.is_placed_pack() || source.is_outside_folder() && !folder.is_dir()
    };
    lock.packages.iter().enumerate().filter(is_absent).map(|(index, _)| index).collect()
}
