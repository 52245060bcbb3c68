//! Mutexes whose owner panicked: what is in them is used as it is.
//!
//! A panic ends the run with its own message. Threads that still work until then must not hide it behind
//! a second one, and nothing that a mutex guards here is ever left half changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for a mutex.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes what a mutex guards out of it.
pub fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
