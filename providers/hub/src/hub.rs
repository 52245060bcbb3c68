//! The hubs of a run: what is known about each, from its `hub.json` and later requests, and whose a token for one is: the hub's
//! server says so, or else whatever guards its files.
//!
//! Closures are the packages that a package can lead to, so that a reader with an empty cache requests all of them at once. They
//! only save round trips. The reader checks the packages that a closure names. A missing or invalid closure is never an error. If
//! a hub's closures are useless, no more of them are requested.
//!
//! What changed in a hub with a generation is known, too, so that unchanged files need not be requested. This only saves
//! requests: if anything is missing or odd, the answer is "may have changed".

use std::collections::{HashMap, HashSet};
use std::ops::{Deref, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mu_archive::below;
use mu_archive::document::{Asking, DocumentAnswer};
use mu_provider::http::{AskedServer, Request};
use mu_provider::threads::{self, lock};
use mu_provider::{Account, ErrorKind, Location, Progress, ProviderError, SafeUrl};
use serde::Deserialize;

use crate::HubProvider;
use crate::root::Root;
use crate::snapshot::SnapshotLines;
use crate::wire::{self, ClosureFile, LARGEST_CLOSURE, LOG_LINES, closure_path};

/// A hub: its root, and what was learned about it in this run.
#[derive(Debug)]
pub(crate) struct KnownHub {
    root: Root,
    /// What changed between its generations.
    pub(crate) changes: Changes,
    /// All its index lines, once they were read at once; `None` if they are of no use.
    pub(crate) snapshot: OnceLock<Option<SnapshotLines>>,
    /// Its closures that were requested.
    pub(crate) closures: Closures,
    /// Whether somebody follows its log, and must not be shown an index file that is older than that.
    is_followed: AtomicBool,
}

impl Deref for KnownHub {
    type Target = Root;

    fn deref(&self) -> &Root {
        &self.root
    }
}

impl KnownHub {
    fn new(root: Root) -> Self {
        Self {
            root,
            changes: Changes::default(),
            snapshot: OnceLock::new(),
            closures: Closures::default(),
            is_followed: AtomicBool::new(false),
        }
    }

    /// Asks past caches on the way from now on.
    pub(crate) fn believe_no_caches(&self) {
        self.is_followed.store(true, Ordering::Relaxed);
    }

    /// Whether caches on the way are not believed.
    pub(crate) fn is_live(&self) -> bool {
        self.is_followed.load(Ordering::Relaxed)
    }
}

/// The hubs that were contacted so far.
#[derive(Debug, Default)]
pub(crate) struct Hubs(Mutex<HashMap<SafeUrl, Arc<Slot>>>);

#[derive(Debug, Default)]
struct Slot {
    root: OnceLock<Arc<KnownHub>>,
    /// The most likely hub, for code that does not need to read it.
    usual: OnceLock<Arc<KnownHub>>,
    /// How often reading it has failed.
    failures: AtomicU64,
    /// Held while it is read; holds the reason for a failure.
    last_failure: Mutex<Option<ProviderError>>,
}

impl Hubs {
    /// A hub that has been read already.
    pub(crate) fn known(&self, url: &SafeUrl) -> Option<Arc<KnownHub>> {
        self.slot(url).root.get().cloned()
    }

    /// A hub that has been read already; else what it most likely is, made once.
    pub(crate) fn known_or_usual(
        &self,
        url: &SafeUrl,
        likely: impl FnOnce() -> Root,
    ) -> Arc<KnownHub> {
        let slot = self.slot(url);
        let usual = || slot.usual.get_or_init(|| Arc::new(KnownHub::new(likely())));
        Arc::clone(slot.root.get().unwrap_or_else(usual))
    }

    /// A hub, read with `read` unless another thread has read it, or is reading it.
    ///
    /// Callers that waited while reading failed get the same failure. Later callers try again.
    pub(crate) fn get(
        &self,
        url: &SafeUrl,
        read: impl FnOnce() -> Result<Root, ProviderError>,
    ) -> Result<Arc<KnownHub>, ProviderError> {
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
            Ok(root) => Ok(Arc::clone(slot.root.get_or_init(|| Arc::new(KnownHub::new(root))))),
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

impl KnownHub {
    /// The URL of the closure of the package `name`, if it is worth requesting: no other closure has named
    /// the package yet.
    pub(crate) fn closure_url(&self, name: &str) -> Option<SafeUrl> {
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

/// The most files of the log to read, all at once. If more has changed, requesting single index files is as good.
pub(crate) const MOST_FILES: u64 = 64;

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

impl KnownHub {
    /// Whether the index file of `name` is certain to be unchanged since `generation`.
    pub(crate) fn is_unchanged(&self, name: &str, generation: u64, asking: &Asking<'_>) -> bool {
        let Some(current) = self.file.generation else { return false };
        if generation >= current {
            return generation == current;
        }
        let Some(log) = self.file.log.as_deref() else { return false };
        let first = generation + 1;
        if file_of(current) - file_of(first) >= MOST_FILES {
            return false;
        }
        let mut known = lock(&self.changes.0);
        if !known.useless && known.since.is_none_or(|since| since > first) {
            known.useless = known.read_log(self, log, first..=current, asking).is_none();
        }
        !known.useless && known.last.get(name).is_none_or(|last| *last <= generation)
    }

    /// Whether the log says that the index file of `name` has changed since `generation`, as far as [`Self::is_unchanged`] has read it.
    pub(crate) fn has_changed(&self, name: &str, generation: u64) -> bool {
        let known = lock(&self.changes.0);
        !known.useless && known.last.get(name).is_some_and(|last| *last > generation)
    }
}

impl Known {
    /// Reads the log of these generations, as far as it was not read already.
    fn read_log(
        &mut self,
        root: &Root,
        log: &str,
        generations: RangeInclusive<u64>,
        asking: &Asking<'_>,
    ) -> Option<()> {
        let (first, current) = generations.into_inner();
        let folder = below(&root.url, log).ok()?.as_folder();
        let last = self.since.map_or(current, |since| since - 1);
        let files = (file_of(first)..=file_of(last)).collect();
        // The last of these generations that each file has a line for.
        let texts = threads::all_at_once(files, |file| {
            let end = last.min((file + 1).saturating_mul(LOG_LINES));
            let (path, line) = wire::log_path(end);
            let asking = Asking { limit: LONGEST_FILE, ..*asking };
            let place = below(&folder, &path).ok()?;
            let Ok(DocumentAnswer::Read(document)) = asking.read(&place, None) else { return None };
            let text = String::from_utf8(document.bytes).ok()?;
            (text.lines().count() > line).then_some((end - line as u64, text))
        });
        let texts = texts.into_iter().collect::<Option<Vec<_>>>()?;
        self.since = texts.first().map(|(start, _)| *start);
        for (start, text) in texts {
            // Lines after `last` were added since `hub.json` was read, and count too.
            for (generation, name) in (start..).zip(text.lines()) {
                let entry = self.last.entry(name.to_owned()).or_default();
                *entry = generation.max(*entry);
            }
        }
        Some(())
    }
}

/// The number of the file of the log with the line of a generation.
pub(crate) fn file_of(generation: u64) -> u64 {
    generation.saturating_sub(1) / LOG_LINES
}

/// The longest answer of a server, in bytes.
const LONGEST_ANSWER: u64 = 64 << 10;

/// What a server says of a token.
#[derive(Deserialize)]
struct Answer {
    name: String,
    #[serde(default)]
    namespaces: Vec<String>,
    reads: Option<Vec<String>>,
    #[serde(default)]
    can: Vec<String>,
    expires: Option<String>,
}

impl HubProvider {
    pub(crate) fn account_of_hub(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Account>, ProviderError> {
        let url = location.root.with_trailing_slash();
        if url.scheme() == "file" || url.is_bucket() {
            return Ok(None);
        }
        let asking = Asking { limit: LONGEST_ANSWER, ..self.asking(location, progress) };
        let root = self.root(&url, &asking)?;
        if let Some(api) = &root.file.api {
            let place = below(&below(&root.url, api)?.as_folder(), "whoami")?;
            let request = asking.http.get(&place).insecure(asking.insecure);
            // The hub says where its changes go, so the token is the hub's own.
            let request = request.named_by(&AskedServer::new(&root.url));
            // Servers of earlier versions do not know the question.
            let known = [404, 405, 410, 501];
            let request = known.into_iter().fold(request, |request, status| request.allow(status));
            let mut request = request.header("accept", "application/json");
            let answer = asking.http.retry(|| {
                let response = request.attempt()?;
                if response.status() != 200 {
                    return Ok(None);
                }
                response.bytes(LONGEST_ANSWER, asking.progress).map(Some)
            })?;
            if let Some(bytes) = answer {
                let answer: Answer = serde_json::from_slice(&bytes).map_err(|error| {
                    let text = format!("the answer from `{place}` does not say whose a token is");
                    ProviderError::new(ErrorKind::Protocol, text).because(error)
                })?;
                let Answer { name, namespaces, reads, can, expires } = answer;
                return Ok(Some(Account { name, namespaces, reads, can, expires }));
            }
        }
        let user = asking.http.user_let_in(&Root::hub_file(&root.url)?, asking.insecure)?;
        Ok(user.map(Account::of_user))
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
