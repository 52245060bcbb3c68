//! What changed in a hub with a generation, so that unchanged files need not be requested.
//!
//! This only saves requests: if anything is missing or odd, the answer is "may have changed".

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Mutex;

use crate::document::{Asking, DocumentAnswer};
use crate::hub::Hub;
use crate::root::{self, Root};
use crate::wire;
use mu_provider::threads::lock;

/// The most files of the log to read. Beyond that, requesting single index files is as good.
const MOST_FILES: u64 = 8;

/// The longest file of the log, in bytes: 1,000 names.
const LONGEST_FILE: u64 = 1 << 20;

/// The part of a hub's log that was read so far.
#[derive(Debug, Default)]
pub(crate) struct Changes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Name → the last generation that changed it.
    last: HashMap<String, u64>,
    /// The first generation that `last` covers; `None` before anything was read.
    since: Option<u64>,
    /// Whether the log turned out to be of no use.
    useless: bool,
}

impl Hub {
    /// Whether the index file of `name` is certain to be unchanged since `generation`.
    pub(crate) fn is_unchanged(&self, name: &str, generation: u64, asking: &Asking<'_>) -> bool {
        let Some(current) = self.file.generation else { return false };
        if generation >= current {
            return generation == current;
        }
        let Some(log) = self.file.log.as_deref() else { return false };
        let mut known = lock(&self.changes.0);
        let first = generation + 1;
        if !known.useless && known.since.is_none_or(|since| since > first) {
            known.useless = known.read_log(self, log, first..=current, asking).is_none();
        }
        !known.useless && known.last.get(name).is_none_or(|last| *last <= generation)
    }
}

impl Hub {
    /// Whether the log says that the index file of `name` has changed since `generation`, as far as [`Hub::is_unchanged`] has read it.
    pub(crate) fn has_changed(&self, name: &str, generation: u64) -> bool {
        let known = lock(&self.changes.0);
        !known.useless && known.last.get(name).is_some_and(|last| *last > generation)
    }
}

impl Known {
    /// Reads the log of these generations, unless it was read already.
    fn read_log(
        &mut self,
        root: &Root,
        log: &str,
        generations: RangeInclusive<u64>,
        asking: &Asking<'_>,
    ) -> Option<()> {
        let (first, current) = generations.into_inner();
        let folder = root::below(&root.url, log).ok()?.as_folder();
        // Generations of one file, from its last one down to its first.
        let mut last = self.since.map_or(current, |since| since - 1);
        for _ in 0..MOST_FILES {
            if last < first {
                return Some(());
            }
            let (path, line) = wire::log_path(last);
            let asking = Asking { limit: LONGEST_FILE, ..*asking };
            let place = root::below(&folder, &path).ok()?;
            let Ok(DocumentAnswer::Read(document)) = asking.read(&place, None) else { return None };
            let text = String::from_utf8(document.bytes).ok()?;
            let lines: Vec<&str> = text.lines().collect();
            if lines.len() <= line {
                return None;
            }
            let start = last - line as u64;
            // Lines after `last` were added since `hub.json` was read, and count too.
            for (generation, name) in (start..).zip(&lines) {
                let entry = self.last.entry((*name).to_owned()).or_default();
                *entry = generation.max(*entry);
            }
            self.since = Some(start);
            last = start - 1;
        }
        (last < first).then_some(())
    }
}
