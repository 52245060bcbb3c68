//! mu, the package tool for what belongs to no one language: the map of the library.

pub mod cli;
pub mod env;
pub mod fs;
pub mod index;
pub mod lock;
pub mod manifest;
pub mod ops;
pub mod packs;
pub mod reference;
pub mod report;
pub mod search;
pub mod select;
pub mod store;
pub mod workspace;
