//! What a manifest says: the archive of a version, and the line that its publisher wrote; and which manifest is meant where a tag
//! leads to an index of several: images for platforms, a chart beside its image, statements about them.
//!
//! What is wanted decides, never the place in the index: what a format knows by artifact type, config and annotations, and then
//! what has the name and the version that were asked for. `foreign.rs` reads a single manifest.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mu_formats::version_of;
use mu_provider::threads::{at_once, lock};
use mu_provider::{ArchiveDigest, ErrorKind, ProviderError, Release};

use crate::OciProvider;
use crate::foreign::{Foreign, Found, marked};
use crate::listing;
use crate::repository::RegistryRepository;
use crate::wire::Index;
use crate::wire::{self, ARCHIVE, Descriptor, ImageManifest, PACKAGE, short};

/// The manifest of a version.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    /// The release with its archive, or else why it is not a version of a package.
    pub(crate) release: Result<Release, String>,
    /// Its own digest.
    pub(crate) digest: String,
}

impl Said {
    /// The release as a version of the package `name`, because packages of other ecosystems have other names inside.
    pub(crate) fn named(&self, name: &str) -> Result<Release, String> {
        let mut release = self.release.clone()?;
        release.manifest = Some(self.digest.clone());
        if release.format.is_some() {
            let own = std::mem::replace(&mut release.name, name.to_owned());
            let leaf = name.rsplit('/').next().unwrap_or(name);
            release.called = Some(own).filter(|own| !own.is_empty() && own != leaf);
        }
        Ok(release)
    }
}

impl OciProvider {
    /// The content of a version's manifest, requested once in a run.
    pub(crate) fn manifest_content(
        &self,
        repository: &RegistryRepository<'_>,
        release: &Release,
    ) -> Result<(Arc<Said>, String), ProviderError> {
        let version = release.full_version();
        let mut tried = Vec::new();
        for tag in &wire::tags_of(release) {
            let place = repository.place(&format!("manifests/{tag}"));
            if let Some(said) = self.said_by(repository, tag)? {
                return Ok((said, place));
            }
            tried.push(format!("`{place}`"));
        }
        let (name, tried) = (&repository.name, tried.join(" and "));
        let text = format!("there is no version {version} of `{name}`: looked at {tried}");
        Err(ProviderError::new(ErrorKind::NotFound, text))
    }

    pub(crate) fn said_by(
        &self,
        repository: &RegistryRepository<'_>,
        tag: &str,
    ) -> Result<Option<Arc<Said>>, ProviderError> {
        let key = (repository.place(""), tag.to_owned());
        if let Some(known) = lock(&self.said).get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(bytes) = repository.manifest(tag)? else { return Ok(None) };
        let release = match read(&bytes, tag) {
            Err(reason) => {
                let foreign = Foreign { repository, layers: &self.layers, kept: &self.kept };
                foreign.version(&bytes, tag)?.unwrap_or(Err(reason))
            }
            own => own,
        };
        let said = Arc::new(Said { release, digest: wire::digest(&bytes) });
        let mut known = lock(&self.said);
        if wire::version_of(tag).is_none() {
            // By its digest it is the same, unless a version in the tag counts.
            known.insert((key.0.clone(), said.digest.clone()), Arc::clone(&said));
        }
        known.insert(key, Arc::clone(&said));
        Ok(Some(said))
    }
}

/// Reads the manifest at `tag`; the error says why it is not a package's manifest.
pub fn read(bytes: &[u8], tag: &str) -> Result<Release, String> {
    let Ok(manifest) = serde_json::from_slice::<ImageManifest>(bytes) else {
        return Err("it is not a manifest that mu can read".to_owned());
    };
    match manifest.artifact_type.as_deref() {
        Some(PACKAGE) => {}
        Some(other) => return Err(format!("its artifact type is `{}`", short(other))),
        None => {
            let config = manifest.config.as_ref().map(|config| config.media_type.as_str());
            let kind = config.filter(|kind| !kind.is_empty()).unwrap_or(&manifest.media_type);
            return Err(format!("it is an artifact of another kind, `{}`", short(kind)));
        }
    }
    let [layer] = manifest.layers.as_slice() else {
        return Err(format!("it has {} layers, and a package has one", manifest.layers.len()));
    };
    if layer.media_type != ARCHIVE {
        return Err(format!("its layer is `{}`", short(&layer.media_type)));
    }
    if layer.digest.parse::<ArchiveDigest>().is_err() {
        return Err("the digest of its archive cannot be read".to_owned());
    }
    let entry = Descriptor { annotations: manifest.annotations.clone(), ..Descriptor::default() };
    let Some(line) = listing::release(&entry) else {
        return Err(format!("its annotation `{}` is not an index line", wire::RELEASE_KEY));
    };
    let version = line.full_version();
    if wire::version_of(tag).is_some_and(|tagged| tagged != version) {
        return Err(format!("its tag is `{tag}`, and it says that it is {}", short(&version)));
    }
    Ok(Release { archive: Some(layer.digest.clone()), size: Some(layer.size), ..line })
}

/// How many manifests of an index are looked at.
pub(crate) const MOST_LOOKED_AT: usize = 16;

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

/// The tags that are versions, each behind its version, the newest first.
pub(crate) fn newest_first(tags: &[String]) -> Vec<(String, &str)> {
    let versions = tags.iter().filter_map(|tag| {
        let version = wire::version_of(tag)?;
        let rank = version_of(&Release { version: version.clone(), ..Release::default() })?;
        Some((Reverse(rank), version, tag.as_str()))
    });
    let mut versions: Vec<_> = versions.collect();
    versions.sort();
    versions.into_iter().map(|(_, version, tag)| (version, tag)).collect()
}

/// How many versions are looked at to find the one that has a digest, and how many at once.
const MOST_COMPARED: usize = 64;
const AT_ONCE: usize = 8;

impl RegistryRepository<'_> {
    /// The version whose tag leads to the manifest with this digest; the newest ones are looked at.
    pub(crate) fn version_at(&self, digest: &str) -> Result<Option<String>, ProviderError> {
        let tags = self.tags()?.unwrap_or_default();
        let versions: Vec<_> =
            newest_first(&tags).into_iter().take(MOST_COMPARED).enumerate().collect();
        let found = Mutex::new(BTreeMap::new());
        for some in versions.chunks(AT_ONCE) {
            at_once(AT_ONCE, some, |(place, (version, tag))| {
                let bytes = self.manifest(tag)?;
                if bytes.is_some_and(|bytes| wire::digest(&bytes) == digest) {
                    lock(&found).insert(*place, version.clone());
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
