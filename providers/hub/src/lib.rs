//! Hubs: package registries of static files, on any web server or in a folder.
//!
//! [`HubProvider::list`] reads the index: `hub.rs` has the hubs of a run, what has not changed in them and what comes next, `root.rs`
//! reads `hub.json`, `snapshot.rs` reads everything at once, and `index.rs` checks lines. [`HubProvider::fetch`] says where archives
//! are; `mu-archive` downloads and unpacks them. `catalog.rs` searches, and `changes.rs` says what a hub has and what is new in it. [`wire`] describes the files. Nothing here writes to a hub.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
// Data of a hub, and of its archives, must not lead to an index out of bounds.
#![deny(clippy::indexing_slicing)]

mod catalog;
mod changes;
mod fetch;
mod hub;
pub mod index;
mod root;
mod snapshot;
pub mod wire;

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use mu_archive::document::{Asking, DocumentAnswer, Validator, statement_beside};
use mu_archive::{Archive, ArchiveError, ArchiveLayout, Archives};
use mu_provider::catalog::{Hits, Query};
use mu_provider::http::{Http, or_variable};
use mu_provider::{
    Account, Changes, Copier, ErrorKind, Facts, Found, FoundEvidence, Lead, LineTrust, Listing,
    Location, LogPosition, PlaceKind, Progress, Provider, ProviderError, Release, SafeUrl, Silent,
    Soon, TreeWriter, none_if,
};

pub use crate::catalog::CATALOG;
use crate::hub::{Hubs, KnownHub};
use crate::root::{LONGEST_HUB_FILE, Memory, Root};
use mu_provider::threads::lock;

/// The largest archive that is accepted, in bytes.
const LARGEST_ARCHIVE: u64 = 4 << 30;

/// Serves packages from hubs.
///
/// It reads each hub's `hub.json` once, so create a new one to look again.
#[derive(Debug)]
pub struct HubProvider {
    /// Downloads and unpacks archives; whoever takes only smaller ones puts others here.
    pub archives: Archives,
    /// A folder for the catalogs of hubs on the network; created when needed.
    catalogs: PathBuf,
    hubs: Hubs,
    /// The packages of each hub that will be listed, are not in the cache, and were not requested yet; and whether their dependencies
    /// will be listed, too.
    expected: Mutex<HashMap<Lead, HashMap<String, bool>>>,
}

impl HubProvider {
    /// A provider that has not contacted any hub yet. Incomplete downloads and the last `hub.json` of each hub go into the
    /// folder `downloads`, and catalogs into one beside it; both are created when needed.
    pub fn new(http: Arc<Http>, downloads: impl Into<PathBuf>) -> Self {
        let archives = Archives::new(http, downloads, LARGEST_ARCHIVE);
        let catalogs = archives.downloads.with_file_name("catalogs");
        Self { archives, catalogs, hubs: Hubs::default(), expected: Mutex::default() }
    }

    fn root(&self, url: &SafeUrl, asking: &Asking<'_>) -> Result<Arc<KnownHub>, ProviderError> {
        let asking = Asking { limit: LONGEST_HUB_FILE, ..*asking };
        self.hubs.get(url, || {
            Root::read(url.clone(), &asking, &Memory::new(&self.archives.downloads, url))
        })
    }

