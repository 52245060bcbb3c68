//! The hubs of a run: what is known about each, from its `hub.json` and later requests.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mu_provider::{ProviderError, SafeUrl};

use crate::changes::Changes;
use crate::closure::Closures;
use crate::document::Asking;
use crate::root::Root;
use crate::snapshot::{self, Snapshot};
use mu_provider::threads::lock;

/// A hub: its root, and what was learned about it in this run.
#[derive(Debug)]
pub(crate) struct Hub {
    root: Root,
    /// What changed between its generations.
    pub(crate) changes: Changes,
    /// All its index lines, once they were read at once.
    snapshot: OnceLock<Option<Snapshot>>,
    /// Its closures that were requested.
    pub(crate) closures: Closures,
}

impl Deref for Hub {
    type Target = Root;

    fn deref(&self) -> &Root {
        &self.root
    }
}

impl Hub {
    fn new(root: Root) -> Self {
        Self {
            root,
            changes: Changes::default(),
            snapshot: OnceLock::new(),
            closures: Closures::default(),
        }
    }

    /// Whether the snapshot is less work than requesting `packages` packages, or was read already.
    pub(crate) fn is_snapshot_worth_it(&self, packages: u64) -> bool {
        self.snapshot.get().is_some() || snapshot::is_worth_it(&self.root, packages)
    }

    /// The snapshot, read once; `None` if it is of no use.
    pub(crate) fn snapshot(&self, asking: &Asking<'_>) -> Option<&Snapshot> {
        self.snapshot.get_or_init(|| snapshot::read(&self.root, asking)).as_ref()
    }
}

/// The hubs that were contacted so far.
#[derive(Debug, Default)]
pub(crate) struct Hubs(Mutex<HashMap<SafeUrl, Arc<Slot>>>);

#[derive(Debug, Default)]
struct Slot {
    root: OnceLock<Arc<Hub>>,
    /// The most likely hub, for code that does not need to read it.
    usual: OnceLock<Arc<Hub>>,
    /// How often reading it has failed.
    failures: AtomicU64,
    /// Held while it is read; holds the reason for a failure.
    last_failure: Mutex<Option<ProviderError>>,
}

impl Hubs {
    /// A hub that has been read already.
    pub(crate) fn known(&self, url: &SafeUrl) -> Option<Arc<Hub>> {
        self.slot(url).root.get().cloned()
    }

    /// A hub that has been read already; else what it most likely is, made once.
    pub(crate) fn known_or_usual(&self, url: &SafeUrl, likely: impl FnOnce() -> Root) -> Arc<Hub> {
        let slot = self.slot(url);
        let usual = || slot.usual.get_or_init(|| Arc::new(Hub::new(likely())));
        Arc::clone(slot.root.get().unwrap_or_else(usual))
    }

    /// A hub, read with `read` unless another thread has read it, or is reading it.
    ///
    /// Callers that waited while reading failed get the same failure. Later callers try again.
    pub(crate) fn get(
        &self,
        url: &SafeUrl,
        read: impl FnOnce() -> Result<Root, ProviderError>,
    ) -> Result<Arc<Hub>, ProviderError> {
        let slot = self.slot(url);
        let failures = slot.failures.load(Ordering::SeqCst);
        if let Some(root) = slot.root.get() {
            return Ok(Arc::clone(root));
        }
        let mut last_failure = lock(&slot.last_failure);
        if let Some(root) = slot.root.get() {
            return Ok(Arc::clone(root));
        }
        if let Some(failure) = &*last_failure
            && slot.failures.load(Ordering::SeqCst) != failures
        {
            return Err(failure.clone());
        }
        match read() {
            Ok(root) => Ok(Arc::clone(slot.root.get_or_init(|| Arc::new(Hub::new(root))))),
            Err(error) => {
                *last_failure = Some(error.clone());
                slot.failures.fetch_add(1, Ordering::SeqCst);
                Err(error)
            }
        }
    }

    fn slot(&self, url: &SafeUrl) -> Arc<Slot> {
        let mut slots = lock(&self.0);
        Arc::clone(slots.entry(url.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use mu_provider::ErrorKind;

    use super::*;

    fn url(text: &str) -> SafeUrl {
        SafeUrl::parse(text).expect("is a URL")
    }

    #[test]
    fn reading_that_failed_is_shared_by_those_who_waited_and_tried_again_by_others() {
        let hubs = Hubs::default();
        let place = url("https://h/");
        let fails = || Err(ProviderError::new(ErrorKind::Network, "is down").hint("wait"));
        let error = hubs.get(&place, fails).expect_err("is down");
        assert_eq!((error.kind(), error.hints()), (ErrorKind::Network, &["wait".to_owned()][..]));
        assert!(hubs.known(&place).is_none());
        hubs.get(&place, || Ok(Root::usual(place.clone()))).expect("is up again");
        assert!(hubs.known(&place).is_some());
        hubs.get(&place, fails).expect("is not read again");
    }
}
