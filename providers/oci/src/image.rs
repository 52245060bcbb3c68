//! Container images whose files are packages, or say which packages there are: bundles and catalogs of operators.
//!
//! An image is read by its digest or tag, and of its files only those in some folders. It is not run, and what it is made of is
//! not looked at.

use std::collections::BTreeMap;
use std::io;

use mu_archive::{ArchiveWriter, Archives, Layers, pick, unpack_layer};
use mu_provider::{
    ErrorKind, FoundEvidence, KeptArchives, LARGEST_CONTENT, Limits, Location, Progress,
    ProviderError, Release, SafeUrl, TreeWriter, has_few_values,
};
use serde_json::{Map, Value, json};

use crate::OciProvider;
use crate::repository::{LONGEST_MANIFEST, RegistryRepository};
use crate::wire::{self, Descriptor, ImageManifest, MOST_MANIFEST_VALUES};

/// How many layers an image may have. Container tools stop at 127.
const MOST_LAYERS: usize = 256;

/// The most bytes of the layers and manifests of an image that was kept.
const LARGEST_KEPT: u64 = LARGEST_CONTENT + (64 << 20);

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
    manifests: Manifests,
    /// What its manifest is known by.
    pub digest: String,
}

/// The manifests that lead to the layers of an image.
#[derive(Debug)]
struct Manifests {
    /// Their bytes: that of the image, behind an index of it for many platforms if there is one.
    all: Vec<Vec<u8>>,
    image: ImageManifest,
}

impl Manifests {
    /// Those from what a tag or digest leads to; of an image for many platforms, that for Linux on amd64, or the first.
    fn read(
        manifest: &dyn Fn(&str) -> Result<Vec<u8>, ProviderError>,
        reference: &str,
        place: &str,
    ) -> Result<Self, ProviderError> {
        let wrong = |error: serde_json::Error| {
            let text = format!("`{place}` is not the manifest of an image");
            ProviderError::new(ErrorKind::Protocol, text).because(error)
        };
        let bytes = manifest(reference)?;
        check(&bytes, place)?;
        let value: Map<String, Value> = serde_json::from_slice(&bytes).map_err(wrong)?;
        let mut all = vec![bytes];
        if let Some(platforms) = value.get("manifests").and_then(Value::as_array) {
            let platforms: Vec<Descriptor> =
                serde_json::from_value(platforms.clone().into()).map_err(wrong)?;
            let Some(chosen) = wire::candidates(&platforms).into_iter().next() else {
                let text = format!("`{place}` names no image");
                return Err(ProviderError::new(ErrorKind::Protocol, text));
            };
            let bytes = manifest(&chosen.digest)?;
            check(&bytes, place)?;
            all.push(bytes);
        }
        let last = all.last().map(Vec::as_slice).unwrap_or_default();
        Ok(Self { image: serde_json::from_slice(last).map_err(wrong)?, all })
    }

    /// The layers, the last one first, of which each must be one that mu reads; `name` is that of the image for messages.
    fn layers(&self, name: &str) -> Result<Vec<&Descriptor>, ProviderError> {
        let layers = &self.image.layers;
        let refused = |why: String| {
            ProviderError::new(ErrorKind::Refused, format!("the image {name} has {why}"))
        };
        if layers.len() > MOST_LAYERS {
            return Err(refused("too many layers".to_owned()));
        }
        let is_unread = |layer: &&Descriptor| {
            !wire::is_digest(&layer.digest) || layer.media_type.ends_with("zstd")
        };
        match layers.iter().rev().find(is_unread) {
            Some(layer) => Err(refused(format!(
                "a layer of the kind `{}`, which mu does not read",
                layer.media_type
            ))),
            None => Ok(layers.iter().rev().collect()),
        }
    }
}

impl<'call> Image<'call> {
    /// The image that a tag or digest leads to.
    fn find(
        repository: RegistryRepository<'call>,
        reference: &str,
        archives: &'call Archives,
    ) -> Result<Self, ProviderError> {
        let place = repository.place(&format!("manifests/{reference}"));
        let manifests =
            Manifests::read(&|name| repository.image(name), reference, &place.to_string())?;
        let last = manifests.all.last().map(Vec::as_slice).unwrap_or_default();
        Ok(Self { digest: wire::digest(last), repository, archives, manifests })
    }