    /// Lists a package from the hub's snapshot, if so many are needed that it is less work than their files.
    fn list_at_once(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Listing>, ProviderError> {
        let url = location.root.with_trailing_slash();
        let asking = self.asking(location, progress);
        let root = self.root(&url, &asking)?;
        let packages = lock(&self.expected).get(&url).map_or(0, HashMap::len) as u64;
        root.list_from_snapshot(location, packages, &asking)
    }

    /// Lists a package from its own index file, and learns what it may lead to.
    fn list_with_closure(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let root =
            self.root(&location.root.with_trailing_slash(), &self.asking(location, progress))?;
        let Some(closure) = root.closure_url(&location.path) else {
            return self.list_alone(location, None, progress);
        };
        let request = || self.archives.http.get(&closure).insecure(location.insecure);
        // This request runs together with that for the index file.
        request().ahead();
        let mut listing = self.list_alone(location, None, progress);
        let named = root.closures.learn(&mut request(), progress);
        if let Ok(Listing::Found(found)) = &mut listing {
            found.leads_to = named;
        }
        listing
    }

    /// Lists a package by its own index file.
    pub(crate) fn list_alone(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let asking = self.asking(location, progress);
        let root = self.root(&location.root.with_trailing_slash(), &asking)?;
        let validator = validator.map(Validator::parse);
        // What is known is now known to hold for a newer generation.
        let renewed = |known: &Validator| {
            let is_newer = root.file.generation.is_some_and(|now| known.generation != Some(now));
            is_newer.then(|| known.clone().at(root.file.generation).to_stored_text()).flatten()
        };
        if let Some(known) = &validator
            && let Some(generation) = known.generation
            && root.is_unchanged(&location.path, generation, &asking)
        {
            return Ok(Listing::Unchanged { max_age: root.max_age, validator: renewed(known) });
        }
        let url = root.index(&location.path)?;
        // What is known to hold for this generation of the hub is asked again like what is there.
        let absent = |index: String, generation, max_age| -> Result<Listing, ProviderError> {
            let tried = vec![Root::hub_file(&root.url)?.to_string(), index];
            let validator = Validator::default().at(generation).to_stored_text();
            Ok(Listing::Absent { tried, validator, max_age })
        };
        let asking = Asking { hides: self.is_open(&root), past_caches: root.is_live(), ..asking };
        let mut answer = asking.read(&url, validator.as_ref())?;
        // The file that the hub says has changed is still the old one: something in between keeps it, and does not say so.
        let is_kept = |answer: &DocumentAnswer| {
            let known = validator.as_ref().filter(|known| answer.is_of(known));
            let generation = known.and_then(|known| known.generation);
            generation.is_some_and(|generation| root.has_changed(&location.path, generation))
        };
        if is_kept(&answer) {
            answer = Asking { past_caches: true, ..asking }.read(&url, None)?;
        }
        if is_kept(&answer) {
            // What is known stays known for the old generation, so the next run asks again.
            return Ok(Listing::Unchanged { max_age: None, validator: None });
        }
        match answer {
            DocumentAnswer::Unchanged { max_age, is_aged } => {
                let known = validator.filter(|_| !is_aged);
                let validator = known.as_ref().and_then(renewed);
                Ok(Listing::Unchanged { max_age, validator })
            }
            DocumentAnswer::Absent { max_age, is_aged } => {
                // A hub does not say that there is something which this token may not read, but another one may show it.
                let is_for_all = !is_aged && !self.archives.http.has_credential(&root.url);
                let generation = root.file.generation.filter(|_| is_for_all);
                let said = self.archives.http.missing_at(&url);
                absent(said, generation, max_age.or(root.max_age))
            }
            DocumentAnswer::Hidden => {
                let needs = needs(&url);
                let said = format!("{url}, which answered 403: it does not exist, or {needs}");
                // Another token may show it.
                absent(said, None, root.max_age)
            }
            DocumentAnswer::Read(document) => {
                let validator = document.validator_at(root.file.generation);
                let lines = index::check(document.bytes, &location.path, &url)?;
                Ok(Listing::Found(Found::new(location, lines, validator, document.max_age)))
            }
        }
    }

    /// Whether everyone may read the hub, judged by its `hub.json`. If so, a 403 is most likely not about a
    /// missing token.
    fn is_open(&self, root: &Root) -> bool {
        root.has_file && !self.archives.http.has_credential(&root.url)
    }

    fn asking<'call>(
        &'call self,
        location: &Location,
        progress: &'call dyn Progress,
    ) -> Asking<'call> {
        Asking::new(&self.archives.http, location, index::LONGEST_FILE, progress)
    }
}

