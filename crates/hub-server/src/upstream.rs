//! What this hub has not, from another one: index files, archives, and what vouches for them, brought when somebody asks, and kept.
//!
//! A name that this hub has itself is never asked about elsewhere, and neither is one that its operator keeps to this hub: so nobody
//! can offer another version of what was published here. Of all others, the answer of the upstream hub counts. An index file is
//! checked as every client checks it; an archive is kept and served only with the digest that its index line has. The upstream hub's
//! own server is the only one that is asked: a redirect or a URL to another is refused. Only archives may be redirected, to what
//! everyone can reach: their digest says whether they are the right ones, and no credentials go there.
//!
//! What was brought lies in `upstream/`, apart from the hub's own files, and can be deleted at any time. It is served as it is if the
//! upstream hub cannot be asked. `reading.rs` answers with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use bytes::Bytes;
use mu_archive::Archives;
use mu_archive::document::{Asking, DocumentAnswer, PROV_ENDING};
use mu_hub::UpstreamHub;
use mu_hub::lines::Lines;
use mu_hub::names;
use mu_provider::http::{Http, HttpOptions};
use mu_provider::publishable::LONGEST_PROVENANCE;
use mu_provider::threads::lock;
use mu_provider::{
    Copier as _, ErrorKind, LARGEST_EVIDENCE, Listing, Location, Provider as _, ProviderError,
    Release, Silent, checked_evidence, with_causes,
};
use mu_provider_hub::HubProvider;
use mu_provider_hub::wire::ProvidersFile;
use serde_json::{Map, Value};
use tokio::sync::{OwnedMutexGuard, Semaphore};

use super::problem::Problem;
use super::reading::Data;

/// The folder of what was brought.
const KEPT: &str = "upstream/";

/// How long an upstream hub that could not be asked is not asked again.
const PAUSE: Duration = Duration::from_secs(5);

/// How many archives are brought at the same time, each of which may take as much memory as the largest one.
const ARCHIVES_AT_ONCE: usize = 4;

/// How many packages are remembered with the time of their last answer. Beyond that, all are forgotten.
const MOST_REMEMBERED: usize = 100_000;

/// The longest list of who provides a capability, in bytes.
const LONGEST_PROVIDERS: u64 = 1 << 20;

/// The upstream hub, and what it has answered.
pub(crate) struct Upstream {
    hub: UpstreamHub,
    largest_archive: u64,
    visit: Mutex<Visit>,
    /// The last answer about each file.
    answers: Mutex<HashMap<String, UpstreamAnswer>>,
    /// The requests for each file that take turns, so that nothing is brought twice at the same time.
    turns: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
    archives: Semaphore,
}

/// The time in which nothing is asked twice: `hub.json` is read once in it, and says of all files whether they have changed.
#[derive(Clone)]
struct Visit {
    number: u64,
    ends: Instant,
    provider: Arc<HubProvider>,
    http: Arc<Http>,
    /// Why the hub cannot be asked, if it cannot.
    failure: Option<Problem>,
}

/// What was answered about a file.
#[derive(Clone)]
struct UpstreamAnswer {
    /// In which visit.
    visit: u64,
    is_absent: bool,
    validator: Option<String>,
}

