//! Copies artifacts of other ecosystems as they are: manifests, blobs and tags, byte for byte, so that their own tools can read
//! the copy; and what belongs to them: signatures, attestations and lists of contents, which tools attach to a digest after it
//! was pushed, as referrers or by tags that name the digest. What these say is not looked at here.
//!
//! What comes from elsewhere is pushed in the same form. Only the index that has a tag says what mu knows of them.

use std::collections::{BTreeMap, BTreeSet};

use mu_provider::{EVIDENCE_TYPE, ErrorKind, Location, ProviderError, Release, Silent};
use serde_json::{Map, Value};

use super::{PushOutcome, Writer, annotations};
use crate::OciProvider;
use crate::repository::RegistryRepository;
use crate::wire::{self, Descriptor, EMPTY_BYTES, ImageManifest, Index};

/// An artifact of another ecosystem, as its own tool would push it.
#[derive(Debug, Clone)]
pub struct ForeignArtifact<'bytes> {
    /// Its version, which is its tag.
    pub version: String,
    /// Its type, if it is said.
    pub artifact_type: Option<&'bytes str>,
    /// The media type of its config, and the config.
    pub config: (&'bytes str, &'bytes [u8]),
    /// The media type of the layer with its archive, and the layer.
    pub layer: (&'bytes str, &'bytes [u8]),
    /// The annotations of that layer.
    pub said_of_layer: BTreeMap<String, String>,
    /// The other layers, in the same form: those that belong to the first.
    pub beside: Vec<(&'bytes str, &'bytes [u8])>,
    /// The annotations of its manifest.
    pub annotations: BTreeMap<String, String>,
}

impl<'bytes> ForeignArtifact<'bytes> {
    /// Its config, and its layers behind it.
    fn blobs(&self) -> Vec<(Descriptor, &'bytes [u8])> {
        let all = [self.config, self.layer].into_iter().chain(self.beside.iter().copied());
        let mut all: Vec<_> =
            all.map(|(kind, bytes)| (Descriptor::of(kind, bytes), bytes)).collect();
        if let Some((layer, _)) = all.get_mut(1).filter(|_| !self.said_of_layer.is_empty()) {
            layer.annotations = Some(self.said_of_layer.clone());
        }
        all
    }

    fn manifest(&self) -> ImageManifest {
        let mut blobs = self.blobs().into_iter().map(|(what, _)| what);
        ImageManifest {
            schema_version: 2,
            media_type: wire::MANIFEST.to_owned(),
            artifact_type: self.artifact_type.map(str::to_owned),
            config: blobs.next(),
            layers: blobs.collect(),
            annotations: Some(self.annotations.clone()),
            ..ImageManifest::default()
        }
    }

    /// Whether a manifest with its archive lacks another one of its layers; `None` if it has another archive.
    fn lacking(&self, known: &ImageManifest) -> Option<bool> {
        let own = self.manifest().layers;
        let has = |wanted: &Descriptor| known.layers.iter().any(|one| one.digest == wanted.digest);
        own.first().is_some_and(has).then(|| !own.iter().all(has))
    }
}

/// A manifest that was copied.
pub(super) struct Put {
    pub(super) media_type: String,
    /// Whether the registry maintains the list of referrers of its subject.
    pub(super) keeps_subject: bool,
}

/// The largest blob that is copied, in bytes.
const LARGEST_BLOB: u64 = 2 << 30;

/// How many manifests an index may have that is copied.
const MOST_PLATFORMS: usize = 64;

impl Writer {
    /// Copies the version of a package that `release` is at `location`, with its tags; `line` is what the index says of it.
    ///
    /// # Errors
    ///
    /// When one of the registries cannot be asked, or this one takes no such thing.
    pub fn copy(
        &self,
        from: &OciProvider,
        location: &Location,
        release: &Release,
        line: &Map<String, Value>,
    ) -> Result<PushOutcome, ProviderError> {
        let source = from.existing(location, &Silent)?;
        let (tag, bytes) = self.found(&source, location, release)?;
        let digest = wire::digest(&bytes);
        let there = self.repository.manifest(&tag)?.map(|bytes| wire::digest(&bytes));
        if let Some(other) = there.as_ref().filter(|there| **there != digest) {
            return Ok(PushOutcome::Differs(other.clone()));
        }
        let mut copied = Vec::new();
        let media_type = match there {
            Some(_) => {
                copied.push(digest);
                media_type(&bytes)
            }
            None => self.manifest_as_it_is(&source, &tag, &bytes, true, &mut copied)?.media_type,
        };
        self.copy_attached(&source, copied)?;
        let entry = Descriptor {
            annotations: Some(annotations(line)),
            ..Descriptor::of(&media_type, &bytes)
        };
        self.list(&entry)?;
        for tag in release.tags.iter().filter(|tag| wire::is_tag(tag)) {
            let there = self.repository.manifest(tag)?;
            if there.is_none_or(|there| there != bytes) {
                self.put(&media_type, tag, bytes.clone())?;
            }
        }
        Ok(if there.is_some() { PushOutcome::Same } else { PushOutcome::New })
    }

