//! From a piece of evidence to its verdict: the limit, then who knows its kind.

use crate::{
    Evidence, MOST_BYTES, Refusal, Roots, Signer, Subject, Verdict, git, prov, sigstore, ssh,
};

/// Says what a piece of evidence is worth for a subject.
///
/// Takes nothing on trust but its arguments: whatever the bytes are, the answer is a verdict. All signers of a rule are handed over
/// at once, so that a refusal can name them; with none, the verdict still says who signed, as far as evidence and roots can tell.
pub fn verify(
    evidence: &Evidence,
    subject: &Subject<'_>,
    signers: &[Signer],
    roots: &Roots,
) -> Verdict {
    if evidence.size() > MOST_BYTES {
        return Verdict::refused(Refusal::TooLarge { what: evidence.kind(), limit: MOST_BYTES });
    }
    let signature = match evidence {
        Evidence::Cosign(cosign) => sigstore::read_cosign(cosign, subject),
        Evidence::Bundle(json) => sigstore::read_bundle(json, subject),
        Evidence::Prov(text) => return prov::judge(text, subject, signers),
        Evidence::Git { kind, object } => return git::judge(*kind, object, subject, signers),
        Evidence::Sshsig(blob) => return ssh::judge_package(blob, subject, signers),
    };
    match signature {
        Ok(signature) => signature.judge(signers, roots),
        Err(refusal) => Verdict::refused(refusal),
    }
}
