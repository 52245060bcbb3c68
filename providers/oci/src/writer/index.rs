//! The index of a repository whose registry has no referrers: a manifest with a tag, which nobody can change
//! safely.
//!
//! It is read, written, and read again until it has an entry for everything with a tag, whoever added it.

use std::collections::BTreeSet;
use std::time::Duration;

use mu_provider::{ErrorKind, ProviderError};

use super::{REPETITIONS, Writer};
use crate::listing::{self, Entries};
use crate::repository::Listed;
use crate::said;
use crate::wire::{self, Descriptor, INDEX_TAG, ImageManifest, Index};

/// The longest index that is written, in bytes: registries take 4 MiB.
const LONGEST_INDEX: usize = 7 << 19;

/// How often an index is written before that is given up.
const ATTEMPTS: u32 = 100;

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
