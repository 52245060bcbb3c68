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
mod error;
mod format;
pub mod helm;
mod images;
mod index;
mod json;
pub mod kcl;
#[cfg(test)]
mod keys;
pub mod kudo;
#[cfg(test)]
mod made_files;
mod manifest;
mod node;
pub mod olm;
pub mod osv;
mod range;
mod reader;
mod repeat;
mod shape;
mod user_files;

pub use self::error::FormatError;
pub use self::format::{
    Archived, Artifact, ArtifactManifest, Format, GIT, Layer, Package, Place, Pushed, Reading,
    Texts,
};
pub use self::images::{DeclaredImage, images_in_resources, images_of_chart, rendered_charts};
pub use self::index::Index;
pub use self::manifest::{as_listed, manifest, same_version, version_of};
pub use self::range::{Rewritten, rewritten};
pub use self::user_files::{Guarded, HelmRepositoryAliases, check_passwords, check_repositories};
pub use crate::index::catalog_line;

/// The formats, in order of precedence of their manifests.
pub const FORMATS: &[Format] =
    &[helm::FORMAT, kcl::FORMAT, crossplane::FORMAT, crossplane::PACKED, olm::FORMAT, kudo::FORMAT];

#[cfg(test)]
mod tests {
    use super::FORMATS;

    #[test]
    fn providers_look_for_the_manifests_of_all_formats() {
        let (plain, marked) = FORMATS.split_at(mu_provider::FOREIGN_MANIFESTS.len());
        let known = plain.iter().map(|format| (format.manifest, format.others.first().copied()));
        assert!(known.eq(mu_provider::FOREIGN_MANIFESTS));
        assert!(plain.iter().all(|format| format.folder.is_none()));
        let known = marked.iter().map(|format| (format.manifest, format.others, format.folder));
        let there = mu_provider::MARKED_MANIFESTS;
        assert!(known.eq(there.map(|marked| (marked.name, marked.others, marked.folder))));
    }
}
