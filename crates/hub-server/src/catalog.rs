//! The catalog in memory. Before each use, the server only asks whether it has changed.

use std::sync::Mutex;

use bytes::Bytes;
use mu_provider::threads::lock;

use super::problem::Problem;
use mu_hub::files::Files;
use mu_hub::paths::CATALOG_FILE;

/// The catalog as it was last read.
#[derive(Debug, Default)]
pub(super) struct CachedCatalog(Mutex<Option<(String, Bytes)>>);

impl CachedCatalog {
    /// The catalog as it is now; empty if there is none.
    pub(super) async fn read(&self, files: &Files) -> Result<Bytes, Problem> {
        let known = lock(&self.0).clone();
        let e_tag = known.as_ref().map(|(e_tag, _)| e_tag.as_str());
        let Some(read) = files.read_if_changed(CATALOG_FILE, e_tag).await? else {
            return Ok(known.map(|(_, bytes)| bytes).unwrap_or_default());
        };
        let Some(read) = read else { return Ok(Bytes::new()) };
        let mut kept = lock(&self.0);
        *kept = read.mark.e_tag.map(|e_tag| (e_tag, read.bytes.clone()));
        Ok(read.bytes)
    }
}
