//! The paths of a hub's files that other modules need too.

use mu_provider_hub::wire::closure_path;

/// The root file of a hub.
pub const HUB_FILE: &str = "hub.json";

/// The file with a line for each package.
pub const CATALOG_FILE: &str = "catalog.jsonl";

/// The problem with a link.
pub(crate) const LINK: &str = "it is a link, and links in a hub's folder are not followed, because they may lead to any file on the machine";

/// The path of a package's closure, in a hub that keeps closures in `folder`.
pub(crate) fn closure_file(folder: &str, name: &str) -> String {
    format!("{folder}{}", closure_path(name))
}
