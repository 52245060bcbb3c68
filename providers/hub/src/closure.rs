//! Closures: what a package can lead to, so that a reader that knows nothing yet asks for all of it at once.
//!
//! They only save round trips. What a closure says is checked by whoever asks for what it names; that it is not
//! there, or no closure, is never an error. A hub whose closures are of no use is not asked for more of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use mu_provider::SafeUrl;

use crate::document::{Answer, Asking};
use crate::root::{Root, below};
use crate::wire::{ClosureFile, LARGEST_CLOSURE, closure_path};

/// The longest closure, in bytes.
const LONGEST: u64 = 1 << 20;

/// How many are asked for in a run, at most.
const MOST: usize = 1_024;

/// After so many that are not there, or make no sense, no others are asked for.
const MOST_IN_VAIN: usize = 8;

/// The closures of one hub that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Closures {
    asked: AtomicUsize,
    in_vain: AtomicUsize,
}

impl Root {
    /// What the package called `name` can lead to, as far as the hub says.
    pub(crate) fn closure(&self, name: &str, asking: &Asking<'_>) -> Vec<String> {
        // A folder answers at once, so that nothing is gained by asking ahead.
        let place = match &self.file.closures {
            Some(folder) if self.url.scheme() != "file" => folder,
            _ => return Vec::new(),
        };
        let closures = &self.closures;
        if closures.in_vain.load(Ordering::Relaxed) >= MOST_IN_VAIN
            || closures.asked.fetch_add(1, Ordering::Relaxed) >= MOST
        {
            return Vec::new();
        }
        let place = below(&self.url, place).map(|folder| folder.as_folder());
        let place = place.and_then(|folder| below(&folder, &closure_path(name)));
        place.ok().and_then(|place| read(&place, asking)).unwrap_or_else(|| {
            closures.in_vain.fetch_add(1, Ordering::Relaxed);
            Vec::new()
        })
    }
}

fn read(place: &SafeUrl, asking: &Asking<'_>) -> Option<Vec<String>> {
    let asking = Asking { limit: LONGEST, once: true, ..*asking };
    let Ok(Answer::Read(document)) = asking.read(place, None) else { return None };
    let file: ClosureFile = serde_json::from_slice(&document.bytes).ok()?;
    (file.packages.len() <= LARGEST_CLOSURE).then_some(file.packages)
}
