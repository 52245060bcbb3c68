//! An answer: its status, its headers, and its body as a reader.
//!
//! `request.rs` turns statuses into errors; the provider interprets the body.

use std::fmt;
use std::io::{self, Read};

use bytes::Bytes;

use super::Failure;
use super::exchange::RawResponse;
use crate::{ErrorKind, Progress, ProviderError, SafeUrl};

/// How many bytes arrive between two progress reports.
const REPORTED: usize = 8 << 10;

/// An answer whose body may still be arriving.
pub struct Response {
    url: SafeUrl,
    answer: RawResponse,
    /// Bytes that have arrived and were not read yet.
    rest: Bytes,
}

impl Response {
    pub(super) fn new(url: SafeUrl, answer: RawResponse) -> Self {
        Self { url, answer, rest: Bytes::new() }
    }

    /// Where the answer came from, after redirects.
    pub fn url(&self) -> &SafeUrl {
        &self.url
    }

    /// The status, such as 200.
    pub fn status(&self) -> u16 {
        self.answer.status.as_u16()
    }

    /// The status with its name, such as `404 Not Found`.
    pub fn status_text(&self) -> String {
        self.answer.status.to_string()
    }

    /// A header's value, if it is there and is text. Names are in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.answer.headers.get(name)?.to_str().ok()
    }

    /// Whether it says that it is a web page.
    pub fn is_web_page(&self) -> bool {
        let kind = self.header("content-type").unwrap_or_default().trim_start();
        kind.get(..9).is_some_and(|kind| kind.eq_ignore_ascii_case("text/html"))
    }

    /// All values of a header that are text. Names are in lower case.
    pub fn headers<'r>(&'r self, name: &str) -> impl Iterator<Item = &'r str> {
        self.answer.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
    }

    /// How many seconds the answer stays fresh, according to its `Cache-Control`, if it says so.
    pub fn max_age(&self) -> Option<u32> {
        let control = self.header("cache-control").unwrap_or_default();
        let mut seconds = None;
        for directive in control.split(',') {
            let (name, value) = directive.trim().split_once('=').unwrap_or((directive.trim(), ""));
            match name.to_ascii_lowercase().as_str() {
                "no-cache" | "no-store" => return Some(0),
                "max-age" => seconds = Some(value.trim_matches('"').parse().unwrap_or(0)),
                _ => {}
            }
        }
        seconds
    }

    /// The length of the body, if the server gives it.
    pub fn content_length(&self) -> Option<u64> {
        self.answer.length
    }

    /// Reads the whole body. A body longer than `limit` is refused.
    ///
    /// # Errors
    ///
    /// When the body is too long, or breaks off (which may pass).
    pub fn bytes(mut self, limit: u64, progress: &dyn Progress) -> Result<Vec<u8>, Failure> {
        let total = self.content_length();
        if total.is_some_and(|length| length > limit) {
            return Err(self.too_long(limit).into());
        }
        // A promised length does not justify much memory yet.
        let expected = usize::try_from(total.unwrap_or(0).min(8 << 20)).expect("8 MiB fit");
        let mut body = Vec::from(std::mem::take(&mut self.rest));
        let mut reported = 0;
        let broken_off = |error: io::Error| Failure::broken_off(&error, &self.url);
        while let Some(piece) = self.answer.body.next().map_err(broken_off)? {
            if (body.len() + piece.len()) as u64 > limit {
                return Err(self.too_long(limit).into());
            }
            if body.is_empty() {
                // A small answer is one piece, which is not copied; a large one does not grow any more.
                body = Vec::from(piece);
                body.reserve(expected.saturating_sub(body.len()));
            } else {
                body.extend_from_slice(&piece);
            }
            if body.len() >= reported + REPORTED {
                reported = body.len();
                progress.bytes(reported as u64, total);
            }
        }
        Ok(body)
    }

    /// The beginning of the body, of about `limit` bytes, as far as it arrives. It will be read again.
    pub(super) fn excerpt(&mut self, limit: usize) -> Bytes {
        let mut begin = Vec::from(std::mem::take(&mut self.rest));
        while begin.len() < limit
            && let Ok(Some(piece)) = self.answer.body.next()
        {
            begin.extend_from_slice(&piece);
        }
        self.rest = begin.into();
        self.rest.clone()
    }

    fn too_long(&self, limit: u64) -> ProviderError {
        let text =
            format!("the answer from `{}` is refused: it is longer than {limit} bytes", self.url);
        ProviderError::new(ErrorKind::Protocol, text)
    }
}

impl Read for Response {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.answer.body.next()? {
                Some(piece) => self.rest = piece,
                None => return Ok(0),
            }
        }
        let count = self.rest.len().min(buffer.len());
        let (room, _) = buffer.split_at_mut(count);
        room.copy_from_slice(&self.rest.split_to(count));
        Ok(count)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers are left out, because some of them are secrets.
        write!(formatter, "Response({} from {})", self.status(), self.url)
    }
}

/// Whether what was received is a web page.
pub fn begins_web_page(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|page| start.get(..page.len()).is_some_and(|start| start.eq_ignore_ascii_case(page)))
}

/// An error with the reason that a web page came in place of an answer, as a network asks people to sign in, or a server shows for each
/// path that it does not have.
pub fn because_of_web_page(error: ProviderError) -> ProviderError {
    error.because("the answer is a web page").hint(
        "it may be a login page, of the server, a proxy or the network, or the URL may be wrong",
    )
}
