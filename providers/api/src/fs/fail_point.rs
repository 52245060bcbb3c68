//! Where a test ends the program: instead of a certain change to files, as a kill would. Only debug builds do it.
//!
//! So a test ends it at every moment that matters, one after the other, and needs no luck.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

/// How many changes are left; zero if all may be made.
#[cfg(debug_assertions)]
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Ends this process, without any clean-up, instead of making its change number `number`, the first of which is 1.
#[cfg(debug_assertions)]
pub fn end_at_change(number: u64) {
    LEFT.store(number, Ordering::SeqCst);
}

/// Counts a change that is about to be made, here or where a hub is kept.
#[inline]
pub fn changing() {
    #[cfg(debug_assertions)]
    if LEFT.load(Ordering::SeqCst) > 0 && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        std::process::abort();
    }
}
