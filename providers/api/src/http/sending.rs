//! The body of a watched request: it reports how much of it was sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::event::{RequestEvent, Watch};

/// How much is handed to the connection at once, in bytes.
const PIECE: usize = 16 << 10;

/// The rest of a body.
pub(super) struct Sending {
    left: Bytes,
    total: u64,
    number: u64,
    watch: Watch,
}

impl Sending {
    /// The body of the request with this number.
    pub(super) fn new(bytes: Bytes, number: u64, watch: Watch) -> Self {
        Self { total: bytes.len() as u64, left: bytes, number, watch }
    }
}

impl Body for Sending {
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
