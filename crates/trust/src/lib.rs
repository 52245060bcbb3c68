//! Verifies who vouches for a package: evidence, a subject, signers and roots in, a [`Verdict`] out.
//!
//! It knows neither HTTP, nor files, nor the clock: whoever asks brings the bytes, and every time is one that somebody signed.
//! `ring` and `webpki` compute; the formats around them are read here, because a reader of its own takes no more of a format than
//! is verified, and has a limit for every length. Rules (whose signature a package needs) are not its affair.
//!
//! | module | what it knows |
//! | --- | --- |
//! | `signer` | the keys or the identity that a rule names |
//! | `evidence` | one piece, the lines of a file of them, and what they must speak of |
//! | `roots` | whom keyless signatures lead to: `trusted_root.json` |
//! | `verdict` | what came of it, as data and in words; who signs, as a text: `key:…`, `ssh:…`, `pgp:…`, `github:…`, `oidc:…` |
//! | `sigstore` | signatures of cosign 2, and bundles |
//! | `pgp` | OpenPGP, and the provenance of charts |
//! | `ssh`, `git` | SSH signatures, and what is signed of Git's objects |
//! | `key`, `der` | public keys, signatures by them, and X.509 certificates; the encoding of all |

mod der;
mod evidence;
mod git;
mod key;
mod pgp;
mod roots;
mod signer;
mod sigstore;
mod ssh;
mod verdict;

pub use evidence::{
    Cosign, Evidence, EvidenceLine, GitKind, MOST_BYTES, MOST_MANIFESTS, MOST_PIECES, Subject,
    read_lines,
};
pub use roots::{Root, RootError, Roots};
pub use signer::{GithubSigner, MOST_KEY_BYTES, OidcSigner, Signer, SignerError, text_of_keys};
pub use verdict::{Acceptance, Identity, Refusal, Signed, SignedBy, Verdict};

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
        return Verdict::refused_for(Refusal::TooLarge {
            what: evidence.kind(),
            limit: MOST_BYTES,
        });
    }
    let signature = match evidence {
        Evidence::Cosign(cosign) => sigstore::read_cosign(cosign, subject),
        Evidence::Bundle(json) => sigstore::read_bundle(json, subject),
        Evidence::Prov(text) => return pgp::judge_provenance(text, subject, signers),
        Evidence::Git { kind, object } => {
            return git::judge_object(*kind, object, subject, signers);
        }
        Evidence::Sshsig(blob) => return ssh::judge_package(blob, subject, signers),
    };
    match signature {
        Ok(signature) => signature.verdict(signers, roots),
        Err(refusal) => Verdict::refused_for(refusal),
    }
}
