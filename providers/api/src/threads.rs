//! Threads that work together: mutexes whose owner panicked, and work for several threads.
//!
//! A system can refuse to start a thread (`ulimit -u`, a container's limit of processes). Clippy forbids the standard library's functions
//! that panic then; what can be done by fewer threads is, and else there is an error.
//!
//! A panic ends the run with its own message, and the threads that still run must not hide it behind a second
//! one. No value in a mutex here is ever left half changed, so it can still be used.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Waits for a mutex.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the value out of a mutex.
pub fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread that nobody has to wait for.
///
/// # Errors
///
/// When the system starts no more threads.
pub fn start<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().spawn(work).map_err(too_many)
}

/// Starts a thread that ends with `scope`.
///
/// # Errors
///
/// When the system starts no more threads.
pub fn start_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(too_many)
}

/// Does work with a stack of at least so many bytes: on this thread, the first one of the process, if `ulimit -s` leaves it that
/// much; else on a thread with such a stack, or on this one after all when the system starts no more threads. Memory grows in
/// larger steps for the first thread than for others.
pub fn with_stack<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    if first_thread_has(bytes) {
        return work();
    }
    let work = Mutex::new(Some(work));
    let once = || {
        let work = lock(&work).take();
        work.map(|work| work())
    };
    let done = std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(bytes).spawn_scoped(scope, once).ok()?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    done.or_else(once).expect("it is done on one of two threads")
}

/// Whether the first thread of the process may use so many bytes of its stack.
#[cfg(unix)]
fn first_thread_has(bytes: usize) -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
    limit.is_none_or(|limit| limit >= bytes as u64)
}

/// Whether the first thread of the process may use so many bytes of its stack.
#[cfg(not(unix))]
fn first_thread_has(_bytes: usize) -> bool {
    false
}

fn too_many(error: io::Error) -> io::Error {
    let text =
        format!("no further thread can be started: {error}; a limit of processes is too low");
    io::Error::new(error.kind(), text)
}

/// Calls `work` for all items at once, each on a thread of its own as far as the system has threads, and returns the answers in
/// the order of the items.
pub fn all_at_once<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let count = items.len();
    let queue = Mutex::new(items.into_iter().enumerate());
    let answers = Mutex::new(Vec::with_capacity(count));
    let take = || {
        loop {
            let Some((number, item)) = lock(&queue).next() else { return };
            let answer = work(item);
            lock(&answers).push((number, answer));
        }
    };
    on_threads(count, &take);
    let mut answers = into_inner(answers);
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Calls `work` on as many threads as `threads`, while this one waits. Only if the system does not start them all, this one works, too:
/// Linux often lets a new thread wait for the processor of the one that started it, while another has nothing to do.
pub fn on_threads(threads: usize, work: &(impl Fn() + Sync)) {
    if threads <= 1 {
        return work();
    }
    std::thread::scope(|scope| {
        let started = (0..threads).map_while(|_| start_in(scope, work).ok()).count();
        if started < threads {
            work();
        }
    });
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
    on_threads(threads.min(items.len()), &take);
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
    fn all_are_worked_on_and_answered_in_their_order() {
        let doubled = |number: usize| number * 2;
        assert_eq!(all_at_once((0..30).collect(), doubled), (0..60).step_by(2).collect::<Vec<_>>());
        assert_eq!(all_at_once(Vec::new(), doubled), [0; 0]);
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