/// What a path of this hub means to the upstream hub.
enum UpstreamFile<'path> {
    /// The index file of a package.
    Index(&'path str),
    /// An archive of a package, or with an ending what lies beside it.
    Archive { name: &'path str, archive: &'path str },
    /// A small file about a package.
    Beside { name: &'path str, most: u64 },
    /// The providers of a capability.
    Capability,
}

/// What there is to answer with.
pub(super) enum UpstreamContent {
    /// The hub's own file, or none: upstream is not asked.
    Own,
    /// This text.
    Text(Bytes),
    /// The file at this path, which never changes.
    File(String),
}

impl Upstream {
    pub(crate) fn new(hub: UpstreamHub, largest_archive: u64) -> Self {
        let visit = Mutex::new(Visit::begin(&hub, largest_archive, 0));
        let archives = Semaphore::new(ARCHIVES_AT_ONCE);
        let (answers, turns) = (Mutex::default(), Mutex::default());
        Self { hub, largest_archive, visit, answers, turns, archives }
    }

    /// Where the upstream hub is.
    pub(super) fn upstream_place(&self) -> String {
        self.hub.location.root.to_string()
    }

    /// What to answer about a path that belongs to a hub.
    pub(super) async fn bring(&self, data: &Data, path: &str) -> Result<UpstreamContent, Problem> {
        let Some(asked) = UpstreamFile::of(data, path) else { return Ok(UpstreamContent::Own) };
        let name = match asked {
            UpstreamFile::Index(name)
            | UpstreamFile::Archive { name, .. }
            | UpstreamFile::Beside { name, .. } => name,
            UpstreamFile::Capability => return self.providers(data, path).await,
        };
        if names::check_name(name).is_err() || self.is_own(data, name).await? {
            return Ok(UpstreamContent::Own);
        }
        match asked {
            UpstreamFile::Index(name) => {
                let lines = self.index(data, name).await?;
                Ok(UpstreamContent::Text(without_places(&lines.ok_or_else(Problem::not_found)?)))
            }
            UpstreamFile::Archive { name, archive } if path.ends_with(PROV_ENDING) => {
                self.release(data, name, archive).await?.ok_or_else(Problem::not_found)?;
                self.small_file(data, path, LONGEST_PROVENANCE, |_| true).await
            }
            UpstreamFile::Archive { name, archive } => self.archive(data, name, archive).await,
            UpstreamFile::Beside { most, .. } => {
                let is_evidence = |bytes: &[u8]| checked_evidence(bytes).is_ok();
                self.small_file(data, path, most, is_evidence).await
            }
            UpstreamFile::Capability => Ok(UpstreamContent::Own),
        }
    }

    /// Whether the upstream hub is never asked about a package: this hub has it, or its operator says so.
    async fn is_own(&self, data: &Data, name: &str) -> Result<bool, Problem> {
        if self.hub.own.iter().any(|own| names::is_in_namespace(own, name)) {
            return Ok(true);
        }
        Ok(data.files.head(&data.root.index(name)).await?.is_some())
    }

    /// The index file of a package, as the upstream hub has it or had it; `None` if it has none.
    async fn index(&self, data: &Data, name: &str) -> Result<Option<Bytes>, Problem> {
        let path = format!("{KEPT}index/{name}.jsonl");
        let _turn = self.turn(&path).await;
        let visit = self.visit();
        let known = self.known(&path);
        if let Some(known) = &known
            && known.visit == visit.number
            && known.is_absent
        {
            return Ok(None);
        }
        let kept = data.files.read(&path).await?.map(|read| read.bytes);
        let is_fresh = known.as_ref().is_some_and(|known| known.visit == visit.number);
        if is_fresh && kept.is_some() {
            return Ok(kept);
        }
        if let Some(failure) = visit.failure {
            return kept.map(Some).ok_or(failure);
        }
        let validator = known.and_then(|known| known.validator).filter(|_| kept.is_some());
        let location = Location { path: name.to_owned(), ..self.hub.location.clone() };
        let provider = Arc::clone(&visit.provider);
        let sent = validator.clone();
        let listed = blocking(move || provider.list(&location, sent.as_deref(), &Silent)).await?;
        let note = |is_absent, validator| {
            self.note(&path, UpstreamAnswer { visit: visit.number, is_absent, validator });
        };
        match listed {
            Ok(Listing::Found(found)) => {
                let lines = Bytes::from(found.lines);
                data.files.write(&path, lines.clone()).await?;
                note(false, found.validator);
                Ok(Some(lines))
            }
            Ok(Listing::Unchanged { validator: newer, .. }) => {
                note(false, newer.or(validator));
                Ok(kept)
            }
            // What was there once stays: a version that somebody has locked does not go away.
            Ok(Listing::Absent { .. }) => {
                note(kept.is_none(), None);
                Ok(kept)
            }
            Err(error) => {
                let problem = self.failed(&visit, &error);
                kept.map(Some).ok_or(problem)
            }
        }
    }

    /// The version of a package whose archive has this path below the folder of archives.
    async fn release(
        &self,
        data: &Data,
        name: &str,
        archive: &str,
    ) -> Result<Option<Release>, Problem> {
        let Some(bytes) = self.index(data, name).await? else { return Ok(None) };
        let (lines, _) = Lines::parse_all(&bytes, name);
        let line = lines
            .iter()
            .find(|line| line.usual_archive() == archive || line.archive_by_version() == archive);
        let release = line.map(|line| serde_json::from_value(Value::Object(line.map().clone())));
        Ok(release.and_then(Result::ok))
    }

    /// Brings an archive, unless it is kept. It has the digest of its index line.
    async fn archive(
        &self,
        data: &Data,
        name: &str,
        archive: &str,
    ) -> Result<UpstreamContent, Problem> {
        let path = format!("{KEPT}packs/{archive}");
        let _turn = self.turn(&path).await;
        if data.files.head(&path).await?.is_some() {
            return Ok(UpstreamContent::File(path));
        }
        let release = self.release(data, name, archive).await?;
        let release = release.ok_or_else(Problem::not_found)?;
        if release.archive.is_none() {
            let detail = "the upstream hub does not say which archive this version has, so it is not brought";
            return Err(Problem::new(StatusCode::BAD_GATEWAY, detail));
        }
        let visit = self.visit();
        if let Some(failure) = visit.failure {
            return Err(failure);
        }
        let _room = self.archives.acquire().await;
        let location = Location { path: name.to_owned(), ..self.hub.location.clone() };
        let provider = Arc::clone(&visit.provider);
        let brought = blocking(move || {
            let mut bytes = Vec::new();
            provider.copy_archive(&location, &release, &mut bytes, &Silent).map(|()| bytes)
        });
        match brought.await? {
            Ok(bytes) => {
                data.files.write(&path, bytes.into()).await?;
                Ok(UpstreamContent::File(path))
            }
            Err(error) => Err(self.failed(&visit, &error)),
        }
    }

    /// Brings a small file that may change, if `is_fine`.
    async fn small_file(
        &self,
        data: &Data,
        asked: &str,
        most: u64,
        is_fine: impl Fn(&[u8]) -> bool,
    ) -> Result<UpstreamContent, Problem> {
        let path = format!("{KEPT}{asked}");
        let _turn = self.turn(&path).await;
        let visit = self.visit();
        let known = self.known(&path).filter(|known| known.visit == visit.number);
        if known.as_ref().is_some_and(|known| known.is_absent) {
            return Err(Problem::not_found());
        }
        let kept = data.files.read(&path).await?.map(|read| read.bytes);
        if let Some(kept) = kept.clone().filter(|_| known.is_some()) {
            return Ok(UpstreamContent::Text(kept));
        }
        // What is kept is better than no answer.
        let kept = kept.map(UpstreamContent::Text);
        if let Some(failure) = visit.failure {
            return kept.ok_or(failure);
        }
        let (http, root) = (Arc::clone(&visit.http), self.hub.location.clone());
        let wanted = asked.replace('+', "%2B");
        let read = blocking(move || {
            let url = mu_archive::below(&root.root, &wanted)?;
            Asking { hides: true, ..Asking::new(&http, &root, most, &Silent) }.read(&url, None)
        });
        let note = |is_absent| {
            self.note(&path, UpstreamAnswer { visit: visit.number, is_absent, validator: None });
        };
        match read.await? {
            Ok(DocumentAnswer::Read(document)) if is_fine(&document.bytes) => {
                let bytes = Bytes::from(document.bytes);
                data.files.write(&path, bytes.clone()).await?;
                note(false);
                Ok(UpstreamContent::Text(bytes))
            }
            Ok(DocumentAnswer::Read(_)) => {
                let detail = format!("what the upstream hub has as `{asked}` cannot be read");
                kept.ok_or_else(|| Problem::new(StatusCode::BAD_GATEWAY, detail))
            }
            Ok(_) => {
                note(kept.is_none());
                kept.ok_or_else(Problem::not_found)
            }
            Err(error) => {
                let problem = self.failed(&visit, &error);
                kept.ok_or(problem)
            }
        }
    }

    /// Who provides a capability: first those of this hub.
    async fn providers(&self, data: &Data, path: &str) -> Result<UpstreamContent, Problem> {
        let read = |bytes: &[u8]| {
            let file = serde_json::from_slice::<ProvidersFile>(bytes);
            file.map_err(|error| data.files.broken(path, error.to_string()))
        };
        let own = data.files.read(path).await?.map(|own| read(&own.bytes)).transpose()?;
        let is_fine = |bytes: &[u8]| serde_json::from_slice::<ProvidersFile>(bytes).is_ok();
        let brought = self.small_file(data, path, LONGEST_PROVIDERS, is_fine).await;
        let (mut own, bytes) = match (own, brought) {
            (own, Ok(UpstreamContent::Text(bytes))) => (own.unwrap_or_default(), bytes),
            // The hub's own answer is better than none.
            (Some(_), _) | (None, Ok(_)) => return Ok(UpstreamContent::Own),
            (None, Err(problem)) => return Err(problem),
        };
        for name in read(&bytes)?.packages {
            if !own.packages.contains(&name) && !self.is_own(data, &name).await? {
                own.packages.push(name);
            }
        }
        let text = serde_json::to_string(&own).unwrap_or_default();
        Ok(UpstreamContent::Text(format!("{text}\n").into()))
    }

    /// Waits until nobody else brings the same file.
    async fn turn(&self, path: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = lock(&self.turns);
            turns.retain(|_, turn| turn.strong_count() > 0);
            let turn = turns.get(path).and_then(Weak::upgrade).unwrap_or_default();
            turns.insert(path.to_owned(), Arc::downgrade(&turn));
            turn
        };
        turn.lock_owned().await
    }

    /// The visit of now.
    fn visit(&self) -> Visit {
        let mut visit = lock(&self.visit);
        if Instant::now() >= visit.ends {
            *visit = Visit::begin(&self.hub, self.largest_archive, visit.number + 1);
        }
        visit.clone()
    }

    fn known(&self, path: &str) -> Option<UpstreamAnswer> {
        lock(&self.answers).get(path).cloned()
    }

    fn note(&self, path: &str, answer: UpstreamAnswer) {
        let mut answers = lock(&self.answers);
        if answers.len() >= MOST_REMEMBERED {
            answers.clear();
        }
        answers.insert(path.to_owned(), answer);
    }

    /// The problem with an answer. A hub that cannot be reached is left alone for a while.
    fn failed(&self, visit: &Visit, error: &ProviderError) -> Problem {
        let (status, what) = match error.kind() {
            ErrorKind::Network if error.is_late() => {
                (StatusCode::GATEWAY_TIMEOUT, "the upstream hub did not answer in time")
            }
            ErrorKind::Network => (StatusCode::BAD_GATEWAY, "the upstream hub cannot be reached"),
            ErrorKind::Auth => {
                (StatusCode::BAD_GATEWAY, "the upstream hub wants another token from this hub")
            }
            ErrorKind::NotFound => {
                (StatusCode::BAD_GATEWAY, "the upstream hub does not have what its index names")
            }
            _ => (StatusCode::BAD_GATEWAY, "what the upstream hub answers is refused"),
        };
        let detail = format!("{what}; the log of this hub says more");
        let problem = Problem::new(status, detail).caused_by(with_causes(error));
        if error.kind() == ErrorKind::Network {
            let mut now = lock(&self.visit);
            if now.number == visit.number {
                now.failure = Some(problem.clone());
                now.ends =
                    Instant::now() + PAUSE.min(self.hub.max_age.max(Duration::from_millis(1)));
            }
        }
        problem
    }
}

