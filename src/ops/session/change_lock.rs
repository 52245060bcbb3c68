//! What is held while the packs, the lock and the manifests of a session may change.

use std::path::PathBuf;

use crate::fs::Lock;
use crate::packs::PacksFolder;

/// Held while packs, lock and manifests may change.
pub(super) struct ChangeLock {
    pub(super) packs: PacksFolder,
    /// Folders that are new.
    pub(super) made: Vec<PathBuf>,
    pub(super) _lock: Lock,
}

impl Drop for ChangeLock {
    fn drop(&mut self) {
        self.packs.remove_traces(&self.made);
    }
}