    /// Pushes an artifact of another ecosystem; `line` is what the index says of it.
    ///
    /// # Errors
    ///
    /// When the registry takes no such thing.
    pub fn push_foreign(
        &self,
        artifact: &ForeignArtifact<'_>,
        line: &Map<String, Value>,
    ) -> Result<PushOutcome, ProviderError> {
        let tag = wire::tag_of(&artifact.version);
        if !wire::is_tag(&tag) {
            let text = format!("{} cannot be a tag of an OCI registry", artifact.version);
            return Err(ProviderError::new(ErrorKind::Refused, text));
        }
        let there = self.repository.manifest(&tag)?;
        let mut lacks = false;
        let bytes = match &there {
            Some(bytes) => {
                let known: ImageManifest = serde_json::from_slice(bytes).unwrap_or_default();
                // Whoever has pushed the same archive may have said other things of it.
                match artifact.lacking(&known) {
                    None => return Ok(PushOutcome::Differs(wire::digest(bytes))),
                    Some(some) => lacks = some,
                }
                bytes.clone()
            }
            None => {
                for (what, bytes) in artifact.blobs() {
                    self.blob(&what, bytes, false)?;
                }
                let bytes = artifact.manifest().to_bytes();
                self.put(wire::MANIFEST, &tag, bytes.clone())?;
                bytes
            }
        };
        // Tags and entries meet by the version that the tag means, without a `v`.
        let mut line = line.clone();
        if let Some(version) = wire::version_of(&tag) {
            line.insert("version".to_owned(), version.into());
        }
        let entry = Descriptor {
            annotations: Some(annotations(&line)),
            ..Descriptor::of(&media_type(&bytes), &bytes)
        };
        self.list(&entry)?;
        Ok(match there {
            None => PushOutcome::New,
            Some(_) if lacks => PushOutcome::Without,
            Some(_) => PushOutcome::Same,
        })
    }

    /// Attaches a file of evidence to a version that is there; what has been attached before stays.
    ///
    /// # Errors
    ///
    /// When there is no such version, or the registry takes no such thing.
    pub fn attach_evidence(&self, version: &str, lines: &str) -> Result<(), ProviderError> {
        let release = Release { version: version.to_owned(), ..Release::default() };
        let mut tags = wire::tags_of(&release).into_iter();
        let found = tags.find_map(|tag| self.repository.manifest(&tag).transpose()).transpose()?;
        let bytes = found.ok_or_else(|| {
            let text = format!("there is no {version} in `{}` to attach evidence to", self.place);
            ProviderError::new(ErrorKind::NotFound, text)
        })?;
        let layer = Descriptor::of(EVIDENCE_TYPE, lines.as_bytes());
        let manifest = ImageManifest {
            subject: Some(Descriptor::of(&media_type(&bytes), &bytes)),
            ..ImageManifest::new(EVIDENCE_TYPE, layer.clone(), BTreeMap::new())
        };
        self.blob(&layer, lines.as_bytes(), false)?;
        self.blob(&Descriptor::empty(), EMPTY_BYTES, false)?;
        let own = manifest.to_bytes();
        let answer = self.put(wire::MANIFEST, &wire::digest(&own), own.clone())?;
        if answer.keeps_subject {
            return Ok(());
        }
        list_beside(self, &wire::digest(&bytes), vec![manifest.index_entry(&own)])
    }

    /// The tag of a version, and the manifest that it leads to.
    fn found(
        &self,
        source: &RegistryRepository<'_>,
        location: &Location,
        release: &Release,
    ) -> Result<(String, Vec<u8>), ProviderError> {
        for tag in wire::tags_of(release) {
            if let Some(bytes) = source.manifest(&tag)? {
                return Ok((tag, bytes));
            }
        }
        let text = format!(
            "there is no manifest of `{}` {} to copy",
            location.describe(),
            release.full_version()
        );
        Err(ProviderError::new(ErrorKind::NotFound, text))
    }

    /// Copies what a manifest names, then the manifest itself; adds the digest of each manifest to `copied`.
    fn manifest_as_it_is(
        &self,
        source: &RegistryRepository<'_>,
        reference: &str,
        bytes: &[u8],
        may_be_index: bool,
        copied: &mut Vec<String>,
    ) -> Result<Put, ProviderError> {
        let refused = |why: &str| {
            let place = source.place(&format!("manifests/{reference}"));
            ProviderError::new(ErrorKind::Refused, format!("`{place}` cannot be copied: {why}"))
        };
        if let Some(index) = Index::parse(bytes) {
            if !may_be_index || index.manifests.len() > MOST_PLATFORMS {
                return Err(refused("it is an index of too many manifests"));
            }
            for entry in &index.manifests {
                let inner = source.manifest(&entry.digest)?;
                let inner =
                    inner.ok_or_else(|| refused("a manifest that it names does not exist"))?;
                self.manifest_as_it_is(source, &entry.digest, &inner, false, copied)?;
            }
        } else {
            let manifest: ImageManifest =
                serde_json::from_slice(bytes).map_err(|_| refused("it is not a manifest"))?;
            for blob in manifest.config.iter().chain(&manifest.layers) {
                if !self.has_blob(blob)? {
                    let content = source.blob(blob, LARGEST_BLOB)?;
                    self.blob(blob, &content, true)?;
                }
            }
        }
        let media_type = media_type(bytes);
        let answer = self.put(&media_type, reference, bytes.to_vec())?;
        copied.push(wire::digest(bytes));
        Ok(Put { media_type, keeps_subject: answer.keeps_subject })
    }
}

