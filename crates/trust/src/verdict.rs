//! What came of a piece of evidence: data for rules and JSON, with words for people.

use std::fmt;

use crate::Identity;

/// What a piece of evidence is worth for a subject, by the signers and roots that were given.
///
/// Either a signer accepts it (`accepted` is not empty and `refusal` is `None`), or `refusal` says why none does.
/// [`Display`](fmt::Display) is a line for people, such as ``signed by pgp:…, which is not `ada` ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The signers that accept it, in the order in which they were given, each with the identity that signed.
    pub accepted: Vec<Acceptance>,
    /// Who signed, as far as the evidence says or a signer's key shows.
    pub signed: Vec<Signed>,
    /// Why no signer accepts it.
    pub refusal: Option<Refusal>,
}

/// A signer that accepts a piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// The name of the signer.
    pub signer: String,
    /// Which of its identities signed. A rule's `need` counts these, not names.
    pub identity: Identity,
    /// A time that is proven (keyless), in seconds since 1970: the signature existed then.
    pub time: Option<i64>,
}

/// One who signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// Who it is.
    pub by: SignedBy,
    /// Whether the signature verifies and speaks of the subject. If not, `by` is only what the evidence claims.
    pub verifies: bool,
    /// The ref of a GitHub workflow: `refs/tags/v1.4.0`.
    pub reference: Option<String>,
    /// A time that is proven (keyless), in seconds since 1970.
    pub time: Option<i64>,
}

/// Who signed, as exactly as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignedBy {
    /// An identity.
    Identity(Identity),
    /// A key of OpenPGP that is none of the signers': 16 hexadecimal digits or a fingerprint.
    PgpKey(String),
    /// Evidence does not say whose key it was.
    UnknownKey,
}

/// Why a piece of evidence counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no signature in it: an unsigned commit or tag.
    NoSignature,
    /// It is signed, does not say by whom, and none of the signers' keys fits.
    NoneOfThese {
        /// The names of the signers that were tried.
        signers: Vec<String>,
    },
    /// It is signed by someone else.
    SomeoneElse {
        /// By whom, in words.
        by: String,
        /// The names of the signers it is not.
        signers: Vec<String>,
    },
    /// The signature, or what proves it, does not verify.
    DoesNotVerify {
        /// What is wrong.
        why: String,
    },
    /// It is over something else: another digest, commit, tag, name or version.
    OtherSubject {
        /// What it speaks of, and what it ought to.
        why: String,
    },
    /// No root knows who issued the certificate, or the root that does knows the log or the time's authority not.
    RootDoesNotKnow {
        /// What is not known, as the evidence names it: `log2026-2.rekor.sigstore.dev`.
        what: String,
        /// The root in words, with how new it is (`this mu's root of 2026-10-14`); none if no root knows the issuer.
        root: Option<String>,
    },
    /// It cannot be read.
    Unreadable {
        /// Which part.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// It is larger than what is read.
    TooLarge {
        /// What it is.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// It is of a kind, version or algorithm that is not known, or vouches for nothing (a scan, an SBOM).
    UnknownKind {
        /// The kind as it is named there.
        kind: String,
    },
    /// The signature is over bytes that the subject was given without.
    BytesNeeded,
}

impl Refusal {
    pub(crate) fn cannot_read(what: &'static str, why: impl fmt::Display) -> Self {
        Self::Unreadable { what, why: why.to_string() }
    }

    pub(crate) fn wrong(why: impl Into<String>) -> Self {
        Self::DoesNotVerify { why: why.into() }
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSignature => f.write_str("no signature"),
            Self::NoneOfThese { signers } if signers.is_empty() => {
                f.write_str("signed by a key that it does not name")
            }
            Self::NoneOfThese { signers } => write!(f, "no signature by {}", signers.join(", ")),
            Self::SomeoneElse { by, signers } if signers.is_empty() => write!(f, "signed by {by}"),
            Self::SomeoneElse { by, signers } => {
                let names: Vec<String> =
                    signers.iter().map(|signer| format!("`{signer}`")).collect();
                write!(f, "signed by {by}, which is not {}", names.join(" or "))
            }
            Self::DoesNotVerify { why } | Self::OtherSubject { why } => {
                write!(f, "signature does not verify: {why}")
            }
            Self::RootDoesNotKnow { what, root: Some(root) } => write!(
                f,
                "signed with {what}, which {root} does not know: update mu, or name a newer file in trust.roots"
            ),
            Self::RootDoesNotKnow { what, root: None } => {
                write!(f, "signed with {what}, which no root in trust.roots knows")
            }
            Self::Unreadable { what, why } => write!(f, "the {what} cannot be read: {why}"),
            Self::TooLarge { what, limit } => {
                write!(f, "the {what} is larger than {limit} bytes, which is the limit")
            }
            Self::UnknownKind { kind } => write!(f, "`{kind}` is no evidence that mu knows"),
            Self::BytesNeeded => {
                f.write_str("the signature is over the archive, which is not here")
            }
        }
    }
}

impl fmt::Display for SignedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity(identity) => identity.fmt(f),
            Self::PgpKey(key) => write!(f, "PGP key {key}"),
            Self::UnknownKey => f.write_str("a key that it does not name"),
        }
    }
}

impl Verdict {
    /// Whether a signer accepts it.
    pub fn is_accepted(&self) -> bool {
        !self.accepted.is_empty()
    }

    /// Who signed it, verified; whether or not a signer names them.
    pub fn verified(&self) -> impl Iterator<Item = &Identity> {
        self.signed.iter().filter_map(Signed::verified)
    }

    pub(crate) fn refused_for(refusal: Refusal) -> Self {
        Self { accepted: Vec::new(), signed: Vec::new(), refusal: Some(refusal) }
    }

    pub(crate) fn refused_of(signed: Signed, refusal: Refusal) -> Self {
        Self { accepted: Vec::new(), signed: vec![signed], refusal: Some(refusal) }
    }

    pub(crate) fn accepted_by(accepted: Vec<Acceptance>, signed: Signed) -> Self {
        Self { accepted, signed: vec![signed], refusal: None }
    }
}

impl Signed {
    /// Who signed, if that is verified.
    pub fn verified(&self) -> Option<&Identity> {
        match &self.by {
            SignedBy::Identity(identity) => Some(identity).filter(|_| self.verifies),
            SignedBy::PgpKey(_) | SignedBy::UnknownKey => None,
        }
    }

    pub(crate) fn by_whom(by: SignedBy, verifies: bool) -> Self {
        Self { by, verifies, reference: None, time: None }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(refusal) = &self.refusal {
            return refusal.fmt(f);
        }
        f.write_str("signed by ")?;
        for (at, Acceptance { signer, identity, .. }) in self.accepted.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{identity}, which is `{signer}`")?;
        }
        Ok(())
    }
}
