//! Room in memory for the archives that clients are sending: how much there is in all, how much of it one
//! token may have, and how fast a client has to fill it.
//!
//! A token's share is reserved when its client announces the size, before anything is read. So uploads with
//! one token never wait for each other with half an archive each. The total is taken as bytes arrive, so a
//! client that announces much and sends little makes nobody wait. If all are waiting, one of them continues
//! in a reserve with room for the largest archive. So one of them always finishes.
//!
//! Also whether the disk has room for an archive, and what is read of one that is refused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use mu_hub::derived;
use mu_provider::threads::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::problem::Problem;
use super::server::Server;

/// How many archives of the largest size can be in memory at the same time.
const ARCHIVES: u64 = 4;

/// How many archives of the largest size one token may have in memory at the same time.
const ARCHIVES_OF_ONE: u64 = 2;

/// What room is counted in, in bytes.
const UNIT: u64 = 64 << 10;

/// How long a client may take before its first byte, or pause in the middle of a body.
const SILENCE: Duration = Duration::from_secs(20);

/// How many bytes a client has to send for each second after that.
const LEAST_RATE: u64 = 8 << 10;

/// How long a whole body may take.
const WHOLE_BODY: Duration = Duration::from_secs(900);

/// How long the rest of a request that is refused is read, and how many bytes a client has to send for each second after that.
const PATIENCE_WITH_REFUSED: Duration = Duration::from_secs(5);
const LEAST_RATE_OF_REFUSED: u64 = 1 << 20;

/// The room of one server.
#[derive(Debug)]
pub(super) struct Uploads {
    /// How many units the largest archive takes.
    largest: usize,
    shared: Semaphore,
    /// Room for one archive of the largest size, for a client that finds no other room.
    reserve: Semaphore,
    tokens: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The room of one upload, until this is dropped.
#[derive(Debug)]
pub(super) struct Room<'uploads> {
    uploads: &'uploads Uploads,
    _own: Option<OwnedSemaphorePermit>,
    taken: Option<SemaphorePermit<'uploads>>,
    reserve: Option<SemaphorePermit<'uploads>>,
}

impl Uploads {
    /// Room for archives of at most `largest` bytes.
    pub(super) fn new(largest: u64) -> Self {
        let largest = units(largest.max(1));
        Self {
            largest,
            shared: Semaphore::new(largest * (ARCHIVES - 1) as usize),
            reserve: Semaphore::new(1),
            tokens: Mutex::default(),
        }
    }

    /// Waits until the token `name` has room for one more archive of `announced` bytes.
    pub(super) async fn enter(&self, name: &str, announced: u64) -> Room<'_> {
        let wanted = units(announced.max(1)).min(self.largest);
        let own = self.of_token(name).acquire_many_owned(as_permits(wanted)).await.ok();
        Room { uploads: self, _own: own, taken: None, reserve: None }
    }

    fn of_token(&self, name: &str) -> Arc<Semaphore> {
        let mut tokens = lock(&self.tokens);
        if let Some(known) = tokens.get(name).and_then(Weak::upgrade) {
            return known;
        }
        tokens.retain(|_, room| room.strong_count() > 0);
        let room = Arc::new(Semaphore::new(self.largest * ARCHIVES_OF_ONE as usize));
        tokens.insert(name.to_owned(), Arc::downgrade(&room));
        room
    }
}

impl Room<'_> {
    /// Waits until there is room for the first `bytes` bytes of the archive.
    pub(super) async fn grow(&mut self, bytes: u64) {
        let has = self.taken.as_ref().map_or(0, SemaphorePermit::num_permits);
        let wanted = units(bytes).saturating_sub(has);
        if wanted == 0 || self.reserve.is_some() {
            return;
        }
        let uploads = self.uploads;
        tokio::select! {
            biased;
            more = uploads.shared.acquire_many(as_permits(wanted)) => match (&mut self.taken, more) {
                (Some(taken), Ok(more)) => taken.merge(more),
                (taken, more) => *taken = more.ok(),
            },
            reserve = uploads.reserve.acquire() => self.reserve = reserve.ok(),
        }
    }
}

fn units(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(UNIT)).unwrap_or(usize::MAX)
}

fn as_permits(units: usize) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}

/// How long to wait for the next part of a body, after `received` bytes arrived in the time `spent` waiting
/// for it; `None` if the client has used all its time.
fn patience(spent: Duration, received: u64) -> Option<Duration> {
    let earned = SILENCE + Duration::from_millis(received.saturating_mul(1_000) / LEAST_RATE);
    let left = earned.min(WHOLE_BODY).checked_sub(spent).filter(|left| !left.is_zero())?;
    Some(left.min(SILENCE))
}

/// Reads a body of at most `largest` bytes from a client that keeps sending; takes `room` as it arrives.
pub(super) async fn body(
    body: &mut Body,
    largest: u64,
    mut room: Option<&mut Room<'_>>,
) -> Result<Bytes, Problem> {
    let mut bytes = BytesMut::new();
    // Only the client's time counts, not the time that it waits for room.
    let mut spent = Duration::ZERO;
    loop {
        let Some(patience) = patience(spent, bytes.len() as u64) else { return Err(slow()) };
        let begin = Instant::now();
        let frame = match tokio::time::timeout(patience, body.frame()).await {
            Err(_) => return Err(slow()),
            Ok(None) => return Ok(bytes.freeze()),
            Ok(Some(Err(_))) => {
                let detail = "the body ended early";
                return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        spent += begin.elapsed();
        let Ok(data) = frame.into_data() else { continue };
        let length = (bytes.len() + data.len()) as u64;
        if length > largest {
            return Err(larger_than(largest));
        }
        if let Some(room) = &mut room {
            room.grow(length).await;
        }
        bytes.extend_from_slice(&data);
    }
}

fn slow() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "the body arrived too slowly")
}

