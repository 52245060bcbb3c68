//! The server's counters, in the text format of Prometheus.
//!
//! Source of the format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

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

    /// All counters as text.
    pub(super) fn render(&self) -> String {
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
        text
    }
}
