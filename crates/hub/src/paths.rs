//! Where the files of a hub are that others name, too.

/// The root file of a hub.
pub(crate) const HUB_FILE: &str = "hub.json";
