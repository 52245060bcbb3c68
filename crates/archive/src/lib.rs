//! What every registry needs that hands out archives, whatever its index looks like: downloads, archives, and files that are
//! read again only if they have changed.
//!
//! [`Archives`] downloads an archive and compares it with its digest: `download.rs` does one download, and `partial.rs` keeps a large
//! one between attempts. [`unpack()`] and its like read mu's own archives, and layers of images: `tar.rs` reads entries, `header.rs`
//! their headers. `survey.rs` and `zip.rs` read archives that anybody may have made, and `pick.rs` says what is taken of one that is
//! not wanted as a whole. [`ArchiveWriter`] makes archives.
//!
//! [`document`] reads one file of a registry if it has changed, [`remembered`] keeps an index package by package, [`Catalog`] answers
//! for a registry that is one index, and [`below`] says where a registry may lead. Nothing here knows what an index says; that is known to the providers.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
// What is in archives must not lead to an index out of bounds.
#![deny(clippy::indexing_slicing)]

mod archives;
pub mod document;
mod download;
mod header;
mod partial;
mod pick;
pub mod remembered;
mod survey;
mod tar;
mod unpack;
mod write;
mod zip;

pub use crate::archives::{Archives, Held, Looked, Place, below, restore_anyones};
pub use crate::download::{Archive, ExpectedArchive};
pub use crate::pick::{EARLY, Layers, lacks_early, pick, pick_from, pick_zip};
pub use crate::remembered::Catalog;
pub use crate::survey::{Packing, layout_of_anyones, unpack_anyones};
pub use crate::tar::Sink;
pub use crate::unpack::{
    ArchiveError, ArchiveLayout, Scratch, digest_of_tar, unpack, unpack_from, unpack_layer,
    unpack_tar, unpack_with,
};
pub use crate::write::ArchiveWriter;
