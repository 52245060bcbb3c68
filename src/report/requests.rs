//! What `-v` says of requests: a line for each when it has ended, and how much that was in all. With more, also headers.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use mu_provider::http::RequestEvent;
use mu_provider::threads::lock;

use crate::report::text::{count, size};

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

/// A request that was sent.
struct Open {
    sent: Instant,
    text: String,
    token_for: Option<String>,
    status: Option<String>,
    bytes: u64,
}

impl Requests {
    /// `with_headers`: whether headers are told, too.
    pub(super) fn new(with_headers: bool) -> Self {
        Self { log: Mutex::default(), with_headers }
    }

    /// The lines about an event.
    pub(super) fn lines(&self, event: &RequestEvent<'_>) -> Vec<String> {
        let mut log = lock(&self.log);
        let told = |mark: &str, headers: Vec<String>| -> Vec<String> {
            let headers = headers.into_iter().filter(|_| self.with_headers);
            headers.map(|header| format!("  {mark} {header}")).collect()
        };
        match event {
            RequestEvent::Sent { number, method, url, authorized, headers } => {
                let text = format!("{method} {url}");
                let mut lines = told(">", headers.shown());
                if self.with_headers {
                    lines.insert(0, text.clone());
                }
                let token_for = authorized.then(|| url.host_and_port());
                let (sent, status, bytes) = (Instant::now(), None, 0);
                log.open.insert(*number, Open { sent, text, token_for, status, bytes });
                lines
            }
            RequestEvent::Answered { number, status, headers } => {
                if let Some(open) = log.open.get_mut(number) {
                    open.status = Some((*status).to_owned());
                }
                told("<", headers.shown())
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

    /// How many requests ended, and what came; nothing if there were none.
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
        let token = self.token_for.map(|host| format!(", with the token for {host}"));
        let token = token.unwrap_or_default();
        format!("{}: {answer} in {} ms{token}", self.text, self.sent.elapsed().as_millis())
    }
}
