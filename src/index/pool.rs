//! The small pool that asks ahead of need.
//!
//! Questions are answered in the order they were asked, by threads that start when there is something to ask and
//! end with the index; then come closures, and then what they hint at. Answers land in the shared memory; nobody
//! waits for the pool itself.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

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
    /// Packages that are at hand, in the order in which they will be wanted.
    AtHand(Vec<PackageId>),
    /// The lines of versions.
    Lines(Vec<(Arc<Releases>, Position)>),
}

#[derive(Debug, Default)]
struct Queue {
    questions: VecDeque<Question>,
    closures: VecDeque<PackageId>,
    /// Closures that are being read.
    reading: usize,
    /// Those to read after them, unless they turn out to be named in one.
    later: Vec<PackageId>,
    hinted: VecDeque<PackageId>,
    /// Whether hints are followed, which ends with each choice.
    follows_hints: bool,
    idle: usize,
    closed: bool,
}

#[derive(Debug)]
struct Desk {
    queue: Mutex<Queue>,
    changed: Condvar,
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    limit: usize,
}

/// The pool of one index.
#[derive(Debug)]
pub(super) struct Pool(Arc<Desk>);

/// What a thread does next.
enum Work {
    Answer(Question),
    Read(PackageId),
    Follow(PackageId),
}

impl Pool {
    pub(super) fn new(shared: Arc<Shared>, limit: usize) -> Self {
        Self(Arc::new(Desk {
            queue: Mutex::default(),
            changed: Condvar::new(),
            shared,
            threads: Mutex::default(),
            limit: limit.max(1),
        }))
    }

    /// Puts a question, and starts a thread if all are busy.
    pub(super) fn ask(&self, question: Question) {
        let mut queue = lock(&self.0.queue);
        queue.questions.push_back(question);
        self.0.call(&queue);
    }

    /// Asks what these packages can lead to, once that is known of those which were asked about before.
    pub(super) fn ask_closures(&self, ids: impl Iterator<Item = PackageId>) {
        let mut queue = lock(&self.0.queue);
        queue.later.extend(ids);
        queue.follows_hints |= !queue.later.is_empty();
        self.0.go_on_with_closures(&mut queue);
    }

    /// Drops what nobody asked for but a closure.
    pub(super) fn forget_hints(&self) {
        let mut queue = lock(&self.0.queue);
        queue.follows_hints = false;
        queue.closures.clear();
        queue.later.clear();
        queue.hinted.clear();
    }
}

impl Desk {
    /// Wakes a thread for what was put into the queue, or starts one if all are busy.
    fn call(self: &Arc<Self>, queue: &Queue) {
        self.changed.notify_one();
        let mut threads = lock(&self.threads);
        let waiting = queue.questions.len() + queue.closures.len() + queue.hinted.len();
        if waiting > queue.idle && threads.len() < self.limit && !queue.closed {
            let desk = Arc::clone(self);
            // Where the system has no room for another thread, those that there are do it, or whoever needs the answer.
            threads.extend(Builder::new().spawn(move || desk.work()).ok());
        }
    }

    fn work(self: &Arc<Self>) {
        while let Some(work) = self.next() {
            // A failure is remembered with the answer, and met by whoever really needs it.
            match work {
                Work::Answer(question) => self.answer(&question),
                Work::Read(id) => self.read_closure(&id),
                Work::Follow(id) => self.shared.follow(&id),
            }
        }
    }

    fn answer(&self, question: &Question) {
        match question {
            Question::Releases(id) => drop(self.shared.package(id)),
            // Begun with the last, for whoever wants them begins with the first; where the two meet, all are read.
            Question::AtHand(ids) => {
                let unread = ids.iter().rev().take_while(|id| !self.shared.is_known(id));
                unread.for_each(|id| drop(self.shared.package(id)));
            }
            Question::Lines(versions) => {
                for (releases, position) in versions {
                    if let Some(package) = self.shared.loaded(releases.id()) {
                        package.read_ahead(*position);
                    }
                }
            }
            Question::Requirements(releases, position) => {
                if let Ok(package) = self.shared.package(releases.id()) {
                    drop(package.requirements(&self.shared, Candidate::Release(*position)));
                }
            }
        }
    }

    fn read_closure(self: &Arc<Self>, id: &PackageId) {
        let hinted = self.shared.hinted(id);
        let mut queue = lock(&self.queue);
        queue.reading -= 1;
        if queue.follows_hints {
            for id in hinted {
                queue.hinted.push_back(id);
                self.call(&queue);
            }
        }
        self.go_on_with_closures(&mut queue);
    }

    /// Lets the next closures be read if no other is: what they would say may be in those that are.
    fn go_on_with_closures(self: &Arc<Self>, queue: &mut Queue) {
        if queue.reading > 0 || !queue.closures.is_empty() {
            return;
        }
        for id in std::mem::take(&mut queue.later) {
            if self.shared.take_closure(&id) {
                queue.closures.push_back(id);
                self.call(queue);
            }
        }
    }

    fn next(&self) -> Option<Work> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return None;
            }
            if let Some(question) = queue.questions.pop_front() {
                return Some(Work::Answer(question));
            }
            if let Some(id) = queue.closures.pop_front() {
                queue.reading += 1;
                return Some(Work::Read(id));
            }
            if let Some(id) = queue.hinted.pop_front() {
                return Some(Work::Follow(id));
            }
            queue.idle += 1;
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        lock(&self.pool.0.queue).closed = true;
        self.pool.0.changed.notify_all();
        // No other is started from now on.
        let threads = std::mem::take(&mut *lock(&self.pool.0.threads));
        for thread in threads {
            // A thread that panicked has already said so.
            let _ = thread.join();
        }
    }
}
