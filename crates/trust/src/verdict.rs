//! What came of a piece of evidence: data for rules and JSON, with words for people. An [`Identity`] is one who signs, as the
//! text that a lock holds and that continuity compares.

use std::fmt;
use std::str::FromStr;

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
            Self::UnknownKind { kind } => write!(f, "`{kind}` is not evidence that mu knows"),
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

/// The issuer of GitHub's workflows.
pub(crate) const GITHUB_ISSUER: &str = "https://token.actions.githubusercontent.com";

/// One who signs.
///
/// Its text ([`Display`](fmt::Display), [`FromStr`]) is one of `key:sha256:HEX`, `ssh:SHA256:BASE64`, `pgp:FINGERPRINT`,
/// `github:OWNER/REPO/.github/workflows/FILE` and `oidc:ISSUER SUBJECT`. Where a repository runs the workflow of another one, it
/// is `github:OWNER/REPO/OTHER/REPO/.github/workflows/FILE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// A public key, by the SHA-256 of its SubjectPublicKeyInfo in hexadecimal digits.
    Key(String),
    /// A key of SSH, by its fingerprint as `ssh-keygen -l` prints it, without `SHA256:`.
    Ssh(String),
    /// A certificate of OpenPGP, by the fingerprint of its primary key in capitals.
    Pgp(String),
    /// A workflow of GitHub.
    Github {
        /// The repository whose workflow ran: `OWNER/REPO`.
        repository: String,
        /// The file, `.github/workflows/FILE`, behind `OWNER/REPO/` if it is another repository's.
        workflow: String,
    },
    /// Who an issuer of identities says it is.
    Oidc {
        /// The URL of the issuer.
        issuer: String,
        /// The subject: a mail address or a URI.
        subject: String,
    },
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(hex) => write!(f, "key:sha256:{hex}"),
            Self::Ssh(fingerprint) => write!(f, "ssh:SHA256:{fingerprint}"),
            Self::Pgp(fingerprint) => write!(f, "pgp:{fingerprint}"),
            Self::Github { repository, workflow } => write!(f, "github:{repository}/{workflow}"),
            Self::Oidc { issuer, subject } => write!(f, "oidc:{issuer} {subject}"),
        }
    }
}

impl FromStr for Identity {
    type Err = String;

    /// Reads the text of an identity.
    ///
    /// # Errors
    ///
    /// The text is none of the five forms; the error says so.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_hex = |text: &str, lengths: &[usize]| {
            lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let identity = if let Some(hex) = text.strip_prefix("key:sha256:") {
            is_hex(hex, &[64]).then(|| Self::Key(hex.to_ascii_lowercase()))
        } else if let Some(fingerprint) = text.strip_prefix("ssh:SHA256:") {
            let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
            let is_whole = fingerprint.len() == 43 && fingerprint.bytes().all(is_base64);
            is_whole.then(|| Self::Ssh(fingerprint.to_owned()))
        } else if let Some(fingerprint) = text.strip_prefix("pgp:") {
            is_hex(fingerprint, &[40, 64]).then(|| Self::Pgp(fingerprint.to_ascii_uppercase()))
        } else if let Some(path) = text.strip_prefix("github:") {
            github(path)
        } else if let Some(rest) = text.strip_prefix("oidc:") {
            rest.split_once(' ')
                .filter(|(issuer, subject)| !issuer.is_empty() && !subject.is_empty())
                .map(|(issuer, subject)| Self::Oidc {
                    issuer: issuer.to_owned(),
                    subject: subject.to_owned(),
                })
        } else {
            None
        };
        identity.ok_or_else(|| {
            format!(
                "`{text}` is not an identity: one is `key:sha256:HEX`, `ssh:SHA256:BASE64`, `pgp:FINGERPRINT`, \
                 `github:OWNER/REPO/.github/workflows/FILE` or `oidc:ISSUER SUBJECT`"
            )
        })
    }
}

/// Reads `OWNER/REPO/` and the path of a workflow.
fn github(path: &str) -> Option<Identity> {
    let (owner, rest) = path.split_once('/')?;
    let (name, workflow) = rest.split_once('/')?;
    let own = match workflow.split_once("/.github/workflows/") {
        Some((other, file)) if !workflow.starts_with(".github/") => {
            (other.split('/').filter(|part| !part.is_empty()).count() == 2).then_some(file)?
        }
        _ => workflow.strip_prefix(".github/workflows/")?,
    };
    let is_whole = !owner.is_empty() && !name.is_empty() && !own.is_empty();
    is_whole.then(|| Identity::Github {
        repository: format!("{owner}/{name}"),
        workflow: workflow.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_they_are_written() {
        let hex = "0123456789abcdef".repeat(4);
        for text in [
            format!("key:sha256:{hex}"),
            format!("ssh:SHA256:{}", &"abcDEF+/".repeat(6)[..43]),
            "pgp:4AEE18F83AFDEB23AE1BE2A54AEE18F83AFDEB23".to_owned(),
            "github:acme/charts/.github/workflows/release.yml".to_owned(),
            "github:acme/charts/acme/shared/.github/workflows/release.yml".to_owned(),
            "oidc:https://accounts.google.com ada@acme.com".to_owned(),
        ] {
            assert_eq!(text.parse::<Identity>().map(|identity| identity.to_string()), Ok(text));
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "key:sha256:abc",
            "ssh:SHA256:abc",
            "pgp:4AEE18F8",
            "github:acme",
            "github:acme/charts",
            "github:acme/charts/release.yml",
            "github:acme/charts/a/b/c/.github/workflows/x.yml",
            "oidc:https://accounts.google.com",
            "key:sha256:éééééééééééééééééééééééééééééééé",
        ] {
            assert!(text.parse::<Identity>().is_err(), "{text}");
        }
    }
}
