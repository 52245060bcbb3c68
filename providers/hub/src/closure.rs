//! Closures: what a package can lead to, so that a reader that knows nothing yet asks for all of it at once.
//!
//! They only save round trips. What a closure says is checked by whoever asks for what it names; that it is not
//! there, or no closure, is never an error. A hub whose closures are of no use is not asked for more of them.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mu_provider::http::Request;
use mu_provider::{Progress, SafeUrl};

use crate::root::{Root, below};
use crate::wire::{ClosureFile, LARGEST_CLOSURE, closure_path};
use mu_provider::threads::lock;

/// The longest closure, in bytes.
const LONGEST: u64 = 1 << 20;

/// How many are asked for in a run, at most.
const MOST: usize = 1_024;

/// After so many that are not there, or make no sense, no others are asked for.
const MOST_IN_VAIN: usize = 8;

/// The closures of one hub that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Closures {
    /// The packages that a closure named, or whose own was asked for.
    seen: Mutex<HashSet<String>>,
    asked: AtomicUsize,
    in_vain: AtomicUsize,
}

impl Closures {
    /// Where the closure of the package called `name` is, if it is worth asking for: no other has named the package yet.
    pub(crate) fn place(&self, root: &Root, name: &str) -> Option<SafeUrl> {
        // A folder answers at once, so that nothing is gained by asking ahead.
        let folder = root.file.closures.as_deref().filter(|_| root.url.scheme() != "file")?;
        if self.in_vain.load(Ordering::Relaxed) >= MOST_IN_VAIN
            || !self.is_new(name)
            || self.asked.fetch_add(1, Ordering::Relaxed) >= MOST
        {
            return None;
        }
        below(&below(&root.url, folder).ok()?.as_folder(), &closure_path(name)).ok()
    }

    /// The packages that the closure which `request` asks for adds to those that others have named.
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

/// Asks once: what may pass by itself is not waited for.
fn read(request: &mut Request<'_>, progress: &dyn Progress) -> Option<Vec<String>> {
    let bytes = request.attempt().ok()?.bytes(LONGEST, progress).ok()?;
    let file: ClosureFile = serde_json::from_slice(&bytes).ok()?;
    (file.packages.len() <= LARGEST_CLOSURE).then_some(file.packages)
}
