//! What all requests share, and what is counted of them, in the text format of Prometheus.
//!
//! Source of the format: <https://prometheus.io/docs/instrumenting/exposition_formats/>. What pages and readers need is not here:
//! they get only the data (`reading.rs`).

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::FromRef;
use mu_hub::derived::Left;
use mu_hub::files::Files;
use mu_hub::root::Root;
use mu_hub::{HubError, Place, Serving, WriteLog};
use mu_provider::fs::DiskRoom;
use mu_provider::with_causes;
use serde::Serialize;
use serde_json::json;

use super::limits::ClientBuckets;
use super::own_catalog::OwnCatalog;
use super::page::Pages;
use super::readers::Readers;
use super::reading::Data;
use super::uploads::Uploads;
use super::upstream::Upstream;

/// What all requests share.
pub(super) struct Server {
    pub(super) data: Arc<Data>,
    pages: Arc<Pages>,
    pub(super) uploads: Uploads,
    pub(super) changes: ClientBuckets,
    pub(super) requests: Option<ClientBuckets>,
    pub(super) metrics: Metrics,
    pub(super) readers: Readers,
    /// What its changes have left to do.
    pub(super) left: Arc<Left>,
    pub(super) serving: Serving,
}

impl Server {
    /// Opens the hub at `place`, which is there.
    pub(super) async fn open(place: &Place, serving: Serving) -> Result<Self, HubError> {
        let files = Files::open(place, false)?;
        files.keep_private();
        let root = Root::read(&files).await?;
        let (base, is_https) = (serving.base.clone(), serving.tls.is_some());
        let largest = serving.largest_archive;
        let log = Arc::clone(&serving.log);
        let report = Box::new(move |error: &HubError| {
            let error = with_causes(error);
            let error = format!("the pages and the search do not know all of the hub: {error}");
            let time = jiff::Timestamp::now().to_string();
            write_log(&log, &json!({ "time": time, "error": error }));
        });
        let (state, hub) = (serving.state.clone(), Arc::clone(&files.name));
        let own = Arc::new(OwnCatalog::new(state, hub, report));
        if root.is_too_large_for_a_catalog() {
            // Making it can take minutes, and nobody can search before.
            let (own, files, root) = (Arc::clone(&own), files.clone(), root.clone());
            tokio::spawn(async move {
                if let Err(error) = own.follow_log(&files, &root).await {
                    own.report_error(&error);
                }
            });
        }
        let mut data = Data::new(files, root, own);
        (data.base, data.is_https) = (base, is_https);
        data.upstream = serving.upstream.clone().map(|hub| Upstream::new(hub, largest));
        let data = Arc::new(data);
        Ok(Self {
            pages: Arc::new(Pages::new(Arc::clone(&data))),
            data,
            uploads: Uploads::new(serving.largest_archive),
            changes: ClientBuckets::per_minute(serving.changes_per_minute),
            requests: (serving.requests_per_second > 0)
                .then(|| ClientBuckets::per_second(serving.requests_per_second)),
            metrics: Metrics::default(),
            readers: Readers::default(),
            left: Arc::default(),
            serving,
        })
    }
}

/// The server, of which each handler takes the part that it needs.
#[derive(Clone)]
pub(super) struct Shared(pub(super) Arc<Server>);

impl FromRef<Shared> for Arc<Server> {
    fn from_ref(shared: &Shared) -> Self {
        Arc::clone(&shared.0)
    }
}

impl FromRef<Shared> for Arc<Data> {
    fn from_ref(shared: &Shared) -> Self {
        Arc::clone(&shared.0.data)
    }
}

impl FromRef<Shared> for Arc<Pages> {
    fn from_ref(shared: &Shared) -> Self {
        Arc::clone(&shared.0.pages)
    }
}

/// Adds a line to the log.
pub(super) fn write_log(log: &WriteLog, line: &impl Serialize) {
    log(&printed(line));
}

/// A JSON document without control characters: JSON allows some in strings, and terminals interpret them.
fn printed(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("texts and numbers can be printed");
    if !text.contains(char::is_control) {
        return text;
    }
    let mut printed = String::new();
    for character in text.chars() {
        if character.is_control() {
            printed.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            printed.push(character);
        }
    }
    printed
}

