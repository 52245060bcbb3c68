//! What a lock may not say because it is older than the key: what its packages conflict with.
//!
//! It is looked up when something new is selected beside them: in the content of a package, if that is in the store, else in its
//! registry. Nothing here fails: what cannot be asked stays unknown, as it was when the lock was written.

use std::sync::Arc;

use crate::formats;
use crate::index::releases::{Details, Releases};
use crate::index::{Candidate, Revision, Unavailable, Universe as _, details};
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::Manifest;
use crate::ops::Session;
use crate::reference::VersionSpec;

/// The lock with what its packages turn out to conflict with; `None` if that is nothing more.
pub(super) fn with_learned_conflicts(session: &Session, lock: &Lockfile) -> Option<Lockfile> {
    let settings = &session.workspace.settings;
    let is_open = |package: &LockedPackage| {
        // The content of what is used instead of a package is not its own.
        package.facts.conflicts.is_empty()
            && !package.source.is_authored_folder()
            && !settings.overrides.contains_key(&package.id)
    };
    let (mut found, mut to_ask) = (Vec::new(), Vec::new());
    // The store first: what is installed needs no request.
    for (at, package) in lock.packages.iter().enumerate().filter(|(_, one)| is_open(one)) {
        match in_store(session, package) {
            Some(details) => found.push((at, details.facts.conflicts)),
            None => to_ask.push((at, package)),
        }
    }
    if !session.options.offline {
        let ids: Vec<_> = to_ask.iter().map(|(_, package)| package.id.clone()).collect();
        session.index().ask_for_releases(&ids);
        let mut unknown = Vec::new();
        for (at, package) in to_ask {
            match in_registry(session, package) {
                Ok(conflicts) => found.push((at, conflicts)),
                Err(_) => unknown.push(format!("`{}`", package.id)),
            }
        }
        if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            session.events.warning(&format!(
                "what {unknown} must not be used together with is not known: Mu.lock does not say it, and it cannot be looked up now"
            ));
        }
    }
    found.retain(|(_, conflicts)| !conflicts.is_empty());
    (!found.is_empty()).then(|| {
        let mut lock = lock.clone();
        for (at, conflicts) in found {
            if let Some(package) = lock.packages.get_mut(at) {
                package.facts.conflicts = conflicts;
            }
        }
        lock
    })
}

/// What the content of a package says, if that is in the store with a manifest.
fn in_store(session: &Session, package: &LockedPackage) -> Option<Details> {
    let digest = package.digest.filter(|digest| session.store.contains(digest))?;
    let folder = session.store.tree_path(&digest);
    match Manifest::load_published(&folder).ok()? {
        Some(manifest) => {
            let said = details(&package.id, &manifest.to_release());
            Some(said.counted(&session.workspace.settings.aliases))
        }
        // The manifests of other ecosystems have no such fact. Without any, the registry may have it.
        None => formats::locate_manifest(&folder).ok()?.map(|_| Details::default()),
    }
}

/// What the registry of a package says.
fn in_registry(session: &Session, package: &LockedPackage) -> Result<Vec<String>, Unavailable> {
    let index = session.index();
    let releases: Arc<Releases> = index.releases(&package.id)?;
    let version =
        package.parsed_version().and_then(|version| releases.position_of_version(&version));
    let commit = package.commit.as_deref();
    // A locked commit decides, because a version tag may have been moved to another one.
    let position = match commit {
        Some(commit) => releases.at_commit(commit),
        None => version,
    };
    let declared = match (position, commit) {
        (Some(position), _) => match releases.details(position) {
            Some(known) => return Ok(known.facts.conflicts.clone()),
            None => index.declared(&package.id, Candidate::Release(position))?,
        },
        (None, Some(commit)) => {
            let name = VersionSpec::parse(commit).ok();
            let found = name.map(|name| index.revision(&releases, &name)).transpose()?.flatten();
            match found {
                Some(Revision::Untagged(untagged)) => untagged.details,
                _ => None,
            }
        }
        (None, None) => None,
    };
    Ok(declared.map(|details| details.facts.conflicts.clone()).unwrap_or_default())
}
