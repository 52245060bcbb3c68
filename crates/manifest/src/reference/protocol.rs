//! What is in front of a package's name: the part before `://`, which says how to reach it and is not part of its identity, and
//! the host, `hub.mu.com/` or `localhost:8080/`, in one normal form.
//!
//! A host is in lower case, an IPv6 address is in its shortest form, and the default port of the protocol is left out, so that
//! two bases for one host are equal.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::{Arc, LazyLock};

use super::error::{Fault, ReferenceError};

/// How to reach a package, as the reference says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// `https://`, the default.
    Https,
    /// `http://`
    Http,
    /// `ssh://`, which is Git's.
    Ssh,
    /// `git://`
    Git,
    /// `git+https://`
    GitHttps,
    /// `git+http://`
    GitHttp,
    /// `git+ssh://`, and the scp form `git@host:org/repo`.
    GitSsh,
    /// `git+file://`: a repository on this machine.
    GitFile,
    /// `helm+https://`: a chart repository.
    HelmHttps,
    /// `helm+http://`
    HelmHttp,
    /// `helm+file://`: a chart repository on this machine.
    HelmFile,
    /// `kudo+https://`: a repository of KUDO operators.
    KudoHttps,
    /// `kudo+http://`
    KudoHttp,
    /// `kudo+file://`: a repository of KUDO operators on this machine.
    KudoFile,
    /// `olm+https://`: a catalog of operators.
    OlmHttps,
    /// `olm+http://`
    OlmHttp,
    /// `olm+file://`: a catalog of operators on this machine.
    OlmFile,
    /// `oci://`
    Oci,
    /// `file://`: a folder on this machine.
    File,
    /// A scheme that a plugin serves, in lower case.
    Plugin(Box<str>),
}

/// The schemes, in lower case, and the provider that each leads to; none, if the place tells. What an artifact in a registry is, its media
/// types tell.
static SCHEMES: [(&str, Option<&str>, Protocol); 21] = [
    ("https", None, Protocol::Https),
    ("http", None, Protocol::Http),
    ("ssh", Some("git"), Protocol::Ssh),
    ("git", Some("git"), Protocol::Git),
    ("git+https", Some("git"), Protocol::GitHttps),
    ("git+http", Some("git"), Protocol::GitHttp),
    ("git+ssh", Some("git"), Protocol::GitSsh),
    ("git+file", Some("git"), Protocol::GitFile),
    ("helm+https", Some("helm"), Protocol::HelmHttps),
    ("helm+http", Some("helm"), Protocol::HelmHttp),
    ("helm+file", Some("helm"), Protocol::HelmFile),
    ("kudo+https", Some("kudo"), Protocol::KudoHttps),
    ("kudo+http", Some("kudo"), Protocol::KudoHttp),
    ("kudo+file", Some("kudo"), Protocol::KudoFile),
    ("olm+https", Some("olm"), Protocol::OlmHttps),
    ("olm+http", Some("olm"), Protocol::OlmHttp),
    ("olm+file", Some("olm"), Protocol::OlmFile),
    ("oci", Some("oci"), Protocol::Oci),
    ("helm+oci", Some("oci"), Protocol::Oci),
    ("kudo+oci", Some("oci"), Protocol::Oci),
    ("file", None, Protocol::File),
];

