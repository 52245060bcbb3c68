//! `fetch`: fills the store with what the lock names. It reads no manifest unless it has to, chooses nothing,
//! and writes neither packs nor the lock.

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::Lockfile;
use crate::ops::apply::development;
use crate::ops::apply::fetch::fetch;
use crate::ops::apply::patched;
use crate::ops::session::words;
use crate::ops::solve::names;
use crate::ops::solve::resolve::resolve;
use crate::ops::solve::resolved::Resolved;
use crate::ops::{Code, CommandError, Session};
use crate::select::Update;

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
    #[serde(serialize_with = "words::path")]
    #[schemars(with = "String")]
    pub store: PathBuf,
}

/// Brings every package of the lock into the store.
///
/// # Errors
///
/// When there is no lock, with `--locked` when it does not fit the manifests, and when a package cannot be fetched or is not
/// what the lock says. What was fetched before stays in the store.
pub fn fill(session: &Session) -> Result<Filled, CommandError> {
    let lock = session.lockfile()?.ok_or_else(|| {
        let folder = session.lock_folder();
        let message = format!("there is no Mu.lock in `{}` to fetch from", folder.display());
        CommandError::new(Code::NotFound, message)
            .hint("`mu get` chooses versions and writes Mu.lock")
    })?;
    let (locked, no_dev) = (session.options.locked, session.options.no_dev);
    let requirements = match locked || no_dev {
        true => Some(names::collect_looked_up(session, lock.extra.clone())?),
        false => None,
    };
    let mut resolved = match &requirements {
        Some(requirements) if locked => resolve(session, requirements, Update::Nothing)?,
        _ => Resolved { previous: Arc::clone(&lock), lock, ..Resolved::default() },
    };
    if let Some(requirements) = requirements.filter(|_| no_dev) {
        resolved.left_out = development::development_only(&requirements, &resolved.lock);
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
