//! Entries of a transparency log: Rekor's promise of one, the proof that it is in, and what it says of a signature.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use super::Signature;
use crate::Refusal;
use crate::key::{lower_hex, pem};
use crate::roots::{Log, Root};

/// The most hashes in a proof: a tree of 2^64 leaves has no more.
const MOST_HASHES: usize = 64;
/// The most signatures under a checkpoint.
const MOST_COSIGNATURES: usize = 64;

/// An entry, as a bundle or an annotation brings it.
pub(super) struct LogEntry {
    /// Its number over all trees of the log, which the promise signs.
    pub(super) log_index: u64,
    pub(super) log_id: Vec<u8>,
    /// When it was taken in, which counts only with a promise.
    pub(super) integrated_time: Option<i64>,
    /// Rekor's signed entry timestamp.
    pub(super) promise: Option<Vec<u8>>,
    pub(super) proof: Option<InclusionProof>,
    /// What was taken in, as JSON.
    pub(super) body: Vec<u8>,
    /// Kind and version that the bundle states of it.
    pub(super) stated: Option<(String, String)>,
}

/// The way of an entry up to a checkpoint.
pub(super) struct InclusionProof {
    pub(super) index: u64,
    pub(super) size: u64,
    pub(super) root: Vec<u8>,
    pub(super) hashes: Vec<Vec<u8>>,
    pub(super) checkpoint: String,
}

impl LogEntry {
    /// The log that it is in, if the root knows it.
    pub(super) fn log<'r>(&self, root: &'r Root) -> Result<&'r Log, Refusal> {
        let log = root.transparency_logs.iter().find(|log| log.id == self.log_id);
        log.ok_or_else(|| {
            let checkpoint = self.proof.as_ref().map(|proof| proof.checkpoint.as_str());
            let origin = checkpoint.and_then(|text| text.lines().next());
            let origin = origin.filter(|origin| is_name(origin)).map(str::to_owned);
            let what = origin.unwrap_or_else(|| format!("the log {}", lower_hex(&self.log_id)));
            Refusal::RootDoesNotKnow { what, root: Some(root.in_words()) }
        })
    }

    /// The time that the log promised; `None` if it did not.
    pub(super) fn promised_time(&self, log: &Log) -> Result<Option<i64>, Refusal> {
        let Some(promise) = &self.promise else { return Ok(None) };
        let time = self.integrated_time.ok_or_else(|| Refusal::wrong("the entry has no time"))?;
        // RFC 8785 of four members, whose values need no escapes.
        let signed = format!(
            r#"{{"body":"{}","integratedTime":{time},"logID":"{}","logIndex":{}}}"#,
            BASE64.encode(&self.body),
            lower_hex(&self.log_id),
            self.log_index
        );
        if !log.key.verifies(signed.as_bytes(), promise) {
            return Err(Refusal::wrong("the log's timestamp of the entry is not by the log"));
        }
        if !log.valid.contains(time) {
            return Err(Refusal::wrong("the log was not trusted when it took the entry in"));
        }
        Ok(Some(time))
    }

    /// Verifies that the entry is in the log, by a checkpoint that the log signed.
    pub(super) fn verify_inclusion(&self, log: &Log) -> Result<(), Refusal> {
        let proof = self
            .proof
            .as_ref()
            .ok_or_else(|| Refusal::wrong("the entry is not proven to be in the log"))?;
        let leaf = Sha256::new().chain_update([0]).chain_update(&self.body).finalize().into();
        if root_of(leaf, proof).is_none_or(|root| root[..] != proof.root) {
            return Err(Refusal::wrong("the proof of the entry leads to another root"));
        }
        let checkpoint = Checkpoint::read(&proof.checkpoint).ok_or_else(|| {
            Refusal::cannot_read("checkpoint", "it is not a signed note of a log")
        })?;
        if checkpoint.size != proof.size || checkpoint.root != proof.root {
            return Err(Refusal::wrong("the checkpoint is of another tree"));
        }
        if !checkpoint.is_signed_by(log) {
            return Err(Refusal::wrong("the checkpoint is not by the log"));
        }
        Ok(())
    }
}

/// The root that a proof leads to (RFC 9162, 2.1.3.2); `None` if it does not fit the tree.
fn root_of(leaf: [u8; 32], proof: &InclusionProof) -> Option<[u8; 32]> {
    if proof.index >= proof.size || proof.hashes.len() > MOST_HASHES {
        return None;
    }
    let (mut at, mut last) = (proof.index, proof.size - 1);
    let mut root = leaf;
    for hash in &proof.hashes {
        if last == 0 || hash.len() != 32 {
            return None;
        }
        let node = Sha256::new().chain_update([1]);
        if at & 1 == 1 || at == last {
            root = node.chain_update(hash).chain_update(root).finalize().into();
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            root = node.chain_update(root).chain_update(hash).finalize().into();
        }
        at >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(root)
}

/// A checkpoint (C2SP `tlog-checkpoint`), with the signatures under it.
struct Checkpoint<'a> {
    /// What is signed.
    text: &'a str,
    size: u64,
    root: Vec<u8>,
    /// The first bytes of the key's id, and the signature.
    signatures: Vec<([u8; 4], Vec<u8>)>,
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|character| character.is_ascii_graphic() || character == ' ')
}

