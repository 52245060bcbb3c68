//! Progress on stderr: one line that counts, and a bar for each download that takes long.
//!
//! Nothing is drawn if stderr is not a terminal.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::ops::Stage;
use crate::report::text::printable;
use mu_provider::threads;

/// Downloads below this size have no bar of their own.
const LONG: u64 = 4 << 20;

/// The progress of one run.
pub(super) struct ProgressLine {
    state: Option<Mutex<State>>,
}

struct State {
    bars: MultiProgress,
    line: Option<(Stage, ProgressBar)>,
    latest: Option<(Stage, usize, usize)>,
    downloads: HashMap<String, ProgressBar>,
    started: Instant,
}

impl State {
    /// Draws the line that counts.
    fn count(&mut self) {
        // What is over in a moment is not worth a flicker.
        let Some((stage, done, total)) = self.latest else { return };
        if self.started.elapsed() < Duration::from_millis(150) {
            return;
        }
        if self.line.as_ref().is_none_or(|(shown, _)| *shown != stage) {
            if let Some((_, old)) = self.line.take() {
                old.finish_and_clear();
            }
            let bar = self.bars.insert(0, ProgressBar::new(0));
            let style = ProgressStyle::with_template("{prefix} {pos}/{len}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style);
            bar.set_prefix(match stage {
                Stage::Resolving => "resolving",
                Stage::Fetching => "fetching",
                Stage::Installing => "installing",
                Stage::Verifying => "verifying",
            });
            self.line = Some((stage, bar));
        }
        if let Some((_, bar)) = &self.line {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        }
    }
}

impl ProgressLine {
    pub(super) fn new(shown: bool) -> Self {
        let state = shown.then(|| {
            Mutex::new(State {
                bars: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)),
                line: None,
                latest: None,
                downloads: HashMap::new(),
                started: Instant::now(),
            })
        });
        Self { state }
    }

    /// Counts the steps of a stage.
    pub(super) fn step(&self, stage: Stage, done: usize, total: usize) {
        let Some(state) = &self.state else {
            return;
        };
        let mut state = threads::lock(state);
        state.latest = Some((stage, done, total));
        state.count();
    }

    /// Moves the bar of a long download.
    pub(super) fn bytes(&self, what: &str, done: u64, total: Option<u64>) {
        let Some(state) = &self.state else {
            return;
        };
        if total.unwrap_or(done) < LONG {
            return;
        }
        let mut state = threads::lock(state);
        state.count();
        if total == Some(done) {
            if let Some(bar) = state.downloads.remove(what) {
                bar.finish_and_clear();
            }
            return;
        }
        if !state.downloads.contains_key(what) {
            let bar = state.bars.add(ProgressBar::new(total.unwrap_or(0)));
            let template = if total.is_some() {
                "  {prefix} {bar:24} {bytes}/{total_bytes} {bytes_per_sec}"
            } else {
                "  {prefix} {bytes} {bytes_per_sec}"
            };
            let style = ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style);
            bar.set_prefix(printable(what).into_owned());
            state.downloads.insert(what.to_owned(), bar);
        }
        if let Some(bar) = state.downloads.get(what) {
            bar.set_position(done);
        }
    }

    /// Takes everything off the screen, for other text to be printed.
    pub(super) fn clear(&self) {
        let Some(state) = &self.state else {
            return;
        };
        let mut state = threads::lock(state);
        if let Some((_, bar)) = state.line.take() {
            bar.finish_and_clear();
        }
        for (_, bar) in state.downloads.drain() {
            bar.finish_and_clear();
        }
    }
}
