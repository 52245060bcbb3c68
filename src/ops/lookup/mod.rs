//! Questions to registries about packages that need not be installed: `search`, `info`, `versions`.

mod chosen;
pub mod diff;
pub mod filter;
mod here;
pub mod info;
mod listing;
mod package;
pub mod readme;
pub mod search;
pub mod versions;
