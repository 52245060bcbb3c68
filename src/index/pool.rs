//! The small pool of threads that sends requests ahead of time.
//!
//! Earlier tasks are done first, by threads that start when there is something to do and end with the index.
//! Nothing waits for the pool, and it does not know what its tasks are.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use mu_provider::threads::lock;

/// A task.
type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    /// Tasks for when there is nothing else.
    guesses: VecDeque<Task>,
    idle: usize,
    closed: bool,
}

/// The pool of one index.
pub(super) struct Pool(Arc<Desk>);

struct Desk {
    queue: Mutex<Queue>,
    changed: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
    limit: usize,
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").field("limit", &self.0.limit).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool of at most `limit` threads.
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Desk {
            queue: Mutex::default(),
            changed: Condvar::new(),
            threads: Mutex::default(),
            limit: limit.max(1),
        }))
    }

    /// Runs a task in the next free thread.
    pub(super) fn run(&self, task: impl FnOnce() + Send + 'static) {
        self.put(|queue| queue.tasks.push_back(Box::new(task)));
    }

    /// Runs a task when there is nothing else to do, unless it is dropped before.
    pub(super) fn run_when_idle(&self, task: impl FnOnce() + Send + 'static) {
        self.put(|queue| queue.guesses.push_back(Box::new(task)));
    }

    /// Drops the tasks of this kind that have not started.
    pub(super) fn drop_guesses(&self) {
        lock(&self.0.queue).guesses.clear();
    }

    /// Queues a task, and wakes a thread for it, or starts one if all are busy.
    fn put(&self, put: impl FnOnce(&mut Queue)) {
        let mut queue = lock(&self.0.queue);
        if queue.closed {
            return;
        }
        put(&mut queue);
        self.0.changed.notify_one();
        let mut threads = lock(&self.0.threads);
        if queue.tasks.len() + queue.guesses.len() > queue.idle && threads.len() < self.0.limit {
            let desk = Arc::clone(&self.0);
            // If the system cannot start another thread, the existing ones do it, or the thread that needs
            // the answer.
            threads.extend(Builder::new().spawn(move || desk.work()).ok());
        }
    }

    /// Ends the threads, each after its current task.
    pub(super) fn end(&self) {
        let mut queue = lock(&self.0.queue);
        queue.closed = true;
        queue.tasks.clear();
        queue.guesses.clear();
        drop(queue);
        self.0.changed.notify_all();
        // No new task is started from now on.
        let threads = std::mem::take(&mut *lock(&self.0.threads));
        for thread in threads {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn work(&self) {
        while let Some(task) = self.next() {
            task();
        }
    }

    fn next(&self) -> Option<Task> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return None;
            }
            if let Some(task) = queue.tasks.pop_front() {
                return Some(task);
            }
            if let Some(guess) = queue.guesses.pop_front() {
                return Some(guess);
            }
            queue.idle += 1;
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}
