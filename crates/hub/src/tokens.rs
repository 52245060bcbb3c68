//! Who may change a hub, and what of a private one somebody may read: tokens, which the hub stores as hashes.
//!
//! A token is 256 random bits, so its plain SHA-256 reveals nothing that could be guessed. The server does
//! not serve the file. If another web server does, only names and namespaces are visible.
//!
//! A token that reads only some packages has its hash in another form: `limited-sha256:HEX`. Programs that are older than such tokens
//! would let it read everything, or lose the key `reads` when they write the file. They do not find a token with that hash.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::archive::hex;
use crate::files::Files;
use crate::names::{self, refused};
use crate::{Hub, HubError};

/// The file of the tokens.
pub(crate) const TOKENS_FILE: &str = "private/tokens.json";

/// The start of every token, so that secret scanners find leaked ones.
const PREFIX: &str = "mu_";

/// What is in front of the hash of a token that reads only some packages.
const LIMITED: &str = "limited-";

/// Every package.
const ALL: &str = "*";

/// What one can be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Can {
    /// Publish versions, tag them, and record where a package moved.
    Publish,
    /// Withdraw versions, and take that back.
    Yank,
    /// Read a private hub, as every token may, as far as its scope reaches. A token with only this may do nothing else.
    Read,
}

impl Can {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Yank => "yank",
            Self::Read => "read",
        }
    }
}

/// The public properties of a token.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// The name that its owner gave it; each name is used once.
    pub name: String,
    /// `sha256:HEX` of the token, or `limited-sha256:HEX` if it reads only some packages.
    hash: String,
    /// The packages that it is for: those in these namespaces, or with these names. `*` means every package.
    pub namespaces: Vec<String>,
    /// What it reads of a private hub, besides the packages that it is for; everything, if this is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Vec<String>>,
    /// What it allows.
    pub can: Vec<Can>,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends; never, if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// A token to create.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// The name that its owner gives it.
    pub name: String,
    /// The packages that it is for: namespaces, or names of packages.
    pub namespaces: Vec<String>,
    /// What it reads of a private hub besides: namespaces, or names of packages. Everything, if this is none.
    pub reads: Option<Vec<String>>,
    /// What it allows.
    pub can: Vec<Can>,
    /// When it is made: now.
    pub created: Timestamp,
    /// When it ends.
    pub expires: Option<Timestamp>,
}

/// All tokens of a hub.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Tokens {
    tokens: Vec<Token>,
}

impl Token {
    /// Whether it has ended.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Whether it is for this package and this kind of change.
    pub fn allows(&self, name: &str, can: Can) -> bool {
        self.can.contains(&can) && self.is_for(name)
    }

    /// Whether it is for this package, whatever it allows.
    pub fn is_for(&self, name: &str) -> bool {
        is_inside(&self.namespaces, name)
    }

    /// What it reads of a private hub.
    pub fn scope(&self) -> Scope {
        if self.reads.is_none() && !self.hash.starts_with(LIMITED) {
            return Scope::Everything;
        }
        let mut read = self.reads.clone().unwrap_or_default();
        let own: Vec<String> =
            self.namespaces.iter().filter(|name| !is_inside(&read, name)).cloned().collect();
        read.extend(own);
        match read.iter().any(|namespace| namespace == ALL) {
            true => Scope::Everything,
            false => Scope::Only(read.into()),
        }
    }
}

/// Whether a package is in one of the namespaces, or is named by one.
fn is_inside(namespaces: &[String], name: &str) -> bool {
    namespaces.iter().any(|namespace| namespace == ALL || names::is_in_namespace(namespace, name))
}

/// What somebody may read of a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    Everything,
    /// The packages in these namespaces, or with these names. That there are others, nobody learns.
    Only(Arc<[String]>),
}

impl Scope {
    /// That of somebody who has shown no token.
    pub fn of_nothing() -> Self {
        Self::Only(Arc::default())
    }

