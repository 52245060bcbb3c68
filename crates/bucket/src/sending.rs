//! Says how much of a large file is on its way to a bucket.
//!
//! The client of the object stores sends a body piece by piece, and drops each when the connection has taken it. That is what
//! is counted. Files that are sent in a moment are not worth a word.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use object_store::PutPayload;
use object_store::client::{HttpError, HttpRequestBody};

/// How much is handed to the connection at once, in bytes.
const PIECE: usize = 64 << 10;

/// Shorter bodies are not watched, in bytes.
const LARGE: usize = 512 << 10;

/// Takes how many bytes of how many are on their way. It is called by many threads, so it must be quick.
#[derive(Clone)]
pub struct Sending(pub Arc<dyn Fn(u64, u64) + Send + Sync>);

impl fmt::Debug for Sending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sending")
    }
}

/// A part of a body; it is on its way when it is dropped.
struct Piece {
    bytes: Bytes,
    done: Arc<AtomicU64>,
    total: u64,
    sending: Sending,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let length = self.bytes.len() as u64;
        let done = self.done.fetch_add(length, Ordering::Relaxed) + length;
        (self.sending.0)(done, self.total);
    }
}

/// The body, which then reports how much of it is sent.
pub(crate) async fn watched(
    body: HttpRequestBody,
    sending: &Sending,
) -> Result<HttpRequestBody, HttpError> {
    if body.content_length() < LARGE {
        return Ok(body);
    }
    let mut left = body.collect().await?.to_bytes();
    let (done, total) = (Arc::default(), left.len() as u64);
    let mut pieces = Vec::with_capacity(left.len() / PIECE + 1);
    while !left.is_empty() {
        let bytes = left.split_to(left.len().min(PIECE));
        let (done, sending) = (Arc::clone(&done), sending.clone());
        pieces.push(Bytes::from_owner(Piece { bytes, done, total, sending }));
    }
    Ok(pieces.into_iter().collect::<PutPayload>().into())
}
