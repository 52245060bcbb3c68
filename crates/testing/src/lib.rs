//! What the tests of several crates share: servers, packages to publish, and folders as values.
//!
//! There are real peers ([`Nginx`], [`git`], [`SshServer`], [`DockerRegistry`], [`Helm`], [`Signer`], [`Azurite`], [`Keyring`],
//! [`Browser`]; `mu-testing-s3` has an S3-compatible server), servers that misbehave on command
//! ([`http`], [`oci`]), and what signs as others do ([`Sigstore`], [`SecurityKey`]). This crate depends on no other crate of mu, so all of them can use it, and it
//! computes digests a second time, so that no test relies on the program's own code. Only tests depend on
//! this crate, which `tests/project/tidy.rs` checks. Failures are panics.

#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

mod browser;
mod buckets;
#[cfg(unix)]
mod charts;
#[cfg(unix)]
mod files;
#[cfg(unix)]
pub mod git;
pub mod http;
#[cfg(unix)]
mod hub;
mod listener;
mod nginx;
#[cfg(unix)]
pub mod oci;
#[cfg(unix)]
mod operators;
#[cfg(unix)]
mod programs;
#[cfg(unix)]
mod registry;
#[cfg(unix)]
mod sigstore;
#[cfg(unix)]
mod ssh;
#[cfg(unix)]
pub mod team;

use tempfile::{Builder, TempDir};

pub use self::browser::{Browser, Told};
pub use self::buckets::{Azurite, GoogleServer};
#[cfg(unix)]
pub use self::charts::{Chart, Charts};
#[cfg(unix)]
pub use self::files::{Files, ZipEntry, digest_of, gzip, hex, tar, tar_gz, tree, write, zip};
#[cfg(unix)]
pub use self::hub::{Hub, Package};
pub use self::listener::{Listener, ReservedPort};
pub use self::nginx::{AUTHORITY, FIRST_VERSION, Identity, LOCALHOST, Nginx, SELF_SIGNED};
#[cfg(unix)]
pub use self::oci::OciServer;
#[cfg(unix)]
pub use self::operators::{Bundle, KudoOperator, KudoRepository, Operators, push_image};
#[cfg(unix)]
pub use self::programs::{Helm, Keyring, Signer};
#[cfg(unix)]
pub use self::registry::{Artifact, DockerRegistry, pull, push_blob, push_manifest};
#[cfg(unix)]
pub use self::sigstore::{CosignLayer, SignedContent, Sigstore, Workflow, extension};
#[cfg(unix)]
pub use self::ssh::{SecurityKey, SshServer};

/// A file of this crate for another program to read, such as a certificate.
pub fn file(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Where a program is: on the path of the tests, or in `/usr/sbin`.
///
/// A command that is given an environment of its own names its program so. To look a bare name up in the new `PATH`, the standard
/// library forks, which copies the tables of all memory of the tests for each program.
///
/// # Panics
///
/// When it is not installed.
#[must_use]
pub fn program(name: &str) -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("these tests need `{name}`: `.ci/setup` installs it"))
}

/// How many bytes the path of a temporary folder has: one length, so that tables and sizes are the same wherever temporary
/// files are.
const LENGTH: usize = 64;

/// A new folder, whose path has 64 bytes unless the folder of temporary files has a longer one.
///
/// # Panics
///
/// When it cannot be made.
#[must_use]
pub fn temporary_folder() -> TempDir {
    let around = std::env::temp_dir();
    let random = LENGTH.saturating_sub(around.as_os_str().len() + "/.tmp".len());
    let folder = Builder::new().rand_bytes(random.max(6)).tempdir_in(around);
    folder.expect("a temporary folder can be made")
}
