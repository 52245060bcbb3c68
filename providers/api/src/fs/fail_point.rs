//! Lets a test end the program instead of a certain change to files, as a kill would. Only debug builds do
//! this.
//!
//! So a test can end it at every important moment, one after the other, and does not depend on luck.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

/// How many changes are left; zero for no limit.
#[cfg(debug_assertions)]
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Ends this process, without any clean-up, instead of its change number `number`, counted from 1.
#[cfg(debug_assertions)]
pub fn end_at_change(number: u64) {
    LEFT.store(number, Ordering::SeqCst);
}

/// Counts a change that is about to happen, in files here or in a hub.
#[inline]
pub fn changing() {
    #[cfg(debug_assertions)]
    if LEFT.load(Ordering::SeqCst) > 0 && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        std::process::abort();
    }
}