impl Protocol {
    /// All schemes but those of plugins.
    pub fn built_in_schemes() -> impl Iterator<Item = &'static str> {
        SCHEMES.iter().map(|(scheme, ..)| *scheme)
    }

    /// The protocol of a scheme in lower case, which must consist of valid letters.
    pub fn from_scheme(scheme: &str) -> Self {
        let known = SCHEMES.iter().find(|(known, ..)| *known == scheme);
        known.map_or_else(|| Self::Plugin(scheme.into()), |(.., protocol)| protocol.clone())
    }

    /// What the table knows of it; nothing of a plugin's.
    fn known(&self) -> Option<&'static (&'static str, Option<&'static str>, Self)> {
        SCHEMES.iter().find(|(.., protocol)| protocol == self)
    }

    /// The scheme, such as `git+https`.
    pub fn as_str(&self) -> &str {
        if let Self::Plugin(scheme) = self {
            return scheme;
        }
        self.known().expect("each has its scheme in the table").0
    }

    /// The provider that it leads to; none, if the place tells, or a plugin serves it.
    pub fn provider(&self) -> Option<&'static str> {
        self.known()?.1
    }

    /// The provider that a word before the `+` of a scheme leads to.
    pub fn provider_of_tool(tool: &str) -> Option<&'static str> {
        let has = |scheme: &str| scheme.split_once('+').is_some_and(|(known, _)| known == tool);
        SCHEMES.iter().find(|(scheme, ..)| has(scheme))?.1
    }

    /// How its provider is reached: what is after the `+` of its scheme; nothing of a plugin's.
    pub fn transport(&self) -> &'static str {
        let scheme = self.known().map_or("", |(scheme, ..)| scheme);
        scheme.split_once('+').map_or(scheme, |(_, transport)| transport)
    }

    /// Whether only Git uses it.
    pub fn is_git(&self) -> bool {
        self.provider() == Some("git")
    }

    /// Whether it leads to an index of all packages of a place, such as a chart repository, and not to one package.
    pub fn is_of_index(&self) -> bool {
        self.provider().is_some_and(|provider| !matches!(provider, "git" | "oci"))
    }

    /// Whether it names something on this machine, so that its path is all there is.
    pub fn is_file(&self) -> bool {
        *self != Self::File && self.transport() == "file"
    }

    /// Whether it uses http, where many hosts accept a token as the user.
    pub(super) fn is_http(&self) -> bool {
        matches!(self.transport(), "https" | "http")
    }

    /// The port that need not be written.
    fn default_port(&self) -> Option<u16> {
        match self.transport() {
            "https" | "oci" => Some(443),
            "http" => Some(80),
            "ssh" => Some(22),
            "git" => Some(9418),
            _ => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Hosts that serve Git repositories and no hub.
pub const GIT_HOSTS: [&str; 4] = ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org"];

const HOST: &str = "a host name";
const HOST_REST: &str = "a letter, a digit, `-`, `.`, or the `/` after the host";
const PORT: &str = "a port from 1 to 65535";
const MAX_HOST: usize = 253;

static HUB: LazyLock<Base> = LazyLock::new(|| Base("hub.mu.com/".into()));
static LOCALHOST: LazyLock<Base> = LazyLock::new(|| Base("localhost/".into()));

/// Host and port of a reference, with a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Base(Arc<str>);

impl Base {
    /// Reads a base; its trailing slash may be missing.
    ///
    /// # Errors
    ///
    /// When the text is not a host with an optional port.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        Self::from_authority(text.strip_suffix('/').unwrap_or(text), &Protocol::Https)
            .map_err(|fault| ReferenceError::new("base", text, fault))
    }

    /// The base of everything that is on this machine, `localhost/`.
    pub fn localhost() -> Self {
        LOCALHOST.clone()
    }

    /// The base with its trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The base without its trailing slash, `localhost:8080`.
    pub fn host_port(&self) -> &str {
        &self.0[..self.0.len() - 1]
    }

    /// The base as a folder's name, `localhost+8080`.
    pub fn folder_name(&self) -> String {
        self.host_port().replace(':', "+")
    }

    pub(super) fn from_authority(text: &str, protocol: &Protocol) -> Result<Self, Fault> {
        Ok(Self([&*normal_host(text, protocol)?, "/"].concat().into()))
    }
}

/// A host with an optional port in normal form, which most already are.
pub(super) fn normal_host<'t>(text: &'t str, protocol: &Protocol) -> Result<Cow<'t, str>, Fault> {
    let (host, end) = match text.strip_prefix('[') {
        Some(rest) => address(rest)?,
        None => host_name(text)?,
    };
    let port = port(text, end)?.filter(|port| Some(*port) != protocol.default_port());
    Ok(match port {
        Some(port) => format!("{host}:{port}").into(),
        None => without_www(host),
    })
}

/// The host of Git without the `www.` that people copy from a browser: it serves the same.
fn without_www(host: Cow<'_, str>) -> Cow<'_, str> {
    let bare = host.strip_prefix("www.").filter(|bare| GIT_HOSTS.contains(bare));
    match bare.map(str::to_owned) {
        Some(bare) => bare.into(),
        None => host,
    }
}

fn address(after_bracket: &str) -> Result<(Cow<'_, str>, usize), Fault> {
    const EXPECTED: &str = "an IPv6 address in `[` and `]`";
    let fault = |at: usize| Fault::new(at + 1, EXPECTED);
    let end = after_bracket
        .find(|character: char| !character.is_ascii_hexdigit() && !matches!(character, ':' | '.'))
        .ok_or(fault(after_bracket.len()))?;
    if !after_bracket[end..].starts_with(']') {
        return Err(fault(end));
    }
    let address: Ipv6Addr = after_bracket[..end].parse().map_err(|_| fault(0))?;
    Ok((format!("[{address}]").into(), end + 2))
}

fn host_name(text: &str) -> Result<(Cow<'_, str>, usize), Fault> {
    let end = text.find(':').unwrap_or(text.len());
    let host = &text[..end];
    if host.len() > MAX_HOST {
        return Err(Fault::new(text.floor_char_boundary(MAX_HOST), "a host of at most 253 bytes"));
    }
    let mut starts_label = true;
    let mut is_lower = true;
    for (at, byte) in host.bytes().enumerate() {
        let fits = match byte {
            b'.' | b'-' => !starts_label,
            b'_' => true,
            _ => byte.is_ascii_alphanumeric(),
        };
        if !fits {
            return Err(Fault::new(at, if starts_label { HOST } else { HOST_REST }));
        }
        starts_label = byte == b'.';
        is_lower &= !byte.is_ascii_uppercase();
    }
    if starts_label {
        return Err(Fault::new(end, HOST));
    }
    let host = if is_lower { host.into() } else { host.to_ascii_lowercase().into() };
    Ok((host, end))
}

fn port(text: &str, start: usize) -> Result<Option<u16>, Fault> {
    let rest = &text[start..];
    if rest.is_empty() {
        return Ok(None);
    }
    let Some(digits) = rest.strip_prefix(':') else {
        return Err(Fault::new(start, "`:` and a port, or the `/` after the host"));
    };
    let digits_start = start + 1;
    if let Some(at) = digits.find(|character: char| !character.is_ascii_digit()) {
        return Err(Fault::new(digits_start + at, PORT));
    }
    match digits.parse() {
        Ok(0) | Err(_) => Err(Fault::new(digits_start, PORT)),
        Ok(port) => Ok(Some(port)),
    }
}

impl Default for Base {
    fn default() -> Self {
        HUB.clone()
    }
}

impl fmt::Display for Base {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

/// A base whose text is known to be in normal form.
pub(super) fn base_from_trusted(text: &str) -> Base {
    Base(text.into())
}
