//! mu, the package tool for what belongs to no one language: the map of the library.

pub mod index;
pub mod manifest;
pub mod reference;
pub mod search;
pub mod select;
pub mod workspace;