/// Upper bounds of the classes of times, in seconds.
const BOUNDS: [f64; 7] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.0, 10.0];

/// Counters of one server.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// Answers by the hundreds of their status.
    answers: [AtomicU64; 6],
    times: [AtomicU64; BOUNDS.len()],
    microseconds: AtomicU64,
    /// Requests that are being answered.
    pub(super) open: AtomicI64,
    /// Versions that were published.
    pub(super) published: AtomicU64,
    /// Versions or packages that were changed otherwise.
    pub(super) changed: AtomicU64,
    /// Requests that were refused because they had no token, or one that does not allow them.
    pub(super) unauthorized: AtomicU64,
    /// Requests that were refused because the client sent too many.
    pub(super) limited: AtomicU64,
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Metrics {
    /// Counts an answer.
    pub(super) fn count_answer(&self, status: u16, took: Duration) {
        count(&self.answers[usize::from(status / 100).min(5)]);
        for (bound, times) in BOUNDS.iter().zip(&self.times) {
            if took.as_secs_f64() <= *bound {
                count(times);
            }
        }
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(took, Ordering::Relaxed);
    }

    /// All counters as text, and the room on the disk of the hub, if it has one.
    pub(super) fn render(&self, room: Option<DiskRoom>) -> String {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut text = String::new();
        let head = |name: &str, kind: &str, help: &str| {
            format!("# HELP mu_hub_{name} {help}\n# TYPE mu_hub_{name} {kind}\n")
        };
        text.push_str(&head("requests_total", "counter", "Requests that were answered."));
        for (class, counter) in self.answers.iter().enumerate().skip(1) {
            let _ =
                writeln!(text, "mu_hub_requests_total{{status=\"{class}xx\"}} {}", value(counter));
        }
        text.push_str(&head("request_seconds", "histogram", "Time to the head of the answer."));
        for (bound, times) in BOUNDS.iter().zip(&self.times) {
            let _ =
                writeln!(text, "mu_hub_request_seconds_bucket{{le=\"{bound}\"}} {}", value(times));
        }
        let all: u64 = self.answers.iter().map(value).sum();
        let seconds = Duration::from_micros(value(&self.microseconds)).as_secs_f64();
        let _ = writeln!(text, "mu_hub_request_seconds_bucket{{le=\"+Inf\"}} {all}");
        let _ = writeln!(text, "mu_hub_request_seconds_sum {seconds}");
        let _ = writeln!(text, "mu_hub_request_seconds_count {all}");
        text.push_str(&head("requests_open", "gauge", "Requests that are being answered."));
        let _ = writeln!(text, "mu_hub_requests_open {}", self.open.load(Ordering::Relaxed));
        for (name, help, counter) in [
            ("published_total", "Versions that were published.", &self.published),
            ("changed_total", "Yanks, tags and moves.", &self.changed),
            (
                "unauthorized_total",
                "Requests without a token that allows them.",
                &self.unauthorized,
            ),
            (
                "limited_total",
                "Requests that were refused because their client sent too many.",
                &self.limited,
            ),
        ] {
            text.push_str(&head(name, "counter", help));
            let _ = writeln!(text, "mu_hub_{name} {}", value(counter));
        }
        let sizes = room.map(|room| {
            [
                ("disk_free_bytes", "Bytes that are free on the disk of the hub.", room.free),
                ("disk_size_bytes", "The size of the disk of the hub.", room.size),
            ]
        });
        for (name, help, bytes) in sizes.into_iter().flatten() {
            text.push_str(&head(name, "gauge", help));
            let _ = writeln!(text, "mu_hub_{name} {bytes}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::Value;

    #[test]
    fn logs_hold_no_control_characters() {
        let value = json!({ "path": "/a\u{9b}31m\u{7f}\u{85}\n\u{1b}ä" });
        let line = printed(&value);
        assert_eq!(line, "{\"path\":\"/a\\u009b31m\\u007f\\u0085\\n\\u001bä\"}");
        assert_eq!(serde_json::from_str::<Value>(&line).expect("is JSON"), value);
    }
}
