//! Packages of other ecosystems, read as what a hub's index says of a package of mu.
//!
//! One module a format: it knows the names of its manifests, and turns their text into a release, so that nothing that
//! chooses, locks or installs knows formats. Readers do no I/O: whoever calls them hands them files, which a folder, a Git
//! tree and an archive all are. How packages of a format are listed and fetched is for the providers.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
// What others wrote leads to no place that nobody looked at.
#![deny(clippy::indexing_slicing)]

mod aliases;
mod error;
mod files;
mod format;
pub mod helm;
mod manifest;
mod node;
mod range;

pub use self::aliases::Aliases;
pub use self::error::FormatError;
pub use self::files::{Files, Texts};
pub use self::format::{Format, Package, Place, Reading};
pub use self::manifest::{as_listed, manifest};
pub use self::range::{Rewritten, rewritten};

/// What a hub's index calls the format of a package that was copied from a Git commit, where the commit says name and version,
/// not a manifest in it.
pub const GIT: &str = "git";

/// The formats, in the order in which their manifests count.
pub const FORMATS: &[Format] = &[helm::FORMAT];
