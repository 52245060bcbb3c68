//! How a session shares the store with other processes.

use std::path::Path;

use super::Session;
use crate::fs::{FileError, Lock, Sharing, create_private_folder};
use crate::ops::Events;

impl Session {
    /// Keeps other processes from pruning the store while the returned lock lives; waits if one is pruning.
    ///
    /// A store that is only read is never pruned, and has no lock.
    pub(crate) fn use_store(&self) -> Result<Option<Lock>, FileError> {
        if self.store.is_read_only() {
            return Ok(None);
        }
        create_private_folder(&self.environment.cache, crate::env::IN_CACHE)?;
        let lock = self.store.lock(Sharing::Shared, &mut || {
            self.events.waiting("another mu process is pruning the store");
        })?;
        warn_without_locks(&lock, self.store.folder(), &*self.events);
        Ok(Some(lock))
    }
}

/// Warns if nothing keeps other processes away from a folder.
pub(super) fn warn_without_locks(lock: &Lock, folder: &Path, events: &dyn Events) {
    if lock.is_missing() {
        events.warning(&format!(
            "the file system of `{}` has no locks: do not run mu there twice at the same time",
            folder.display()
        ));
    }
}
