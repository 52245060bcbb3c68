//! Signatures as sigstore makes them, by a key or by an identity; `cosign` and `bundle` read the two forms that they come in. A
//! [`Signature`] is one as it was read, whichever form it came in; [`Signature::verdict`] verifies it.

mod bundle;
mod cosign;
mod keyless;
mod log;
mod timestamp;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use self::log::LogEntry;
use crate::key::Certificate;
use crate::key::{self, PublicKey};
use crate::signer::{Key, SignerKind, signer_names};
use crate::{Acceptance, Refusal, Roots, Signed, SignedBy, Signer, Subject, Verdict};

pub(crate) use bundle::read as read_bundle;
pub(crate) use cosign::read as read_cosign;

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
