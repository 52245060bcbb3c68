//! Who signs, as the text that a lock holds and that continuity compares.

use std::fmt;
use std::str::FromStr;

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
                "`{text}` is no identity: one is `key:sha256:HEX`, `ssh:SHA256:BASE64`, `pgp:FINGERPRINT`, \
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
