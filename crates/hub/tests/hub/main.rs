//! Tests of a hub's writers through the public interface, on real folders and on stores that fail.

// The tests use other programs and facts of Unix.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

mod checking;
mod closures;
mod concurrent;
mod cut;
mod large;
mod limits;
mod publishing;
mod snapshot;
mod support;
