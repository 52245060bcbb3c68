//! Tests of a hub's writers: through its public door, on real folders and on stores that fail.

mod azurite;
mod checking;
mod closures;
mod concurrent;
mod cut;
mod google;
mod limits;
mod publishing;
mod snapshot;
mod support;
