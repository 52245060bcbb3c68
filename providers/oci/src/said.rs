//! The content of a manifest: the archive of a version, and the line that its publisher wrote.

use std::sync::Arc;

use mu_provider::threads::lock;
use mu_provider::{ArchiveDigest, ErrorKind, ProviderError, Release};

use crate::OciProvider;
use crate::foreign::Foreign;
use crate::listing;
use crate::repository::RegistryRepository;
use crate::wire::{self, ARCHIVE, Descriptor, ImageManifest, PACKAGE};

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

/// A text of somebody else's, in one line that is not long.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(200).flat_map(char::escape_debug).collect()
}
