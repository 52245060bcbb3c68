//! How slow a server may be: a server that sends a byte now and then could keep a conversation alive for
//! ever.
//!
//! Only time spent waiting for the server counts, not the processing of its answer. The transports notice if
//! a server is completely silent.

use std::cell::RefCell;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use super::WireError;

/// The bytes per second that a server has to send on average over [`WINDOW`], as in Cargo and many other
/// tools.
const LEAST_RATE: u64 = 10;
const WINDOW: Duration = Duration::from_secs(30);

/// How long everything except packs may take in all. A server that prepares a large pack sends next to
/// nothing meanwhile, and takes minutes for the largest repositories.
const LONGEST: Duration = Duration::from_secs(600);

/// What a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It sends its capabilities, or lists refs.
    Telling,
    /// It makes a pack.
    Preparing,
    /// It sends a pack.
    Sending,
}

/// How long one answer has taken so far.
#[derive(Debug)]
pub(crate) struct Pace(RefCell<State>);

#[derive(Debug)]
struct State {
    doing: Doing,
    waited: Duration,
    bytes: u64,
    /// How long was waited in the current window, and for how much.
    window: (Duration, u64),
}

impl Pace {
    /// The pace of an answer that is all lines.
    pub(crate) fn telling() -> Self {
        Self::of(Doing::Telling)
    }

    /// The pace of an answer that a pack is part of.
    pub(crate) fn preparing() -> Self {
        Self::of(Doing::Preparing)
    }

    fn of(doing: Doing) -> Self {
        let window = (Duration::ZERO, 0);
        Self(RefCell::new(State { doing, waited: Duration::ZERO, bytes: 0, window }))
    }

    /// Notes bytes of a pack. From the first one on, only these count.
    pub(super) fn note_pack(&self, bytes: usize) {
        let mut state = self.0.borrow_mut();
        if state.doing != Doing::Sending {
            state.doing = Doing::Sending;
            state.window = (Duration::ZERO, 0);
        }
        state.window.1 += bytes as u64;
    }

    /// Takes note of bytes, and of how long they were waited for.
    fn note(&self, waited: Duration, bytes: usize) -> Result<(), WireError> {
        let mut state = self.0.borrow_mut();
        let is_first = state.bytes == 0;
        state.waited += waited;
        state.bytes += bytes as u64;
        if state.doing != Doing::Sending && state.waited > LONGEST {
            return Err(WireError::TooLong(LONGEST.as_secs()));
        }
        // Before the first byte, a server may have to start, or a user to touch a security key.
        if state.doing == Doing::Preparing || is_first {
            return Ok(());
        }
        state.window.0 += waited;
        if state.doing == Doing::Telling {
            state.window.1 += bytes as u64;
        }
        if state.window.0 >= WINDOW {
            if state.window.1 < LEAST_RATE * WINDOW.as_secs() {
                return Err(WireError::TooSlow(LEAST_RATE, WINDOW.as_secs()));
            }
            state.window = (Duration::ZERO, 0);
        }
        Ok(())
    }
}

/// Reads as long as the server keeps the pace.
#[derive(Debug)]
pub(crate) struct Paced<'pace, R> {
    inner: R,
    pace: &'pace Pace,
}

impl<'pace, R> Paced<'pace, R> {
    pub(crate) fn new(inner: R, pace: &'pace Pace) -> Self {
        Self { inner, pace }
    }
}

impl<R: Read> Read for Paced<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let began = Instant::now();
        let count = self.inner.read(buffer)?;
        self.pace.note(began.elapsed(), count).map_err(io::Error::other)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// After how many seconds mu gives up if `bytes` arrive each second.
    fn lasts(pace: &Pace, bytes: usize) -> Option<usize> {
        (1..=10_000).find(|_| pace.note(SECOND, bytes).is_err())
    }

    #[test]
    fn a_drip_is_given_up() {
        assert_eq!(lasts(&Pace::telling(), 1), Some(31));
        assert_eq!(lasts(&Pace::telling(), 9), Some(31));
        // However fast it is, a listing has to end at some time.
        assert_eq!(lasts(&Pace::telling(), 10), Some(601));
        assert_eq!(lasts(&Pace::telling(), 10_000), Some(601));
        // A server that prepares a large pack sends signs of life.
        assert_eq!(lasts(&Pace::preparing(), 1), Some(601));
    }

    #[test]
    fn a_pack_may_take_long_if_it_comes() {
        let pace = Pace::preparing();
        let send = |bytes| {
            pace.note_pack(bytes);
            pace.note(SECOND, bytes)
        };
        assert!((0..10_000).all(|_| send(10).is_ok()));
        assert!((0..60).any(|_| send(9).is_err()));
    }

    #[test]
    fn what_is_beside_a_pack_does_not_count_for_it() {
        let pace = Pace::preparing();
        pace.note(SECOND, 100).expect("is fine");
        pace.note_pack(12);
        assert_eq!(lasts(&pace, 1_000), Some(30));
    }

    #[test]
    fn the_first_byte_may_take_longer_than_the_next() {
        let pace = Pace::telling();
        pace.note(SECOND * 100, 4).expect("ssh asks for a key to be touched");
        assert_eq!(lasts(&pace, 1), Some(30));
    }
}