impl<'a> Checkpoint<'a> {
    fn read(note: &'a str) -> Option<Self> {
        let (text, signatures) = note.split_once("\n\n")?;
        let text = note.get(..text.len() + 1)?;
        let mut lines = text.lines();
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        let is_number = size.bytes().all(|byte| byte.is_ascii_digit());
        if !is_name(origin) || !is_number {
            return None;
        }
        let mut read = Vec::new();
        for line in signatures.lines() {
            let (name, encoded) = line.strip_prefix("— ")?.split_once(' ')?;
            let decoded = BASE64.decode(encoded).ok()?;
            let (hint, signature) = decoded.split_first_chunk::<4>()?;
            if name.is_empty() || read.len() == MOST_COSIGNATURES {
                return None;
            }
            read.push((*hint, signature.to_vec()));
        }
        let root = BASE64.decode(root).ok()?;
        Some(Self { text, size: size.parse().ok()?, root, signatures: read })
    }

    /// Whether one of the signatures is the log's. Others are witnesses', whom no root names.
    fn is_signed_by(&self, log: &Log) -> bool {
        self.signatures.iter().any(|(hint, signature)| {
            log.id.starts_with(hint) && log.key.verifies(self.text.as_bytes(), signature)
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    api_version: String,
    kind: String,
    spec: Value,
}

/// What an entry says of a signature.
struct Logged {
    signature: Vec<u8>,
    /// The certificate, as DER.
    certificate: Vec<u8>,
    is_content: bool,
}

impl LogEntry {
    /// Verifies that the entry speaks of this signature: of its bytes, its certificate and what it is over.
    pub(super) fn verify_body(&self, signature: &Signature) -> Result<(), Refusal> {
        let unreadable = || Refusal::cannot_read("entry of the log", "a part is missing");
        let body: Body = serde_json::from_slice(&self.body)
            .map_err(|error| Refusal::cannot_read("entry of the log", error))?;
        if let Some((kind, version)) = &self.stated
            && (*kind != body.kind || *version != body.api_version)
        {
            return Err(Refusal::wrong("the entry is of another kind than the bundle says"));
        }
        let logged = match (body.kind.as_str(), body.api_version.as_str()) {
            ("hashedrekord", "0.0.1") => hashedrekord_1(&body.spec, signature),
            ("hashedrekord", "0.0.2") => hashedrekord_2(&body.spec, signature),
            ("dsse", "0.0.1") => dsse_1(&body.spec, signature),
            ("intoto", "0.0.2") => intoto_2(&body.spec, signature),
            (kind, version) => {
                return Err(Refusal::UnknownKind { kind: format!("{kind} {version}") });
            }
        };
        let logged = logged.ok_or_else(unreadable)?;
        let certificate = signature.certificate.as_ref().map(|leaf| leaf.der.as_slice());
        if certificate != Some(&logged.certificate) {
            return Err(Refusal::wrong("the entry of the log has another certificate"));
        }
        if !logged.is_content {
            return Err(Refusal::wrong("the entry of the log is over something else"));
        }
        if logged.signature != signature.signature {
            return Err(Refusal::wrong("the entry of the log has another signature"));
        }
        Ok(())
    }
}

/// The text at a path of a JSON value.
fn text<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    value.pointer(path)?.as_str()
}

fn base64(value: &Value, path: &str) -> Option<Vec<u8>> {
    BASE64.decode(text(value, path)?).ok()
}

/// The certificate in base64 of PEM.
fn encoded_pem(value: &Value, path: &str) -> Option<Vec<u8>> {
    let text = String::from_utf8(base64(value, path)?).ok()?;
    pem(&text, "CERTIFICATE")?.into_iter().next()
}

/// Whether a hash in hexadecimal digits is that of the bytes.
fn is_hash(algorithm: &str, value: &str, bytes: &[u8]) -> bool {
    let found = match algorithm {
        "sha256" => lower_hex(&Sha256::digest(bytes)),
        "sha384" => lower_hex(&Sha384::digest(bytes)),
        "sha512" => lower_hex(&Sha512::digest(bytes)),
        _ => return false,
    };
    found == value
}

fn hashedrekord_1(spec: &Value, signature: &Signature) -> Option<Logged> {
    let (algorithm, value) = (text(spec, "/data/hash/algorithm")?, text(spec, "/data/hash/value")?);
    Some(Logged {
        signature: base64(spec, "/signature/content")?,
        certificate: encoded_pem(spec, "/signature/publicKey/content")?,
        is_content: is_hash(algorithm, value, &signature.message),
    })
}

fn hashedrekord_2(spec: &Value, signature: &Signature) -> Option<Logged> {
    let spec = spec.get("hashedRekordV002")?;
    let algorithm = match text(spec, "/data/algorithm")? {
        "SHA2_256" => "sha256",
        "SHA2_384" => "sha384",
        "SHA2_512" => "sha512",
        _ => return None,
    };
    let digest = lower_hex(&base64(spec, "/data/digest")?);
    Some(Logged {
        signature: base64(spec, "/signature/content")?,
        certificate: base64(spec, "/signature/verifier/x509Certificate/rawBytes")?,
        is_content: is_hash(algorithm, &digest, &signature.message),
    })
}

/// The hash of the envelope's text is not compared: a bundle holds its parts, and they are.
fn dsse_1(spec: &Value, signature: &Signature) -> Option<Logged> {
    let payload = signature.payload.as_deref();
    let (algorithm, value) =
        (text(spec, "/payloadHash/algorithm")?, text(spec, "/payloadHash/value")?);
    let is_one = spec.get("signatures")?.as_array()?.len() == 1;
    Some(Logged {
        signature: base64(spec, "/signatures/0/signature")?,
        certificate: encoded_pem(spec, "/signatures/0/verifier")?,
        is_content: is_one && payload.is_some_and(|payload| is_hash(algorithm, value, payload)),
    })
}

fn intoto_2(spec: &Value, signature: &Signature) -> Option<Logged> {
    let payload = signature.payload.as_deref();
    let (algorithm, value) =
        (text(spec, "/content/payloadHash/algorithm")?, text(spec, "/content/payloadHash/value")?);
    let is_one = spec.pointer("/content/envelope/signatures")?.as_array()?.len() == 1;
    // Rekor encodes it once more, some of its clients do not.
    let once = base64(spec, "/content/envelope/signatures/0/sig")?;
    Some(Logged {
        signature: BASE64.decode(&once).unwrap_or(once),
        certificate: encoded_pem(spec, "/content/envelope/signatures/0/publicKey")?,
        is_content: is_one && payload.is_some_and(|payload| is_hash(algorithm, value, payload)),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn node(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
        Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
    }

    /// The root of leaves, and the proof of one, straight from RFC 9162's definition.
    fn tree(leaves: &[[u8; 32]], index: usize) -> ([u8; 32], Vec<Vec<u8>>) {
        if leaves.len() == 1 {
            return (leaves[0], Vec::new());
        }
        let middle = leaves.len().next_power_of_two() / 2;
        let (left, right) = leaves.split_at(middle);
        let is_left = index < middle;
        let (left, left_proof) = tree(left, if is_left { index } else { 0 });
        let (right, right_proof) = tree(right, index.saturating_sub(middle));
        let (mut proof, other) = if is_left { (left_proof, right) } else { (right_proof, left) };
        proof.push(other.to_vec());
        (node(&left, &right), proof)
    }

    #[test]
    fn each_leaf_of_each_tree_is_proven_at_its_place_alone() {
        for size in 1..20_usize {
            let leaves: Vec<[u8; 32]> =
                (0..size).map(|at| [u8::try_from(at).expect("small"); 32]).collect();
            for index in 0..size {
                let (root, hashes) = tree(&leaves, index);
                let proof = |index: usize, size: usize| InclusionProof {
                    index: index as u64,
                    size: size as u64,
                    root: Vec::new(),
                    hashes: hashes.clone(),
                    checkpoint: String::new(),
                };
                assert_eq!(root_of(leaves[index], &proof(index, size)), Some(root));
                for other in (0..size).filter(|other| *other != index) {
                    assert_ne!(root_of(leaves[index], &proof(other, size)), Some(root));
                }
                assert_eq!(root_of(leaves[index], &proof(size, size)), None);
            }
        }
    }

    proptest! {
        #[test]
        fn any_note_and_proof_is_read_or_refused(
            note in "[a\n0-9= —+]{0,80}",
            index: u64,
            size: u64,
            lengths in proptest::collection::vec(30_usize..34, 0..70),
        ) {
            let _ = Checkpoint::read(&note);
            let _ = Checkpoint::read(&format!("a\n1\nAA==\n\n— {note}"));
            let hashes = lengths.into_iter().map(|length| vec![0; length]).collect();
            let _ = root_of([0; 32], &InclusionProof { index, size, root: Vec::new(), hashes, checkpoint: note });
        }
    }
}
