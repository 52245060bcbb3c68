//! What every provider's tests run, and what they share: a server that misbehaves on command.
//!
//! Nothing here is used by mu itself.

pub mod server;
