//! What vouches for a version in a registry: signatures at the tag `sha256-HEX.sig`, as cosign 2 puts them there, and referrers that
//! are bundles or files of evidence; and the statement beside a chart, which Helm puts into a layer of the same manifest.
//!
//! All is about one digest, that of what the version's tag led to. Three places are asked at once, and then what they name; a registry
//! that cannot be asked is an error, because it may have what was looked for. Nothing is verified here but that content has its digest.

use std::collections::BTreeSet;

use mu_provider::threads::all_at_once;
use mu_provider::{
    EVIDENCE_TYPE, ErrorKind, EvidenceAbout, FoundEvidence, FoundPiece, ProviderError, Release,
    evidence_lines, none_if,
};
use mu_trust::{Cosign, Evidence, MOST_BYTES, MOST_PIECES};

use crate::OciProvider;
use crate::foreign::provenance_layer;
use crate::repository::RegistryRepository;
use crate::said::MOST_LOOKED_AT;
use crate::wire::{self, Descriptor, ImageManifest, Index, short};

/// The artifact type and media type of a sigstore bundle.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// Those of a file of evidence.
const LINES: &str = EVIDENCE_TYPE;

/// An answer to one of the questions that are asked at once.
enum Answer {
    Manifest(Option<Vec<u8>>),
    Referrers(Vec<Descriptor>),
}

/// A place that may have evidence.
enum Named {
    /// A layer of the manifest with signatures of cosign 2.
    Signature(Descriptor),
    /// A manifest that refers to the subject.
    Referrer(Descriptor),
    /// A layer beside the archive, with a statement about it that its own tool has signed, and the name of the archive there.
    Statement(Descriptor, String),
}

impl OciProvider {
    /// What vouches for a release in its repository.
    pub(crate) fn evidence_of(
        &self,
        repository: &RegistryRepository<'_>,
        release: &Release,
    ) -> Result<FoundEvidence, ProviderError> {
        let subject = match &release.manifest {
            Some(digest) if wire::is_digest(digest) => digest.clone(),
            // An entry of a lock that an older mu wrote: its tag is asked.
            _ => self.manifest_content(repository, release)?.0.digest.clone(),
        };
        let found = self.evidence_about(repository, release, subject)?;
        if !found.manifests.is_empty() {
            return Ok(found);
        }
        // It is not here. What came by way of a hub was pushed anew, and brings lines about what it was before.
        let copy = none_if(self.manifest_content(repository, release), ErrorKind::NotFound)?;
        let copy = copy.map(|(said, _)| said.digest.clone());
        match copy.filter(|digest| *digest != found.subject) {
            Some(digest) => {
                let copy = self.evidence_about(repository, release, digest)?;
                let looked_at = [found.looked_at, copy.looked_at].concat();
                Ok(FoundEvidence { looked_at, ..copy })
            }
            None => Ok(found),
        }
    }

    /// The bytes of the archive of a release; `None` if it is not here.
    fn archive_bytes(
        &self,
        repository: &RegistryRepository<'_>,
        release: &Release,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        let Some(archive) = &release.archive else { return Ok(None) };
        let bytes = repository.registry.by_scheme(|scheme| {
            let place = repository.blob_at(scheme, archive)?;
            self.archives.layer_bytes(&place, release, repository.progress)
        });
        none_if(bytes, ErrorKind::NotFound)
    }

    /// What vouches for the manifest, or index, with this digest.
    fn evidence_about(
        &self,
        repository: &RegistryRepository<'_>,
        release: &Release,
        subject: String,
    ) -> Result<FoundEvidence, ProviderError> {
        let tag = subject.replace(':', "-");
        let signatures = format!("{tag}.sig");
        // The subject itself is no piece of evidence, but what leads from it to the archive.
        let ask = |question: usize| match question {
            0 => repository.manifest(&subject).map(Answer::Manifest),
            1 => repository.manifest(&signatures).map(Answer::Manifest),
            2 => repository.manifest(&tag).map(Answer::Manifest),
            _ => repository.referrers_or_error(&subject).map(Answer::Referrers),
        };
        let (mut bytes, mut named, mut seen) = (None, Vec::new(), BTreeSet::new());
        let answers = all_at_once((0..4).collect(), ask);
        for (question, answer) in answers.into_iter().enumerate() {
            let referrers = match (question, answer?) {
                (0, Answer::Manifest(found)) => {
                    bytes = found;
                    continue;
                }
                (1, Answer::Manifest(found)) => {
                    let manifest = found.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                    let layers = manifest.map(|manifest: ImageManifest| manifest.layers);
                    let layers = layers.unwrap_or_default().into_iter();
                    let is_one = |layer: &Descriptor| layer.media_type == Cosign::MEDIA_TYPE;
                    named.extend(layers.filter(is_one).map(Named::Signature));
                    continue;
                }
                (_, Answer::Manifest(found)) => {
                    let index = found.and_then(|bytes| Index::parse(&bytes));
                    index.map(|index| index.manifests).unwrap_or_default()
                }
                (_, Answer::Referrers(found)) => found,
            };
            // Clients that keep the list themselves may leave out of what type a referrer is.
            let may_be_one = |one: &Descriptor| {
                one.artifact_type.as_deref().is_none_or(|kind| [BUNDLE, LINES].contains(&kind))
            };
            let referrers = referrers.into_iter().filter(may_be_one);
            named.extend(
                referrers.filter(|one| seen.insert(one.digest.clone())).map(Named::Referrer),
            );
        }
        // Without the subject, nothing leads to an archive, whoever has signed it.
        let archive = release.archive.as_deref();
        let leading = bytes.map(|bytes| repository.leading_to(bytes, archive)).transpose()?;
        let manifests = leading.unwrap_or_default();
        let last = manifests.last().and_then(|bytes| serde_json::from_slice(bytes).ok());
        let last: Vec<_> = last.into_iter().map(|manifest| (subject.clone(), manifest)).collect();
        if let Some(layer) = provenance_layer(&last, archive) {
            let leaf = repository.name.rsplit('/').next().unwrap_or_default();
            let name = format!("{leaf}-{}.tgz", release.version);
            named.insert(0, Named::Statement(layer.clone(), name));
        }
        named.truncate(MOST_PIECES);
        let about = EvidenceAbout { name: &repository.name, release };
        let pieces = all_at_once(named, |named| repository.pieces(named, &signatures, about));
        let mut all = Vec::new();
        for found in pieces {
            all.extend(found?);
        }
        all.truncate(MOST_PIECES);
        let looked_at = vec![signatures, format!("the referrers of {subject}")];
        let found = FoundEvidence { subject, manifests, pieces: all, ..FoundEvidence::default() };
        let mut found = FoundEvidence { looked_at, ..found };
        // A copy of an archive by URL has what its author signed, which was over its bytes.
        if found.needs_content() {
            found.content = self.archive_bytes(repository, release)?;
        }
        Ok(found)
    }
}