/// What a manifest says that it is.
fn media_type(bytes: &[u8]) -> String {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let said = value.get("mediaType").and_then(Value::as_str).unwrap_or_default();
    match (said, value.get("manifests")) {
        ("", Some(_)) => wire::INDEX.to_owned(),
        ("", None) => wire::MANIFEST.to_owned(),
        (said, _) => said.to_owned(),
    }
}

/// The ends of the tags by which tools attach something to a digest in registries that know no referrers.
const ATTACHED: [&str; 3] = ["sig", "att", "sbom"];

/// The most bytes that are copied of what belongs to one version.
const MOST_BYTES: u64 = 64 << 20;

/// The most manifests of that.
const MOST_MANIFESTS: usize = 256;

/// How deep what belongs to something has something of its own: a signature of an attestation of an artifact.
const DEEPEST: usize = 3;

impl Writer {
    /// Copies what belongs to these digests, each of which is a manifest that was copied from `source`.
    fn copy_attached(
        &self,
        source: &RegistryRepository<'_>,
        digests: Vec<String>,
    ) -> Result<(), ProviderError> {
        let mut open: Vec<(String, usize)> =
            digests.into_iter().map(|digest| (digest, 0)).collect();
        let mut seen = BTreeSet::new();
        let mut left = Left { bytes: MOST_BYTES, manifests: MOST_MANIFESTS };
        while let Some((subject, depth)) = open.pop() {
            if depth >= DEEPEST || !seen.insert(subject.clone()) {
                continue;
            }
            let mut copied = Vec::new();
            for end in ATTACHED {
                let tag = format!("{}.{end}", subject.replace(':', "-"));
                if let Some(bytes) = source.manifest(&tag)? {
                    left.take(source, &tag, &bytes)?;
                    self.manifest_as_it_is(source, &tag, &bytes, true, &mut copied)?;
                }
            }
            let mut unlisted = Vec::new();
            for entry in source.referrers_of(&subject)? {
                // A list may name what is gone.
                let Some(bytes) = source.manifest(&entry.digest)? else { continue };
                left.take(source, &entry.digest, &bytes)?;
                let put =
                    self.manifest_as_it_is(source, &entry.digest, &bytes, true, &mut copied)?;
                if !put.keeps_subject {
                    unlisted.push(entry);
                }
            }
            list_beside(self, &subject, unlisted)?;
            open.extend(copied.into_iter().map(|digest| (digest, depth + 1)));
        }
        Ok(())
    }
}

/// Adds entries to the list of referrers of `subject`, in a registry that does not maintain it.
fn list_beside(
    writer: &Writer,
    subject: &str,
    entries: Vec<Descriptor>,
) -> Result<(), ProviderError> {
    if entries.is_empty() {
        return Ok(());
    }
    let tag = subject.replace(':', "-");
    let known = writer.repository.manifest(&tag)?;
    let mut index = known.and_then(|bytes| Index::parse(&bytes)).unwrap_or_default();
    let before = index.manifests.len();
    for entry in entries {
        if !index.manifests.iter().any(|known| known.digest == entry.digest) {
            index.manifests.push(entry);
        }
    }
    if index.manifests.len() > before {
        writer.put(wire::INDEX, &tag, index.to_bytes())?;
    }
    Ok(())
}

/// How much more may be copied.
struct Left {
    bytes: u64,
    manifests: usize,
}

impl Left {
    /// Counts a manifest and what it names.
    fn take(
        &mut self,
        source: &RegistryRepository<'_>,
        reference: &str,
        bytes: &[u8],
    ) -> Result<(), ProviderError> {
        let manifest: ImageManifest = serde_json::from_slice(bytes).unwrap_or_default();
        let blobs = manifest.config.iter().chain(&manifest.layers).map(|blob| blob.size);
        let size = blobs.fold(bytes.len() as u64, u64::saturating_add);
        let left = self.bytes.checked_sub(size).zip(self.manifests.checked_sub(1));
        let Some((bytes, manifests)) = left else {
            let place = source.place(&format!("manifests/{reference}"));
            let text = format!(
                "`{place}` is not copied: what belongs to a version may have {MOST_MANIFESTS} manifests and {} MiB",
                MOST_BYTES >> 20
            );
            return Err(ProviderError::new(ErrorKind::Refused, text));
        };
        (self.bytes, self.manifests) = (bytes, manifests);
        Ok(())
    }
}
