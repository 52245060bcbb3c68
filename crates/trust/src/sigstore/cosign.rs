//! Reads signatures of cosign 2: a simple signing payload as a layer, and its annotations.

use serde::Deserialize;

use super::log::LogEntry;
use super::{Signature, content, other_digest};
use crate::evidence::decode_base64;
use crate::key::{Certificate, lower_hex, pem};
use crate::{Cosign, Refusal, Subject};

/// What `critical.type` may be: cosign's own, and what cosign 3 signs in the old form.
const TYPES: [&str; 2] =
    ["cosign container image signature", "https://sigstore.dev/cosign/sign/v1"];

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

/// The identity that it also has is where the image was, which a mirror changes.
#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Image {
    docker_manifest_digest: String,
}

/// Reads the signature, whose payload must be about the subject.
pub(crate) fn read(cosign: &Cosign, subject: &Subject<'_>) -> Result<Signature, Refusal> {
    let signature = decode_base64("signature", &cosign.signature)?;
    let sha256 = content(subject)?;
    let payload: Payload = serde_json::from_slice(&cosign.payload)
        .map_err(|error| Refusal::cannot_read("payload", error))?;
    let Critical { image, kind } = payload.critical;
    if !TYPES.contains(&kind.as_str()) {
        return Err(Refusal::UnknownKind { kind });
    }
    if image.docker_manifest_digest != format!("sha256:{}", lower_hex(&sha256)) {
        return Err(other_digest(&image.docker_manifest_digest, sha256));
    }
    let certificate = cosign.certificate.as_deref().map(certificate).transpose()?;
    let token = cosign.timestamp.as_deref().map(token).transpose()?;
    let entry = cosign.rekor.as_deref().map(entry).transpose()?;
    Ok(Signature {
        message: cosign.payload.clone(),
        signature,
        hint: None,
        payload: None,
        certificate,
        tokens: token.into_iter().collect(),
        entries: entry.into_iter().collect(),
        takes_promises: true,
    })
}

fn certificate(text: &str) -> Result<Certificate, Refusal> {
    let blocks = pem(text, "CERTIFICATE").unwrap_or_default();
    let [leaf] = blocks.as_slice() else {
        return Err(Refusal::cannot_read("certificate", "it is not one block of PEM"));
    };
    Certificate::read(leaf).map_err(|error| Refusal::cannot_read("certificate", error))
}

/// What `dev.sigstore.cosign/rfc3161timestamp` holds.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Timestamp {
    #[serde(rename = "SignedRFC3161Timestamp")]
    signed: String,
}

fn token(json: &str) -> Result<Vec<u8>, Refusal> {
    let timestamp: Timestamp =
        serde_json::from_str(json).map_err(|error| Refusal::cannot_read("timestamp", error))?;
    decode_base64("timestamp", &timestamp.signed)
}

/// What `dev.sigstore.cosign/bundle` holds: an entry of Rekor, and its promise.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Promise {
    signed_entry_timestamp: String,
    payload: PromisedEntry,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromisedEntry {
    body: String,
    integrated_time: i64,
    log_index: u64,
    #[serde(rename = "logID")]
    log_id: String,
}

fn entry(json: &str) -> Result<LogEntry, Refusal> {
    let promise: Promise = serde_json::from_str(json)
        .map_err(|error| Refusal::cannot_read("entry of the log", error))?;
    let entry = promise.payload;
    // The log's id is in hexadecimal digits here.
    let digits = |at: usize| entry.log_id.get(at..at + 2);
    let id = (0..entry.log_id.len()).step_by(2).map(digits);
    let id = id.map(|byte| u8::from_str_radix(byte?, 16).ok()).collect::<Option<Vec<u8>>>();
    Ok(LogEntry {
        log_index: entry.log_index,
        log_id: id.ok_or_else(|| Refusal::cannot_read("entry of the log", "it has no log"))?,
        integrated_time: Some(entry.integrated_time),
        promise: Some(decode_base64("entry of the log", &promise.signed_entry_timestamp)?),
        proof: None,
        body: decode_base64("entry of the log", &entry.body)?,
        stated: None,
    })
}
