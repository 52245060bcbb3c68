//! The one thread that moves the bytes of all requests, and how other threads wait for answers.
//!
//! It hands over a small answer as a whole, so that the waiting thread wakes up once, and a large one piece
//! by piece. It does not know what requests and answers mean. reqwest's blocking client also has such a thread,
//! but with it, requests take half as long again (see docs/performance.md).

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::HeaderMap;
use reqwest::{Client, Request, StatusCode};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::event::Watched;
use crate::SafeUrl;
use crate::lead::Reach;

/// Answers of up to this size, in bytes, are handed over as a whole, if they arrive soon.
const WHOLE: u64 = 256 << 10;

/// How long the rest of an answer that fits into [`WHOLE`] may take. After that, the part that has arrived is
/// handed over.
const SOON: Duration = Duration::from_millis(400);

/// How many pieces of an answer larger than [`WHOLE`] may wait for their reader.
const AHEAD: usize = 4;

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Exchange {
    runtime: Handle,
    /// One slot for each request that may be sent although nobody waits for it yet.
    slots: Arc<Semaphore>,
    /// Dropping it ends the thread.
    _end: oneshot::Sender<()>,
}

/// Looks up names for a client that its one server may lead elsewhere: an address of this machine or of a private network is none, so
/// that no name leads there, except those that are `known`.
#[derive(Debug)]
pub(super) struct PublicNames {
    pub(super) known: Vec<String>,
}

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let is_known = self.known.iter().any(|known| known.eq_ignore_ascii_case(&name));
        Box::pin(async move {
            let looked_up =
                spawn_blocking(move || (name.as_str(), 0).to_socket_addrs().map(Vec::from_iter));
            let mut found = looked_up.await??;
            found.retain(|address| is_known || is_public(address.ip()));
            match found.is_empty() {
                true => Err("its name leads to no address that everyone can reach".into()),
                false => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

fn is_public(address: IpAddr) -> bool {
    Reach::of_address(address) == Reach::Network
}

/// A request that was sent, or will be. It is cancelled if this is dropped before the answer arrives.
#[derive(Debug)]
pub(super) struct Pending {
    answer: oneshot::Receiver<Result<RawResponse, ExchangeError>>,
    /// Says that somebody now waits for it, if that was not so from the start.
    waited_for: Option<oneshot::Sender<()>>,
    /// Where the request really goes, if not to the URL that it is known by.
    pub(super) to: Option<SafeUrl>,
    /// When it was handed over.
    pub(super) sent: Instant,
}

/// A request, and how it is sent.
pub(super) struct Outgoing {
    pub(super) client: Client,
    pub(super) request: Request,
    pub(super) patience: SilenceLimits,
    pub(super) watched: Option<Watched>,
    /// When it was handed over.
    pub(super) sent: Instant,
}

/// How long each part of an answer may keep silent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SilenceLimits {
    /// How long it may keep silent until its head is there.
    pub(super) head: Duration,
    /// How long it may keep silent between two pieces of its body.
    pub(super) body: Duration,
    /// In this time, so many bytes per second must arrive, or the answer counts as silent.
    pub(super) slowest: u64,
}

/// The speed at which a body arrives. Only time spent waiting counts, not the time that its reader takes.
#[derive(Debug, Default)]
struct Pace {
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// Notes that some bytes arrived after some time.
    ///
    /// # Errors
    ///
    /// When too few bytes arrived in the time that patience allows.
    fn note(&mut self, waited: Duration, bytes: u64, patience: SilenceLimits) -> io::Result<()> {
        self.waited += waited;
        self.bytes += bytes;
        if self.waited < patience.body {
            return Ok(());
        }
        let Self { waited, bytes } = std::mem::take(self);
        if bytes as f64 >= patience.slowest as f64 * waited.as_secs_f64() {
            return Ok(());
        }
        let text = format!("only {bytes} bytes came in {:.1} s", waited.as_secs_f64());
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct RawResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The length of the body, if the server gives it.
    pub(super) length: Option<u64>,
    pub(super) body: Body,
}

/// What follows an answer's head.
#[derive(Debug)]
pub(super) enum Body {
    /// The whole body, or why it ended early.
    Whole(Option<io::Result<Bytes>>),
    /// The pieces of the body as they arrive, and then its end.
    Pieces(mpsc::Receiver<io::Result<Option<Bytes>>>),
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// Nothing arrived for this long.
    Silence(Duration),
    /// The request could not be sent, or its answer not be understood.
    Transport(reqwest::Error),
    /// The thread is gone.
    Ended,
}

impl Exchange {
    /// Starts the thread. At most `ahead` requests from [`Exchange::send_ahead`] are in progress at once.
    pub(super) fn start(ahead: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        std::thread::Builder::new().name("mu-http".to_owned()).spawn(move || {
            // Nobody sends anything: this ends with an error when the other half is dropped.
            let _ = runtime.block_on(ended);
        })?;
        Ok(Self { runtime: handle, slots: Arc::new(Semaphore::new(ahead)), _end: end })
    }

    /// Sends `request`.
    pub(super) fn send(&self, outgoing: Outgoing) -> Pending {
        let sent = outgoing.sent;
        let (answer, answered) = oneshot::channel();
        self.runtime.spawn(exchange(outgoing, answer));
        Pending { answer: answered, waited_for: None, to: None, sent }
    }

    /// Sends `request`, which nobody waits for yet, when it is its turn: when few other requests are in
    /// progress, or when somebody waits for it.
    pub(super) fn send_ahead(&self, outgoing: Outgoing) -> Pending {
        let sent = outgoing.sent;
        let (answer, answered) = oneshot::channel();
        let (waited_for, is_waited_for) = oneshot::channel();
        let slots = Arc::clone(&self.slots);
        self.runtime.spawn(async move {
            // It holds its slot until its answer ends. Answers that nobody reads must not keep it waiting.
            let _slot = tokio::select! {
                biased;
                slot = slots.acquire() => slot.ok(),
                _ = is_waited_for => None,
            };
            if !answer.is_closed() {
                exchange(outgoing, answer).await;
            }
        });
        Pending { answer: answered, waited_for: Some(waited_for), to: None, sent }
    }
}

impl Pending {
    /// Waits for the head of the answer, and for the body of a small one.
    pub(super) fn wait(mut self) -> Result<RawResponse, ExchangeError> {
        let mut answer = self.answer.try_recv();
        if let Err(TryRecvError::Empty) = answer {
            if let Some(waited_for) = self.waited_for {
                // If the request was sent already, nobody listens any more.
                let _ = waited_for.send(());
            }
            answer = self.answer.blocking_recv().map_err(|_| TryRecvError::Closed);
        }
        answer.unwrap_or(Err(ExchangeError::Ended))
    }
}

/// Sends `request`, and hands over the answer. Ends early if nobody needs it any more. The end of the request is reported before anybody can
/// act on the end of its answer, or on its failure, and end the program.
async fn exchange(outgoing: Outgoing, answer: oneshot::Sender<Result<RawResponse, ExchangeError>>) {
    let Outgoing { client, request, patience, mut watched, .. } = outgoing;
    if let Some(watched) = &mut watched {
        watched.sent(request.method(), request.headers());
    }
    let mut response = match timeout(patience.head, client.execute(request)).await {
        Ok(Ok(response)) => response,
        failed => {
            let error = match failed {
                Ok(Err(error)) => ExchangeError::Transport(error),
                _ => ExchangeError::Silence(patience.head),
            };
            drop(watched);
            let _ = answer.send(Err(error));
            return;
        }
    };
    let length = response.content_length();
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    if let Some(watched) = &watched {
        watched.answered(&status.to_string(), &headers);
    }
    let head = |body| Ok(RawResponse { status, headers, length, body });
    let mut pace = Pace::default();
    let mut begun = None;
    if let Some(length) = length
        && length <= WHOLE
    {
        match soon(&mut response, length, patience, &mut pace, watched.as_ref()).await {
            Ok((piece, false)) => begun = Some(piece),
            whole => {
                drop(watched);
                let _ = answer.send(head(Body::Whole(Some(whole.map(|(bytes, _)| bytes)))));
                return;
            }
        }
    }
    let (pieces, coming) = mpsc::channel(AHEAD);
    let mut is_wanted = answer.send(head(Body::Pieces(coming))).is_ok();
    if let Some(piece) = begun {
        is_wanted = is_wanted && pieces.send(Ok(Some(piece))).await.is_ok();
    }
    while is_wanted {
        let piece = next(&mut response, patience, &mut pace, watched.as_ref()).await;
        let is_last = !matches!(piece, Ok(Some(_)));
        if is_last {
            watched = None;
        }
        is_wanted = pieces.send(piece).await.is_ok() && !is_last;
    }
}

/// The part of a body of `length` bytes that arrives soon, and whether it is complete.
async fn soon(
    response: &mut reqwest::Response,
    length: u64,
    patience: SilenceLimits,
    pace: &mut Pace,
    watched: Option<&Watched>,
) -> io::Result<(Bytes, bool)> {
    let begin = Instant::now();
    let mut body = Vec::with_capacity(usize::try_from(length).expect("is small"));
    while let Some(piece) = next(response, patience, pace, watched).await? {
        body.extend_from_slice(&piece);
        if begin.elapsed() > SOON {
            return Ok((body.into(), false));
        }
    }
    Ok((body.into(), true))
}

/// The next piece of the body; `None` at its end.
async fn next(
    response: &mut reqwest::Response,
    patience: SilenceLimits,
    pace: &mut Pace,
    watched: Option<&Watched>,
) -> io::Result<Option<Bytes>> {
    let start = Instant::now();
    match timeout(patience.body, response.chunk()).await {
        Ok(piece) => {
            let piece = piece.map_err(io::Error::other)?;
            if let Some(piece) = &piece {
                if let Some(watched) = watched {
                    watched.received(piece.len());
                }
                pace.note(start.elapsed(), piece.len() as u64, patience)?;
            }
            Ok(piece)
        }
        Err(_) => {
            let seconds = patience.body.as_secs_f32();
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("nothing came for {seconds} s")))
        }
    }
}

impl Body {
    /// Waits for the next piece; returns `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Bytes>> {
        let lost = || Err(io::ErrorKind::UnexpectedEof.into());
        match self {
            Self::Whole(piece) => match piece.take() {
                Some(Err(error)) => {
                    // An answer that ended early stays incomplete when it is read again.
                    *piece = Some(lost());
                    Err(error)
                }
                piece => piece.transpose(),
            },
            Self::Pieces(coming) => {
                let piece = coming.blocking_recv().unwrap_or_else(|| lost().map(Some));
                if let Ok(None) = piece {
                    *self = Self::Whole(None);
                }
                piece
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn only_what_everyone_can_reach_is_public() {
        for (text, expected) in [
            ("93.184.216.34", true),
            ("2606:2800:220:1::1", true),
            ("127.0.0.1", false),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("172.17.0.1", false),
            ("169.254.169.254", false),
            ("::1", false),
            ("::", false),
            ("fd00::1", false),
            ("fe80::1", false),
            ("::ffff:192.168.0.1", false),
            ("64:ff9b::a00:5", false),
        ] {
            assert_eq!(is_public(text.parse().expect("is an address")), expected, "{text}");
        }
    }
}
