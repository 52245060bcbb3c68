//! The operations: everything that a command does, as functions that another program can call too.
//!
//! One verb a file. Nothing here prints, and nothing parses command lines.

mod credentials;
pub mod error;
mod events;
mod fetch;
mod locked_universe;
mod outcome;
mod places;
mod providers;
mod requirements;
mod resolve;
mod session;
mod sync;

pub use self::error::{Code, CommandError};
pub use self::events::{Events, NoEvents, Stage};
pub use self::outcome::{Change, Outcome};
pub use self::places::{LocalPackage, Places};
pub use self::session::{Options, Scope, Session};