/// What a file that answered 403 may need.
pub(crate) fn needs(url: &SafeUrl) -> String {
    if url.is_bucket() {
        return "the credentials do not allow reading it".to_owned();
    }
    let host = url.host_and_port();
    format!("needs a token (`mu login {host}` stores one{})", or_variable(&host))
}

impl Copier for HubProvider {
    fn copy_archive(
        &self,
        location: &Location,
        release: &Release,
        into: &mut dyn std::io::Write,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let take = &mut |archive: Archive| archive.copy(into).map_err(ArchiveError::Io);
        self.fetch_release(location, release, take, progress)
    }
}

impl Provider for HubProvider {
    fn name(&self) -> &str {
        "hub"
    }

    fn facts(&self) -> Facts {
        Facts {
            place: "a hub",
            kind: PlaceKind::Hub,
            lines: LineTrust::Complete,
            names_are_binding: true,
            lines_are_binding: true,
            ..Facts::default()
        }
    }

    fn copier(&self) -> Option<&dyn Copier> {
        Some(self)
    }

    fn probe(&self, location: &Location) -> Result<bool, ProviderError> {
        let asking = Asking { limit: LONGEST_HUB_FILE, ..self.asking(location, &Silent) };
        // Files that are read to find out need not be read again.
        let url = location.root.with_trailing_slash();
        if let Some(root) = none_if(self.root(&url, &asking), ErrorKind::Protocol)? {
            return Ok(root.has_file);
        }
        let answer = none_if(asking.read(&Root::hub_file(&url)?, None), ErrorKind::Protocol)?;
        let Some(DocumentAnswer::Read(document)) = answer else { return Ok(false) };
        Ok(root::version(&document.bytes).is_some())
    }

    fn soon(&self, location: &Location, what: Soon<'_>) {
        match what {
            Soon::List { packages, leads_on } => {
                let mut expected = lock(&self.expected);
                let expected = expected.entry(location.root.with_trailing_slash()).or_default();
                expected.extend(packages.iter().map(|path| (path.clone(), leads_on)));
            }
            Soon::ListInFull => {
                if let Some(root) = self.hubs.known(&location.root.with_trailing_slash()) {
                    root.want_in_full(&location.path);
                }
            }
            Soon::Fetch(release) => {
                let places = self.guess(location, release).unwrap_or_default();
                if let Some(place) = places.first().filter(|place| place.scheme() != "file") {
                    self.archives.http.get(place).insecure(location.insecure).ahead();
                }
            }
        }
    }

    fn is_unchanged(&self, location: &Location, validator: &str, progress: &dyn Progress) -> bool {
        let Some(generation) = Validator::parse(validator).generation else { return false };
        let asking = self.asking(location, progress);
        // The code that really needs the hub reports the error.
        self.root(&location.root.with_trailing_slash(), &asking)
            .is_ok_and(|root| root.is_unchanged(&location.path, generation, &asking))
    }

    fn list(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        if validator.is_none() {
            if let Some(listing) = self.list_at_once(location, progress)? {
                return Ok(listing);
            }
            // Packages that were requested alone are no reason to read the snapshot later, and those that a closure named need none.
            let root = location.root.with_trailing_slash();
            let leads_on = lock(&self.expected)
                .get_mut(&root)
                .and_then(|expected| expected.remove(&location.path));
            if leads_on == Some(true) {
                return self.list_with_closure(location, progress);
            }
        }
        self.list_alone(location, validator, progress)
    }

    fn list_in_full(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let asking = self.asking(location, progress);
        let root = self.root(&location.root.with_trailing_slash(), &asking)?;
        match root.list_with_digests(location, &asking)? {
            Some(listing) => Ok(listing),
            None => self.list_alone(location, None, progress),
        }
    }

