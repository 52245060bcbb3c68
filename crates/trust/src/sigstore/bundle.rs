//! Reads sigstore bundles, version 0.1 to 0.3: a signature over bytes, or over a statement in a DSSE envelope.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::log::{InclusionProof, LogEntry};
use super::{Signature, content, other_digest};
use crate::evidence::decode_base64;
use crate::key::{Certificate, MOST_CERTIFICATES, lower_hex};
use crate::{MOST_PIECES, Refusal, Subject};

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
    /// Before version 0.3.
    x509_certificate_chain: Option<Chain>,
    certificate: Option<RawBytes>,
    tlog_entries: Option<Vec<WireEntry>>,
    timestamp_verification_data: Option<Timestamps>,
}

#[derive(Deserialize)]
struct Chain {
    certificates: Vec<RawBytes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBytes {
    raw_bytes: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timestamps {
    rfc3161_timestamps: Option<Vec<SignedTimestamp>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignedTimestamp {
    signed_timestamp: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEntry {
    log_index: Number,
    log_id: LogId,
    kind_version: Option<KindVersion>,
    integrated_time: Option<Number>,
    inclusion_promise: Option<Promise>,
    inclusion_proof: Option<WireProof>,
    canonicalized_body: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogId {
    key_id: String,
}

#[derive(Deserialize)]
struct KindVersion {
    kind: String,
    version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Promise {
    signed_entry_timestamp: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireProof {
    #[serde(default)]
    log_index: Number,
    root_hash: String,
    tree_size: Number,
    #[serde(default)]
    hashes: Vec<String>,
    checkpoint: Option<WireCheckpoint>,
}

#[derive(Deserialize)]
struct WireCheckpoint {
    envelope: String,
}

/// A number of 64 bits, which protobuf writes as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Bare(u64),
}

impl Default for Number {
    fn default() -> Self {
        Self::Bare(0)
    }
}

impl Number {
    fn value(&self) -> Result<u64, Refusal> {
        match self {
            Self::Bare(value) => Ok(*value),
            Self::Text(text) => text.parse().map_err(|_| {
                Refusal::cannot_read("bundle", format!("`{text}` is not a number from 0 up"))
            }),
        }
    }
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
        serde_json::from_slice(json).map_err(|error| Refusal::cannot_read("bundle", error))?;
    let version = MEDIA_TYPES.iter().position(|known| *known == bundle.media_type);
    let Some(version) = version else {
        return Err(Refusal::UnknownKind { kind: bundle.media_type });
    };
    let material = &bundle.verification_material;
    let (signature, message, payload) = match (&bundle.message_signature, &bundle.dsse_envelope) {
        (Some(signed), None) => (&signed.signature, signed.message(subject)?, None),
        (None, Some(envelope)) => {
            let [signature] = envelope.signatures.as_slice() else {
                return Err(Refusal::cannot_read("bundle", "its envelope has not one signature"));
            };
            let (message, payload) = envelope.message(subject)?;
            (&signature.sig, message, Some(payload))
        }
        _ => return Err(Refusal::cannot_read("bundle", "it has not one kind of content")),
    };
    Ok(Signature {
        message,
        signature: decode_base64("signature", signature)?,
        hint: material.public_key.as_ref().map(|key| key.hint.clone()),
        payload,
        certificate: material.certificate()?,
        tokens: material.tokens()?,
        entries: material.entries()?,
        takes_promises: version == 0,
    })
}

impl Material {
    /// The certificate of the signer; of a chain the first one, because the rest is the root's to say.
    fn certificate(&self) -> Result<Option<Certificate>, Refusal> {
        let unreadable = |why: &str| Refusal::cannot_read("certificate", why);
        let kinds = [
            self.public_key.is_some(),
            self.certificate.is_some(),
            self.x509_certificate_chain.is_some(),
        ];
        if kinds.iter().filter(|is_there| **is_there).count() != 1 {
            return Err(Refusal::cannot_read("bundle", "it has not one key or certificate"));
        }
        let chain = self.x509_certificate_chain.as_ref().map(|chain| &chain.certificates);
        let chain = chain.map(|chain| chain.iter()).into_iter().flatten().chain(&self.certificate);
        let read = |raw: &RawBytes| {
            let der = decode_base64("certificate", &raw.raw_bytes)?;
            Certificate::read(&der).map_err(|error| Refusal::cannot_read("certificate", error))
        };
        let chain = chain.take(MOST_CERTIFICATES).map(read).collect::<Result<Vec<_>, _>>()?;
        // One that is its own issuer would ask to be trusted.
        if chain.iter().skip(1).any(|certificate| certificate.subject == certificate.issuer) {
            return Err(unreadable("its chain has a root"));
        }
        let is_missing = self.public_key.is_none() && chain.is_empty();
        if is_missing {
            Err(unreadable("its chain is empty"))
        } else {
            Ok(chain.into_iter().next())
        }
    }

    fn tokens(&self) -> Result<Vec<Vec<u8>>, Refusal> {
        let tokens = self.timestamp_verification_data.as_ref();
        let tokens = tokens.and_then(|data| data.rfc3161_timestamps.as_deref()).unwrap_or_default();
        if tokens.len() > MOST_PIECES {
            return Err(Refusal::cannot_read("bundle", "it has too many timestamps"));
        }
        tokens.iter().map(|token| decode_base64("timestamp", &token.signed_timestamp)).collect()
    }

    fn entries(&self) -> Result<Vec<LogEntry>, Refusal> {
        let entries = self.tlog_entries.as_deref().unwrap_or_default();
        if entries.len() > MOST_PIECES {
            return Err(Refusal::cannot_read("bundle", "it has too many entries of logs"));
        }
        entries.iter().map(WireEntry::entry).collect()
    }
}

impl WireEntry {
    fn entry(&self) -> Result<LogEntry, Refusal> {
        let time = self.integrated_time.as_ref().map(Number::value).transpose()?;
        let time = time.and_then(|time| i64::try_from(time).ok());
        let promise = self.inclusion_promise.as_ref();
        let promise =
            promise.map(|promise| decode_base64("promise", &promise.signed_entry_timestamp));
        let stated = self.kind_version.as_ref();
        Ok(LogEntry {
            log_index: self.log_index.value()?,
            log_id: decode_base64("keyId", &self.log_id.key_id)?,
            // Protobuf writes what is not there as 0.
            integrated_time: time.filter(|time| *time != 0),
            promise: promise.transpose()?,
            proof: self.inclusion_proof.as_ref().map(WireProof::proof).transpose()?,
            body: decode_base64("canonicalizedBody", &self.canonicalized_body)?,
            stated: stated.map(|stated| (stated.kind.clone(), stated.version.clone())),
        })
    }
}

impl WireProof {
    fn proof(&self) -> Result<InclusionProof, Refusal> {
        let hashes = self.hashes.iter().map(|hash| decode_base64("hashes", hash));
        let checkpoint = self.checkpoint.as_ref();
        Ok(InclusionProof {
            index: self.log_index.value()?,
            size: self.tree_size.value()?,
            root: decode_base64("rootHash", &self.root_hash)?,
            hashes: hashes.collect::<Result<_, _>>()?,
            checkpoint: checkpoint.map(|note| note.envelope.clone()).unwrap_or_default(),
        })
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
            let digest = decode_base64("digest", &stated.digest)?;
            if digest != sha256 {
                return Err(other_digest(&format!("sha256:{}", lower_hex(&digest)), sha256));
            }
        }
        let Subject::Content { bytes: Some(bytes), .. } = subject else {
            return Err(Refusal::BytesNeeded);
        };
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        if digest != sha256 {
            return Err(other_digest(&format!("sha256:{}", lower_hex(&digest)), sha256));
        }
        Ok(bytes.to_vec())
    }
}

impl Envelope {
    /// The bytes under the signature, which say what the payload is, and the payload, whose statement must name the subject.
    fn message(&self, subject: &Subject<'_>) -> Result<(Vec<u8>, Vec<u8>), Refusal> {
        let payload = decode_base64("payload", &self.payload)?;
        let sha256 = content(subject)?;
        if self.payload_type != PAYLOAD_TYPE {
            return Err(Refusal::UnknownKind { kind: self.payload_type.clone() });
        }
        let statement: Statement = serde_json::from_slice(&payload)
            .map_err(|error| Refusal::cannot_read("statement", error))?;
        if !STATEMENTS.contains(&statement.kind.as_str()) {
            return Err(Refusal::UnknownKind { kind: statement.kind });
        }
        if !PREDICATES.contains(&statement.predicate_type.as_str()) {
            return Err(Refusal::UnknownKind { kind: statement.predicate_type });
        }
        let wanted = lower_hex(&sha256);
        let mut digests = statement.subject.iter().filter_map(|one| one.digest.sha256.as_deref());
        if !digests.clone().any(|digest| digest == wanted) {
            let found = digests.next().unwrap_or("nothing with a sha256");
            return Err(other_digest(found, sha256));
        }
        // DSSE's pre-authentication encoding.
        let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
        Ok(([head.as_bytes(), &payload].concat(), payload))
    }
}
