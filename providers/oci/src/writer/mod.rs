//! Writes to a repository: versions, and later events.
//!
//! Blobs come first, then the manifest with its tag. A registry with the referrers API maintains the index
//! itself, and says so in its answer. Elsewhere, the index is a manifest with a tag, which nobody can change
//! safely: it is read, written, and read again until it has an entry for everything with a tag, whoever added
//! it. So each of several writers adds what the others have overwritten.

mod copying;
mod push;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use mu_provider::{ErrorKind, ProviderError, Release, Yanked};
use serde_json::{Map, Value};

pub use self::copying::ForeignArtifact;
use crate::listing::{self, Entries};
use crate::repository::{Listed, RegistryRepository};
use crate::said;
use crate::wire::{
    self, ARCHIVE, CREATED_KEY, Descriptor, EVENT, EVENT_KEY, Event, INDEX_TAG, ImageManifest,
    Index, PACKAGE, RELEASE_KEY,
};

/// How often a refused push is repeated.
const REPETITIONS: u32 = 6;

/// The longest index that is written, in bytes: registries take 4 MiB.
const LONGEST_INDEX: usize = 7 << 19;

/// How often an index is written before that is given up.
const ATTEMPTS: u32 = 100;

/// A repository that is written to.
#[derive(Debug)]
pub struct Writer {
    pub(crate) repository: RegistryRepository<'static>,
    /// How the registry is called in messages.
    pub(crate) place: String,
}

/// What became of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushOutcome {
    /// It was not there before.
    New,
    /// It was already there, with the same content.
    Same,
    /// It was already there, with the same archive, and without what belongs to that. It stays so.
    Without,
    /// It was there, with this content instead, and stays so.
    Differs(String),
}

impl Writer {
    /// Publishes a version: its index line, with the name that references use, and its archive.
    ///
    /// # Errors
    ///
    /// When the registry takes no such thing.
    pub fn publish(
        &self,
        line: &Map<String, Value>,
        version: &str,
        archive: &[u8],
    ) -> Result<PushOutcome, ProviderError> {
        let tag = wire::tag_of(version);
        if wire::version_of(&tag).is_none_or(|tagged| tagged != version) {
            let text = format!("{version} cannot be a tag of an OCI registry");
            return Err(ProviderError::new(ErrorKind::Refused, text));
        }
        let layer = Descriptor::of(ARCHIVE, archive);
        if let Some(bytes) = self.repository.manifest(&tag)? {
            if let Some(present) = other_than(&bytes, &tag, line, &layer) {
                return Ok(PushOutcome::Differs(present));
            }
            let manifest: ImageManifest = serde_json::from_slice(&bytes).unwrap_or_default();
            if self.repository.referrers()?.is_none() {
                self.list(&manifest.index_entry(&bytes))?;
            }
            return Ok(PushOutcome::Same);
        }
        let manifest = ImageManifest::new(PACKAGE, layer, annotations(line));
        self.manifest(&manifest, &tag, Some(archive))?;
        Ok(PushOutcome::New)
    }