    fn providers(
        &self,
        location: &Location,
        capability: &str,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let asking = self.asking(location, progress);
        let root = self.root(&location.root.with_trailing_slash(), &asking)?;
        let validator = validator.map(Validator::parse);
        let generation = validator.as_ref().and_then(|known| known.generation);
        if generation.is_some() && generation == root.file.generation {
            return Ok(Listing::Unchanged { max_age: root.max_age, validator: None });
        }
        let url = root.providers(capability)?;
        match asking.read(&url, validator.as_ref())? {
            DocumentAnswer::Unchanged { max_age, is_aged } => {
                let known = validator.filter(|_| !is_aged);
                let validator =
                    known.and_then(|known| known.at(root.file.generation).to_stored_text());
                Ok(Listing::Unchanged { max_age, validator })
            }
            DocumentAnswer::Absent { .. } | DocumentAnswer::Hidden => {
                Ok(Listing::absent(vec![url.to_string()]))
            }
            DocumentAnswer::Read(document) => {
                let validator = document.validator_at(root.file.generation);
                let lines = index::providers(&document.bytes, &url)?;
                Ok(Listing::Found(Found::new(location, lines, validator, document.max_age)))
            }
        }
    }

    fn fetch(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let layout = ArchiveLayout::for_locator(release.locator.as_deref());
        let take = &mut |archive: Archive| self.archives.unpack_archive(archive, layout, tree);
        self.fetch_release(location, release, take, progress)?;
        tree.tell_pointers(&location.describe(), progress);
        Ok(())
    }

    fn restore(
        &self,
        _location: &Location,
        release: &Release,
        preserved: &[u8],
        tree: &mut TreeWriter,
        _progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let layout = ArchiveLayout::for_locator(release.locator.as_deref());
        self.archives.restore_archive(preserved, release, layout, tree)
    }

    fn archive(&self, location: &Location, release: &Release) -> Option<String> {
        let url = location.root.with_trailing_slash();
        if url.scheme() == "file" {
            // A file here is read without asking anyone. Without it, everything is in its usual place.
            self.root(&url, &self.asking(location, &Silent)).ok()?;
        }
        let hub = self.known_or_remembered(&url);
        hub.usual_archive(&location.path, release).or_else(|| {
            let places = hub.archives(&location.path, release).ok()?;
            places.first().map(ToString::to_string)
        })
    }

    fn provenance(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        let root =
            self.root(&location.root.with_trailing_slash(), &self.asking(location, progress))?;
        let places = root.archives(&location.path, release)?;
        statement_beside(&places, &self.archives.http, location, true, progress)
    }

    fn evidence(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<FoundEvidence, ProviderError> {
        let asking = self.asking(location, progress);
        let root = self.root(&location.root.with_trailing_slash(), &asking)?;
        // A refusal may hide evidence, unless everybody may read the hub.
        let asking = Asking { hides: self.is_open(&root), ..asking };
        let http = &self.archives.http;
        let mut found = root.evidence_about(location, release, &asking, http, progress)?;
        if found.needs_content() {
            let mut bytes = Vec::new();
            let copied = self.copy_archive(location, release, &mut bytes, progress);
            found.content = none_if(copied, ErrorKind::NotFound)?.map(|()| bytes);
        }
        Ok(found)
    }

    fn capabilities(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<BTreeSet<String>>, ProviderError> {
        self.capabilities_of_hub(location, progress)
    }

    fn search(
        &self,
        location: &Location,
        query: &Query,
        progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        self.search_hub(location, query, progress).map(Some)
    }

    fn changes(
        &self,
        location: &Location,
        since: Option<&LogPosition>,
        progress: &dyn Progress,
    ) -> Result<Option<Changes>, ProviderError> {
        let asking = self.asking(location, progress);
        let root = self.root(&location.root.with_trailing_slash(), &asking)?;
        // Whoever follows a hub was told at the beginning.
        if since.is_none() {
            root.tell_upstream("lists", progress);
        }
        root.changes_since(since, &asking).map(Some)
    }

    fn account(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Account>, ProviderError> {
        self.account_of_hub(location, progress)
    }
}
