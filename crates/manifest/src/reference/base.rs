//! The host part of a reference, `hub.mu.com/` or `localhost:8080/`, in one normal form.
//!
//! A host is in lower case, an IPv6 address is in its shortest form, and the default port of the protocol is
//! left out, so that two bases for one host are equal.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::{Arc, LazyLock};

use super::error::{Fault, ReferenceError};
use super::protocol::Protocol;

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
        None => host,
    })
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
