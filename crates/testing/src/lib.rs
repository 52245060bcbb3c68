//! What the tests of several crates share: servers, packages to publish, and folders as values.
//!
//! There are real peers ([`Nginx`], [`git`], [`SshServer`], [`DockerRegistry`], [`Helm`], [`Signer`], [`Azurite`], [`Keyring`],
//! [`Browser`]; `mu-testing-s3` has an S3-compatible server), and servers that misbehave on command
//! ([`http`], [`oci`]). This crate depends on no other crate of mu, so all of them can use it, and it
//! computes digests a second time, so that no test relies on the program's own code. Only tests depend on
//! this crate, which `tests/project/tidy.rs` checks. Failures are panics.

#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

#[cfg(unix)]
mod artifacts;
mod azurite;
mod browser;
#[cfg(unix)]
mod charts;
#[cfg(unix)]
mod files;
#[cfg(unix)]
pub mod git;
mod google;
mod helm;
pub mod http;
#[cfg(unix)]
mod hub;
#[cfg(unix)]
mod keyring;
#[cfg(unix)]
mod kudo;
mod listener;
mod nginx;
#[cfg(unix)]
pub mod oci;
#[cfg(unix)]
mod operators;
mod registry;
mod reserved_port;
#[cfg(unix)]
mod signer;
#[cfg(unix)]
mod ssh;
#[cfg(unix)]
pub mod team;
mod temporary;
mod zip;

#[cfg(unix)]
pub use self::artifacts::{Artifact, pull, push_blob, push_manifest};
pub use self::azurite::Azurite;
pub use self::browser::{Browser, Told};
#[cfg(unix)]
pub use self::charts::{Chart, Charts};
#[cfg(unix)]
pub use self::files::{Files, digest_of, gzip, hex, tar, tar_gz, tree, write};
pub use self::google::GoogleServer;
pub use self::helm::Helm;
#[cfg(unix)]
pub use self::hub::{Hub, Package};
#[cfg(unix)]
pub use self::keyring::Keyring;
#[cfg(unix)]
pub use self::kudo::{KudoOperator, KudoRepository};
pub use self::listener::Listener;
pub use self::nginx::{AUTHORITY, Identity, LOCALHOST, Nginx};
#[cfg(unix)]
pub use self::oci::OciServer;
#[cfg(unix)]
pub use self::operators::{Bundle, Operators, push_image};
pub use self::registry::DockerRegistry;
pub use self::reserved_port::ReservedPort;
#[cfg(unix)]
pub use self::signer::Signer;
#[cfg(unix)]
pub use self::ssh::SshServer;
pub use self::temporary::temporary_folder;
pub use self::zip::{ZipEntry, zip};

/// A file of this crate for another program to read, such as a certificate.
pub fn file(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
