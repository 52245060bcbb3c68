//! Packages of other ecosystems: artifacts that other tools have pushed, without mu's index.
//!
//! `mu-formats` knows the artifacts of a format, and reads their manifests. This file downloads them: the
//! registry's manifest, and only those blobs that have a version's requirements. Which manifest of an index is meant, `said.rs`
//! decides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mu_archive::ArchiveLayout;
use mu_archive::pick;
use mu_formats::{
    Artifact, ArtifactManifest, FORMATS, Format, FormatError, Layer, Reading, Texts, same_version,
};
use mu_provider::threads::lock;
use mu_provider::{ProviderError, Release, has_few_values};

use crate::kept::Kept;
use crate::repository::{LONGEST_MANIFEST, RegistryRepository};
use crate::said::newest_first;
use crate::wire::{self, CREATED_KEY, Descriptor, ImageManifest, MOST_MANIFEST_VALUES, short};

/// The largest layer that is read before a version is chosen, in bytes.
const LARGEST_LAYER: u64 = 64 << 20;

/// How many layers of an image are searched for a package.
const MOST_SEARCHED: usize = 127;

/// How many tags are looked at to find out the format of a package: some lead to something else, such as an image.
const MOST_ASKED_FOR_FORMAT: usize = 8;

/// The most bytes of its files.
const LARGEST_TREE: u64 = 512 << 20;

/// How many bytes of layers are kept until they are unpacked.
const MOST_KEPT: usize = 128 << 20;

/// Layers that were looked into, by their digests.
#[derive(Debug, Default)]
pub(crate) struct InspectedLayers {
    kept: BTreeMap<String, Arc<[u8]>>,
    bytes: usize,
}

impl InspectedLayers {
    fn keep(&mut self, digest: &str, layer: Vec<u8>) {
        if self.bytes.saturating_add(layer.len()) <= MOST_KEPT && !self.kept.contains_key(digest) {
            self.bytes += layer.len();
            self.kept.insert(digest.to_owned(), layer.into());
        }
    }

    /// A layer that was looked into.
    pub(crate) fn get(&self, digest: &str) -> Option<Arc<[u8]>> {
        self.kept.get(digest).cloned()
    }
}

/// The format of an artifact, and which of its layers has the package, counted from 0, or why none has.
pub type Marked = (&'static Format, &'static Artifact, Result<usize, String>);

/// A version, or why it is not a version of a package.
pub(crate) type Found = Result<Release, String>;

/// The artifacts that other tools have pushed to a repository.
pub(crate) struct Foreign<'call> {
    pub(crate) repository: &'call RegistryRepository<'call>,
    pub(crate) layers: &'call Mutex<InspectedLayers>,
    pub(crate) kept: &'call Kept,
}

