//! Packages of other ecosystems, read as the index lines that a hub would have for them.
//!
//! Each format is one module. It knows the names of its manifests and turns their text into a release, so
//! that no code that chooses, locks or installs has to know formats. Readers do no I/O: the caller gives them
//! files from a folder, a Git tree or an archive. Providers list and fetch the packages.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
// Text that others wrote must not lead to an index out of bounds.
#![deny(clippy::indexing_slicing)]

pub mod crossplane;
pub mod elsewhere;
mod format;
pub mod helm;
mod images;
mod index;
pub mod kcl;
pub mod kudo;
mod node;
pub mod olm;
pub mod osv;
mod range;
mod reader;
mod repeat;
mod shape;
mod user_files;

pub use self::format::{
    Archived, Artifact, ArtifactManifest, Format, GIT, Layer, Package, Place, Pushed, Reading,
    Texts, as_listed, manifest, same_version, version_of,
};
pub use self::images::{DeclaredImage, images_in_resources, images_of_chart, rendered_charts};
pub use self::index::Index;
pub use self::node::FormatError;
pub use self::range::{Rewritten, rewritten};
pub use self::user_files::{
    Certified, Guarded, HelmRepositoryAliases, check_passwords, check_repositories,
};
pub use crate::index::catalog_line;

/// The formats, in order of precedence of their manifests.
pub const FORMATS: &[Format] =
    &[helm::FORMAT, kcl::FORMAT, crossplane::FORMAT, crossplane::PACKED, olm::FORMAT, kudo::FORMAT];

#[cfg(test)]
mod tests;
