//! What authors and owners of hubs do: `pack`, `publish`, `yank`, `tag`, `mirror` and `hub`.

#[cfg(feature = "publish")]
mod check;
#[cfg(all(feature = "publish", feature = "git"))]
mod committed;
#[cfg(feature = "publish")]
pub mod hub;
#[cfg(feature = "publish")]
mod lines;
#[cfg(feature = "publish")]
pub mod mirror;
#[cfg(all(feature = "publish", feature = "oci"))]
mod oci;
pub mod pack;
mod packing;
#[cfg(feature = "publish")]
pub mod publish;
#[cfg(feature = "publish")]
mod server;
#[cfg(feature = "publish")]
mod target;
#[cfg(feature = "publish")]
pub mod yank;
