//! What every request may read: the hub's files, and what is known of all of them.

use mu_hub::files::Files;
use mu_hub::root::Root;

use super::catalog::CachedCatalog;

/// What every request may read.
pub(crate) struct Data {
    pub(crate) files: Files,
    /// The hub's folders, which never change.
    pub(crate) root: Root,
    pub(crate) catalog: CachedCatalog,
    /// What references to the hub's packages begin with, if it is known.
    pub(crate) base: Option<String>,
    /// Whether this server itself uses TLS.
    pub(crate) is_https: bool,
}
