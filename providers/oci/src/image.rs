//! Container images whose files are packages, or say which packages there are: bundles and catalogs of operators.
//!
//! An image is read by its digest or tag, and of its files only those in some folders. It is not run, and what it is made of is
//! not looked at.

use mu_archive::Archives;
use mu_archive::Layers;
use mu_provider::{
    ErrorKind, FoundEvidence, Location, Progress, ProviderError, Release, SafeUrl, TreeWriter,
    has_few_values,
};
use serde_json::{Map, Value};

use crate::OciProvider;
use crate::repository::{LONGEST_MANIFEST, RegistryRepository};
use crate::wire::{self, Descriptor, ImageManifest, MOST_MANIFEST_VALUES};

/// How many layers an image may have. Container tools stop at 127.
const MOST_LAYERS: usize = 256;

/// Refuses what would become too much in memory.
fn check(bytes: &[u8], place: &str) -> Result<(), ProviderError> {
    match has_few_values(bytes, MOST_MANIFEST_VALUES) {
        true => Ok(()),
        false => {
            let text =
                format!("`{place}` is refused: it has more than {MOST_MANIFEST_VALUES} values");
            Err(ProviderError::new(ErrorKind::Refused, text))
        }
    }
}

/// The name of an image: `quay.io/acme/web-bundle:v1.2.0`, `…@sha256:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName {
    location: Location,
    /// A tag or a digest.
    reference: String,
}

impl ImageName {
    /// Reads a name as container tools have it, which what is at `from` says; without a host it is Docker's.
    ///
    /// # Errors
    ///
    /// When it is not one, or leads nearer to this machine than `from` is.
    pub fn parse(text: &str, from: &Location) -> Result<Self, ProviderError> {
        let (named, digest) = match text.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (text, None),
        };
        let wrong = || {
            // What comes before any other `@` may be a password.
            let shown = match digest {
                Some(rest) if !wire::is_digest(rest) => rest.rsplit('@').next().unwrap_or_default(),
                _ => text,
            };
            let text = format!("`{shown}` is not the name of an image");
            ProviderError::new(ErrorKind::Protocol, text)
        };
        let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
        let (host, path) = match named.split_once('/') {
            Some((host, path)) if is_host(host) => (host, path),
            _ => ("docker.io", named),
        };
        let (path, tag) = path.split_once(':').unwrap_or((path, "latest"));
        let reference = digest.unwrap_or(tag);
        if !wire::is_digest(reference) && (digest.is_some() || !wire::is_tag(reference)) {
            return Err(wrong());
        }
        let root = SafeUrl::parse(&format!("https://{host}/")).map_err(|_| wrong())?;
        if root.may_hold_secret() || !wire::is_repository(path) {
            return Err(wrong());
        }
        let mut location = Location::new(from.root.leads_to(root)?, path);
        location.insecure = from.insecure;
        Ok(Self { location, reference: reference.to_owned() })
    }

    /// The digest that names it.
    pub fn digest(&self) -> Option<&str> {
        Some(self.reference.as_str()).filter(|reference| wire::is_digest(reference))
    }
}

/// An image that was found.
#[derive(Debug)]
pub struct Image<'call> {
    repository: RegistryRepository<'call>,
    /// What downloads its layers.
    archives: &'call Archives,
    manifest: ImageManifest,
    /// What its manifest is known by.
    pub digest: String,
}

impl<'call> Image<'call> {
    /// The image that a tag or digest leads to.
    fn find(
        repository: RegistryRepository<'call>,
        reference: &str,
        archives: &'call Archives,
    ) -> Result<Self, ProviderError> {
        let bytes = repository.image(reference)?;
        let place = repository.place(&format!("manifests/{reference}"));
        let wrong = |error: serde_json::Error| {
            let text = format!("`{place}` is not the manifest of an image");
            ProviderError::new(ErrorKind::Protocol, text).because(error)
        };
        check(&bytes, &place)?;
        let value: Map<String, Value> = serde_json::from_slice(&bytes).map_err(wrong)?;
        let bytes = match value.get("manifests").and_then(Value::as_array) {
            None => bytes,
            Some(platforms) => {
                let platforms: Vec<Descriptor> =
                    serde_json::from_value(platforms.clone().into()).map_err(wrong)?;
                let Some(chosen) = wire::candidates(&platforms).into_iter().next() else {
                    let text = format!("`{place}` names no image");
                    return Err(ProviderError::new(ErrorKind::Protocol, text));
                };
                repository.image(&chosen.digest)?
            }
        };
        let manifest: ImageManifest = serde_json::from_slice(&bytes).map_err(wrong)?;
        Ok(Self { digest: wire::digest(&bytes), repository, archives, manifest })
    }

