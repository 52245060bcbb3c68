//! The small pool that asks ahead of need.
//!
//! Questions are answered in the order they were asked, by threads that start when there is something
//! to ask and end with the index. Answers land in the shared memory; nobody waits for the pool itself.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::guard::lock;
use crate::index::releases::{Position, Releases};
use crate::index::universe::Candidate;
use crate::index::{Index, Shared};
use crate::reference::PackageId;

/// Something that will be wanted soon.
#[derive(Debug)]
pub(super) enum Question {
    Releases(PackageId),
    Requirements(Arc<Releases>, Position),
}

#[derive(Debug, Default)]
struct Queue {
    questions: VecDeque<Question>,
    idle: usize,
    closed: bool,
}

#[derive(Debug)]
struct Desk {
    queue: Mutex<Queue>,
    changed: Condvar,
    shared: Arc<Shared>,
}

/// The pool of one index.
#[derive(Debug)]
pub(super) struct Pool {
    desk: Arc<Desk>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    limit: usize,
}

impl Pool {
    pub(super) fn new(shared: Arc<Shared>, limit: usize) -> Self {
        let desk = Desk { queue: Mutex::default(), changed: Condvar::new(), shared };
        Self { desk: Arc::new(desk), threads: Mutex::default(), limit: limit.max(1) }
    }

    /// Puts a question, and starts a thread if all are busy.
    pub(super) fn ask(&self, question: Question) {
        let mut queue = lock(&self.desk.queue);
        queue.questions.push_back(question);
        let is_short = queue.questions.len() > queue.idle;
        drop(queue);
        self.desk.changed.notify_one();
        let mut threads = lock(&self.threads);
        if is_short && threads.len() < self.limit {
            let desk = Arc::clone(&self.desk);
            threads.push(std::thread::spawn(move || desk.work()));
        }
    }
}

impl Desk {
    fn work(&self) {
        while let Some(question) = self.next() {
            // A failure is remembered with the answer, and met by whoever really needs it.
            match question {
                Question::Releases(id) => drop(self.shared.package(&id)),
                Question::Requirements(releases, position) => {
                    if let Ok(package) = self.shared.package(releases.id()) {
                        drop(package.requirements(&self.shared, Candidate::Release(position)));
                    }
                }
            }
        }
    }

    fn next(&self) -> Option<Question> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return None;
            }
            if let Some(question) = queue.questions.pop_front() {
                return Some(question);
            }
            queue.idle += 1;
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        lock(&self.pool.desk.queue).closed = true;
        self.pool.desk.changed.notify_all();
        for thread in lock(&self.pool.threads).drain(..) {
            // A thread that panicked has already said so.
            let _ = thread.join();
        }
    }
}