impl Foreign<'_> {
    /// The version that a manifest is to which `tag` leads, if it has a known format.
    pub(crate) fn of_manifest(
        &self,
        manifest: &ImageManifest,
        tag: &str,
    ) -> Result<Option<Found>, ProviderError> {
        let found = match marked(manifest) {
            None => self.without_annotations(manifest)?,
            found => found,
        };
        let Some((format, artifact, layer)) = found else { return Ok(None) };
        let layer = layer.map(|at| manifest.layers.get(at));
        let layer = match layer {
            Ok(Some(layer)) if is_zstd(layer) => return Ok(Some(Err(ZSTD.to_owned()))),
            Err(_) if manifest.layers.iter().any(is_zstd) => {
                return Ok(Some(Err(ZSTD.to_owned())));
            }
            Ok(Some(layer)) if wire::is_digest(&layer.digest) => layer,
            Ok(_) => return Ok(Some(Err("the digest of its archive cannot be read".to_owned()))),
            Err(reason) => return Ok(Some(Err(reason))),
        };
        let texts = match (artifact.in_config, &manifest.config) {
            (true, Some(config)) => {
                let config = self.config(config)?;
                let text = String::from_utf8_lossy(&config).into_owned();
                Texts([(format.manifest.to_owned(), text)].into())
            }
            _ => match self.texts(format, layer, &[])? {
                Ok(texts) => texts,
                Err(reason) => return Ok(Some(Err(reason))),
            },
        };
        let read = (format.read)(&texts, &Reading::default());
        let found = read.map_err(|error| unreadable(&error)).and_then(|package| {
            let version = version(&package.release.version, tag)?;
            let annotations = manifest.annotations.as_ref();
            let created = annotations.and_then(|said| said.get(CREATED_KEY));
            Ok(Release {
                version,
                archive: Some(layer.digest.clone()),
                size: Some(layer.size),
                // So that from a lock alone, mu knows how to read the archive.
                locator: Some(format.name.to_owned()),
                published: package.release.published.clone().or(created.cloned()),
                ..package.release
            })
        });
        Ok(Some(found))
    }

    /// What an image is that a builder has made of a package: its labels say so, or there is a manifest among its files.
    fn without_annotations(
        &self,
        manifest: &ImageManifest,
    ) -> Result<Option<Marked>, ProviderError> {
        let Some(config) = &manifest.config else { return Ok(None) };
        let is_image = wire::IMAGE_CONFIGS.contains(&&*config.media_type);
        if !is_image || manifest.layers.is_empty() || !wire::is_digest(&config.digest) {
            return Ok(None);
        }
        let config = self.config(config)?;
        if !has_few_values(&config, MOST_MANIFEST_VALUES) {
            return Ok(None);
        }
        let config: serde_json::Value = serde_json::from_slice(&config).unwrap_or_default();
        let labels = config.pointer("/config/Labels");
        let marked = FORMATS.iter().filter_map(|format| {
            let artifact = format.artifact.as_ref()?;
            Some((format, artifact, artifact.label?))
        });
        for (format, artifact, (before, value)) in marked {
            let is_it = |layer: &Descriptor| {
                let label =
                    labels.and_then(|labels| labels.get(format!("{before}{}", layer.digest)));
                label.is_some_and(|label| label == value)
            };
            if let Some(at) = manifest.layers.iter().position(is_it) {
                return Ok(Some((format, artifact, Ok(at))));
            }
            if let Some(found) = self.uppermost(manifest, format)? {
                return Ok(Some((format, artifact, found)));
            }
        }
        Ok(None)
    }

    /// Which layer has the manifest of `format` that the files of an image have in the end, where nothing says which layer is the
    /// package: the last that has one, unless a later one has removed it.
    fn uppermost(
        &self,
        manifest: &ImageManifest,
        format: &Format,
    ) -> Result<Option<Result<usize, String>>, ProviderError> {
        let layers = &manifest.layers;
        let size = layers.iter().try_fold(0_u64, |sum, layer| sum.checked_add(layer.size));
        if layers.len() > MOST_SEARCHED || size.is_none_or(|size| size > LARGEST_LAYER) {
            return Ok(Some(Err(format!(
                "it is an image of {} layers, of which nothing says which is the package, and too large to look into all of them",
                layers.len()
            ))));
        }
        let removed = [format!(".wh.{}", format.manifest), ".wh..wh..opq".to_owned()];
        for (at, layer) in layers.iter().enumerate().rev() {
            if !wire::is_digest(&layer.digest) {
                return Ok(None);
            }
            if is_zstd(layer) {
                return Ok(Some(Err(ZSTD.to_owned())));
            }
            let Ok(texts) = self.texts(format, layer, &removed)? else {
                return Ok(None);
            };
            if let Some(text) = texts.0.get(format.manifest) {
                let is_one = format.is_one.is_none_or(|is_one| is_one(text));
                return Ok(is_one.then_some(Ok(at)));
            }
            if removed.iter().any(|name| texts.0.contains_key(name)) {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// The files of a layer that the reader of its format needs, and others `besides`. The layer is kept, because it will probably
    /// be unpacked.
    fn texts(
        &self,
        format: &Format,
        layer: &Descriptor,
        besides: &[String],
    ) -> Result<Result<Texts, String>, ProviderError> {
        let names = [format.manifest].into_iter().chain(format.others.iter().copied());
        let names: Vec<&str> = names.chain(besides.iter().map(String::as_str)).collect();
        if let Some(files) = self.kept.files(&layer.digest, &names) {
            return Ok(Ok(as_texts(files)));
        }
        let held = lock(self.layers).get(&layer.digest);
        let bytes = match held {
            Some(held) => held.to_vec(),
            None => self.repository.blob(layer, LARGEST_LAYER)?,
        };
        let picked = pick(&bytes, &|path| names.contains(&path), LARGEST_TREE);
        let texts = match picked {
            Ok(files) => {
                self.kept.keep_files(&layer.digest, &names, &files);
                Ok(as_texts(files))
            }
            Err(error) => Err(format!("its files cannot be read: {error}")),
        };
        lock(self.layers).keep(&layer.digest, bytes);
        Ok(texts)
    }

    /// The config of a manifest.
    fn config(&self, config: &Descriptor) -> Result<Vec<u8>, ProviderError> {
        if let Some(known) = self.kept.blob(&config.digest) {
            return Ok(known);
        }
        let bytes = self.repository.blob(config, LONGEST_MANIFEST)?;
        self.kept.keep_blob(&config.digest, &bytes);
        Ok(bytes)
    }
}

impl RegistryRepository<'_> {
    /// The format of the packages with these tags, where the meaning of the tags depends on it: some leave numbers out, or all
    /// are prereleases. Judged by the newest of these that has one; `None` if none has.
    pub(crate) fn format_of(
        &self,
        tags: &[String],
    ) -> Result<Option<&'static Format>, ProviderError> {
        let is_short = |version: &str| version.bytes().filter(|byte| *byte == b'.').count() == 1;
        let is_release = |version: &str| {
            let bare = version.split('+').next().unwrap_or(version);
            !bare.contains('-')
        };
        let mut asked = newest_first(tags);
        if asked.iter().any(|(version, _)| is_short(version)) {
            asked.retain(|(version, _)| is_short(version));
        } else if asked.iter().any(|(version, _)| is_release(version)) {
            return Ok(None);
        }
        for (_, tag) in asked.into_iter().take(MOST_ASKED_FOR_FORMAT) {
            let Some(bytes) = self.manifest(tag)? else { continue };
            let manifests = self.candidates(&bytes)?;
            let known = manifests.iter().find_map(|(_, manifest)| Some(marked(manifest)?.0));
            if known.is_some() {
                return Ok(known);
            }
        }
        Ok(None)
    }
}

