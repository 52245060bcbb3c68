//! The hub provider against real servers, against servers that misbehave, and against hostile archives.

// The tests use other programs and facts of Unix.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

mod changes;
mod client;
mod faults;
mod hostile;
mod large;
mod place;
mod served;
mod tls;
