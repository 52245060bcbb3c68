//! How many threads bring packages: few while the processors are what is waited for, many where the network is.
//!
//! What the work is, and how it is shared out, is the caller's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// How long packages are counted before more of them are asked for at once. Where each of the first threads brings one in
/// that time, they do not wait for the network; more of them would not bring more, each would only take longer.
const COUNTED: Duration = Duration::from_millis(10);

/// Has `work` done by `few` threads, and by up to `most` where that takes long. `done` counts what was done.
///
/// Where packages come quickly, more threads than processors would only be in each other's way.
pub(crate) fn work_at_once(few: usize, most: usize, done: &AtomicUsize, work: &(dyn Fn() + Sync)) {
    if most <= 1 {
        return work();
    }
    let mut threads = few.min(most);
    let (end, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        let start = || {
            let end = end.clone();
            scope.spawn(move || {
                work();
                // Nobody listens any more once there are threads enough.
                let _ = end.send(());
            });
        };
        (0..threads).for_each(|_| start());
        while threads < most {
            let before = done.load(Ordering::Relaxed);
            if ended.recv_timeout(COUNTED).is_ok() {
                return;
            }
            if done.load(Ordering::Relaxed) - before < few {
                let more = threads.min(most - threads);
                (0..more).for_each(|_| start());
                threads += more;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn there_are_more_threads_where_the_first_ones_wait() {
        // Nobody goes on before all of them are there.
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
        for (few, most, expected) in [(2, 0, 1), (2, 1, 1), (4, 3, 3), (3, 3, 3)] {
            let came = AtomicUsize::new(0);
            work_at_once(few, most, &AtomicUsize::new(0), &|| {
                came.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(came.into_inner(), expected, "{few} {most}");
        }
    }
}
