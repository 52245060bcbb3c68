//! The paths of a hub's files that other modules need too.

use mu_provider_hub::wire::closure_path;

/// The root file of a hub.
pub(crate) const HUB_FILE: &str = "hub.json";

/// The file with a line for each package.
pub(crate) const CATALOG_FILE: &str = "catalog.jsonl";

/// The path of a package's closure, in a hub that keeps closures in `folder`.
pub(crate) fn closure_file(folder: &str, name: &str) -> String {
    format!("{folder}{}", closure_path(name))
}
