//! The provider against real Git: repositories made by `git`, served by `git http-backend`,
//! `git daemon`, a stand-in for `ssh`, and the file system. No test needs the internet.

// Its peers and what it looks at are those of Unix.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

mod commits;
mod conformance;
mod hostile;
mod http;
mod roots;
mod sharing;
mod submodules;
mod support;
mod transports;
mod trees;
mod versions;
