//! What every request may read: the hub's files, and its catalog, which is kept in memory.

use std::sync::Mutex;

use bytes::Bytes;
use mu_hub::HubError;
use mu_hub::files::Files;
use mu_hub::paths::CATALOG_FILE;
use mu_hub::root::Root;
use mu_provider::threads::lock;

/// What every request may read.
pub(crate) struct Data {
    pub(crate) files: Files,
    /// The hub's folders, which never change.
    pub(crate) root: Root,
    /// The catalog as it was last read, with its ETag.
    catalog: Mutex<Option<(String, Bytes)>>,
    /// What references to the hub's packages begin with, if it is known.
    pub(crate) base: Option<String>,
    /// Whether this server itself uses TLS.
    pub(crate) is_https: bool,
}

impl Data {
    /// The data of the hub with these files, of which nothing was read yet but its root.
    pub(crate) fn new(files: Files, root: Root, base: Option<String>, is_https: bool) -> Self {
        Self { files, root, catalog: Mutex::default(), base, is_https }
    }

    /// The catalog as it is now; empty if there is none. What is in memory is used if it has not changed.
    pub(crate) async fn read_catalog(&self) -> Result<Bytes, HubError> {
        let known = lock(&self.catalog).clone();
        let e_tag = known.as_ref().map(|(e_tag, _)| e_tag.as_str());
        let Some(read) = self.files.read_if_changed(CATALOG_FILE, e_tag).await? else {
            return Ok(known.map(|(_, bytes)| bytes).unwrap_or_default());
        };
        let Some(read) = read else { return Ok(Bytes::new()) };
        *lock(&self.catalog) = read.mark.e_tag.map(|e_tag| (e_tag, read.bytes.clone()));
        Ok(read.bytes)
    }
}
