//! The only door to files, which mu shares with its providers and with hubs.
//!
//! What is behind it is in [`mu_provider::fs`].

pub use mu_provider::fs::*;
