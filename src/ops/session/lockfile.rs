//! The lock of a session: read once, with the current versions of the workspace's own packages from their
//! manifests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mu_provider::threads;

use super::Session;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::CommandError;

impl Session {
    /// The lock on disk, or `None`; read once, and again after it was written. The versions of the
    /// workspace's own packages come from their manifests. While packages are edited, it is the lock of these.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn lockfile(&self) -> Result<Option<Arc<Lockfile>>, CommandError> {
        let mut known = threads::lock(&self.lockfile);
        if let Some(lockfile) = &*known {
            return Ok(lockfile.clone());
        }
        let edits = match self.locks_edits() {
            true => Lockfile::read_edits(&self.workspace.root)?,
            false => None,
        };
        let lockfile = match edits {
            Some(lock) => Some(lock),
            None => match Lockfile::read(self.lock_folder()) {
                Ok(lock) => lock,
                // Only a conflict of a merge is mended. Of everything else, the first error is told.
                Err(error) => Some(merged_lock(self)?.ok_or(error)?),
            },
        };
        let lockfile = lockfile.map(|lock| self.up_to_date(lock));
        *known = Some(lockfile.clone());
        Ok(lockfile)
    }

    /// The lock as it was read, with the current versions of the workspace's own packages.
    pub(super) fn up_to_date(&self, mut lock: Lockfile) -> Arc<Lockfile> {
        for package in
            lock.packages.iter_mut().filter(|package| package.source.is_workspace_folder())
        {
            let local = self.places.member_of(&package.id);
            let local = local.or_else(|| self.places.member_called(&package.id, &self.workspace));
            let Some(version) = local.and_then(|local| local.version.as_ref()) else { continue };
            let version = version.to_string();
            if package.version != version {
                package.version = version;
                self.lock_lags.store(true, Ordering::Relaxed);
            }
        }
        Arc::new(lock)
    }

    /// Whether the lock on disk has other versions of the workspace's own packages than their manifests.
    pub(crate) fn lock_lags(&self) -> bool {
        self.lock_lags.load(Ordering::Relaxed)
    }

    /// Writes the lock.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the old lock is then unchanged.
    pub(crate) fn write_lockfile(&self, lockfile: &Lockfile) -> Result<(), CommandError> {
        *threads::lock(&self.lockfile) = None;
        if self.locks_edits() {
            self.ignore_edits(None)?;
            return Ok(lockfile.write_edits(&self.workspace.root)?);
        }
        Ok(lockfile.write(self.lock_folder())?)
    }
}

/// The lock that both sides of a merge make together, for a command that then writes it.
fn merged_lock(session: &Session) -> Result<Option<Lockfile>, CommandError> {
    if session.lock.is_none() || session.options.locked || session.options.frozen {
        return Ok(None);
    }
    let fits = |package: &LockedPackage| is_accepted_by_members(session, package);
    let Some(merged) = Lockfile::read_merge(session.lock_folder(), &fits)? else {
        return Ok(None);
    };
    let settled: Vec<String> = (merged.settled.iter())
        .map(|(id, version)| format!("{} {version}", session.short_name(id)))
        .collect();
    let settled = match settled.is_empty() {
        true => String::new(),
        false => format!(", of two versions the higher that fits: {}", settled.join(", ")),
    };
    session.events.note(&format!(
        "Mu.lock was in a merge conflict: its entries are those of both sides{settled}"
    ));
    Ok(Some(merged.lock))
}

/// Whether the manifests of the workspace accept a locked version.
fn is_accepted_by_members(session: &Session, package: &LockedPackage) -> bool {
    let Some(version) = package.parsed_version() else { return true };
    session.workspace.members.iter().all(|member| {
        let manifest = &member.manifest;
        let mut entries = manifest.dependencies.iter().chain(&manifest.dev_dependencies);
        entries.all(|entry| {
            let reference = &entry.reference;
            let (defaults, from) = (&member.defaults, &member.folder);
            let id = session.places.id_of(reference, defaults, from, &session.workspace);
            id != package.id || reference.spec().accepts(&version, true)
        })
    })
}
