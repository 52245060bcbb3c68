//! How many threads fetch packages: few if the processors are the limit, many if the network is.
//!
//! The caller defines the work and shares it out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use mu_provider::threads::start_in;

/// How long packages are counted before more threads start. If each of the first threads fetches a package in
/// that time, they are not waiting for the network; more threads would only make each one slower.
const COUNTED: Duration = Duration::from_millis(10);

/// Runs `work` on `few` threads, of which this is one, and on up to `most` if it takes long.
///
/// `done` counts what was done. If packages arrive quickly, more threads than processors would only get in
/// each other's way.
pub(crate) fn work_at_once(few: usize, most: usize, done: &AtomicUsize, work: &(dyn Fn() + Sync)) {
    let few = few.min(most);
    let (end, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        let threads = 1 + (1..few).map_while(|_| start_in(scope, work).ok()).count();
        if threads == few && few < most {
            // Without this thread, those that work are enough.
            let _ = start_in(scope, move || {
                let mut threads = threads;
                while threads < most {
                    let before = done.load(Ordering::Relaxed);
                    if ended.recv_timeout(COUNTED).is_ok() {
                        return;
                    }
                    if done.load(Ordering::Relaxed) - before < few {
                        let more = threads.min(most - threads);
                        if !(0..more).all(|_| start_in(scope, work).is_ok()) {
                            return;
                        }
                        threads += more;
                    }
                }
            });
        }
        // A thread that works by itself is where a processor is idle; two that start beside one that waits often share one.
        work();
        // The receiver has gone if there are enough threads.
        let _ = end.send(());
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn there_are_more_threads_where_the_first_ones_wait() {
        // Nobody continues before all of them are there.
        let all = Barrier::new(7);
        let came = AtomicUsize::new(0);
        work_at_once(2, 7, &AtomicUsize::new(0), &|| {
            all.wait();
            came.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(came.into_inner(), 7);
    }

    #[test]
    fn there_are_no_more_threads_than_asked_for() {
        for (few, most, expected) in [(2, 0, 1), (0, 0, 1), (2, 1, 1), (4, 3, 3), (3, 3, 3)] {
            let came = AtomicUsize::new(0);
            work_at_once(few, most, &AtomicUsize::new(0), &|| {
                came.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(came.into_inner(), expected, "{few} {most}");
        }
    }
}
