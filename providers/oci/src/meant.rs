//! Which manifest is meant where a tag leads to an index of several: images for platforms, a chart beside its image, statements about
//! them.
//!
//! What is wanted decides, never the place in the index: what a format knows by artifact type, config and annotations, and then what
//! has the name and the version that were asked for. `foreign.rs` reads a single manifest.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Mutex;

use mu_formats::version_of;
use mu_provider::threads::{at_once, lock};
use mu_provider::{ProviderError, Release};

use crate::foreign::{Foreign, Found, marked};
use crate::repository::RegistryRepository;
use crate::said::short;
use crate::wire::{self, ImageManifest, Index};

/// How many manifests of an index are looked at.
const MOST_LOOKED_AT: usize = 16;

impl RegistryRepository<'_> {
    /// The manifest in `bytes`, or those of an index that could be meant, each with its digest.
    pub(crate) fn candidates(
        &self,
        bytes: &[u8],
    ) -> Result<Vec<(String, ImageManifest)>, ProviderError> {
        let read = |bytes: &[u8]| {
            let manifest = serde_json::from_slice(bytes).ok()?;
            Some((wire::digest(bytes), manifest))
        };
        let Some(index) = Index::parse(bytes) else { return Ok(read(bytes).into_iter().collect()) };
        let mut manifests = Vec::new();
        for entry in wire::candidates(&index.manifests).into_iter().take(MOST_LOOKED_AT) {
            // A copy of an index need not have all that the index lists.
            let found = self.manifest(&entry.digest)?;
            manifests.extend(found.and_then(|bytes| read(&bytes)));
        }
        Ok(manifests)
    }
}

/// How many versions are looked at to find the one that has a digest, and how many at once.
const MOST_COMPARED: usize = 64;
const AT_ONCE: usize = 8;

impl RegistryRepository<'_> {
    /// The version whose tag leads to the manifest with this digest; the newest ones are looked at.
    pub(crate) fn version_at(&self, digest: &str) -> Result<Option<String>, ProviderError> {
        let tags = self.tags()?.unwrap_or_default();
        let versions = tags.iter().filter_map(|tag| Some((wire::version_of(tag)?, tag)));
        let versions = versions.filter_map(|(version, tag)| {
            let rank = version_of(&Release { version: version.clone(), ..Release::default() });
            Some((Reverse(rank?), version, tag.as_str()))
        });
        let mut versions: Vec<_> = versions.collect();
        versions.sort();
        versions.truncate(MOST_COMPARED);
        let found = Mutex::new(BTreeSet::new());
        for some in versions.chunks(AT_ONCE) {
            at_once(AT_ONCE, some, |(rank, version, tag)| {
                let bytes = self.manifest(tag)?;
                if bytes.is_some_and(|bytes| wire::digest(&bytes) == digest) {
                    lock(&found).insert((rank.clone(), version.clone()));
                }
                Ok::<(), ProviderError>(())
            })?;
            if let Some((_, newest)) = lock(&found).pop_first() {
                return Ok(Some(newest));
            }
        }
        Ok(None)
    }
}

impl Foreign<'_> {
    /// The version in the manifest or index `bytes`, to which `tag` leads, if it has a known format.
    pub(crate) fn version(&self, bytes: &[u8], tag: &str) -> Result<Option<Found>, ProviderError> {
        let mut manifests = self.repository.candidates(bytes)?;
        if manifests.iter().any(|(_, manifest)| marked(manifest).is_some()) {
            manifests.retain(|(_, manifest)| marked(manifest).is_some());
        }
        let mut found = Vec::new();
        for (digest, manifest) in &manifests {
            found.extend(self.of_manifest(manifest, tag)?.map(|found| (digest.as_str(), found)));
        }
        let leaf = self.repository.name.rsplit('/').next().unwrap_or_default();
        Ok(wanted(found, leaf))
    }
}

/// The one that is meant in a repository whose name ends with `leaf`: of several, the only one that is a version with that name, or
/// else the only one that is a version.
fn wanted(mut found: Vec<(&str, Found)>, leaf: &str) -> Option<Found> {
    let fits = |(_, found): &(&str, Found)| found.is_ok();
    let is_named =
        |(_, found): &(&str, Found)| found.as_ref().is_ok_and(|release| release.name == leaf);
    for is_wanted in [&fits as &dyn Fn(&(&str, Found)) -> bool, &is_named] {
        if found.len() > 1 && found.iter().any(is_wanted) {
            found.retain(is_wanted);
        }
    }
    match &found[..] {
        [] => None,
        [_, second, ..] if second.1.is_ok() => Some(Err(several(&found))),
        _ => Some(found.swap_remove(0).1),
    }
}

/// What could be meant.
fn several(found: &[(&str, Found)]) -> String {
    let describe = |(digest, found): &(&str, Found)| {
        let release = found.as_ref().ok();
        let name = release.map(|release| short(&release.name)).unwrap_or_default();
        let format = release.and_then(|release| release.format.as_deref()).unwrap_or_default();
        format!("`{name}` ({format}, {digest})")
    };
    let all: Vec<String> = found.iter().map(describe).collect();
    format!(
        "its tag leads to an index of several packages that could be meant: {}; require one of them by its digest, `#sha256:…`",
        all.join(", ")
    )
}
