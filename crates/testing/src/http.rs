//! An HTTP server that does exactly what a test wants: cuts answers short, stays silent, keeps a log.
//!
//! It is for faults. Other tests use real servers.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::listener::Listener;

/// A request, as the server saw it.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Such as `GET`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// What was sent.
    pub body: Vec<u8>,
}

impl Seen {
    /// A header's value; the name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What the server answers.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    sent: usize,
    silent_after: Option<usize>,
    drip: Option<(usize, Duration)>,
    after: Duration,
}

impl Reply {
    /// An answer of this status, without a body.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            sent: usize::MAX,
            silent_after: None,
            drip: None,
            after: Duration::ZERO,
        }
    }

    /// A 200 with this body.
    pub fn body(body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::status(200) }
    }

    /// The same with a body.
    #[must_use]
    pub fn saying(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// How long its body is, in bytes.
    pub fn length(&self) -> usize {
        self.body.len()
    }

    /// The part of `body` that the request's `Range` names, or else all of it.
    pub fn ranged(request: &Seen, body: &[u8]) -> Self {
        let range = request.header("range").and_then(|range| range.strip_prefix("bytes="));
        let start = range.and_then(|range| range.trim_end_matches('-').parse::<usize>().ok());
        match start {
            Some(start) if start < body.len() => {
                let content = format!("bytes {start}-{}/{}", body.len() - 1, body.len());
                let partial = Self { status: 206, ..Self::body(&body[start..]) };
                partial.header("content-range", content)
            }
            Some(_) => Self::status(416),
            None => Self::body(body),
        }
    }

    /// A redirect.
    pub fn redirect(to: impl Into<String>) -> Self {
        Self::status(302).header("location", to)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Closes the connection after so many bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.sent = bytes;
        self
    }

    /// Stays silent after this many bytes of the body, until the other side gives up.
    #[must_use]
    pub fn silent_after(mut self, bytes: usize) -> Self {
        self.silent_after = Some(bytes);
        self
    }

    /// Sends one byte of the body after the other, so far apart.
    #[must_use]
    pub fn dripping(self, apart: Duration) -> Self {
        self.in_pieces(1, apart)
    }

    /// Sends the body in pieces of this many bytes, with a pause between them.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize, apart: Duration) -> Self {
        self.drip = Some((bytes, apart));
        self
    }

    /// Waits for this long before it answers.
    #[must_use]
    pub fn after(mut self, pause: Duration) -> Self {
        self.after = pause;
        self
    }
}

/// A running server; it stops when it is dropped.
#[derive(Debug)]
pub struct TestServer {
    listener: Listener,
    log: Arc<Mutex<Vec<Seen>>>,
}

impl TestServer {
    /// Starts a server on a free port of this machine. `respond` gets the request and the number of earlier
    /// ones.
    pub fn start(respond: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::reading((usize::MAX, Duration::ZERO), respond)
    }

    /// A server that reads slowly: this many bytes, and the next ones after a pause.
    pub fn reading(
        pace: (usize, Duration),
        respond: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let log: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let kept = Arc::clone(&log);
        let listener = Listener::start(move |stream| {
            // Clients may hang up.
            let _ = serve(&stream, &kept, pace, &respond);
            let _ = stream.shutdown(Shutdown::Both);
        });
        Self { listener, log }
    }

    /// Host and port.
    pub fn host(&self) -> String {
        self.listener.address().to_string()
    }

    /// The URL of a path on this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{}", self.host(), path.trim_start_matches('/'))
    }

    /// Refuses all connections from now on, as if the server was not there.
    #[cfg(unix)]
    pub fn refuse(&self) {
        self.listener.refuse();
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.log).clone()
    }

    /// `METHOD PATH` of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.log).iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect()
    }
}

fn lock(log: &Mutex<Vec<Seen>>) -> MutexGuard<'_, Vec<Seen>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(
    stream: &TcpStream,
    log: &Mutex<Vec<Seen>>,
    pace: (usize, Duration),
    respond: &dyn Fn(&Seen, usize) -> Reply,
) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader, pace)? {
        let before = {
            let mut log = lock(log);
            log.push(request.clone());
            log.len() - 1
        };
        let reply = respond(&request, before);
        if !write_reply(stream, &request, &reply)? {
            break;
        }
    }
    Ok(())
}

fn read_request(
    reader: &mut BufReader<&TcpStream>,
    (most, apart): (usize, Duration),
) -> io::Result<Option<Seen>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut request = Seen {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        ..Seen::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    for piece in request.body.chunks_mut(most) {
        reader.read_exact(piece)?;
        std::thread::park_timeout(apart);
    }
    Ok(Some(request))
}

/// Sends the answer; whether the connection can serve another.
fn write_reply(mut stream: &TcpStream, request: &Seen, reply: &Reply) -> io::Result<bool> {
    if !reply.after.is_zero() {
        stream.set_read_timeout(Some(reply.after))?;
        // Nothing comes until the other side hangs up.
        if matches!(stream.read(&mut [0]), Ok(0)) {
            return Ok(false);
        }
        stream.set_read_timeout(None)?;
    }
    let mut head = format!("HTTP/1.1 {} Status\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !matches!(reply.status, 204 | 304) {
        head.push_str(&format!("content-length: {}\r\n", reply.body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    if request.method == "HEAD" {
        return Ok(true);
    }
    if let Some((bytes, apart)) = reply.drip {
        stream.set_read_timeout(Some(apart))?;
        for piece in reply.body.chunks(bytes) {
            stream.write_all(piece)?;
            // Nothing comes until the other side hangs up.
            if matches!(stream.read(&mut [0]), Ok(0)) {
                break;
            }
        }
        return Ok(false);
    }
    let sent = reply.body.len().min(reply.sent).min(reply.silent_after.unwrap_or(usize::MAX));
    stream.write_all(&reply.body[..sent])?;
    if reply.silent_after.is_some() {
        // The other side sends nothing more until it hangs up.
        io::copy(&mut stream, &mut io::sink())?;
    }
    Ok(sent == reply.body.len() && reply.silent_after.is_none())
}
