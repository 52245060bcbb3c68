//! An answer: its status, what that means, and what helps against a refusal; its headers, and its body as a reader.
//!
//! `request.rs` turns statuses into errors; the provider interprets the body.

use std::fmt;
use std::io::{self, Read};
use std::time::Instant;

use bytes::Bytes;

use super::exchange::RawResponse;
use super::{Authorization, Failure, Header, Request, or_variable, ways_in};
use crate::{ErrorKind, Progress, ProviderError, SafeUrl, Silent};

/// What helps where a body was refused for its size (413) without a word about how large one may be.
pub const TOO_LARGE: &str = "a proxy in front of it takes no bodies of this size: with nginx, `client_max_body_size` sets how large they may be";

/// The statuses that lead to another URL.
pub const REDIRECTING: [u16; 5] = [301, 302, 303, 307, 308];

/// How many bytes arrive between two progress reports.
const REPORTED: usize = 8 << 10;

/// How much memory is set aside at once for a body whose length is promised, in bytes. What does not arrive is never touched, so it
/// costs nothing; without it, a large body is copied each time that it has doubled.
const MOST_RESERVED: u64 = 64 << 20;

/// An answer whose body may still be arriving.
pub struct Response {
    url: SafeUrl,
    answer: RawResponse,
    /// Bytes that have arrived and were not read yet.
    rest: Bytes,
    /// When the request was sent.
    sent: Instant,
}

impl Response {
    pub(super) fn new(url: SafeUrl, answer: RawResponse, sent: Instant) -> Self {
        Self { url, answer, rest: Bytes::new(), sent }
    }

