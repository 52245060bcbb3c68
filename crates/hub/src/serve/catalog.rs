//! The catalog in memory. Before each use, the server only asks whether it has changed.

use std::sync::Mutex;

use bytes::Bytes;
use mu_provider::threads::lock;
use object_store::GetOptions;

use super::problem::Problem;
use crate::files::{Files, Got};
use crate::paths::CATALOG_FILE;

/// The catalog as it was last read.
#[derive(Debug, Default)]
pub(super) struct Catalog(Mutex<Option<(String, Bytes)>>);

impl Catalog {
    /// The catalog as it is now; empty if there is none.
    pub(super) async fn read(&self, files: &Files) -> Result<Bytes, Problem> {
        let known = lock(&self.0).clone();
        let if_none_match = known.as_ref().map(|(e_tag, _)| e_tag.clone());
        let options = GetOptions { if_none_match, ..GetOptions::default() };
        let found = match files.get(CATALOG_FILE, options).await? {
            Got::Absent => return Ok(Bytes::new()),
            Got::Unchanged => return Ok(known.map(|(_, bytes)| bytes).unwrap_or_default()),
            Got::Found(found) => *found,
        };
        let e_tag = found.meta.e_tag.clone();
        // A bucket that ignores conditions sends the whole file, which we do not have to wait for.
        match known {
            Some((known, bytes)) if Some(&known) == e_tag.as_ref() => return Ok(bytes),
            _ => {}
        }
        let read = found.bytes().await;
        let bytes = read.map_err(|error| files.failed("read", CATALOG_FILE, error))?;
        let mut kept = lock(&self.0);
        *kept = e_tag.map(|e_tag| (e_tag, bytes.clone()));
        Ok(bytes)
    }
}
