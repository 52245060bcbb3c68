//! Buckets of object stores: S3 and compatible ones, Google Cloud Storage, Azure Blob Storage.
//!
//! `bucket.rs` knows how buckets are written and opened, and where their credentials come from; `mu-hub` writes hubs through
//! it. `connect.rs` is the way to a store: how long to wait for the credentials of a machine in a cloud, and how much of
//! a file is on its way. [`Buckets`] signs the requests of mu's own HTTP client, which reads hubs. Nothing
//! here knows what a hub is, or looks at the environment: the caller passes in the variables.

mod bucket;
mod connect;
mod profile;
mod sign;

pub use crate::bucket::{Bucket, credentials_hint};
pub use crate::connect::CredentialsNotProvided;
pub use crate::connect::Sending;
pub use crate::sign::Buckets;
