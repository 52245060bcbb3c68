//! Manifests: what a package's `Mu.yaml` or `Mu.json` says, and changes to it that keep a person's layout.
//!
//! It is a separate crate so that mu and a hub read manifests alike. [`reference`](mod@reference) has the
//! texts that name packages, ids, versions and ranges. [`Manifest`] is the domain type, [`source`] reads
//! files with positions, and [`edit`] changes their text. Nothing here knows workspaces, and nothing looks
//! beyond one folder.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
#![deny(clippy::indexing_slicing)]

pub mod agreement;
pub mod edit;
pub mod facts;
mod glob;
mod locate;
mod read;
pub mod reference;
mod requirement;
#[allow(dead_code, reason = "only the shape of its types and their keys are used")]
mod schema;
pub mod source;
mod types;

pub use self::glob::Globs;
pub use self::locate::{
    JSON_NAME, Loaded, ManifestError, YAML_NAME, error_at_dependency, error_at_readme,
    manifest_name, misspelt, misspelt_name, read_bounded_text,
};
pub use self::read::{Outline, generated_manifest, globs, unversioned};
pub use self::requirement::{Capability, Constraint, Requirement, is_version_alone};
pub use self::schema::{in_lines, schema};
pub use self::source::layout::entries::quoted;
pub use self::types::{
    API_VERSION, BuildRecipe, ExportKind, ExportedElement, FileWarning, Head, Manifest, Person,
    Upgrade, Versioning, Versions,
};

#[cfg(test)]
mod tests;