    /// When the request was sent.
    pub(super) fn sent(&self) -> Instant {
        self.sent
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

    /// Where it leads. Servers write it with the letters of any language, as people see it in a browser.
    pub(super) fn location(&self) -> Option<&str> {
        std::str::from_utf8(self.answer.headers.get("location")?.as_bytes()).ok()
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
        let expected = usize::try_from(total.unwrap_or(0).min(MOST_RESERVED)).expect("is small");
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
                // Where memory is short, it grows as it arrives.
                let _ = body.try_reserve(expected.saturating_sub(body.len()));
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

    /// Whether it leads to another URL.
    pub(super) fn is_redirect(&self) -> bool {
        REDIRECTING.contains(&self.status())
    }

    /// The beginning of the body, of about `limit` bytes, as far as it arrives. It will be read again.
    pub fn excerpt(&mut self, limit: usize) -> Bytes {
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

/// The longest answer that is read to find out why a request was refused, in bytes.
const LONGEST_PROBLEM: u64 = 16 << 10;

/// How many reasons are shown.
const MOST_REASONS: usize = 3;

/// How many characters of it are shown.
const LONGEST_REASON: usize = 300;

/// What a server says of a refusal.
struct Said {
    reason: String,
    /// Whether no other token would help.
    is_policy: bool,
}

/// The reason in problem details (RFC 9457), in the errors of OCI registries, or in those of token servers (RFC 6749).
fn reason(problem: &serde_json::Value) -> Option<String> {
    let text = |value: &serde_json::Value, key: &str| {
        Some(value.get(key)?.as_str()?.to_owned()).filter(|text| !text.is_empty())
    };
    if let Some(errors) = problem.get("errors").and_then(serde_json::Value::as_array) {
        let messages: Vec<String> =
            errors.iter().take(MOST_REASONS).filter_map(|error| text(error, "message")).collect();
        if !messages.is_empty() {
            return Some(messages.join("; "));
        }
    }
    ["detail", "error_description", "details", "message"].iter().find_map(|key| text(problem, key))
}

/// Whether a registry refuses by a rule of its own, such as one about vulnerabilities, and not for want of a token.
fn is_policy(problem: &serde_json::Value) -> bool {
    let errors = problem.get("errors").and_then(serde_json::Value::as_array);
    errors.into_iter().flatten().any(|error| {
        let of = |key: &str| error.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        let message = of("message").to_ascii_lowercase();
        of("code").contains("POLICY")
            || ["quarantine", "policy", "vulnerabilit"].iter().any(|word| message.contains(word))
    })
}

impl Request<'_> {
    /// The error about a token that cannot be the value of a header.
    pub(super) fn no_header(&self, url: &SafeUrl) -> ProviderError {
        let host = url.host_and_port();
        let (token, hint) = match self.variable() {
            Some(name) => {
                (format!("the token in `{name}`"), "set it to the token alone".to_owned())
            }
            None => {
                (format!("the token for `{host}`"), format!("`mu login {host}` stores a new one"))
            }
        };
        let text = format!(
            "`{url}` was not requested: {token} contains a line break or another character that no token has"
        );
        ProviderError::new(ErrorKind::Auth, text).hint(hint)
    }

    /// An answer, or the error of its status.
    pub(super) fn judge(&self, response: Response) -> Result<Response, Failure> {
        let status = response.status();
        let overload = self.http.note_status(&response);
        if (200..300).contains(&status) || status == 304 || self.allowed.contains(&status) {
            return Ok(response);
        }
        let url = response.url().clone();
        let text = format!("`{url}` answered {}", response.status_text());
        let failure: Failure = match status {
            401 | 403 => self.unauthorized(&url, text, status).into(),
            404 | 410 => {
                let error = ProviderError::new(ErrorKind::NotFound, text);
                return Err(match self.http.refused_unasked(&url) {
                    Some(status) => error.hint(self.not_accepted(status)).into(),
                    None => error.into(),
                });
            }
            408 | 429 | 500..=599 => Failure::unavailable(&response, overload),
            _ => Failure::refused(&response, text),
        };
        Err(match self.said(&url, response) {
            Some(Said { reason, is_policy }) => failure.with_server_reason(reason, is_policy),
            None => failure,
        })
    }

    /// The server's reason for a refusal, if it is in one of the forms that registries have and does not reveal the token.
    fn said(&self, url: &SafeUrl, response: Response) -> Option<Said> {
        let kind = response.header("content-type")?;
        if !kind.starts_with("application/problem+json") && !kind.starts_with("application/json") {
            return None;
        }
        let bytes = response.bytes(LONGEST_PROBLEM, &Silent).ok()?;
        let problem: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        let detail = &*reason(&problem)?;
        let tells = |shown: Header| match shown.for_program().expose().strip_prefix("Bearer ") {
            Some(token) => detail.contains(token),
            // A password is hidden in the shown text, so it could not be found there.
            None => true,
        };
        if self.token_for(url).is_some_and(tells) {
            return None;
        }
        let words: Vec<&str> = detail.split_whitespace().collect();
        let shown: String = words.join(" ").chars().take(LONGEST_REASON).collect();
        // No text from a server moves a terminal's cursor.
        let reason = shown.chars().map(|one| if one.is_control() { ' ' } else { one }).collect();
        Some(Said { reason, is_policy: is_policy(&problem) })
    }

    fn unauthorized(&self, url: &SafeUrl, text: String, status: u16) -> ProviderError {
        let host = url.host_and_port();
        let error = ProviderError::new(ErrorKind::Auth, text);
        if !url.is_confidential() {
            return error
                .hint(format!("tokens are not sent over plain http: reach `{host}` by https"));
        }
        if !url.is_same_server(&self.url) {
            let from = self.url.host_and_port();
            return error.hint(format!(
                "`{from}` redirects there, and tokens are not sent to another host"
            ));
        }
        let asked = self.asked();
        if let Some(guard) = &self.guard {
            let hints = guard.hints(&asked);
            if !hints.is_empty() {
                return hints.into_iter().fold(error, ProviderError::hint);
            }
        }
        let host = asked.host_and_unusual_port();
        if self.token_for(url).is_none() {
            return error.hint(match self.stored_credential() {
                // It is there, and was not shown.
                Some(_) if self.authorization == Authorization::Stored => {
                    elsewhere(&host, "changes", &url.host_and_port())
                }
                _ => ways_in(&host, &[]),
            });
        }
        error.hint(self.not_accepted(status))
    }

    /// The hint about a token that a server refused with `status`.
    fn not_accepted(&self, status: u16) -> String {
        let host = self.asked().host_and_unusual_port();
        let variable = or_variable(&host);
        match (self.variable(), status) {
            (Some(name), 401) => format!(
                "the token in `{name}` was refused; set another, or unset it to use what `mu login {host}` stored"
            ),
            (None, 401) => format!(
                "the token for `{host}` was not accepted; `mu login {host}` stores a new one{variable}"
            ),
            // The server accepted the token, but it does not allow this request.
            (Some(name), _) => format!("the token in `{name}` does not allow this"),
            (None, _) => format!(
                "the token for `{host}` does not allow this; `mu login {host}` stores a new one{variable}"
            ),
        }
    }

    /// The variable that the stored token comes from, if any.
    fn variable(&self) -> Option<String> {
        let is_stored = self.authorization == Authorization::Stored;
        let found = is_stored.then(|| self.stored_credential()).flatten()?;
        found.variable().map(str::to_owned)
    }
}

/// The hint with the line of the user's settings that lets the password for `host` go to `other`, which it names for its tokens or
/// changes (`purpose`).
pub fn elsewhere(host: &str, purpose: &str, other: &str) -> String {
    format!(
        "`{host}` names `{other}` for its {purpose}, which gets no password for `{host}`; if that is right, write \
         `registries: {{{host}/: {{tokensAt: {other}}}}}` into `~/.mu/config.yaml`"
    )
}
