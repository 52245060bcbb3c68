//! Copies what belongs to an artifact: signatures, attestations and lists of contents, which tools attach to its digest after it
//! was pushed, as referrers or by tags that name the digest. What they say is not looked at here.

use std::collections::BTreeSet;

use mu_provider::{ErrorKind, ProviderError};

use super::Writer;
use crate::repository::RegistryRepository;
use crate::wire::{self, Descriptor, ImageManifest, Index};

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
    pub(super) fn copy_attached(
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
