//! How fast a server is asked that has refused a request because there were too many.
//!
//! The requests of all threads to it take turns: none is sent during the pause that it asked for, and then they are some time apart. That
//! time doubles with each refusal and shrinks with each answer, so that it comes near to what the server allows, which nobody says in
//! numbers. A server that has refused nothing is asked as fast as anybody likes. How often a request is sent again is decided in `retry.rs`.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use url::Origin;

use crate::SafeUrl;
use crate::threads::lock;

/// How far requests are apart after the first refusal.
const FIRST: Duration = Duration::from_millis(10);

/// How far they are apart at most.
const WIDEST: Duration = Duration::from_secs(1);

/// With less than this between them, they need no turns.
const NARROWEST: Duration = Duration::from_millis(1);

/// Each answer brings requests nearer to each other by one part of so many.
const PARTS: u32 = 128;

/// The servers that have refused a request because there were too many.
#[derive(Debug, Default)]
pub(super) struct Paces(Mutex<HashMap<Origin, Pace>>);

#[derive(Debug)]
struct Pace {
    /// How far its requests are apart.
    apart: Duration,
    /// When the next one may be sent.
    next: Instant,
    /// When its last pause ends.
    paused_until: Instant,
    /// When it was last slowed down. A refusal of a request that was sent before says nothing new.
    slowed: Instant,
    /// How often it was slowed down since its last answer.
    in_a_row: u32,
    /// How often the turns were taken back that were given out.
    taken_back: u64,
    /// How many requests it has answered.
    answered: u32,
}

/// When a request may be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// How long until then.
    pub(super) pause: Duration,
    taken_back: u64,
}

/// A server refused a request because there were too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overload {
    /// How long nothing is sent to it.
    pub(super) pause: Duration,
    /// How many requests it had answered.
    pub(super) answered: u32,
}

impl Pace {
    /// The pace of a server that is about to refuse its first request, which was sent at `sent`.
    fn new(sent: Instant, now: Instant) -> Self {
        Self {
            apart: Duration::ZERO,
            next: now,
            paused_until: now,
            slowed: sent,
            in_a_row: 0,
            taken_back: 0,
            answered: 0,
        }
    }

    fn turn(&mut self, now: Instant) -> Turn {
        let at = self.next.max(now);
        self.next = at + self.apart;
        Turn { pause: at - now, taken_back: self.taken_back }
    }

    /// Notes the refusal of a request that was sent at `sent`, with the pause that the server asked for, if it did.
    fn refuse(
        &mut self,
        (sent, now): (Instant, Instant),
        asked: Option<Duration>,
        shortest: Duration,
    ) -> Overload {
        let is_news = sent >= self.slowed;
        if is_news {
            self.apart = if self.apart.is_zero() { FIRST } else { WIDEST.min(self.apart * 2) };
            self.slowed = now;
            self.in_a_row += 1;
        }
        let doubled = 1 << self.in_a_row.saturating_sub(1).min(16);
        let pause = asked.unwrap_or(shortest * doubled);
        let until = now + pause;
        if (is_news || asked.is_some()) && until > self.paused_until {
            self.paused_until = until;
            self.next = until;
            self.taken_back += 1;
        }
        Overload { pause, answered: self.answered }
    }

    fn answer(&mut self) {
        self.answered = self.answered.wrapping_add(1);
        self.in_a_row = 0;
        self.apart -= self.apart / PARTS;
        if self.apart < NARROWEST {
            self.apart = Duration::ZERO;
        }
    }
}

impl Paces {
    /// When a request to `url` may be sent; `None` if it needs no turn.
    pub(super) fn turn(&self, url: &SafeUrl, now: Instant) -> Option<Turn> {
        self.with(url, |pace| pace.turn(now))
    }

    /// Whether a turn still counts; it does not if another request was refused meanwhile.
    pub(super) fn still_has(&self, url: &SafeUrl, turn: &Turn) -> bool {
        self.with(url, |pace| pace.taken_back == turn.taken_back) == Some(true)
    }

    /// Whether requests to `url` take turns.
    pub(super) fn is_paced(&self, url: &SafeUrl) -> bool {
        self.with(url, |pace| !pace.apart.is_zero()) == Some(true)
    }

    /// Notes that the server at `url` answered a request.
    pub(super) fn answer(&self, url: &SafeUrl) {
        self.with(url, Pace::answer);
    }

