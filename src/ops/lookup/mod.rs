//! Questions to registries about packages that need not be installed: `search`, `info`, `versions`.

mod chosen;
pub mod diff;
pub mod filter;
pub mod info;
mod listing;
pub mod search;
pub mod trust;
