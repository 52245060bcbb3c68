//! The operations: everything that a command does, as functions that another program can call too.
//!
//! One verb a file. Nothing here prints, and nothing parses command lines.

#[cfg(feature = "publish")]
mod agreement;
mod at_once;
pub mod care;
mod ceiling;
pub mod compare;
mod consent;
mod credentials;
mod dependencies;
mod editing;
mod element;
mod elsewhere;
pub mod error;
mod events;
mod failure;
pub mod fetch;
pub mod filter;
pub mod get;
pub mod graph;
#[cfg(feature = "publish")]
pub mod hub;
mod identity;
pub mod info;
pub mod init;
mod installed;
pub mod installed_packs;
mod least;
pub mod locked;
mod locked_universe;
pub mod login;
mod member;
#[cfg(feature = "publish")]
pub mod mirror;
mod not_asked_for;
mod outcome;
pub mod outdated;
#[cfg(feature = "hub")]
pub mod pack;
pub mod pin;
mod pins;
mod places;
mod providers;
#[cfg(feature = "publish")]
pub mod publish;
mod published;
mod record;
pub mod registry;
pub mod remove;
pub mod requirements;
pub mod resolve;
mod resolved;
mod rewrite;
mod rules;
pub mod search;
mod session;
mod source;
pub mod status;
mod supposed;
pub mod supposition;
pub mod sync;
#[cfg(feature = "publish")]
pub mod tag;
pub mod update;
pub mod upgrade;
pub mod vendor;
pub mod verify;
pub mod versions;
mod ways_out;
pub mod what_if;
pub mod which;
pub mod why;

#[cfg(feature = "publish")]
pub mod yank;

pub use self::error::{Code, CommandError};
pub use self::events::{Events, NoEvents, Stage};
pub use self::outcome::{Change, Outcome};
pub use self::places::{LocalPackage, Places};
pub use self::session::{Options, Scope, Session};
