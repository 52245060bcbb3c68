//! How a session shares the store with other processes.

use super::Session;
use crate::fs::{FileError, Lock, Sharing, create_private_folder};

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
        });
        lock.map(Some)
    }
}
