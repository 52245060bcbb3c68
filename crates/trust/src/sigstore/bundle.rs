//! Reads sigstore bundles, version 0.1 to 0.3: a signature over bytes, or over a statement in a DSSE envelope.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Signature, content, other_digest};
use crate::evidence::decode;
use crate::key::hex;
use crate::{Refusal, Subject};

/// The media types of the versions that are known.
const MEDIA_TYPES: [&str; 4] = [
    "application/vnd.dev.sigstore.bundle+json;version=0.1",
    "application/vnd.dev.sigstore.bundle+json;version=0.2",
    "application/vnd.dev.sigstore.bundle+json;version=0.3",
    "application/vnd.dev.sigstore.bundle.v0.3+json",
];

/// What is inside of an envelope.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The versions of in-toto's statement.
const STATEMENTS: [&str; 2] =
    ["https://in-toto.io/Statement/v0.1", "https://in-toto.io/Statement/v1"];

/// The predicates that vouch for their subject. A scan or an SBOM only speaks about it.
const PREDICATES: [&str; 4] = [
    "https://sigstore.dev/cosign/sign/v1",
    "https://slsa.dev/provenance/v0.2",
    "https://slsa.dev/provenance/v1",
    "https://in-toto.io/attestation/release/v0.1",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBundle {
    media_type: String,
    #[serde(default)]
    verification_material: Material,
    message_signature: Option<MessageSignature>,
    dsse_envelope: Option<Envelope>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Material {
    public_key: Option<PublicKeyHint>,
}

#[derive(Deserialize)]
struct PublicKeyHint {
    #[serde(default)]
    hint: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageSignature {
    message_digest: Option<MessageDigest>,
    signature: String,
}

#[derive(Deserialize)]
struct MessageDigest {
    algorithm: String,
    digest: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    #[serde(default)]
    subject: Vec<StatementSubject>,
    #[serde(default)]
    predicate_type: String,
}

#[derive(Deserialize)]
struct StatementSubject {
    #[serde(default)]
    digest: SubjectDigest,
}

#[derive(Default, Deserialize)]
struct SubjectDigest {
    sha256: Option<String>,
}

/// Reads the bundle, whose content must be about the subject.
pub(crate) fn read(json: &[u8], subject: &Subject<'_>) -> Result<Signature, Refusal> {
    let bundle: WireBundle =
        serde_json::from_slice(json).map_err(|error| Refusal::unreadable("bundle", error))?;
    if !MEDIA_TYPES.contains(&bundle.media_type.as_str()) {
        return Err(Refusal::UnknownKind { kind: bundle.media_type });
    }
    let hint = bundle.verification_material.public_key.map(|key| key.hint);
    match (bundle.message_signature, bundle.dsse_envelope) {
        (Some(signed), None) => {
            let signature = decode("signature", &signed.signature)?;
            Ok(Signature { message: signed.message(subject)?, signature, hint })
        }
        (None, Some(envelope)) => {
            let [signature] = envelope.signatures.as_slice() else {
                return Err(Refusal::unreadable("bundle", "its envelope has not one signature"));
            };
            let signature = decode("signature", &signature.sig)?;
            Ok(Signature { message: envelope.message(subject)?, signature, hint })
        }
        _ => Err(Refusal::unreadable("bundle", "it has not one kind of content")),
    }
}

impl MessageSignature {
    /// The bytes under the signature, which are the subject's.
    fn message(&self, subject: &Subject<'_>) -> Result<Vec<u8>, Refusal> {
        let sha256 = content(subject)?;
        if let Some(stated) = &self.message_digest {
            if stated.algorithm != "SHA2_256" {
                return Err(Refusal::UnknownKind { kind: stated.algorithm.clone() });
            }
            let digest = decode("digest", &stated.digest)?;
            if digest != sha256 {
                return Err(other_digest(&format!("sha256:{}", hex(&digest)), sha256));
            }
        }
        let Subject::Content { bytes: Some(bytes), .. } = subject else {
            return Err(Refusal::BytesNeeded);
        };
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        if digest != sha256 {
            return Err(other_digest(&format!("sha256:{}", hex(&digest)), sha256));
        }
        Ok(bytes.to_vec())
    }
}

impl Envelope {
    /// The bytes under the signature, which say what the payload is; its statement must name the subject.
    fn message(&self, subject: &Subject<'_>) -> Result<Vec<u8>, Refusal> {
        let payload = decode("payload", &self.payload)?;
        let sha256 = content(subject)?;
        if self.payload_type != PAYLOAD_TYPE {
            return Err(Refusal::UnknownKind { kind: self.payload_type.clone() });
        }
        let statement: Statement = serde_json::from_slice(&payload)
            .map_err(|error| Refusal::unreadable("statement", error))?;
        if !STATEMENTS.contains(&statement.kind.as_str()) {
            return Err(Refusal::UnknownKind { kind: statement.kind });
        }
        if !PREDICATES.contains(&statement.predicate_type.as_str()) {
            return Err(Refusal::UnknownKind { kind: statement.predicate_type });
        }
        let wanted = hex(&sha256);
        let mut digests = statement.subject.iter().filter_map(|one| one.digest.sha256.as_deref());
        if !digests.clone().any(|digest| digest == wanted) {
            let found = digests.next().unwrap_or("nothing with a sha256");
            return Err(other_digest(found, sha256));
        }
        // DSSE's pre-authentication encoding.
        let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
        Ok([head.as_bytes(), &payload].concat())
    }
}
