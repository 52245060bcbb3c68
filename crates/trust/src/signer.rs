//! The signers of a rule: keys, or an identity that a certificate must state.

use crate::Identity;
use crate::key::{self, KeyError, PublicKey};
use crate::pgp::PgpKey;
use crate::ssh::SshKey;

/// The largest file of keys in bytes.
pub const MOST_KEY_BYTES: usize = 64 << 10;

/// One whom a rule names: keys, any of which may have signed, or an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    name: String,
    pub(crate) kind: SignerKind,
}

/// What a signer is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignerKind {
    Keys(Vec<Key>),
    Github(GithubSigner),
    Oidc(OidcSigner),
}

/// One key of a signer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Public(PublicKey),
    Ssh(SshKey),
    Pgp(PgpKey),
}

impl Key {
    fn identity(&self) -> Identity {
        match self {
            Self::Public(key) => key.identity(),
            Self::Ssh(key) => key.identity(),
            Self::Pgp(key) => key.identity(),
        }
    }

    /// Its identity, and what limits it.
    fn describe(&self) -> String {
        match self {
            Self::Ssh(key) => key.describe(),
            Self::Public(_) | Self::Pgp(_) => self.identity().to_string(),
        }
    }
}

/// The names of signers, for a refusal.
pub(crate) fn signer_names(signers: &[Signer]) -> Vec<String> {
    signers.iter().map(|signer| signer.name().to_owned()).collect()
}

/// Whether a text is what a pattern says, in which `*` stands for any text.
pub(crate) fn matches_pattern(text: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return text == pattern };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').collect::<Vec<_>>();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        // The first place is as good as any: what follows has the most left.
        let Some((_, after)) = text.split_once(part) else { return false };
        text = after;
    }
    text.ends_with(end)
}

/// A workflow of GitHub, as a rule names it. `*` stands for any text, in `reference` alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GithubSigner {
    /// `OWNER/REPO`, without regard to case, as GitHub has it.
    pub repository: String,
    /// `FILE`, a workflow of that repository, or `OWNER/REPO/.github/workflows/FILE`; none: any of that repository.
    pub workflow: Option<String>,
    /// The ref that it ran for: `refs/heads/main`, `refs/tags/v*`.
    pub reference: Option<String>,
    /// The number of the repository, which stays if its name changes hands.
    pub id: Option<String>,
}

/// An identity of another issuer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OidcSigner {
    /// The issuer, exactly.
    pub issuer: String,
    /// The subject, in which `*` stands for any text.
    pub subject: String,
}

/// How other forms of keys begin, and what writes them as a form that is read.
const OTHER_FORMS: [(&str, &str); 4] = [
    (
        "-----BEGIN RSA PUBLIC KEY-----",
        "`openssl rsa -RSAPublicKey_in -in FILE -pubout` writes its RSA key as one",
    ),
    (
        "-----BEGIN CERTIFICATE-----",
        "`openssl x509 -in FILE -noout -pubkey` writes the key of its certificate as one",
    ),
    ("---- BEGIN SSH2 PUBLIC KEY ----", "`ssh-keygen -i -f FILE` writes its SSH key as one"),
    ("untrusted comment: ", "it is of minisign or signify, whose signatures mu does not verify"),
];

/// Why a text is no signer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignerError {
    /// It is too long.
    #[error("it has more than {MOST_KEY_BYTES} bytes")]
    TooLarge,
    /// It has no key.
    #[error("it has no key: neither a public key in PEM, nor SSH keys, nor an OpenPGP block")]
    NoKey,
    /// It has a key in another form.
    #[error("it has no key in a form that mu reads: {0}")]
    Form(&'static str),
    /// It has a private key, which belongs into no rule.
    #[error("it is a private key: name the public one")]
    Private,
    /// One of its keys cannot be taken.
    #[error("the {kind} is not taken: {why}")]
    Key {
        /// Which kind of key.
        kind: &'static str,
        /// Why.
        why: String,
    },
    /// A part of an identity is missing or wrong.
    #[error("`{0}` is no GitHub repository: one is OWNER/REPO")]
    Repository(String),
    /// A workflow is neither a file nor a path.
    #[error("`{0}` is not a workflow: one is FILE or OWNER/REPO/.github/workflows/FILE")]
    Workflow(String),
    /// An identity without issuer or subject.
    #[error("an identity needs an issuer and a subject")]
    Identity,
}

