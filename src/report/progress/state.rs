//! What is in progress: the stage, the pieces of work, the open requests, and their results so far.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use mu_provider::http::RequestEvent;

use crate::ops::Stage;

/// A server that sends nothing for this long is named.
const SLOW: Duration = Duration::from_secs(2);

/// The time over which speed is measured.
const WINDOW: Duration = Duration::from_secs(3);

/// What is in progress.
#[derive(Debug, Default)]
pub(in crate::report) struct State {
    /// When the first thing happened.
    started: Option<Instant>,
    pub(super) stage: Option<Counted>,
    /// The current pieces of work, the oldest first.
    pub(super) work: Vec<WorkProgress>,
    requests: BTreeMap<u64, Request>,
    /// The bytes of all answers, and those of all work.
    received: u64,
    worked: u64,
    /// How many bytes had arrived at which time.
    samples: VecDeque<(Instant, u64)>,
    /// What the run waits for, and since when.
    pub(super) note: Option<(String, Instant)>,
    /// The servers that were named without a terminal.
    named: BTreeSet<String>,
    has_repeated: bool,
}

/// A stage, and its progress.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) stage: Stage,
    pub(super) done: usize,
    pub(super) total: usize,
    pub(super) since: Instant,
}

/// A piece of work.
#[derive(Debug)]
pub(super) struct WorkProgress {
    what: String,
    /// Its current name.
    pub(super) shown: String,
    pub(super) since: Instant,
    pub(super) done: u64,
    pub(super) total: Option<u64>,
}

#[derive(Debug)]
struct Request {
    host: String,
    /// When its server last sent something.
    heard: Instant,
}

impl State {
    /// Counts the steps of a stage.
    pub(in crate::report) fn step(
        &mut self,
        stage: Stage,
        done: usize,
        total: usize,
        now: Instant,
    ) {
        self.started.get_or_insert(now);
        self.note = None;
        let since = match &self.stage {
            Some(counted) if counted.stage == stage => counted.since,
            _ => now,
        };
        self.stage = Some(Counted { stage, done, total, since });
    }

    /// Starts a piece of work.
    pub(in crate::report) fn begins(&mut self, what: &str, now: Instant) {
        self.started.get_or_insert(now);
        let (what, shown) = (what.to_owned(), what.to_owned());
        self.work.push(WorkProgress { what, shown, since: now, done: 0, total: None });
    }

    /// Sets the current step of a piece of work.
    pub(in crate::report) fn doing(&mut self, what: &str, now: &str) {
        if let Some(work) = self.find(what) {
            now.clone_into(&mut work.shown);
        }
    }

    /// Sets how many bytes of a piece of work have arrived.
    pub(in crate::report) fn bytes(
        &mut self,
        what: &str,
        done: u64,
        total: Option<u64>,
        now: Instant,
    ) {
        self.note = None;
        if let Some(work) = self.find(what) {
            let more = done.saturating_sub(work.done);
            (work.done, work.total) = (done, total);
            self.worked += more;
        }
        self.sample(now);
    }

    /// Ends a piece of work.
    pub(in crate::report) fn ends(&mut self, what: &str) {
        if let Some(index) = self.work.iter().rposition(|work| work.what == what) {
            self.work.remove(index);
        }
    }

    /// The youngest with that name: each package is requested once, and ends its own work.
    fn find(&mut self, what: &str) -> Option<&mut WorkProgress> {
        self.work.iter_mut().rev().find(|work| work.what == what)
    }