impl Visit {
    fn begin(hub: &UpstreamHub, largest_archive: u64, number: u64) -> Self {
        // A client gives up a server that cannot be reached for good, so each visit has its own.
        let http = Http::new(HttpOptions::clone(&hub.http));
        let mut provider = HubProvider::new(Arc::clone(&http), &hub.downloads);
        provider.archives = Archives::new(Arc::clone(&http), &hub.downloads, largest_archive);
        let provider = Arc::new(provider);
        Self { number, ends: Instant::now() + hub.max_age, provider, http, failure: None }
    }
}

impl<'path> UpstreamFile<'path> {
    /// What a path of the hub means; `None` if only this hub knows.
    fn of(data: &Data, path: &'path str) -> Option<Self> {
        let (index, packs) = (data.root.index_folder(), data.root.packs_folder());
        if let Some(rest) = path.strip_prefix(&index) {
            return rest.strip_suffix(".jsonl").map(Self::Index);
        }
        if let Some(rest) = path.strip_prefix(&packs) {
            let archive = rest.strip_suffix(PROV_ENDING).unwrap_or(rest);
            return Some(Self::Archive { name: archive.rsplit_once('/')?.0, archive });
        }
        if let Some(rest) = path.strip_prefix("signatures/") {
            return Some(Self::Beside { name: rest.rsplit_once('/')?.0, most: LARGEST_EVIDENCE });
        }
        path.starts_with("capabilities/").then_some(Self::Capability)
    }
}

/// Lines without the places of archives, which this hub has in the usual place.
fn without_places(lines: &Bytes) -> Bytes {
    let text = String::from_utf8_lossy(lines);
    if !text.contains("\"urls\"") {
        return lines.clone();
    }
    let lines = text.lines().map(|line| match serde_json::from_str::<Map<String, Value>>(line) {
        Ok(mut map) => {
            map.shift_remove("urls");
            format!("{}\n", Value::Object(map))
        }
        Err(_) => format!("{line}\n"),
    });
    lines.collect::<String>().into()
}

/// Does in a thread of its own what waits for another server.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the request was interrupted; try again")
    })
}