/// The text of a file of keys, without a mark of its byte order.
///
/// # Errors
///
/// It is not text, as keys of OpenPGP and in DER may be.
pub fn text_of_keys(content: &[u8]) -> Result<&str, SignerError> {
    let text = std::str::from_utf8(content).map_err(|_| SignerError::Form(NOT_TEXT))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// What writes a file as text that is none.
const NOT_TEXT: &str = "it is not UTF-8 text; `gpg --export --armor NAME` writes an OpenPGP key as text, and `openssl pkey -pubin -inform DER -in FILE` other ones";

impl Signer {
    /// Reads the text of keys: public keys in PEM, lines of SSH public keys or of `allowed_signers` files, or OpenPGP blocks.
    ///
    /// # Errors
    ///
    /// [`SignerError`]; a text of several keys is refused if one of them is.
    pub fn from_keys(name: &str, text: &str) -> Result<Self, SignerError> {
        if text.len() > MOST_KEY_BYTES {
            return Err(SignerError::TooLarge);
        }
        if text.contains("PRIVATE KEY") {
            return Err(SignerError::Private);
        }
        let refused = |why: KeyError| SignerError::Key { kind: "public key", why: why.to_string() };
        let unreadable = || SignerError::Key {
            kind: "public key",
            why: "its PEM is not base64 between BEGIN and END".into(),
        };
        let blocks = key::pem(text, "PUBLIC KEY").ok_or_else(unreadable)?;
        let keys =
            blocks.iter().map(|spki| PublicKey::from_spki(spki).map(Key::Public).map_err(refused));
        let mut keys = keys.collect::<Result<Vec<_>, _>>()?;
        keys.extend(PgpKey::read_blocks(text)?.into_iter().map(Key::Pgp));
        for key in text.lines().filter_map(SshKey::from_key_line) {
            keys.push(Key::Ssh(key?));
        }
        if keys.is_empty() {
            let begins = |(line, _): &(&str, _)| text.contains(line);
            let known = OTHER_FORMS.into_iter().find(begins);
            return Err(known.map_or(SignerError::NoKey, |(_, instead)| SignerError::Form(instead)));
        }
        Ok(Self { name: name.to_owned(), kind: SignerKind::Keys(keys) })
    }

    /// A workflow of GitHub.
    ///
    /// # Errors
    ///
    /// The repository is not `OWNER/REPO`, or the workflow is neither a file nor a path.
    pub fn github(name: &str, github: GithubSigner) -> Result<Self, SignerError> {
        let parts: Vec<&str> = github.repository.split('/').collect();
        if parts.len() != 2 || parts.iter().any(|part| part.is_empty() || part.contains('*')) {
            return Err(SignerError::Repository(github.repository));
        }
        if let Some(workflow) = &github.workflow {
            let inside = workflow.split_once("/.github/workflows/");
            let is_path = inside.is_some_and(|(repository, file)| {
                repository.split('/').filter(|part| !part.is_empty()).count() == 2
                    && !file.is_empty()
            });
            if workflow.is_empty() || workflow.contains('*') || workflow.contains('/') && !is_path {
                return Err(SignerError::Workflow(workflow.clone()));
            }
        }
        Ok(Self { name: name.to_owned(), kind: SignerKind::Github(github) })
    }

    /// An identity of another issuer.
    ///
    /// # Errors
    ///
    /// One of both is empty.
    pub fn oidc(name: &str, oidc: OidcSigner) -> Result<Self, SignerError> {
        if oidc.issuer.is_empty() || oidc.subject.is_empty() {
            return Err(SignerError::Identity);
        }
        Ok(Self { name: name.to_owned(), kind: SignerKind::Oidc(oidc) })
    }

    /// The name that rules call it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its keys' identities; of a workflow or another identity none, because only a certificate says whose it is.
    pub fn identities(&self) -> Vec<Identity> {
        match &self.kind {
            SignerKind::Keys(keys) => {
                let mut identities: Vec<Identity> = keys.iter().map(Key::identity).collect();
                // A certificate of OpenPGP has several keys and is one identity.
                identities.dedup();
                identities
            }
            SignerKind::Github(_) | SignerKind::Oidc(_) => Vec::new(),
        }
    }

    /// The whole of it as a text, which is the same for signers that accept the same: for a key of a cache, and for `mu trust`.
    pub fn describe(&self) -> String {
        match &self.kind {
            SignerKind::Keys(keys) => {
                let mut described: Vec<String> = keys.iter().map(Key::describe).collect();
                described.sort();
                described.dedup();
                described.join(" ")
            }
            SignerKind::Github(github) => {
                let mut text = format!("github:{}", github.repository);
                for (key, value) in
                    [("workflow", &github.workflow), ("ref", &github.reference), ("id", &github.id)]
                {
                    text.extend(value.iter().map(|value| format!(" {key} {value}")));
                }
                text
            }
            SignerKind::Oidc(oidc) => format!("oidc:{} {}", oidc.issuer, oidc.subject),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (text, pattern, expected) in [
            ("refs/tags/v1", "refs/tags/v*", true),
            ("refs/tags/v", "refs/tags/v*", true),
            ("refs/heads/v1", "refs/tags/v*", false),
            ("refs/tags/v1", "*", true),
            ("abcabc", "a*b*c", true),
            ("abcab", "a*b*c", false),
            ("ab", "ab*b", false),
            ("a", "a*a", false),
            ("aa", "a**a", true),
            ("a.c", "a?c", false),
        ] {
            assert_eq!(matches_pattern(text, pattern), expected, "{text} {pattern}");
        }
    }

    #[test]
    fn identities_that_no_certificate_has_are_refused() {
        let github = |repository: &str, workflow: &str| {
            let workflow = Some(workflow.to_owned());
            let repository = repository.to_owned();
            Signer::github("ci", GithubSigner { repository, workflow, ..GithubSigner::default() })
        };
        assert!(github("acme/charts", "release.yml").is_ok());
        assert!(github("acme/charts", "acme/shared/.github/workflows/release.yml").is_ok());
        for (repository, workflow) in [
            ("acme", "release.yml"),
            ("acme/charts/x", "release.yml"),
            ("acme/*", "release.yml"),
            ("acme/charts", ""),
            ("acme/charts", "*"),
            ("acme/charts", "shared/release.yml"),
            ("acme/charts", ".github/workflows/release.yml"),
        ] {
            assert!(github(repository, workflow).is_err(), "{repository} {workflow}");
        }
        assert_eq!(Signer::oidc("ada", OidcSigner::default()), Err(SignerError::Identity));
    }
}
