//! Verifies who vouches for a package: evidence, a subject, signers and roots in, a [`Verdict`] out.
//!
//! It knows neither HTTP, nor files, nor the clock: whoever asks brings the bytes, and every time is one that somebody signed.
//! `ring` and `webpki` compute; the formats around them are read here, because a reader of its own takes no more of a format than
//! is verified, and has a limit for every length. Rules (whose signature a package needs) are not its affair.
//!
//! | module | what it knows |
//! | --- | --- |
//! | `identity` | who signs, as a text: `key:…`, `ssh:…`, `pgp:…`, `github:…`, `oidc:…` |
//! | `signer` | the keys or the identity that a rule names |
//! | `subject` | what evidence must speak of |
//! | `evidence` | one piece, and the lines of a file of them |
//! | `roots` | whom keyless signatures lead to: `trusted_root.json` |
//! | `verdict` | what came of it, as data and in words |
//! | `sigstore` | signatures of cosign 2, and bundles |
//! | `pgp`, `prov` | OpenPGP, and the provenance of charts |
//! | `ssh`, `git` | SSH signatures, and what is signed of Git's objects |
//! | `key`, `der` | public keys and signatures by them; the encoding of both |
//! | `certificate` | X.509 certificates, and chains at a time |
//! | `verify` | from a piece to its verdict |

mod certificate;
mod der;
mod evidence;
mod git;
mod identity;
mod key;
mod pgp;
mod prov;
mod roots;
mod signer;
mod sigstore;
mod ssh;
mod subject;
mod verdict;
mod verify;

pub use evidence::{Cosign, Evidence, EvidenceLine, GitKind, read_lines};
pub use identity::Identity;
pub use roots::{Root, RootError, Roots};
pub use signer::{GithubSigner, OidcSigner, Signer, SignerError};
pub use subject::Subject;
pub use verdict::{Acceptance, Refusal, Signed, SignedBy, Verdict};
pub use verify::verify;

/// The largest piece of evidence in bytes.
pub const MOST_BYTES: usize = 1 << 20;
/// How many pieces of evidence are looked at for a version.
pub const MOST_PIECES: usize = 32;
/// How many manifests lead from the subject to the archive.
pub const MOST_MANIFESTS: usize = 4;
/// The largest file of keys in bytes.
pub const MOST_KEY_BYTES: usize = 64 << 10;
