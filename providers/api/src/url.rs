//! A URL that cannot print a secret, and how other values are printed for debugging that hold secrets, or what has no text.
//!
//! Userinfo, query and fragment may contain tokens. So what is printed, logged or locked never has a password, a query value, a
//! fragment, or over http a user other than `git`, because many hosts accept a token there. [`without_secrets`] does the same
//! for text with URLs in it, except that the `#` of a reference begins its version; [`place_without_secrets`] is for a text that
//! is no reference.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use url::Url;

/// What is shown instead of a secret.
const HIDDEN: &str = "****";

/// A user that is not a secret over http: people write it before the host because ssh needs it.
const PLAIN_USER: &str = "git";

/// What a query says for other tools that is no secret: a version, or a folder.
const PLAIN_KEYS: [&str; 10] =
    ["ref", "tag", "branch", "rev", "version", "depth", "subdirectory", "egg", "path", "archive"];

/// Whether the value of a query with this key is shown.
pub fn is_plain_key(key: &str) -> bool {
    PLAIN_KEYS.contains(&key)
}

/// What mu's own words have in the place of a user and a password.
const PLACEHOLDER: &str = "USER:PASSWORD";

/// The schemes of buckets: Amazon S3, Google Cloud Storage, Azure Blob Storage.
const BUCKETS: [&str; 8] = ["s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss"];

/// Whether URLs of this scheme name files in the buckets of object stores.
pub fn is_bucket_scheme(scheme: &str) -> bool {
    BUCKETS.contains(&scheme)
}

/// A URL whose `Display` and `Debug` leave out passwords, tokens, query values and fragments. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SafeUrl(Arc<Url>);

impl SafeUrl {
    /// Parses an absolute URL.
    ///
    /// # Errors
    ///
    /// When the text is not an absolute URL.
    pub fn parse(text: &str) -> Result<Self, url::ParseError> {
        Url::parse(text).map(Self::from)
    }

