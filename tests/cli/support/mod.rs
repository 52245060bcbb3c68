//! Shared by the tests of the program: a separate machine, a served hub, and the output of a run of `mu`.
//!
//! Servers, packages and folders as values come from `mu-testing`.

pub(crate) mod hints;
mod recorder;
mod run;
mod sandbox;
mod schema;
mod served;
#[cfg(unix)]
mod terminal;

pub(crate) use mu_testing::{
    Azurite, Browser, Chart, Charts, GoogleServer, Helm, Hub, Nginx, Package, SshServer, digest_of,
    git, hex, tree, write,
};
pub(crate) use mu_testing_s3::S3Server;

pub(crate) use self::run::Run;
pub(crate) use self::sandbox::Sandbox;
pub(crate) use self::schema::{conforms, described};
pub(crate) use self::served::Served;
#[cfg(unix)]
pub(crate) use self::terminal::Terminal;
