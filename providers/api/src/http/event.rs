//! Events of requests, for code that shows or logs them. That code decides what to show, and how.
//!
//! The body of a watched request ([`Sending`]) reports how much of it was sent.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use reqwest::Method;
use reqwest::header::HeaderMap;

use crate::{SafeUrl, without_secrets};

/// A function that gets the events of a client's requests, from many threads; it must be fast.
pub type Watch = Arc<dyn Fn(&RequestEvent<'_>) + Send + Sync>;

/// An event of a request. Each attempt, and each redirect, is a separate request.
#[derive(Debug)]
pub enum RequestEvent<'event> {
    /// A request was sent.
    Sent {
        /// Its number, by which the other events name it.
        number: u64,
        /// Such as `GET`.
        method: &'event Method,
        /// The URL that it goes to.
        url: &'event SafeUrl,
        /// Where its token or password comes from, in words (empty if that is not known); `None` if it has
        /// none.
        authorized: Option<&'event str>,
        /// The name of the proxy that it goes through, if any.
        proxy: Option<&'event str>,
        /// The headers of the request, as they may be shown.
        headers: Headers<'event>,
    },
    /// A part of its body is being sent.
    Sending {
        /// The number of the request.
        number: u64,
        /// How much of the body that is so far, in bytes.
        done: u64,
        /// How long the body is, in bytes.
        total: u64,
    },
    /// The head of its answer is there.
    Answered {
        /// The number of the request.
        number: u64,
        /// The status with its name, such as `404 Not Found`.
        status: &'event str,
        /// The headers of the answer, as they may be shown.
        headers: Headers<'event>,
    },
    /// A piece of its answer arrived.
    Received {
        /// The number of the request.
        number: u64,
        /// How long the piece is.
        bytes: u64,
    },
    /// The request is over: it was answered, failed, or is not needed any more.
    Ended {
        /// The number of the request.
        number: u64,
    },
    /// It failed for a reason that may pass, and is sent again after a pause.
    Repeated {
        /// Why it failed.
        reason: &'event str,
        /// How many attempts there were.
        attempt: usize,
        /// How many there will be at most.
        attempts: usize,
        /// How long it is waited before the next.
        pause: Duration,
    },
}

/// Headers as they may be shown, without those that authorize or identify somebody.
#[derive(Clone, Copy)]
pub struct Headers<'event>(pub(super) &'event HeaderMap);

impl Headers<'_> {
    /// `name: value` of each, with `****` for what may be a secret.
    pub fn shown(&self) -> Vec<String> {
        let shown = self.0.iter().map(|(name, value)| {
            let text = String::from_utf8_lossy(value.as_bytes());
            let is_secret = value.is_sensitive() || is_secret(name.as_str());
            format!("{name}: {}", if is_secret { "****".into() } else { without_secrets(&text) })
        });
        shown.collect()
    }
}

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.shown()).finish()
    }
}

/// Whether a header of this name, in lower case, may hold a secret.
fn is_secret(name: &str) -> bool {
    let words = ["auth", "cookie", "token", "secret", "key", "signature", "password", "credential"];
    name != "www-authenticate" && words.iter().any(|word| name.contains(word))
}

/// A watched request; reports its end when it is dropped.
pub(super) struct Watched {
    pub(super) watch: Watch,
    pub(super) number: u64,
    pub(super) url: SafeUrl,
    /// Where its token or password comes from, if it has one.
    pub(super) origin: String,
    /// The name of the proxy.
    pub(super) proxy: Option<String>,
    pub(super) is_sent: bool,
}

impl Watched {
    pub(super) fn sent(&mut self, method: &Method, headers: &HeaderMap) {
        self.is_sent = true;
        (self.watch)(&RequestEvent::Sent {
            number: self.number,
            method,
            url: &self.url,
            authorized: headers
                .contains_key(reqwest::header::AUTHORIZATION)
                .then_some(self.origin.as_str()),
            proxy: self.proxy.as_deref(),
            headers: Headers(headers),
        });
    }

    pub(super) fn answered(&self, status: &str, headers: &HeaderMap) {
        let headers = Headers(headers);
        (self.watch)(&RequestEvent::Answered { number: self.number, status, headers });
    }

    pub(super) fn received(&self, bytes: usize) {
        let bytes = bytes as u64;
        (self.watch)(&RequestEvent::Received { number: self.number, bytes });
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.is_sent {
            (self.watch)(&RequestEvent::Ended { number: self.number });
        }
    }
}

/// How much is handed to the connection at once, in bytes.
const PIECE: usize = 16 << 10;

/// The rest of a body.
pub(super) struct UnsentBody {
    left: Bytes,
    total: u64,
    number: u64,
    watch: Watch,
}

impl UnsentBody {
    /// The body of the request with this number.
    pub(super) fn new(bytes: Bytes, number: u64, watch: Watch) -> Self {
        Self { total: bytes.len() as u64, left: bytes, number, watch }
    }
}

impl Body for UnsentBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.left.len().min(PIECE);
        let piece = self.left.split_to(length);
        let (number, total) = (self.number, self.total);
        let done = total - self.left.len() as u64;
        (self.watch)(&RequestEvent::Sending { number, done, total });
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}
