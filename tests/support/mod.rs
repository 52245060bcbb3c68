//! What the tests share: a machine of one's own, hubs, servers, and what a run of `mu` printed.
//!
//! Web and Git servers are those of the providers' own tests, object stores but S3 those of the hub's.

mod browser;
mod files;
mod hub;
#[cfg(feature = "keyring")]
mod keyring;
mod run;
mod s3;
mod sandbox;
mod schema;
mod served;
mod ssh;

#[path = "../../providers/git/tests/git/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the Git provider's own tests use the rest")]
pub(crate) mod git;
#[path = "../../providers/hub/tests/hub/nginx.rs"]
#[expect(dead_code, reason = "the hub provider's own tests use the rest")]
mod nginx;

#[path = "../../crates/hub/tests/hub/azurite.rs"]
mod azurite;
#[path = "../../crates/hub/tests/hub/google.rs"]
#[expect(dead_code, reason = "the hub's own tests use the rest")]
mod google;

pub(crate) use self::azurite::Azurite;
pub(crate) use self::browser::Browser;
pub(crate) use self::files::{digest_of, hex, tree, write};
pub(crate) use self::google::GoogleServer;
pub(crate) use self::hub::{Hub, Package};
#[cfg(feature = "keyring")]
pub(crate) use self::keyring::Keyring;
pub(crate) use self::nginx::Nginx;
pub(crate) use self::run::Run;
pub(crate) use self::s3::S3Server;
pub(crate) use self::sandbox::Sandbox;
pub(crate) use self::schema::{conforms, described};
pub(crate) use self::served::Served;
pub(crate) use self::ssh::SshServer;
