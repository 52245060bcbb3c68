//! Threads that work together: mutexes whose owner panicked, and work for several threads.
//!
//! A panic ends the run with its own message, and the threads that still run must not hide it behind a second
//! one. No value in a mutex here is ever left half changed, so it can still be used.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for a mutex.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the value out of a mutex.
pub fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `work` for each item, on up to `threads` threads at once. After a failure, it starts no further item.
///
/// # Errors
///
/// The first failure.
pub fn at_once<T: Sync, E: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    if threads.min(items.len()) <= 1 {
        return items.iter().try_for_each(work);
    }
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let take = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = work(item) {
                next.store(items.len(), Ordering::Relaxed);
                lock(&failure).get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| (0..threads.min(items.len())).for_each(|_| drop(scope.spawn(take))));
    into_inner(failure).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once_and_a_failure_ends_it() {
        for threads in [0, 1, 3, 100] {
            let items: Vec<usize> = (0..40).collect();
            let done = Mutex::new(Vec::new());
            let record = |item: &usize| {
                lock(&done).push(*item);
                if *item == 30 && threads == 1 { Err(*item) } else { Ok(()) }
            };
            let result = at_once(threads, &items, record);
            let mut done = into_inner(done);
            done.sort_unstable();
            let (expected, count) = if threads == 1 { (Err(30), 31) } else { (Ok(()), 40) };
            assert_eq!((result, done), (expected, items[..count].to_vec()), "{threads}");
        }
    }

    #[test]
    fn the_first_failure_is_told() {
        let begun = AtomicUsize::new(0);
        let result = at_once(3, &[(); 1_000], |()| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>("failed")
        });
        assert_eq!(result, Err("failed"));
        assert!(begun.into_inner() <= 6, "a thread begins one more at most");
    }
}
