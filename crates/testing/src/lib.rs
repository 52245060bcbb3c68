//! What the tests of several crates share: servers to talk to, packages to publish, and folders as values.
//!
//! Real peers where there are any ([`Nginx`], [`git`], [`SshServer`], [`DockerRegistry`], [`Azurite`], [`Keyring`],
//! [`Browser`]; an S3-compatible server is in `mu-testing-s3`), and servers that misbehave on command ([`http`], [`oci`]). It depends on no
//! other crate of mu, so that all of them can use it, and digests are computed here a second time: no test believes
//! the program's own. Nothing of mu depends on this crate but its tests, which `tests/project/tidy.rs` proves.
//! Failures are panics.

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
pub mod http;
#[cfg(unix)]
mod hub;
#[cfg(unix)]
mod keyring;
mod listener;
mod nginx;
#[cfg(unix)]
pub mod oci;
mod registry;
#[cfg(unix)]
mod ssh;

#[cfg(unix)]
pub use self::artifacts::{Artifact, pull, push_blob, push_manifest};
pub use self::azurite::Azurite;
pub use self::browser::{Browser, Told};
#[cfg(unix)]
pub use self::charts::{Chart, Charts};
#[cfg(unix)]
pub use self::files::{Files, digest_of, gzip, hex, tar_gz, tree, write};
pub use self::google::GoogleServer;
#[cfg(unix)]
pub use self::hub::{Hub, Package};
#[cfg(unix)]
pub use self::keyring::Keyring;
pub use self::nginx::{AUTHORITY, Identity, LOCALHOST, Nginx};
#[cfg(unix)]
pub use self::oci::OciServer;
pub use self::registry::DockerRegistry;
#[cfg(unix)]
pub use self::ssh::SshServer;

/// A file of this crate, such as a certificate that another program is to read.
pub fn file(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