/// The problem with a body of more than `largest` bytes.
pub(super) fn larger_than(largest: u64) -> Problem {
    let detail = format!("the body is larger than the {largest} bytes that are accepted");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Whether the disk has room for an archive, besides what is kept free for changes that need little, such as yanking.
pub(super) async fn check_room(
    server: &Server,
    name: &str,
    version: &str,
    bytes: u64,
) -> Result<(), Problem> {
    let files = &server.data.files;
    let Some(room) = files.room().await? else { return Ok(()) };
    // Unless the operator says otherwise: 64 MiB, or a twentieth of a small disk.
    let kept_free = server.serving.keep_free.unwrap_or((64 << 20).min(room.size / 20));
    let needed = kept_free.saturating_add(bytes);
    // A version that is there needs no room: sending it again completes what a full disk has interrupted.
    let is_there = async || derived::index(files, &server.data.root, name).await;
    if room.free >= needed || is_there().await?.find(version).is_some() {
        return Ok(());
    }
    Err(Problem::no_room(format!("{} bytes of the disk are free, not {needed}", room.free)))
}

/// Reads what comes with a refused request, up to `most` bytes. With bytes that nobody has read, the system resets the connection as it
/// closes, and a client that is still sending never sees the answer. One that waits to be told to go on needs no more than the answer.
pub(super) async fn read_refused(headers: &HeaderMap, mut body: Body, most: u64) {
    if headers.contains_key(header::EXPECT) {
        return;
    }
    let (begin, mut bytes) = (Instant::now(), 0);
    while bytes <= most {
        // Whoever takes longer has to do without the answer.
        let earned = Duration::from_millis(bytes.saturating_mul(1_000) / LEAST_RATE_OF_REFUSED);
        let left = (PATIENCE_WITH_REFUSED + earned).saturating_sub(begin.elapsed());
        match tokio::time::timeout(left, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const LARGEST: u64 = 4 * UNIT;

    /// The result of a future, if it is there without waiting.
    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn who_announces_much_and_sends_nothing_keeps_nobody_but_himself_waiting() {
        let uploads = Uploads::new(LARGEST);
        let mut slow: Vec<_> = (0..2)
            .map(|_| now(uploads.enter("slow", LARGEST)).expect("is the token's own room"))
            .collect();
        for room in &mut slow {
            now(room.grow(1)).expect("one byte");
        }
        assert!(now(uploads.enter("slow", 1)).is_none());
        for name in ["a", "b"] {
            let mut room = now(uploads.enter(name, LARGEST)).expect("is another token's");
            now(room.grow(LARGEST)).expect("there is room");
        }
        drop(slow);
        assert!(now(uploads.enter("slow", LARGEST)).is_some());
        assert_eq!(uploads.shared.available_permits() as u64 * UNIT, 3 * LARGEST);
    }

    #[test]
    fn where_all_wait_with_half_an_archive_one_of_them_ends() {
        let uploads = Uploads::new(LARGEST);
        let mut rooms: Vec<_> = (0..6)
            .map(|number| now(uploads.enter(&format!("t{number}"), LARGEST)).expect("has room"))
            .collect();
        for room in &mut rooms {
            now(room.grow(LARGEST / 2)).expect("there is room for half of each");
        }
        let ended = |rooms: &mut Vec<Room<'_>>| {
            let ended: Vec<bool> =
                rooms.iter_mut().map(|room| now(room.grow(LARGEST)).is_some()).collect();
            ended.iter().filter(|ended| **ended).count()
        };
        assert_eq!(ended(&mut rooms), 1);
        // It has finished, and its half is free for another one. The reserve is free for a third.
        let first = rooms.iter().position(|room| room.reserve.is_some()).expect("one has it");
        rooms.remove(first);
        assert_eq!(ended(&mut rooms), 2);
    }

    #[test]
    fn a_token_that_is_not_used_is_forgotten() {
        let uploads = Uploads::new(LARGEST);
        for number in 0..100 {
            drop(now(uploads.enter(&format!("t{number}"), 1)));
        }
        assert_eq!(uploads.tokens.lock().expect("is whole").len(), 1);
    }

    #[test]
    fn a_body_has_to_come_at_a_least_rate() {
        let seconds = Duration::from_secs;
        assert_eq!(patience(seconds(0), 0), Some(SILENCE));
        assert_eq!(patience(seconds(15), 1), Some(seconds(5)));
        // A byte every two seconds.
        assert_eq!(patience(seconds(21), 10), None);
        assert_eq!(patience(seconds(30), 11 * LEAST_RATE), Some(seconds(1)));
        assert_eq!(patience(seconds(30), 10 * LEAST_RATE), None);
        assert_eq!(patience(seconds(30), 256 << 20), Some(SILENCE));
        assert_eq!(patience(seconds(900), 256 << 20), None);
    }
}
