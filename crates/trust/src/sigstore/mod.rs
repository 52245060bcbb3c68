//! Signatures as sigstore makes them, by a key or by an identity; [`read_cosign`] and `bundle` read the two forms that they come in. A
//! [`Signature`] is one as it was read, whichever form it came in; [`Signature::verdict`] verifies it.

mod bundle;
mod keyless;
mod log;
mod timestamp;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

use self::log::LogEntry;
use crate::evidence::decode_base64;
use crate::key::{self, Certificate, PublicKey};
use crate::signer::{Key, SignerKind, signer_names};
use crate::{Acceptance, Cosign, Refusal, Roots, Signed, SignedBy, Signer, Subject, Verdict};

pub(crate) use bundle::read as read_bundle;

impl Signature {
    /// Says what it is worth: by the signers' keys alone, or by the certificate that it brings.
    pub(crate) fn verdict(&self, signers: &[Signer], roots: &Roots) -> Verdict {
        let mut accepted = Vec::new();
        for signer in signers {
            let mut keys = public_keys(signer);
            if let Some(key) = keys.find(|key| key.verifies(&self.message, &self.signature)) {
                let identity = key.identity();
                accepted.push(Acceptance {
                    signer: signer.name().to_owned(),
                    identity,
                    time: None,
                });
            }
        }
        if let Some(Acceptance { identity, .. }) = accepted.first() {
            let by = SignedBy::Identity(identity.clone());
            return Verdict::accepted_by(accepted, Signed::by_whom(by, true));
        }
        if let Some(leaf) = &self.certificate {
            return self.judge_identity(leaf, signers, roots);
        }
        let hinted = |key: &&PublicKey| {
            self.hint.as_deref() == Some(BASE64.encode(key.spki_digest()).as_str())
        };
        if let Some(key) = signers.iter().flat_map(public_keys).find(hinted) {
            let by = SignedBy::Identity(key.identity());
            let refusal = Refusal::wrong(format!("it is not by {by}, whose it claims to be"));
            return Verdict::refused_of(Signed::by_whom(by, false), refusal);
        }
        let refusal = Refusal::NoneOfThese { signers: signer_names(signers) };
        Verdict::refused_of(Signed::by_whom(SignedBy::UnknownKey, false), refusal)
    }

    fn judge_identity(&self, leaf: &Certificate, signers: &[Signer], roots: &Roots) -> Verdict {
        let proven = match keyless::prove(self, leaf, roots) {
            Ok(proven) => proven,
            Err(refusal) => {
                let claimed = keyless::claims(leaf).map(|claims| claims.identity);
                let by = claimed.map_or(SignedBy::UnknownKey, SignedBy::Identity);
                return Verdict::refused_of(Signed::by_whom(by, false), refusal);
            }
        };
        let claims = proven.claims;
        let time = Some(proven.time);
        let accepted = signers.iter().filter(|signer| claims.is(signer)).map(|signer| Acceptance {
            signer: signer.name().to_owned(),
            identity: claims.identity.clone(),
            time,
        });
        let accepted: Vec<Acceptance> = accepted.collect();
        let signed = Signed {
            by: SignedBy::Identity(claims.identity.clone()),
            verifies: true,
            reference: claims.reference.clone(),
            time,
        };
        if accepted.is_empty() {
            let by = claims.claimed_by(signers);
            return Verdict::refused_of(
                signed,
                Refusal::SomeoneElse { by, signers: signer_names(signers) },
            );
        }
        Verdict::accepted_by(accepted, signed)
    }
}

fn public_keys(signer: &Signer) -> impl Iterator<Item = &PublicKey> {
    let keys = match &signer.kind {
        SignerKind::Keys(keys) => keys.as_slice(),
        SignerKind::Github(_) | SignerKind::Oidc(_) => &[],
    };
    keys.iter().filter_map(|key| match key {
        Key::Public(key) => Some(key),
        Key::Ssh(_) | Key::Pgp(_) => None,
    })
}

/// A signature with what proves whose it is, read but not verified.
pub(crate) struct Signature {
    /// The bytes that are signed, which are the subject or name it.
    message: Vec<u8>,
    /// The signature itself.
    signature: Vec<u8>,
    /// What a bundle says of the key.
    hint: Option<String>,
    /// What an envelope holds: some logs hash it, and not what is signed.
    payload: Option<Vec<u8>>,
    /// The certificate of an identity.
    certificate: Option<Certificate>,
    /// Tokens of RFC 3161.
    tokens: Vec<Vec<u8>>,
    /// Entries of transparency logs.
    entries: Vec<LogEntry>,
    /// Whether a log's promise is enough: the form is older than proofs.
    takes_promises: bool,
}

/// The digest of the content that a subject is.
fn content(subject: &Subject<'_>) -> Result<[u8; 32], Refusal> {
    match subject {
        Subject::Content { sha256, .. } => Ok(*sha256),
        Subject::Commit { .. } | Subject::Package { .. } => Err(Refusal::OtherSubject {
            why: "it is over a manifest or an archive, and neither was asked for".into(),
        }),
    }
}

fn other_digest(found: &str, wanted: [u8; 32]) -> Refusal {
    let why = format!("it is over `{found}`, not over sha256:{}", key::lower_hex(&wanted));
    Refusal::OtherSubject { why }
}

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

/// Reads a signature of cosign 2: a simple signing payload as a layer, and its annotations. The payload must be about the subject.
pub(crate) fn read_cosign(cosign: &Cosign, subject: &Subject<'_>) -> Result<Signature, Refusal> {
    let signature = decode_base64("signature", &cosign.signature)?;
    let sha256 = content(subject)?;
    let payload: Payload = serde_json::from_slice(&cosign.payload)
        .map_err(|error| Refusal::cannot_read("payload", error))?;
    let Critical { image, kind } = payload.critical;
    if !TYPES.contains(&kind.as_str()) {
        return Err(Refusal::UnknownKind { kind });
    }
    if image.docker_manifest_digest != format!("sha256:{}", key::lower_hex(&sha256)) {
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
    let blocks = key::pem(text, "CERTIFICATE").unwrap_or_default();
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
