//! Closures: the packages that a package can lead to, so that a reader with an empty cache requests all of
//! them at once.
//!
//! They only save round trips. The reader checks the packages that a closure names. A missing or invalid
//! closure is never an error. If a hub's closures are useless, no more of them are requested.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mu_provider::http::Request;
use mu_provider::{Progress, SafeUrl};

use crate::hub::Hub;
use crate::root::below;
use crate::wire::{ClosureFile, LARGEST_CLOSURE, closure_path};
use mu_provider::threads::lock;

/// The longest closure, in bytes.
const LONGEST: u64 = 1 << 20;

/// The most closures to request in a run.
const MOST: usize = 1_024;

/// After this many missing or invalid closures, no others are requested.
const MOST_IN_VAIN: usize = 8;

/// The closures of one hub that were requested.
#[derive(Debug, Default)]
pub(crate) struct Closures {
    /// The packages that a closure named, or whose own closure was requested.
    seen: Mutex<HashSet<String>>,
    asked: AtomicUsize,
    in_vain: AtomicUsize,
}

impl Hub {
    /// The URL of the closure of the package `name`, if it is worth requesting: no other closure has named
    /// the package yet.
    pub(crate) fn closure(&self, name: &str) -> Option<SafeUrl> {
        // A folder answers at once, so asking early gains nothing.
        let folder = self.file.closures.as_deref().filter(|_| self.url.scheme() != "file")?;
        let Closures { in_vain, asked, .. } = &self.closures;
        if in_vain.load(Ordering::Relaxed) >= MOST_IN_VAIN
            || !self.closures.is_new(name)
            || asked.fetch_add(1, Ordering::Relaxed) >= MOST
        {
            return None;
        }
        below(&below(&self.url, folder).ok()?.as_folder(), &closure_path(name)).ok()
    }
}

impl Closures {
    /// Reads the closure from `request`, and returns the packages that no earlier closure has named.
    pub(crate) fn learn(&self, request: &mut Request<'_>, progress: &dyn Progress) -> Vec<String> {
        let Some(mut names) = read(request, progress) else {
            self.in_vain.fetch_add(1, Ordering::Relaxed);
            return Vec::new();
        };
        names.retain(|name| self.is_new(name));
        names
    }

    fn is_new(&self, name: &str) -> bool {
        lock(&self.seen).insert(name.to_owned())
    }
}

/// Asks once, without retries.
fn read(request: &mut Request<'_>, progress: &dyn Progress) -> Option<Vec<String>> {
    let bytes = request.attempt().ok()?.bytes(LONGEST, progress).ok()?;
    let file: ClosureFile = serde_json::from_slice(&bytes).ok()?;
    (file.packages.len() <= LARGEST_CLOSURE).then_some(file.packages)
}