/// Why a layer of this kind cannot be used.
const ZSTD: &str = "its archive is compressed with zstd, and mu reads gzip";

fn is_zstd(layer: &Descriptor) -> bool {
    layer.media_type.ends_with("zstd")
}

fn as_texts(files: BTreeMap<String, Vec<u8>>) -> Texts {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Texts(files.into_iter().map(|(name, bytes)| (name, text(bytes))).collect())
}

/// What the media types and annotations in a manifest say that the artifact is.
pub fn marked(manifest: &ImageManifest) -> Option<Marked> {
    let image = image(manifest);
    FORMATS.iter().find_map(|format| {
        let artifact = format.artifact.as_ref()?;
        Some((format, artifact, (artifact.find)(&image)?))
    })
}

/// The layer with the signed statement about `archive`, of the artifact that has this; where it is not known, of the first that has
/// one.
pub(crate) fn provenance_layer<'m>(
    manifests: &'m [(String, ImageManifest)],
    archive: Option<&str>,
) -> Option<&'m Descriptor> {
    let has = |manifest: &ImageManifest| {
        archive.is_none_or(|archive| manifest.layers.iter().any(|layer| layer.digest == archive))
    };
    manifests.iter().filter(|(_, manifest)| has(manifest)).find_map(|(_, manifest)| {
        let (_, artifact, _) = marked(manifest)?;
        let kind = artifact.provenance?;
        let mut layers = manifest.layers.iter();
        layers.find(|layer| layer.media_type == kind && wire::is_digest(&layer.digest))
    })
}

/// Whether nothing but the tag of a release says which version it is.
pub(crate) fn is_versioned_by_tag(release: &Release) -> bool {
    let mut formats = FORMATS.iter().filter(|format| format.artifact.is_some());
    formats.any(|format| Some(format.name) == release.format.as_deref() && !format.is_named)
}

/// How to read the archive of a version, according to its format.
pub(crate) fn layout_for_format(locator: Option<&str>) -> ArchiveLayout {
    let of = |format: &Format| format.artifact.filter(|_| Some(format.name) == locator);
    let artifact = FORMATS.iter().find_map(of);
    match artifact {
        Some(artifact) if artifact.in_folder => ArchiveLayout::InFolder,
        Some(_) => ArchiveLayout::Layer,
        // A copy from a hub says it as hubs do.
        None => ArchiveLayout::for_locator(locator),
    }
}

/// A manifest as formats see it.
fn image(manifest: &ImageManifest) -> ArtifactManifest<'_> {
    ArtifactManifest {
        config: manifest.config.as_ref().map_or("", |config| &config.media_type),
        annotations: said(&manifest.annotations),
        layers: (manifest.layers.iter())
            .map(|layer| Layer {
                media_type: &layer.media_type,
                annotations: said(&layer.annotations),
            })
            .collect(),
    }
}

fn said(annotations: &Option<BTreeMap<String, String>>) -> BTreeMap<&str, &str> {
    let all = annotations.iter().flatten();
    all.map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

/// The version that a package and its tag agree on.
fn version(own: &str, tag: &str) -> Result<String, String> {
    let tagged = wire::version_of(tag);
    let tagged = match (tagged, own) {
        (Some(tagged), "") => return Ok(tagged),
        (None, "") => return Ok("0.0.0".to_owned()),
        (None, own) => return Ok(own.strip_prefix('v').unwrap_or(own).to_owned()),
        (Some(tagged), _) => tagged,
    };
    match same_version(own, &tagged) {
        true => Ok(tagged),
        false => Err(format!("its tag is `{tag}`, and it says that it is {}", short(own))),
    }
}

/// Why a manifest cannot be used, without the place in it, which helps nobody who cannot open it.
fn unreadable(error: &FormatError) -> String {
    let FormatError { file, reason, .. } = error;
    match reason.contains(&format!("`{file}`")) {
        true => short(reason),
        false => short(&format!("`{file}`: {reason}")),
    }
}
