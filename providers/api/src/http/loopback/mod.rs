//! The client for plain http to this machine: HTTP/1.1, on the thread that asks.
//!
//! Such a line has no TLS, no proxy, and an answer within microseconds, so that a runtime, with threads
//! that wake each other for each part of an answer, would cost more than all else. Connections are kept and
//! used again by whichever thread asks next. What may be sent where is decided in `rules.rs`, and
//! what is tried again in `retry.rs`.

mod answer;
mod connection;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use url::{Position, Url};

use self::answer::Head;
use self::connection::Connection;
use super::HttpOptions;

/// How many connections are kept for later.
const IDLE: usize = 64;

/// What is asked of a server.
pub(super) struct Question<'call> {
    pub(super) method: &'call Method,
    pub(super) url: &'call Url,
    pub(super) headers: &'call HeaderMap,
    pub(super) body: Option<(&'call mut dyn Read, u64)>,
}

/// An answer whose body is still on its way.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) length: Option<u64>,
    pub(super) body: Box<dyn Read + Send>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// Nobody can be connected to, what was sent did not arrive, or what came back makes no sense.
    Unreachable(io::Error),
    /// Nothing came for as long as the client waits.
    Silent,
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Self {
        if connection::is_silence(&error) { Self::Silent } else { Self::Unreachable(error) }
    }
}

/// The client.
#[derive(Debug)]
pub(super) struct Loopback {
    user_agent: String,
    connect_timeout: Duration,
    read_timeout: Duration,
    idle: Arc<Idle>,
}

impl Loopback {
    /// A client that has not connected to anything.
    pub(super) fn new(options: &HttpOptions) -> Self {
        Self {
            user_agent: options.user_agent.clone(),
            connect_timeout: options.connect_timeout,
            read_timeout: options.read_timeout,
            idle: Arc::default(),
        }
    }

    /// Sends `question`, and reads its answer up to where the body begins.
    pub(super) fn ask(&self, question: &mut Question<'_>) -> Result<Answer, Unanswered> {
        let authority = &question.url[Position::BeforeHost..Position::AfterPort];
        let head = self.head(question, authority);
        // The server may have closed a connection that was kept, which is known only once it is used.
        // Asking again does no harm where nothing was to be changed.
        if matches!(*question.method, Method::GET | Method::HEAD) {
            while let Some(mut kept) = self.idle.take(authority) {
                match send(&mut kept, &head, question) {
                    Ok(answer) => return Ok(self.answer(kept, answer)),
                    Err(error) if kept.has_answered() || connection::is_silence(&error) => {
                        return Err(error.into());
                    }
                    Err(_) => {}
                }
            }
        }
        let mut connection =
            Connection::open(question.url, authority, self.connect_timeout, self.read_timeout)
                .map_err(Unanswered::Unreachable)?;
        let answer = send(&mut connection, &head, question)?;
        Ok(self.answer(connection, answer))
    }

    /// The line and headers of a request.
    fn head(&self, question: &Question<'_>, authority: &str) -> Vec<u8> {
        let target = &question.url[Position::BeforePath..Position::AfterQuery];
        let mut head = format!(
            "{} {target} HTTP/1.1\r\nhost: {authority}\r\nuser-agent: {}\r\naccept: */*\r\n",
            question.method, self.user_agent
        )
        .into_bytes();
        for (name, value) in question.headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        match &question.body {
            Some((_, length)) => {
                head.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
            }
            None if matches!(*question.method, Method::GET | Method::HEAD) => {}
            None => head.extend_from_slice(b"content-length: 0\r\n"),
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    fn answer(&self, connection: Connection, head: Head) -> Answer {
        let Head { status, headers, extent, is_kept } = head;
        let keeper = is_kept.then(|| Arc::clone(&self.idle));
        let length = extent.length();
        let body = Box::new(answer::Body::new(connection, extent, keeper));
        Answer { status, headers, length, body }
    }
}

/// Sends a request, and reads its answer's head.
fn send(connection: &mut Connection, head: &[u8], question: &mut Question<'_>) -> io::Result<Head> {
    let sent = connection.stream().write_all(head).and_then(|()| match &mut question.body {
        Some((body, length)) => send_body(connection, body, *length),
        None => Ok(()),
    });
    let answer = answer::read_head(connection, question.method == Method::HEAD);
    match (sent, answer) {
        // A server may answer before it has read all, and then reads no further.
        (_, Ok(answer)) => Ok(answer),
        (Err(error), _) | (Ok(()), Err(error)) => Err(error),
    }
}

fn send_body(connection: &Connection, body: &mut dyn Read, length: u64) -> io::Result<()> {
    let sent = io::copy(&mut body.take(length), &mut connection.stream())?;
    if sent < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// Connections that wait for the next request.
#[derive(Debug, Default)]
struct Idle(Mutex<Vec<Connection>>);

impl Idle {
    /// The connection to `authority` that was used last.
    fn take(&self, authority: &str) -> Option<Connection> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = idle.iter().rposition(|connection| connection.authority() == authority)?;
        Some(idle.remove(index))
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE {
            idle.push(connection);
        }
    }
}
