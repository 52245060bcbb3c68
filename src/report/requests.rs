//! What `-v` prints about requests: a line for each finished one, and the totals. With `-vv`, also headers.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use mu_provider::http::RequestEvent;
use mu_provider::threads::lock;

use crate::report::table::{count, size};

/// The requests of a run.
#[derive(Default)]
pub(super) struct Requests {
    log: Mutex<Log>,
    with_headers: bool,
}

#[derive(Default)]
struct Log {
    open: HashMap<u64, Open>,
    ended: usize,
    bytes: u64,
}

/// A sent request.
struct Open {
    sent: Instant,
    text: String,
    /// The origin of its token, and its proxy.
    way: String,
    status: Option<String>,
    sent_bytes: u64,
    bytes: u64,
}

impl Requests {
    /// Creates the log of requests; `with_headers` says whether headers are printed, too.
    pub(super) fn new(with_headers: bool) -> Self {
        Self { log: Mutex::default(), with_headers }
    }

    /// The lines about an event.
    pub(super) fn lines(&self, event: &RequestEvent<'_>) -> Vec<String> {
        let mut log = lock(&self.log);
        let header_lines = |mark: &str, headers: Vec<String>| -> Vec<String> {
            let headers = headers.into_iter().filter(|_| self.with_headers);
            headers.map(|header| format!("  {mark} {header}")).collect()
        };
        match event {
            RequestEvent::Sent { number, method, url, authorized, proxy, headers } => {
                let text = format!("{method} {url}");
                let mut lines = header_lines(">", headers.shown());
                if self.with_headers {
                    lines.insert(0, text.clone());
                }
                let mut way = String::new();
                if let Some(origin) = authorized {
                    way.push_str(&match url.is_bucket() {
                        true => ", with the credentials".to_owned(),
                        false => format!(", with the token for {}", url.host_and_port()),
                    });
                    if !origin.is_empty() {
                        way.push_str(&format!(" from {origin}"));
                    }
                }
                if let Some(proxy) = proxy {
                    way.push_str(&format!(", through the proxy {proxy}"));
                }
                let (sent, status) = (Instant::now(), None);
                let open = Open { sent, text, way, status, sent_bytes: 0, bytes: 0 };
                log.open.insert(*number, open);
                lines
            }
            RequestEvent::Sending { number, done, .. } => {
                if let Some(open) = log.open.get_mut(number) {
                    open.sent_bytes = *done;
                }
                Vec::new()
            }
            RequestEvent::Answered { number, status, headers } => {
                if let Some(open) = log.open.get_mut(number) {
                    open.status = Some((*status).to_owned());
                }
                header_lines("<", headers.shown())
            }
            RequestEvent::Received { number, bytes } => {
                log.bytes += bytes;
                if let Some(open) = log.open.get_mut(number) {
                    open.bytes += bytes;
                }
                Vec::new()
            }
            RequestEvent::Ended { number } => {
                log.ended += 1;
                log.open.remove(number).map(|open| open.line()).into_iter().collect()
            }
            RequestEvent::Repeated { reason, attempt, attempts, pause } => {
                let (next, pause) = (attempt + 1, pause.as_secs_f32());
                vec![format!("{reason}; attempt {next} of {attempts} in {pause:.1} s")]
            }
        }
    }

    /// The number of finished requests, and their bytes; `None` if there were none.
    pub(super) fn summary(&self) -> Option<String> {
        let log = lock(&self.log);
        (log.ended > 0)
            .then(|| format!("{}, {} received", count(log.ended, "request"), size(log.bytes)))
    }
}

impl Open {
    fn line(self) -> String {
        let answer = match &self.status {
            Some(status) if status.starts_with("304") => {
                format!("{status}, the cached copy is used")
            }
            Some(status) => format!("{status}, {}", size(self.bytes)),
            None => "no answer".to_owned(),
        };
        let took = self.sent.elapsed().as_millis();
        let sent = match self.sent_bytes {
            0 => String::new(),
            bytes => format!("{} sent, ", size(bytes)),
        };
        format!("{}: {sent}{answer} in {took} ms{}", self.text, self.way)
    }
}