    /// The label of the image with this key.
    ///
    /// # Errors
    ///
    /// When its config cannot be got, or is not one.
    pub fn label(&self, key: &str) -> Result<Option<String>, ProviderError> {
        let Some(config) = &self.manifests.image.config else { return Ok(None) };
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

    /// Writes those of its files that are in one of `folders` into `tree`; if that wants all archives, it gets the whole image as one.
    ///
    /// # Errors
    ///
    /// When a layer is missing, damaged or hostile.
    pub fn unpack(
        &self,
        folders: impl IntoIterator<Item = String>,
        tree: &mut TreeWriter,
    ) -> Result<(), ProviderError> {
        let Self { repository, archives, manifests, digest } = self;
        let name = format!("{digest} of `{}`", repository.name);
        let (mut layers, mut kept) = (Layers::new(folders), manifests.all.clone());
        // What is only unpacked need not be in memory as a whole.
        let (is_kept, mut size) = (tree.keeps_archive == KeptArchives::All, 0_u64);
        for layer in manifests.layers(&name)? {
            let blob = Release {
                archive: Some(layer.digest.clone()),
                size: Some(layer.size),
                ..Release::default()
            };
            size = size.saturating_add(layer.size);
            if is_kept && size > LARGEST_CONTENT {
                let text = format!(
                    "the image {name} is not kept: it has more than {LARGEST_CONTENT} bytes"
                );
                return Err(ProviderError::new(ErrorKind::Refused, text));
            }
            repository.registry.by_scheme(|scheme| {
                let place = repository.blob_at(scheme, &layer.digest)?;
                if !is_kept {
                    let progress = repository.progress;
                    return archives.unpack_layer(&place, &blob, &mut layers, tree, progress);
                }
                let bytes = archives.layer_bytes(&place, &blob, repository.progress)?;
                unpack_layer(&*bytes, bytes.len() as u64, &mut layers, tree)
                    .map_err(|error| error.at(&place.url.to_string()))?;
                kept.push(bytes);
                Ok(())
            })?;
        }
        if is_kept {
            let archive = in_one_archive(&kept).map_err(|error| {
                let text = format!("the image {name} cannot be kept");
                ProviderError::new(ErrorKind::Io, text).because(error)
            })?;
            tree.archive = Some(archive);
        }
        Ok(())
    }
}

/// The folder of blobs in the image layout of OCI, where each has its digest as its name.
const BLOBS: &str = "blobs/sha256/";

/// An image in one file, as the image layout of OCI has it. The first of `blobs` is what the image is known by, and then come the other
/// manifest and the layers.
fn in_one_archive(blobs: &[Vec<u8>]) -> io::Result<Vec<u8>> {
    let mut files = BTreeMap::new();
    for blob in blobs {
        let digest = wire::digest(blob);
        files.insert(format!("{BLOBS}{}", digest.trim_start_matches("sha256:")), blob.clone());
    }
    let first = blobs.first().map(Vec::as_slice).unwrap_or_default();
    let said: Value = serde_json::from_slice(first).unwrap_or_default();
    let index = json!({"schemaVersion": 2, "manifests": [{
        "mediaType": said.get("mediaType").and_then(Value::as_str).unwrap_or(wire::MANIFEST),
        "digest": wire::digest(first),
        "size": first.len(),
    }]});
    files.insert("index.json".to_owned(), index.to_string().into_bytes());
    files.insert("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec());
    let mut archive = ArchiveWriter::new(Vec::new());
    for (path, bytes) in files {
        archive.file(&path, false, bytes.len() as u64, &*bytes)?;
    }
    archive.finish()
}

/// Writes those files of an image that are in one of `folders` into `tree`, from what [`Image::unpack`] has kept of it; `digest` is what
/// the image is known by.
///
/// # Errors
///
/// [`ErrorKind::Integrity`] when that does not have the image, or is hostile.
pub fn restore_image(
    kept: &[u8],
    digest: &str,
    folders: impl IntoIterator<Item = String>,
    tree: &mut TreeWriter,
) -> Result<(), ProviderError> {
    let place = format!("what is kept of the image {digest}");
    let most = Limits::default().most_from(kept.len() as u64).min(LARGEST_KEPT);
    let files =
        pick(kept, &|path| path.starts_with(BLOBS), most).map_err(|error| error.at(&place))?;
    // Each is known by what it is, and not by what it is called there.
    let blobs: BTreeMap<String, Vec<u8>> =
        files.into_values().map(|bytes| (wire::digest(&bytes), bytes)).collect();
    let blob = |digest: &str| {
        blobs.get(digest).ok_or_else(|| {
            ProviderError::new(ErrorKind::Integrity, format!("{place} does not have {digest}"))
        })
    };
    let manifests = Manifests::read(&|digest| blob(digest).cloned(), digest, &place)?;
    let mut layers = Layers::new(folders);
    for layer in manifests.layers(digest)? {
        let bytes = blob(&layer.digest)?;
        unpack_layer(&**bytes, bytes.len() as u64, &mut layers, tree)
            .map_err(|error| error.at(&place))?;
    }
    Ok(())
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