    /// Notes that the server at `url` refused a request because there were too many. It was sent at `sent`, and perhaps the server
    /// `asked` for a pause; if it did not, there is one that is no shorter than `shortest`.
    pub(super) fn refuse(
        &self,
        url: &SafeUrl,
        (sent, now): (Instant, Instant),
        asked: Option<Duration>,
        shortest: Duration,
    ) -> Overload {
        let mut paces = lock(&self.0);
        let pace = paces.entry(url.as_url().origin()).or_insert_with(|| Pace::new(sent, now));
        pace.refuse((sent, now), asked, shortest)
    }

    fn with<T>(&self, url: &SafeUrl, with: impl FnOnce(&mut Pace) -> T) -> Option<T> {
        let mut paces = lock(&self.0);
        if paces.is_empty() {
            return None;
        }
        paces.get_mut(&url.as_url().origin()).map(with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(250);

    /// A server that lets through so many requests a second, and some more at once, and the requests of some threads to it.
    fn ask(a_second: f64, at_once: f64, threads: usize, wanted: usize) -> (usize, f64) {
        let begin = Instant::now();
        let mut pace: Option<Pace> = None;
        let (mut allowed, mut last, mut refused, mut done) = (at_once, begin, 0, 0);
        // When each thread asks next, and the turns that it has.
        let mut lanes: Vec<(Instant, Option<u64>)> = vec![(begin, None); threads];
        while done < wanted {
            let (lane, &(now, taken_back)) =
                lanes.iter().enumerate().min_by_key(|(_, (at, _))| *at).expect("there are some");
            if let Some(pace) = &mut pace
                && taken_back != Some(pace.taken_back)
            {
                let turn = pace.turn(now);
                lanes[lane] = (now + turn.pause, Some(turn.taken_back));
                continue;
            }
            allowed = at_once.min(allowed + (now - last).as_secs_f64() * a_second);
            last = now;
            lanes[lane] = (now + Duration::from_micros(500), None);
            if allowed >= 1.0 {
                allowed -= 1.0;
                done += 1;
                pace.iter_mut().for_each(Pace::answer);
            } else {
                refused += 1;
                let pace = pace.get_or_insert_with(|| Pace::new(now, now));
                pace.refuse((now, now), None, PAUSE);
            }
        }
        (refused, (last - begin).as_secs_f64())
    }

    #[test]
    fn the_pace_comes_near_to_what_the_server_allows() {
        for (a_second, at_once, wanted) in
            [(100.0, 20.0, 1_500), (100.0, 1.0, 1_500), (10.0, 10.0, 300)]
        {
            let (refused, seconds) = ask(a_second, at_once, 50, wanted);
            let fastest = (wanted as f64 - at_once) / a_second;
            assert!(seconds < fastest * 1.6 + 2.0, "{a_second}: {seconds} s, {fastest} s at best");
            assert!(refused * 8 < wanted, "{a_second}: {refused} of {wanted} were refused");
        }
    }

    #[test]
    fn no_thread_asks_during_a_pause() {
        let begin = Instant::now();
        let after = |milliseconds| begin + Duration::from_millis(milliseconds);
        let mut pace = Pace::new(begin, begin);
        let second = Some(Duration::from_secs(1));
        pace.refuse((after(0), after(1)), second, PAUSE);
        let turns: Vec<u128> = (0..3).map(|_| pace.turn(after(2)).pause.as_millis()).collect();
        assert_eq!(turns, [999, 1_009, 1_019]);
        // The refusal of a request that was sent before prolongs the pause, and slows nothing down.
        let before = pace.taken_back;
        pace.refuse((after(0), after(5)), second, PAUSE);
        assert_eq!((pace.apart, pace.taken_back), (FIRST, before + 1));
        assert_eq!(pace.turn(after(5)).pause, Duration::from_secs(1));
        // Without a pause of the server's own, there is one that doubles until an answer comes.
        for expected in [500, 1_000, 2_000] {
            let refusal = pace.refuse((after(9_000), after(9_000)), None, PAUSE);
            assert_eq!(refusal.pause.as_millis(), expected);
        }
        pace.answer();
        let refusal = pace.refuse((after(9_000), after(9_000)), None, PAUSE);
        assert_eq!((refusal.pause, refusal.answered), (PAUSE, 1));
    }
}