    /// Whether nothing is hidden.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Everything)
    }

    /// Whether the package is in it.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(namespaces) => is_inside(namespaces, name),
        }
    }
}

impl Tokens {
    /// Reads the tokens of a hub; none if there never was one.
    pub async fn read(files: &Files) -> Result<Self, HubError> {
        match files.read(TOKENS_FILE).await? {
            None => Ok(Self::default()),
            Some(read) => Self::parse(files, &read.bytes),
        }
    }

    /// Reads the tokens of a hub with the mark of their file, unless that is still `e_tag`.
    pub async fn read_unless(
        files: &Files,
        e_tag: Option<String>,
    ) -> Result<Option<(Option<String>, Self)>, HubError> {
        Ok(match files.read_if_changed(TOKENS_FILE, e_tag.as_deref()).await? {
            None => None,
            Some(None) => Some((None, Self::default())),
            Some(Some(read)) => Some((read.mark.e_tag, Self::parse(files, &read.bytes)?)),
        })
    }

    /// The token that `secret` is.
    pub fn find(&self, secret: &str) -> Option<&Token> {
        let hash = hash(secret);
        self.tokens
            .iter()
            .find(|token| token.hash.strip_prefix(LIMITED).unwrap_or(&token.hash) == hash)
    }

    fn parse(files: &Files, bytes: &[u8]) -> Result<Self, HubError> {
        serde_json::from_slice(bytes).map_err(|error| files.broken(TOKENS_FILE, error.to_string()))
    }
}

impl Hub {
    /// Creates a token and returns it. This is the only time that anybody sees it.
    ///
    /// # Errors
    ///
    /// When the name is used already, a namespace is not valid, or the place refuses.
    pub fn add_token(&self, new: &NewToken) -> Result<String, HubError> {
        let what = format!("the token `{}`", names::printable(&new.name));
        if new.name.is_empty() || new.name.len() > 100 || new.name.chars().any(char::is_control) {
            return Err(refused(&what, "a name has 1 to 100 characters"));
        }
        let named = new.namespaces.iter().chain(new.reads.iter().flatten());
        for namespace in named.filter(|namespace| *namespace != ALL) {
            names::check_name(namespace)?;
        }
        let io = |source: getrandom::Error| HubError::Io {
            action: "draw a random token".to_owned(),
            source: source.into(),
        };
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io)?;
        let secret = format!("{PREFIX}{}", hex(&bytes));
        let reads_all = |reads: &Vec<String>| reads.iter().any(|namespace| namespace == ALL);
        let reads = new.reads.clone().filter(|reads| !reads_all(reads));
        let limited = if reads.is_some() { LIMITED } else { "" };
        let token = Token {
            name: new.name.clone(),
            hash: format!("{limited}{}", hash(&secret)),
            namespaces: new.namespaces.clone(),
            reads,
            can: new.can.clone(),
            created: new.created,
            expires: new.expires,
        };
        self.change_tokens(|tokens| {
            if tokens.tokens.iter().any(|other| other.name == token.name) {
                return Err(refused(&what, "a token with that name exists; revoke it first"));
            }
            tokens.tokens.push(token.clone());
            Ok(true)
        })?;
        Ok(secret)
    }

    /// All tokens, in order of creation.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn tokens(&self) -> Result<Vec<Token>, HubError> {
        Ok(self.runtime.block_on(Tokens::read(&self.writer.files))?.tokens)
    }

    /// Revokes a token at once; returns whether there was one with that name.
    ///
    /// # Errors
    ///
    /// When the place refuses.
    pub fn revoke_token(&self, name: &str) -> Result<bool, HubError> {
        self.change_tokens(|tokens| {
            let before = tokens.tokens.len();
            tokens.tokens.retain(|token| token.name != name);
            Ok(tokens.tokens.len() < before)
        })
    }

    fn change_tokens(
        &self,
        mut change: impl FnMut(&mut Tokens) -> Result<bool, HubError>,
    ) -> Result<bool, HubError> {
        let files = &self.writer.files;
        self.runtime.block_on(async {
            let _turn = files.turn().await?;
            files.make_private()?;
            let changed = files
                .change(TOKENS_FILE, async |bytes| {
                    let mut tokens = match bytes {
                        Some(bytes) => Tokens::parse(files, bytes)?,
                        None => Tokens::default(),
                    };
                    let changed = change(&mut tokens)?;
                    let mut text = serde_json::to_string_pretty(&tokens)
                        .expect("tokens can be printed as JSON");
                    text.push('\n');
                    Ok((changed.then(|| text.into()), changed))
                })
                .await?;
            files.keep_private();
            Ok(changed)
        })
    }
}