    /// The complete URL, only for the connection itself.
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// The scheme, such as `https`.
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// Host and explicit port, such as `localhost:8080`; empty for `file:`.
    pub fn host_and_port(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        match self.0.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// Whether it names a bucket of an object store, or a file there: then its host is not a machine.
    pub fn is_bucket(&self) -> bool {
        is_bucket_scheme(self.0.scheme())
    }

    /// Whether it is in the same bucket as `other`.
    pub fn is_in_bucket_of(&self, other: &Self) -> bool {
        let of = |url: &Self| {
            let user = url.0.username().to_owned();
            (url.0.scheme().to_owned(), user, url.host_and_port())
        };
        self.is_bucket() && of(self) == of(other)
    }

    /// Whether the host is this machine (`localhost`, `127.0.0.0/8`, `::1`), whatever the scheme is.
    pub fn is_loopback(&self) -> bool {
        if self.is_bucket() {
            return false;
        }
        match self.real_host() {
            Some(url::Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                name == "localhost" || name.ends_with(".localhost")
            }
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    /// The host as programs read it: that of `ssh:`, or of a plugin's scheme, is a mere text in the URL, which may be an address.
    pub(crate) fn real_host(&self) -> Option<url::Host<String>> {
        let host = self.0.host()?.to_owned();
        Some(match host {
            url::Host::Domain(text) => url::Host::parse(&text).unwrap_or(url::Host::Domain(text)),
            address => address,
        })
    }

    /// Whether nobody else can read what is sent there, such as a token.
    pub fn is_confidential(&self) -> bool {
        self.scheme() == "https" || self.is_loopback()
    }

    /// Whether both are the same server: scheme, host and port.
    pub fn is_same_server(&self, other: &Self) -> bool {
        self == other || self.0.origin() == other.0.origin()
    }

    /// Whether its userinfo may be a secret: a password, or over http a user other than `git`, which may be a
    /// token.
    pub fn may_hold_secret(&self) -> bool {
        self.0.password().is_some() || self.has_secret_user()
    }

    fn has_secret_user(&self) -> bool {
        is_http(self.0.scheme()) && !matches!(self.0.username(), "" | PLAIN_USER)
    }

    /// This URL as a folder: with a trailing slash on its path.
    #[must_use]
    pub fn as_folder(&self) -> Self {
        if self.0.path().ends_with('/') {
            return self.clone();
        }
        let mut url = Url::clone(&self.0);
        url.set_path(&format!("{}/", self.0.path()));
        Self::from(url)
    }

    /// The URL of `relative` joined to this one, as a browser would do it.
    ///
    /// # Errors
    ///
    /// When the result is not a URL.
    pub fn join(&self, relative: &str) -> Result<Self, url::ParseError> {
        self.0.join(relative).map(Self::from)
    }
}

impl From<Url> for SafeUrl {
    fn from(url: Url) -> Self {
        Self(Arc::new(url))
    }
}

impl fmt::Display for SafeUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.may_hold_secret() && self.0.query().is_none() && self.0.fragment().is_none() {
            return fmt::Display::fmt(&*self.0, formatter);
        }
        let mut url = Url::clone(&self.0);
        // Both fail only for URLs that cannot have a secret, and this one has.
        if self.has_secret_user() {
            let _ = url.set_password(None);
            let _ = url.set_username(HIDDEN);
        } else if url.password().is_some() {
            let _ = url.set_password(Some(HIDDEN));
        }
        if url.query().is_some() {
            url.set_query(Some(HIDDEN));
        }
        if url.fragment().is_some() {
            url.set_fragment(Some(HIDDEN));
        }
        fmt::Display::fmt(&url, formatter)
    }
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Whether a URL of this scheme uses http, where a user may be a token.
fn is_http(scheme: &str) -> bool {
    matches!(scheme.strip_prefix("git+").unwrap_or(scheme), "http" | "https")
}

/// A text with `****` in place of what may be a secret in its URLs.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let secrets = secrets_in(text);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut end = 0;
    for secret in secrets {
        shown.push_str(&text[end..secret.start]);
        shown.push_str(HIDDEN);
        end = secret.end;
    }
    shown.push_str(&text[end..]);
    Cow::Owned(shown)
}

/// The text of a place, which has no version after a `#`, with `****` in place of what may be a secret.
pub fn place_without_secrets(text: &str) -> String {
    match text.split_once('#') {
        Some((place, _)) => format!("{}#{HIDDEN}", without_secrets(place)),
        None => without_secrets(text).into_owned(),
    }
}

/// The parts of a text that may be secrets, in bytes and in order: the userinfo and the queries of URLs, and
/// `user:password@` without a URL.
///
/// It looks at words without knowing their meaning, and hides too much rather than too little.
pub fn secrets_in(text: &str) -> Vec<Range<usize>> {
    let mut secrets = Vec::new();
    // Most texts need no parsing.
    if !text.contains(['@', '?']) {
        return secrets;
    }
    let ends_word = |character: char| character.is_whitespace() || "\"'`".contains(character);
    let mut start = 0;
    for word in text.split_inclusive(ends_word) {
        let end = start + word.trim_end_matches(ends_word).len();
        in_word(text, start..end, &mut secrets);
        start += word.len();
    }
    secrets
}

fn in_word(text: &str, word: Range<usize>, secrets: &mut Vec<Range<usize>>) {
    let shown = &text[word.clone()];
    let Some(colon) = shown.find("://") else {
        let query = shown.find('?').filter(|at| has_secret_value(&shown[at + 1..]));
        let place = &shown[..query.unwrap_or(shown.len())];
        // The digest of an image follows an `@`, too.
        let at = place.rfind('@').filter(|at| !place[at + 1..].starts_with("sha256:"));
        let secret = at.and_then(|at| {
            let segment = place[..at].rfind('/').map_or(0, |slash| slash + 1);
            let colon = place[segment..at].find(':')?;
            Some(segment + colon + 1..at)
        });
        let secret = secret.filter(|secret| !secret.is_empty());
        let query = query.map(|at| at + 1..shown.len());
        let all = secret.into_iter().chain(query);
        secrets.extend(all.map(|secret| word.start + secret.start..word.start + secret.end));
        return;
    };
    let before = shown[..colon].trim_end_matches(|character: char| {
        character.is_ascii_alphanumeric() || "+-.".contains(character)
    });
    let is_http = is_http(&shown[before.len()..colon].to_ascii_lowercase());
    let start = word.start + colon + "://".len();
    let rest = &text[start..word.end];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let port = authority.split_once(':').map(|(_, port)| port);
    let is_odd = !authority.starts_with('[')
        && port.is_some_and(|port| port.bytes().any(|byte| !byte.is_ascii_digit()));
    // A password may itself contain characters that end a host.
    let user = authority.rfind('@').or_else(|| rest.rfind('@').filter(|_| is_odd));
    if let Some(user) = user {
        let colon = rest[..user].find(':').map(|colon| colon + 1);
        let secret = if is_http && &rest[..user] != PLAIN_USER { Some(0) } else { colon };
        let secret = secret.filter(|_| &rest[..user] != PLACEHOLDER);
        secrets.extend(secret.map(|secret| start + secret..start + user));
    }
    let query = path.find('?').filter(|_| is_http && user.is_none_or(|user| user < end));
    if let Some(query) = query {
        let query_end = path[query..].find('#').map_or(path.len(), |hash| query + hash);
        if !is_plain_query(&path[query + 1..query_end]) {
            secrets.push(start + end + query + 1..start + end + query_end);
        }
    }
}

/// Whether a query says nothing but a version or a folder, as other tools write it.
fn is_plain_query(query: &str) -> bool {
    query.split('&').all(|pair| pair.split_once('=').is_some_and(|(key, _)| is_plain_key(key)))
}

/// Whether what follows a `?` is a query with a value that may be a secret: elsewhere than in a URL, it may be anything.
fn has_secret_value(query: &str) -> bool {
    let is_word = |key: &str| {
        key.starts_with(|first: char| first.is_ascii_alphabetic())
            && key.chars().all(|one| one.is_ascii_alphanumeric() || "-_.".contains(one))
    };
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.any(|(key, value)| is_word(key) && !value.is_empty() && !is_plain_key(key))
}

/// Implements `Debug` for a type by some of its fields; of the others it is only said that they are there.
///
/// ```ignore
/// mu_provider::debug_fields!(Stores { files });
/// ```
#[macro_export]
macro_rules! debug_fields {
    ($name:ident $(<$lifetime:lifetime>)? { $($field:ident),* }) => {
        impl ::std::fmt::Debug for $name $(<$lifetime>)? {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter
                    .debug_struct(stringify!($name))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_prints_secrets() {
        for (text, expected) in [
            ("https://ada:hunter2@example.com/a?token=hunter2", "https://****@example.com/a?****"),
            ("https://hunter2@example.com/a", "https://****@example.com/a"),
            ("git+https://hunter2:x-oauth-basic@h/a", "git+https://****@h/a"),
            ("https://git@example.com/a", "https://git@example.com/a"),
            ("https://example.com/a?b#sig", "https://example.com/a?****#****"),
            ("oci://example.com/a#sig", "oci://example.com/a#****"),
            ("https://:hunter2@example.com/a", "https://:****@example.com/a"),
            ("ssh://ada:hunter2@example.com/a", "ssh://ada:****@example.com/a"),
            ("ssh://ada@example.com/a", "ssh://ada@example.com/a"),
        ] {
            let url = SafeUrl::parse(text).expect("is a URL");
            assert_eq!(
                (url.to_string(), format!("{url:?}")),
                (expected.to_owned(), expected.into())
            );
            assert_eq!(url.may_hold_secret(), text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn hides_secrets_in_text() {
        for (text, expected) in [
            ("hub.mu.com/: https://TOKEN@h/ # ours", "hub.mu.com/: https://****@h/ # ours"),
            ("{\"u\": \"https://a:b@h/x?sig=1#f\"}", "{\"u\": \"https://****@h/x?****#f\"}"),
            ("- git+https://a:b/c@h/x\n- y", "- git+https://****@h/x\n- y"),
            ("ssh://git:pw@h/x git:pw@h:x", "ssh://git:****@h/x git:****@h:x"),
            ("https://git@h/x git@h:o/r ssh://ada@h/x", "https://git@h/x git@h:o/r ssh://ada@h/x"),
            ("`http://USER:PASSWORD@HOST:PORT`", "`http://USER:PASSWORD@HOST:PORT`"),
            ("/w/https:/a:b@h/x", "/w/https:/a:****@h/x"),
            ("quay.io/a/b:v1@sha256:12 x:7@sha256:12", "quay.io/a/b:v1@sha256:12 x:7@sha256:12"),
            ("https://h/x?ref=v1 https://h/x?ref=v1&t=1", "https://h/x?ref=v1 https://h/x?****"),
            ("/w/https:/h/x?token=1 h/x?ref=v1 a?b", "/w/https:/h/x?**** h/x?ref=v1 a?b"),
            ("https://h:80/a@1 https://[::1]/a@b", "https://h:80/a@1 https://[::1]/a@b"),
            ("Ada <ada@acme.co>: aws/ec2#>=1 what?", "Ada <ada@acme.co>: aws/ec2#>=1 what?"),
        ] {
            assert_eq!(without_secrets(text), expected);
        }
    }

    #[test]
    fn hides_what_follows_a_place() {
        for (text, expected) in [
            ("https://h/x#TOKEN", "https://h/x#****"),
            ("https://a:b@h/?q#TOKEN#2", "https://****@h/?****#****"),
            ("hub.mu.com/=oci://h/x#TOKEN", "hub.mu.com/=oci://h/x#****"),
            ("./hub", "./hub"),
        ] {
            assert_eq!(place_without_secrets(text), expected);
        }
    }

    #[test]
    fn knows_loopback() {
        for (text, expected) in [
            ("http://localhost:80/", true),
            ("http://127.3.4.5/", true),
            ("http://[::1]:8/", true),
            ("http://localhost.example.com/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(SafeUrl::parse(text).expect("is a URL").is_loopback(), expected, "{text}");
        }
    }
}
