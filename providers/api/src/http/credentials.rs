//! Tokens: a type that cannot be printed, and where tokens come from.
//!
//! This file does not know where tokens are stored. `rules.rs` decides whether one may be sent.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;

use crate::SafeUrl;

/// A text that never shows: neither in messages nor in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, only for the connection.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("****")
    }
}

/// The beginning of the names of variables that hold tokens.
pub const TOKEN_PREFIX: &str = "MU_TOKEN_";

/// The name of the variable for the token of a host: `MU_TOKEN_HUB_MU_COM`, and `MU_TOKEN_HUB_MU_COM___8080`
/// for `hub.mu.com:8080`. A `.` becomes `_`, a `-` becomes `__`, and `___` comes before a port.
///
/// No two hosts have the same variable: a dot between two letters or digits is one underscore, dashes are an
/// even number of them, and only a port has three before it. So a host whose name breaks the rules for host
/// names (with a `_`, a label that begins or ends with `-`, a dot at the end) has no variable, and neither
/// has an IPv6 address. `mu login` also works for them.
///
/// Other code reads the variable; hints name it.
pub fn token_variable(host_and_port: &str) -> Option<String> {
    let (host, port) = match host_and_port.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (host_and_port, None),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !host.split('.').all(is_label) || !port.is_none_or(is_number) {
        return None;
    }
    let host = host.to_ascii_uppercase().replace('-', "__").replace('.', "_");
    let port = port.map(|port| format!("___{port}")).unwrap_or_default();
    Some([TOKEN_PREFIX, &host, &port].concat())
}

/// Whether a text is a label of a host name: letters and digits, with dashes between them.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}

/// The rest of the hint "`mu login HOST` stores a token", which names the variable of that host, if it has one.
pub fn or_variable(host_and_port: &str) -> String {
    let variable = token_variable(host_and_port);
    variable.map(|variable| format!(", or set one in `{variable}`")).unwrap_or_default()
}

/// Knows the tokens that the user has stored.
pub trait Credentials: Send + Sync {
    /// The stored token for the host of `url`, if there is one; a token for exactly this port takes
    /// precedence over one for the host.
    fn token(&self, url: &SafeUrl) -> Option<Secret>;

    /// The variable with the token, if it comes from a variable.
    fn variable(&self, _url: &SafeUrl) -> Option<String> {
        None
    }

    /// Where the token comes from, in words; `None` if that is not known.
    fn origin(&self, url: &SafeUrl) -> Option<String> {
        self.variable(url).map(|variable| format!("`{variable}`"))
    }
}

/// No credentials.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCredentials;

impl Credentials for NoCredentials {
    fn token(&self, _url: &SafeUrl) -> Option<Secret> {
        None
    }
}

/// How a request is authorized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Authorization {
    /// The stored token of the URL's host, if there is one, as `Bearer`.
    #[default]
    Stored,
    /// Nothing, whatever is stored.
    Nothing,
    /// This value of the `Authorization` header, with where it comes from, in words.
    Header(Secret, String),
}

impl Authorization {
    /// `Bearer TOKEN`.
    pub fn bearer(token: &Secret) -> Self {
        Self::Header(Secret(format!("Bearer {}", token.expose())), String::new())
    }

    /// `Basic` with a user and a password, as Git hosts want it.
    pub fn basic(user: &str, password: &Secret) -> Self {
        let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
        Self::Header(Secret(format!("Basic {pair}")), String::new())
    }

    /// This value, with where it comes from, in words.
    #[must_use]
    pub fn known_from(self, origin: impl Into<String>) -> Self {
        match self {
            Self::Header(value, _) => Self::Header(value, origin.into()),
            other => other,
        }
    }

    /// Where the value for `url` comes from, in words; `None` if nothing is sent there, and empty if the
    /// origin is not known.
    pub(super) fn origin(&self, url: &SafeUrl, stored: &dyn Credentials) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Header(_, origin) => origin.clone(),
            Self::Stored => match url.as_url().password() {
                Some(_) if stored.token(url).is_none() => "the URL".to_owned(),
                _ => stored.origin(url).unwrap_or_default(),
            },
        }
    }

    /// The header's value for a request to `url`, which may receive it.
    pub(super) fn value(&self, url: &SafeUrl, stored: &dyn Credentials) -> Option<Secret> {
        match self {
            Self::Nothing => None,
            Self::Header(value, _) => Some(value.clone()),
            Self::Stored => match (stored.token(url), url.as_url().password()) {
                (Some(token), _) => Some(Secret(format!("Bearer {}", token.expose()))),
                (None, Some(password)) => {
                    let decoded = |text| percent_decode_str(text).decode_utf8_lossy();
                    let user = decoded(url.as_url().username());
                    let pair = format!("{user}:{}", decoded(password));
                    Some(Secret(format!("Basic {}", STANDARD.encode(pair))))
                }
                (None, None) => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_never_show() {
        let secret = Secret::new("hunter2");
        let shown = format!("{secret:?} {:?}", Authorization::basic("ada", &secret));
        assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"), "{shown}");
    }

    #[test]
    fn a_password_in_the_url_is_decoded() {
        let url = SafeUrl::parse("https://ada:p%40ss%25@h/").expect("is a URL");
        let value = Authorization::Stored.value(&url, &NoCredentials).expect("there is a password");
        assert_eq!(value.expose(), format!("Basic {}", STANDARD.encode("ada:p@ss%")));
    }

    #[test]
    fn variables_name_hosts() {
        for (host, variable) in [
            ("hub.mu.com", Some("MU_TOKEN_HUB_MU_COM")),
            ("hub-mu.com", Some("MU_TOKEN_HUB__MU_COM")),
            ("xn--bcher-kva.example", Some("MU_TOKEN_XN____BCHER__KVA_EXAMPLE")),
            ("localhost:8080", Some("MU_TOKEN_LOCALHOST___8080")),
            ("127.0.0.1:80", Some("MU_TOKEN_127_0_0_1___80")),
            ("[::1]:80", None),
            ("hub_mu.com", None),
            ("hub.mu.com.", None),
            ("a-.b", None),
            ("a.-b", None),
            ("a:", None),
            ("", None),
        ] {
            assert_eq!(token_variable(host).as_deref(), variable, "{host}");
        }
    }

    /// All texts of up to seven relevant characters: every way in which two hosts could share a variable.
    #[test]
    fn no_two_hosts_share_a_variable() {
        let mut hosts = std::collections::HashMap::new();
        let mut texts = vec![String::new()];
        for _ in 0..7 {
            let longer = texts.iter().flat_map(|text| {
                ["a", "1", ".", "-", "_", ":"].map(|character| format!("{text}{character}"))
            });
            texts = longer.collect();
            for host in &texts {
                if let Some(variable) = token_variable(host)
                    && let Some(other) = hosts.insert(variable, host.clone())
                {
                    panic!("`{host}` and `{other}` have one variable");
                }
            }
        }
        assert!(hosts.len() > 1_000, "{}", hosts.len());
    }
}