fn hash(secret: &str) -> String {
    format!("sha256:{}", hex(&Sha256::digest(secret.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_its_namespaces_and_changes_alone() {
        let token = |namespaces: &[&str], can: &[Can]| Token {
            name: "x".to_owned(),
            hash: hash("x"),
            namespaces: namespaces.iter().map(ToString::to_string).collect(),
            reads: None,
            can: can.to_vec(),
            created: Timestamp::UNIX_EPOCH,
            expires: None,
        };
        let one = token(&["acme", "lib/web"], &[Can::Publish]);
        for (name, expected) in [
            ("acme", true),
            ("acme/a/b", true),
            ("acmeco/a", false),
            ("lib", false),
            ("lib/web", true),
            ("lib/web/x", true),
            ("lib/webs", false),
        ] {
            assert_eq!(one.allows(name, Can::Publish), expected, "{name}");
            assert!(!one.allows(name, Can::Yank), "{name}");
        }
        assert!(token(&["*"], &[Can::Yank]).allows("anything/at/all", Can::Yank));
        assert!(!token(&[], &[Can::Yank]).allows("a", Can::Yank));
    }

    #[test]
    fn a_token_ends_at_its_time() {
        let at = |seconds| Timestamp::from_second(seconds).expect("is a time");
        let token = Token {
            name: "x".to_owned(),
            hash: hash("x"),
            namespaces: Vec::new(),
            reads: None,
            can: Vec::new(),
            created: at(0),
            expires: Some(at(100)),
        };
        assert!(!token.has_ended(at(99)));
        assert!(token.has_ended(at(100)));
    }

    #[test]
    fn a_limited_token_reads_what_it_names_and_is_for_and_older_programs_do_not_find_it() {
        let token = |reads: Option<&[&str]>, limited: &str| Token {
            name: "x".to_owned(),
            hash: format!("{limited}{}", hash("x")),
            namespaces: vec!["acme/web".to_owned()],
            reads: reads.map(|reads| reads.iter().map(ToString::to_string).collect()),
            can: vec![Can::Publish],
            created: Timestamp::UNIX_EPOCH,
            expires: None,
        };
        assert_eq!(token(None, "").scope(), Scope::Everything);
        let limited = token(Some(&["lib"]), LIMITED);
        for (name, expected) in [
            ("lib", true),
            ("lib/a/b", true),
            ("acme/web", true),
            ("acme", false),
            ("library", false),
        ] {
            assert_eq!(limited.scope().has(name), expected, "{name}");
        }
        // An older program has written the file without the key.
        assert!(!token(None, LIMITED).scope().has("lib") && !Scope::of_nothing().has("lib"));
        assert_ne!(limited.hash, hash("x"));
        let tokens = Tokens { tokens: vec![limited] };
        assert!(tokens.find("x").is_some() && tokens.find("y").is_none());
        let old = r#"{"name":"x","hash":"sha256:00","namespaces":["acme"],"can":["read"],"created":"2025-02-10T12:00:00Z"}"#;
        let old: Token = serde_json::from_str(old).expect("is a token");
        assert!(old.scope().is_whole());
        assert!(!serde_json::to_string(&old).expect("prints").contains("reads"));
    }
}
