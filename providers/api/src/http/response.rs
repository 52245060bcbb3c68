//! An answer: its status, its headers, and its body as a reader.
//!
//! Statuses are turned into errors in `request.rs`; what a body means is up to the provider.

use std::fmt;
use std::io::{self, Read};

use super::Failure;
use crate::{ErrorKind, Progress, ProviderError, SafeUrl};

/// An answer whose body is still on its way.
pub struct Response {
    url: SafeUrl,
    inner: reqwest::blocking::Response,
}

impl Response {
    pub(super) fn new(url: SafeUrl, inner: reqwest::blocking::Response) -> Self {
        Self { url, inner }
    }

    /// Where the answer came from, after redirects.
    pub fn url(&self) -> &SafeUrl {
        &self.url
    }

    /// The status, such as 200.
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// The status with its name, such as `404 Not Found`.
    pub fn status_text(&self) -> String {
        self.inner.status().to_string()
    }

    /// A header's value, if it is there and is text. Names are in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// For how many seconds the answer stays fresh, by its `Cache-Control`; 0 where it does not say.
    pub fn max_age(&self) -> u32 {
        let control = self.header("cache-control").unwrap_or_default();
        let mut seconds = 0;
        for directive in control.split(',') {
            let (name, value) = directive.trim().split_once('=').unwrap_or((directive.trim(), ""));
            match name.to_ascii_lowercase().as_str() {
                "no-cache" | "no-store" => return 0,
                "max-age" => seconds = value.trim_matches('"').parse().unwrap_or(0),
                _ => {}
            }
        }
        seconds
    }

    /// How long the body is, where the server says so.
    pub fn length(&self) -> Option<u64> {
        self.inner.content_length()
    }

    /// Reads the whole body, which is refused if it is longer than `limit`.
    ///
    /// # Errors
    ///
    /// When the body is too long, or breaks off (which may pass).
    pub fn bytes(mut self, limit: u64, progress: &dyn Progress) -> Result<Vec<u8>, Failure> {
        let total = self.length();
        if total.is_some_and(|length| length > limit) {
            return Err(self.too_long(limit).into());
        }
        // A length that is only promised is not yet worth much memory.
        let expected = total.unwrap_or(0).min(8 << 20);
        let mut body = Vec::with_capacity(usize::try_from(expected).expect("8 MiB fit") + 1);
        let mut reported = 0;
        loop {
            let want = 256 << 10;
            let count = (&mut self.inner).take(want).read_to_end(&mut body);
            let count = count.map_err(|error| Failure::broken_off(&error, &self.url))?;
            if body.len() as u64 > limit {
                return Err(self.too_long(limit).into());
            }
            if body.len() > reported {
                reported = body.len();
                progress.bytes(reported as u64, total);
            }
            if (count as u64) < want {
                return Ok(body);
            }
        }
    }

    fn too_long(&self, limit: u64) -> ProviderError {
        ProviderError::new(
            ErrorKind::Protocol,
            format!("the answer from `{}` is refused: it is longer than {limit} bytes", self.url),
        )
    }
}

impl Read for Response {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No headers: some of them are secrets.
        write!(formatter, "Response({} from {})", self.status(), self.url)
    }
}
