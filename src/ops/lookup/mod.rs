//! Questions to registries about packages that need not be installed: `search`, `info`, `versions`.

pub mod diff;
pub mod filter;
mod here;
pub mod info;
mod package;
pub mod readme;
pub mod search;
pub mod versions;