    /// The label of the image with this key.
    ///
    /// # Errors
    ///
    /// When its config cannot be got, or is not one.
    pub fn label(&self, key: &str) -> Result<Option<String>, ProviderError> {
        let Some(config) = &self.manifest.config else { return Ok(None) };
        let bytes = self.repository.blob(config, LONGEST_MANIFEST)?;
        let place = self.repository.place(&format!("blobs/{}", config.digest));
        check(&bytes, &place)?;
        let config: Value = serde_json::from_slice(&bytes).map_err(|error| {
            let text = format!("`{place}` is not the config of an image");
            ProviderError::new(ErrorKind::Protocol, text).because(error)
        })?;
        let label =
            config.get("config").and_then(|config| config.get("Labels")?.get(key)?.as_str());
        Ok(label.map(str::to_owned))
    }

    /// Writes those of its files that are in one of `folders` into `tree`.
    ///
    /// # Errors
    ///
    /// When a layer is missing, damaged or hostile.
    pub fn unpack(
        &self,
        folders: impl IntoIterator<Item = String>,
        tree: &mut TreeWriter,
    ) -> Result<(), ProviderError> {
        let Self { repository, archives, manifest, digest } = self;
        if manifest.layers.len() > MOST_LAYERS {
            let text = format!("the image {digest} of `{}` has too many layers", repository.name);
            return Err(ProviderError::new(ErrorKind::Refused, text));
        }
        let mut layers = Layers::new(folders);
        for layer in manifest.layers.iter().rev() {
            if !wire::is_digest(&layer.digest) || layer.media_type.ends_with("zstd") {
                let text = format!(
                    "the image {digest} of `{}` has a layer of the kind `{}`, which mu does not read",
                    repository.name, layer.media_type
                );
                return Err(ProviderError::new(ErrorKind::Refused, text));
            }
            let blob = Release {
                archive: Some(layer.digest.clone()),
                size: Some(layer.size),
                ..Release::default()
            };
            repository.registry.by_scheme(|scheme| {
                let place = repository.blob_at(scheme, &layer.digest)?;
                archives.unpack_layer(&place, &blob, &mut layers, tree, repository.progress)
            })?;
        }
        Ok(())
    }
}

impl OciProvider {
    /// Finds an image; of one for many platforms, that for Linux on amd64, or the first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none, and whatever keeps its registry from being asked.
    pub fn image<'call>(
        &'call self,
        name: &ImageName,
        progress: &'call dyn Progress,
    ) -> Result<Image<'call>, ProviderError> {
        let repository = self.existing(&name.location, progress)?;
        Image::find(repository, &name.reference, &self.archives)
    }

    /// What vouches for an image. Of one that is not named by its digest, nothing does.
    ///
    /// # Errors
    ///
    /// Whatever keeps its registry from being asked.
    pub fn evidence_of_image(
        &self,
        name: &ImageName,
        progress: &dyn Progress,
    ) -> Result<FoundEvidence, ProviderError> {
        let Some(digest) = name.digest() else { return Ok(FoundEvidence::default()) };
        let digest = Some(digest.to_owned());
        let release = Release { manifest: digest.clone(), archive: digest, ..Release::default() };
        self.evidence_of(&self.existing(&name.location, progress)?, &release)
    }
}

impl RegistryRepository<'_> {
    /// The manifest of an image.
    fn image(&self, reference: &str) -> Result<Vec<u8>, ProviderError> {
        self.manifest(reference)?.ok_or_else(|| {
            let place = self.place(&format!("manifests/{reference}"));
            let text = format!("there is no image `{reference}` of `{}`", self.name);
            ProviderError::new(ErrorKind::NotFound, text)
                .because(format!("there is nothing at `{place}`"))
        })
    }
}
