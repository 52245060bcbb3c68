//! Signatures as sigstore makes them, by a key or by an identity; `cosign` and `bundle` read the two forms that they come in.

mod bundle;
mod cosign;
mod keyless;
mod log;
mod signature;
mod timestamp;

pub(crate) use bundle::read as read_bundle;
pub(crate) use cosign::read as read_cosign;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use self::signature::Signature;
use crate::certificate::Certificate;
use crate::key::PublicKey;
use crate::signer::{Key, SignerKind, signer_names};
use crate::{Acceptance, Refusal, Roots, Signed, SignedBy, Signer, Verdict};

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
