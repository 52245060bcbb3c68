//! Tests of a hub's writers: through its public door, on real folders and on stores that fail.

// Its peers and what it looks at are those of Unix.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

mod checking;
mod closures;
mod concurrent;
mod cut;
mod limits;
mod publishing;
mod snapshot;
mod support;
