//! The provider with the real Git: repositories created by `git`, served by `git http-backend`, `git daemon`,
//! a replacement for `ssh`, and the file system. No test needs the internet.

// The tests use other programs and facts of Unix.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

mod commits;
mod conformance;
mod formats;
mod hostile;
mod http;
mod roots;
mod settings;
mod sharing;
mod submodules;
mod support;
mod transports;
mod trees;
mod versions;
