//! Pushes blobs and manifests, and reports why a registry refuses them.

use mu_provider::http::{Method, TOO_LARGE, check_lead};
use mu_provider::{ErrorKind, ProviderError, SafeUrl, Silent};
use serde_json::Value;

use super::{REPETITIONS, Writer};
use crate::registry::{Call, RegistryAnswer, To, shown};
use crate::wire::{self, Descriptor, EMPTY_BYTES, ImageManifest, ROOT, ROOT_DIGEST};

/// Statuses whose answers give a reason.
const REASONED: [u16; 7] = [400, 403, 405, 409, 413, 415, 422];

/// The longest answer to a push, in bytes.
const LONGEST_ANSWER: u64 = 1 << 20;

impl Writer {
    /// Pushes a manifest with its content, its subject, and its entry in the index.
    pub(super) fn manifest(
        &self,
        manifest: &ImageManifest,
        tag: &str,
        blob: Option<&[u8]>,
    ) -> Result<(), ProviderError> {
        let bytes = manifest.to_bytes();
        let own = manifest.index_entry(&bytes);
        let mut attempt = 0;
        let answer = loop {
            match self.push(manifest, tag, blob, attempt > 0) {
                // If several clients push the same blob at once, some registries lose it for a moment.
                Err(error) if error.kind() == ErrorKind::Protocol && attempt < REPETITIONS => {
                    attempt += 1;
                    self.pause(&own, attempt);
                }
                result => break result?,
            }
        };
        match answer.keeps_subject {
            true => {
                self.repository.registry.note_referrers();
                Ok(())
            }
            false => self.list(&own),
        }
    }

    fn push(
        &self,
        manifest: &ImageManifest,
        tag: &str,
        blob: Option<&[u8]>,
        again: bool,
    ) -> Result<RegistryAnswer, ProviderError> {
        if let (Some(layer), Some(blob)) = (manifest.layers.first(), blob) {
            self.blob(layer, blob, again)?;
        }
        self.blob(&Descriptor::empty(), EMPTY_BYTES, again)?;
        if again || self.repository.manifest(ROOT_DIGEST)?.is_none() {
            self.put(wire::MANIFEST, ROOT_DIGEST, ROOT.as_bytes().to_vec())?;
        }
        self.put(wire::MANIFEST, tag, manifest.to_bytes())
    }

    /// Pushes a blob, unless it is there, or must be pushed `again`.
    pub(super) fn blob(
        &self,
        what: &Descriptor,
        bytes: &[u8],
        again: bool,
    ) -> Result<(), ProviderError> {
        let registry = &self.repository.registry;
        if !again && self.has_blob(what)? {
            return Ok(());
        }
        let path = self.repository.path("blobs/uploads/");
        let call = self.pushes(Method::POST);
        let answer = registry.ask(To::Path(&path), &call, &Silent)?;
        let location = answer.location.as_deref().filter(|_| answer.status == 202);
        let Some(location) = location else { return Err(self.refused(&answer)) };
        let url = upload(&answer.url, location, &what.digest)?;
        let mut call = self.pushes(Method::PUT).header("content-type", "application/octet-stream");
        call.body = bytes.to_vec();
        let answer = registry.ask(To::Url(&url), &call, &Silent)?;
        match answer.status {
            200..300 => Ok(()),
            _ => Err(self.refused(&answer)),
        }
    }

    /// Whether the repository has a blob.
    pub(super) fn has_blob(&self, what: &Descriptor) -> Result<bool, ProviderError> {
        let path = self.repository.path(&format!("blobs/{}", what.digest));
        let guard = self.repository.guard.clone();
        let call = Call { method: Method::HEAD, ..Call::get(u64::MAX, guard) };
        Ok(self.repository.registry.ask(To::Path(&path), &call, &Silent)?.status == 200)
    }

    pub(super) fn put(
        &self,
        media_type: &str,
        reference: &str,
        bytes: Vec<u8>,
    ) -> Result<RegistryAnswer, ProviderError> {
        let answer = self.try_put(media_type, reference, bytes)?;
        match answer.status {
            200..300 => Ok(answer),
            _ => Err(self.refused(&answer)),
        }
    }

    pub(super) fn try_put(
        &self,
        media_type: &str,
        reference: &str,
        bytes: Vec<u8>,
    ) -> Result<RegistryAnswer, ProviderError> {
        let path = self.repository.path(&format!("manifests/{reference}"));
        let mut call = self.pushes(Method::PUT).header("content-type", media_type);
        call.body = bytes;
        self.repository.registry.ask(To::Path(&path), &call, &Silent)
    }

    fn pushes(&self, method: Method) -> Call {
        let guard = self.repository.guard.clone();
        Call { method, allow: REASONED.to_vec(), ..Call::get(LONGEST_ANSWER, guard) }
    }

    /// The error for an answer, with the registry's reason.
    pub(super) fn refused(&self, answer: &RegistryAnswer) -> ProviderError {
        let said: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
        let errors = said.get("errors").and_then(Value::as_array).cloned().unwrap_or_default();
        let reasons = errors.iter().filter_map(|error| {
            let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
            let reason = format!("{} {}", text("code"), text("message"));
            let words: Vec<&str> = reason.split_whitespace().take(40).collect();
            (!words.is_empty()).then(|| words.join(" "))
        });
        let reasons: Vec<String> = reasons.take(3).collect();
        let kind = if answer.status == 403 { ErrorKind::Auth } else { ErrorKind::Protocol };
        let text = format!("`{}` answered {}", shown(&answer.url), answer.status);
        let error = ProviderError::new(kind, text);
        let error = match reasons.is_empty() {
            true => error,
            false => error.because(reasons.join("; ")),
        };
        match answer.status {
            403 => {
                let host = &self.repository.registry.host;
                error.hint(format!("the token for `{host}` does not allow this"))
            }
            404 => error.hint("some registries want a repository to be created before it is used"),
            405 => error
                .hint("it takes no changes: a registry may be read-only, or a copy of another one"),
            413 => error.hint(TOO_LARGE),
            _ => error,
        }
    }
}

/// The URL for sending a blob, from the registry's answer: on the registry itself, or where it may lead.
fn upload(from: &SafeUrl, location: &str, digest: &str) -> Result<SafeUrl, ProviderError> {
    let broken = || {
        let text = format!("`{}` names a place for an upload that is not a valid URL", shown(from));
        ProviderError::new(ErrorKind::Protocol, text)
    };
    let mut url = from.join(location).map_err(|_| broken())?.as_url().clone();
    // A registry behind a proxy may not know its own URL.
    if url.host() == from.as_url().host() && url.scheme() == "http" && from.scheme() == "https" {
        url.set_scheme("https").map_err(|()| broken())?;
    }
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.query_pairs_mut().append_pair("digest", digest);
    let url = SafeUrl::from(url);
    check_lead(from, &url)?;
    Ok(url)
}
