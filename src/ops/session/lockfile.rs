//! The lock of a session: read once, with the current versions of the workspace's own packages from their
//! manifests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mu_provider::threads;

use super::Session;
use crate::lock::Lockfile;
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
            None => Lockfile::read(self.lock_folder())?,
        };
        let lockfile = lockfile.map(|lock| self.up_to_date(lock));
        *known = Some(lockfile.clone());
        Ok(lockfile)
    }

    /// The lock as it was read, with the current versions of the workspace's own packages.
    pub(super) fn up_to_date(&self, mut lock: Lockfile) -> Arc<Lockfile> {
        for package in lock.packages.iter_mut().filter(|package| package.source.is_workspace()) {
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
