//! The hub provider against real servers, against servers that misbehave, and against hostile archives.

mod changes;
mod client;
mod faults;
mod hostile;
mod large;
mod nginx;
mod place;
mod served;
mod tls;