impl RegistryRepository<'_> {
    /// The manifests that lead from the one with these bytes to the archive, as far as they are here.
    fn leading_to(
        &self,
        bytes: Vec<u8>,
        archive: Option<&str>,
    ) -> Result<Vec<Vec<u8>>, ProviderError> {
        let Some(index) = Index::parse(&bytes) else { return Ok(vec![bytes]) };
        let has_it = |bytes: &[u8]| {
            let manifest: Option<ImageManifest> = serde_json::from_slice(bytes).ok();
            let layers = manifest.map(|manifest| manifest.layers).unwrap_or_default();
            layers.iter().any(|layer| Some(&*layer.digest) == archive)
        };
        for entry in wire::candidates(&index.manifests).into_iter().take(MOST_LOOKED_AT) {
            if let Some(found) = self.manifest(&entry.digest)?.filter(|bytes| has_it(bytes)) {
                return Ok(vec![bytes, found]);
            }
        }
        Ok(vec![bytes])
    }

    /// The pieces of evidence that are at a place. What cannot be read there is said, and hides no other piece.
    fn pieces(
        &self,
        named: Named,
        signatures: &str,
        about: EvidenceAbout<'_>,
    ) -> Result<Vec<FoundPiece>, ProviderError> {
        let piece = |place: &str, evidence| FoundPiece {
            place: place.to_owned(),
            evidence,
            manifests: Vec::new(),
            archive: None,
        };
        match named {
            Named::Statement(layer, name) => {
                let bytes = self.small_blob(&layer)?;
                let text = bytes.and_then(|bytes| {
                    String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())
                });
                let found = piece(&layer.digest, text.map(Evidence::Prov));
                Ok(vec![FoundPiece { archive: Some(name), ..found }])
            }
            Named::Signature(layer) => {
                let evidence = self.small_blob(&layer)?.and_then(|payload| {
                    let cosign = Cosign::from_layer(payload, |key| layer.annotation(key));
                    let cosign = cosign.ok_or("a layer of it has no signature".to_owned())?;
                    Ok(Evidence::Cosign(cosign))
                });
                Ok(vec![piece(signatures, evidence)])
            }
            Named::Referrer(entry) => {
                // Its layers are the bundle, or a file of several pieces.
                let place = entry.digest.clone();
                if !wire::is_digest(&place) {
                    return Ok(Vec::new());
                }
                let manifest = match self.manifest(&place) {
                    Ok(Some(bytes)) => serde_json::from_slice::<ImageManifest>(&bytes).ok(),
                    Ok(None) => return Ok(vec![piece(&place, Err("it is gone".to_owned()))]),
                    Err(error) if is_about_content(&error) => {
                        return Ok(vec![piece(&place, Err(short(&error.to_string())))]);
                    }
                    Err(error) => return Err(error),
                };
                let layers = manifest.map(|manifest| manifest.layers).unwrap_or_default();
                let mut found = Vec::new();
                for layer in layers.iter().take(MOST_PIECES) {
                    match layer.media_type.as_str() {
                        BUNDLE => {
                            let bundle = self.small_blob(layer)?.map(Evidence::Bundle);
                            found.push(piece(&place, bundle));
                        }
                        LINES => match self.small_blob(layer)? {
                            Ok(bytes) => {
                                let text = String::from_utf8_lossy(&bytes);
                                let lines = evidence_lines(&text);
                                found
                                    .extend(FoundEvidence::from_lines(&place, lines, about).pieces);
                            }
                            Err(why) => found.push(piece(&place, Err(why))),
                        },
                        _ => {}
                    }
                }
                Ok(found)
            }
        }
    }

    /// A blob that may be a piece of evidence, or why it is none.
    fn small_blob(&self, layer: &Descriptor) -> Result<Result<Vec<u8>, String>, ProviderError> {
        match self.blob(layer, MOST_BYTES as u64) {
            Ok(bytes) => Ok(Ok(bytes)),
            Err(error) if is_about_content(&error) => Ok(Err(short(&error.to_string()))),
            Err(error) => Err(error),
        }
    }
}

/// Whether an error says what a registry has, and not that it could not be asked.
fn is_about_content(error: &ProviderError) -> bool {
    matches!(error.kind(), ErrorKind::Integrity | ErrorKind::NotFound | ErrorKind::Refused)
}