    pub(super) fn request(&mut self, event: &RequestEvent<'_>, now: Instant) {
        match *event {
            RequestEvent::Sent { number, url, .. } => {
                self.started.get_or_insert(now);
                self.requests.insert(number, Request { host: url.host_and_port(), heard: now });
            }
            RequestEvent::Sending { number, done, total } => {
                self.heard(number, now);
                // What sends something does one thing at a time.
                if let Some(what) = self.work.last().map(|work| work.what.clone()) {
                    self.bytes(&what, done, Some(total), now);
                }
            }
            RequestEvent::Answered { number, .. } => {
                self.note = None;
                self.heard(number, now);
            }
            RequestEvent::Received { number, bytes } => {
                self.received += bytes;
                self.heard(number, now);
                self.sample(now);
            }
            RequestEvent::Ended { number } => drop(self.requests.remove(&number)),
            RequestEvent::Repeated { reason, attempt, attempts, pause } => {
                let next = attempt + 1;
                let pause = pause.as_secs_f32();
                let text = format!("{reason}; attempt {next} of {attempts} in {pause:.1} s");
                self.note = Some((text, now));
            }
        }
    }

    fn heard(&mut self, number: u64, now: Instant) {
        if let Some(request) = self.requests.get_mut(&number) {
            request.heard = now;
        }
    }

    /// The run waits for something, until anything happens.
    pub(in crate::report) fn waiting(&mut self, text: &str, now: Instant) {
        self.started.get_or_insert(now);
        self.note = Some((text.to_owned(), now));
    }

    /// Clears everything in progress.
    pub(super) fn clear_work(&mut self) {
        (self.stage, self.note) = (None, None);
        self.work.clear();
    }

    /// How long anything has been in progress.
    pub(super) fn time_in_progress(&self, now: Instant) -> Duration {
        self.started.map_or(Duration::ZERO, |started| now.saturating_duration_since(started))
    }

    /// How many bytes have arrived so far.
    pub(super) fn came(&self) -> u64 {
        // Bytes over http are counted twice, others only as work.
        self.received.max(self.worked)
    }

    fn sample(&mut self, now: Instant) {
        let is_due =
            |(last, _): &(Instant, u64)| now.saturating_duration_since(*last) >= WINDOW / 30;
        if self.samples.back().is_none_or(is_due) {
            self.samples.push_back((now, self.came()));
        }
        while self.samples.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) > WINDOW)
        {
            self.samples.pop_front();
        }
    }

    /// The recent speed in bytes a second; `None` if nothing arrived.
    pub(super) fn speed(&mut self, now: Instant) -> Option<u64> {
        self.sample(now);
        let (since, before) = *self.samples.front()?;
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        let came = self.came() - before;
        (seconds > 0.2 && came > 0).then_some((came as f64 / seconds) as u64)
    }

    /// Whether a server has to answer.
    pub(super) fn is_requesting(&self) -> bool {
        !self.requests.is_empty()
    }

    /// The servers that keep us waiting, and for how long, the slowest first.
    pub(super) fn waited_for(&self, now: Instant) -> Vec<(&str, Duration)> {
        let mut slow: BTreeMap<&str, Duration> = BTreeMap::new();
        for request in self.requests.values() {
            let silent = now.saturating_duration_since(request.heard);
            if silent >= SLOW {
                let longest = slow.entry(&request.host).or_default();
                *longest = silent.max(*longest);
            }
        }
        let mut slow: Vec<(&str, Duration)> = slow.into_iter().collect();
        slow.sort_by_key(|(_, silent)| std::cmp::Reverse(*silent));
        slow
    }

    /// A plain line about the first request that has to be sent again.
    pub(super) fn first_repetition(&mut self, event: &RequestEvent<'_>) -> Option<String> {
        let RequestEvent::Repeated { reason, .. } = event else { return None };
        let is_first = !std::mem::replace(&mut self.has_repeated, true);
        is_first.then(|| format!("waiting: {reason}; trying again"))
    }

    /// Plain lines, once for each server that keeps us waiting.
    pub(super) fn slow_servers(&mut self, now: Instant) -> Vec<String> {
        let slow = self.waited_for(now).into_iter().map(|(host, _)| host.to_owned());
        let slow: Vec<String> = slow.collect();
        let new = slow.into_iter().filter(|host| self.named.insert(host.clone()));
        new.map(|host| format!("waiting for {host} to answer")).collect()
    }
}
