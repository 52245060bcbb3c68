//! The operations: everything that a command does, as functions that another program can call too.
//!
//! There is one file for each verb, above five floors. A floor uses only those before it, and no verb uses
//! another one.
//!
//! | floor | what it knows |
//! | --- | --- |
//! | [`session`] | what every operation starts from: the workspace, settings, lock, providers, index and store |
//! | [`requirements`] | what is required, by what, and where it is written |
//! | [`explain`] | why something failed or was passed over, and what helps |
//! | [`solve`] | from requirements to a lock |
//! | [`apply`] | from a lock to packs on disk, and edits of manifests |
//!
//! Verbs that share helpers share a folder. Nothing here prints, and nothing parses command lines.

pub mod apply;
pub mod explain;
pub mod requirements;
pub mod session;
pub mod solve;

pub mod build;
pub mod cache;
pub mod config;
pub mod doctor;
#[cfg(feature = "git")]
pub mod edit;
pub mod get;
pub mod graph;
pub mod init;
pub mod login;
mod lookup;
pub mod outdated;
#[cfg(feature = "git")]
pub mod patch;
pub mod pin;
#[cfg(feature = "exec")]
pub mod plugin;
#[cfg(feature = "hub")]
mod publication;
pub mod status;
pub mod update;
pub mod vendor;
pub mod verify;
pub mod which;

pub use self::apply::outcome::{AppMove, Change, EditInUse, Outcome};
pub use self::apply::written::Written;
#[cfg(feature = "git")]
pub use self::graph::affected;
pub use self::graph::{audit, sbom, why};
pub use self::init::import;
pub use self::lookup::{diff, filter, info, search, trust};
#[cfg(feature = "hub")]
pub use self::publication::pack;
#[cfg(feature = "publish")]
pub use self::publication::{hub, mirror, publish, yank};
pub use self::session::edits::View;
pub use self::session::error::{Code, CommandError};
pub use self::session::events::{Events, NoEvents, Stage};
pub use self::session::places::{LocalPackage, Misplacement, WorkspacePlaces};
pub use self::session::warning::{VoucherGap, Warning};
pub use self::session::{ChangeLock, OperationScope, Options, Session};