    /// Withdraws a version, or undoes that with `None`; returns whether that changed anything.
    ///
    /// # Errors
    ///
    /// When there is no such version, or the registry refuses.
    pub fn yank(
        &self,
        version: &str,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, ProviderError> {
        let yank = Some(version.to_owned());
        let event = Event { yank, ..Event::because(reason, now) };
        self.say(version, |line| &line.yanked, reason, event)
    }

    /// Says that nobody looks after a version any more, or takes that back with `None`; returns whether that changed anything.
    ///
    /// # Errors
    ///
    /// As [`Writer::yank`].
    pub fn deprecate(
        &self,
        version: &str,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, ProviderError> {
        let deprecate = Some(version.to_owned());
        let event = Event { deprecate, ..Event::because(reason, now) };
        self.say(version, |line| &line.deprecated, reason, event)
    }

    /// Adds an event that gives a version this reason, unless it has it already; returns whether it had not.
    fn say(
        &self,
        version: &str,
        known: impl Fn(&Release) -> &Yanked,
        reason: Option<&str>,
        event: Event,
    ) -> Result<bool, ProviderError> {
        let (entries, line) = self.existing(version)?;
        if known(&line).reason().as_deref() == reason {
            return Ok(false);
        }
        self.event(&entries, event)?;
        Ok(true)
    }

    /// Adds a tag to a version, or removes it; returns whether that changed anything.
    ///
    /// # Errors
    ///
    /// As [`Writer::yank`].
    pub fn tag(
        &self,
        version: &str,
        tag: &str,
        remove: bool,
        now: Timestamp,
    ) -> Result<bool, ProviderError> {
        let (entries, line) = self.existing(version)?;
        if line.tags.iter().any(|known| known == tag) != remove {
            return Ok(false);
        }
        let (version, tag) = (Some(version.to_owned()), Some(tag.to_owned()));
        let event = Event { tag, version, undo: remove, at: now, ..Event::default() };
        self.event(&entries, event)?;
        Ok(true)
    }

    /// Records that another package replaced this one, or removes that record; returns whether that changed
    /// anything.
    ///
    /// # Errors
    ///
    /// As [`Writer::yank`].
    pub fn moved(&self, to: Option<&str>, now: Timestamp) -> Result<bool, ProviderError> {
        let (entries, tags) = self.read()?;
        let lines = entries.releases("", &tags);
        if lines.iter().all(|line| line.moved_to.as_deref() == to) {
            return Ok(false);
        }
        let (moved_to, undo) = (Some(to.unwrap_or_default().to_owned()), to.is_none());
        self.event(&entries, Event { moved_to, undo, at: now, ..Event::default() })?;
        Ok(true)
    }

    /// The index lines of all versions in the index, with unknown keys.
    ///
    /// # Errors
    ///
    /// When the registry cannot be reached.
    pub fn lines(&self) -> Result<Vec<Map<String, Value>>, ProviderError> {
        let (entries, tags) = self.read()?;
        let lines = entries.releases(&self.repository.name, &tags);
        Ok(lines.iter().filter_map(as_map).collect())
    }

    /// The index line of a version, by its own manifest.
    ///
    /// # Errors
    ///
    /// When the registry cannot be reached, or has something else there.
    pub fn line(&self, version: &str) -> Result<Option<Map<String, Value>>, ProviderError> {
        let tag = wire::tag_of(version);
        let Some(bytes) = self.repository.manifest(&tag)? else { return Ok(None) };
        let own = said::read(&bytes, &tag).map_err(|reason| {
            let text =
                format!("`{}:{tag}` already exists, and is not a package: {reason}", self.place);
            ProviderError::new(ErrorKind::Refused, text)
                .hint("publish the package in another repository, or under another version")
        })?;
        Ok(as_map(&own))
    }

    fn existing(&self, version: &str) -> Result<(Entries, mu_provider::Release), ProviderError> {
        let (entries, tags) = self.read()?;
        let lines = entries.releases(&self.repository.name, &tags);
        let line = lines.into_iter().find(|line| line.full_version() == version);
        let line = line.ok_or_else(|| {
            let text = format!("the registry has no `{}:{version}`", self.place);
            ProviderError::new(ErrorKind::NotFound, text)
        })?;
        Ok((entries, line))
    }

    fn read(&self) -> Result<(Entries, Vec<String>), ProviderError> {
        let tags = self.repository.tags()?.unwrap_or_default();
        let mut entries = Entries::default();
        if let Listed::Found(index, ..) = self.repository.tagged_index(None)? {
            entries.add(&index);
        }
        if let Some(index) = self.repository.referrers()? {
            entries.add(&index);
        }
        self.repository.add_events(&mut entries, &tags)?;
        Ok((entries, tags))
    }

    /// Adds an event, after all that are there.
    fn event(&self, known: &Entries, event: Event) -> Result<(), ProviderError> {
        let newest = known.newest_event();
        let after = newest.and_then(|at| at.checked_add(SignedDuration::from_secs(1)).ok());
        let at = after.map_or(event.at, |after| after.max(event.at));
        let event = Event { at, ..event };
        let text = serde_json::to_string(&event).expect("texts can be printed");
        let annotations = [(EVENT_KEY, text), (CREATED_KEY, at.to_string())]
            .map(|(key, value)| (key.to_owned(), value));
        let manifest = ImageManifest::new(EVENT, Descriptor::empty(), annotations.into());
        // It has a tag, so that nobody removes it as garbage, and so that it can be found again if it is
        // missing in the index.
        let tag = listing::event_tag(&wire::digest(&manifest.to_bytes()));
        self.manifest(&manifest, &tag, None)
    }
}

/// The content of the existing version, if it differs from the one to publish.
fn other_than(
    bytes: &[u8],
    tag: &str,
    line: &Map<String, Value>,
    layer: &Descriptor,
) -> Option<String> {
    let there = match said::read(bytes, tag) {
        Ok(there) => there,
        Err(reason) => return Some(reason),
    };
    let digest = line.get("digest").and_then(Value::as_str);
    let is_same = there.archive.as_deref() == Some(&layer.digest)
        || (digest.is_some() && there.digest.as_deref() == digest);
    (!is_same).then(|| there.digest.or(there.archive).unwrap_or_default())
}

/// The annotations of a version's manifest.
fn annotations(line: &Map<String, Value>) -> BTreeMap<String, String> {
    let text = |key: &str| line.get(key).and_then(Value::as_str).map(str::to_owned);
    let own = ["archive", "urls", "yanked", "tags", "movedTo"];
    let said: Map<String, Value> = line
        .iter()
        .filter(|(key, _)| !own.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let known = [
        ("org.opencontainers.image.title", text("name")),
        ("org.opencontainers.image.version", text("version")),
        (CREATED_KEY, text("published")),
        ("org.opencontainers.image.source", text("repository")),
        (RELEASE_KEY, Some(Value::Object(said).to_string())),
    ];
    let there = known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    there.collect()
}

fn as_map(line: &mu_provider::Release) -> Option<Map<String, Value>> {
    match serde_json::to_value(line).ok()? {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

impl Writer {
    /// Adds an entry to the index at the tag, and whatever else is missing there.
    pub(super) fn list(&self, own: &Descriptor) -> Result<(), ProviderError> {
        let mut foreign = BTreeSet::new();
        let mut gone = BTreeSet::new();
        for attempt in 0..ATTEMPTS {
            let tags = self.repository.tags()?.unwrap_or_default();
            let mut index = match self.repository.tagged_index(None)? {
                Listed::Found(index, ..) => index,
                Listed::Absent | Listed::Unchanged => Index::default(),
            };
            let before = index.clone();
            index.manifests.retain(|entry| !gone.contains(&entry.digest));
            if !index.manifests.iter().any(|entry| entry.digest == own.digest) {
                index.manifests.push(own.clone());
            }
            let is_full = trim(&mut index, &own.digest);
            if !is_full {
                self.add_missing(&mut index, &tags, &mut foreign)?;
                trim(&mut index, &own.digest);
            }
            if index == before {
                return Ok(());
            }
            let answer = self.try_put(wire::INDEX, INDEX_TAG, index.to_bytes())?;
            if matches!(answer.status, 400 | 404) {
                // A registry does not accept an index with manifests that it does not have.
                let known = gone.len();
                for entry in &index.manifests {
                    if self.repository.manifest(&entry.digest)?.is_none() {
                        gone.insert(entry.digest.clone());
                    }
                }
                let is_odd = gone.len() == known || gone.contains(&own.digest);
                gone.remove(&own.digest);
                if is_odd && attempt >= REPETITIONS {
                    return Err(self.refused(&answer));
                }
            } else if !(200..300).contains(&answer.status) {
                return Err(self.refused(&answer));
            }
            self.pause(own, attempt);
        }
        let text = format!(
            "gave up writing the index of `{}`: others wrote it {ATTEMPTS} times in the meantime",
            self.place
        );
        Err(ProviderError::new(ErrorKind::Network, text).hint(
            "the version is there, and is found; the next one that is published completes the index",
        ))
    }

    /// Adds entries for tags without one: others have overwritten them.
    fn add_missing(
        &self,
        index: &mut Index,
        tags: &[String],
        foreign: &mut BTreeSet<String>,
    ) -> Result<(), ProviderError> {
        let mut entries = Entries::default();
        entries.add(index);
        for tag in tags {
            let is_version =
                wire::version_of(tag).is_some_and(|version| !entries.has_version(&version));
            let is_missing = is_version || entries.lacks_event(tag);
            if !is_missing || foreign.contains(tag) {
                continue;
            }
            let manifest = self.repository.manifest(tag)?;
            let entry = manifest.and_then(|bytes| {
                let manifest: ImageManifest = serde_json::from_slice(&bytes).ok()?;
                let entry = manifest.index_entry(&bytes);
                let is_ours = said::read(&bytes, tag).is_ok() || listing::event(&entry).is_some();
                is_ours.then_some(entry)
            });
            match entry {
                Some(entry) => index.manifests.push(entry),
                // An image, or something else that mu does not know.
                None => drop(foreign.insert(tag.clone())),
            }
        }
        Ok(())
    }

    /// Waits a moment, which differs between writers, before it checks whether others interfered.
    pub(super) fn pause(&self, own: &Descriptor, attempt: u32) {
        if attempt == 0 {
            return;
        }
        let text = format!("{} {attempt}", own.digest);
        let digest = wire::digest(text.as_bytes());
        let random = digest.get(7..11).and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let longest = 50 * u64::from(attempt.min(20));
        let pause = random.unwrap_or_default() % longest.max(1);
        (self.repository.registry.http.options().sleep)(Duration::from_millis(pause));
    }
}

/// Removes entries that are too many: prereleases first, then the oldest versions. Returns whether it removed
/// any.
fn trim(index: &mut Index, own: &str) -> bool {
    let mut length = index.to_bytes().len();
    if length <= LONGEST_INDEX {
        return false;
    }
    let mut order: Vec<(bool, String, String, usize)> = Vec::new();
    for entry in &index.manifests {
        let Some(line) = listing::release(entry).filter(|_| entry.digest != own) else { continue };
        let size = serde_json::to_string(entry).map_or(0, |text| text.len() + 1);
        let published = line.published.clone().unwrap_or_default();
        order.push((!line.version.contains('-'), published, entry.digest.clone(), size));
    }
    order.sort();
    let mut out = BTreeSet::new();
    for (_, _, digest, size) in order {
        if length <= LONGEST_INDEX {
            break;
        }
        length = length.saturating_sub(size);
        out.insert(digest);
    }
    index.manifests.retain(|entry| !out.contains(&entry.digest));
    true
}
