//! What people write before the names of this hub's packages.
//!
//! The server's owner may say so. Else it is the host that the browser asked for, which is the client's word and
//! goes back to this client alone.

use std::net::Ipv6Addr;

use axum::http::{HeaderMap, Uri, header};

/// The longest host that is believed, in bytes.
const LONGEST: usize = 260;

/// What stands before a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Address {
    /// The base, with its slash, as in a package's id; empty if it is not known.
    pub(super) base: String,
    /// The protocol, where a reference needs one.
    protocol: &'static str,
}

impl Address {
    /// The address of a request to a server that speaks TLS itself or does not.
    pub(super) fn of(headers: &HeaderMap, uri: &Uri, told: Option<&str>, tls: bool) -> Self {
        let asked = uri.authority().map(|authority| authority.as_str());
        let asked = asked.or_else(|| headers.get(header::HOST)?.to_str().ok());
        let Some(host) = told.map(|base| base.trim_end_matches('/')).or(asked) else {
            return Self::default();
        };
        let Some((name, port)) = split(host) else { return Self::default() };
        // Beyond its own machine mu speaks no plain http, so TLS is spoken by what stands before this server.
        let is_plain = told.is_none() && !tls && is_this_machine(name);
        let usual = if is_plain { ":80" } else { ":443" };
        let port = if port == usual { "" } else { port };
        let base = format!("{}{port}/", name.to_ascii_lowercase());
        let protocol = match is_plain {
            true => "http://",
            // Else the host would be read as a name.
            false if !base.contains(['.', ':']) => "https://",
            false => "",
        };
        Self { base, protocol }
    }

    /// What to write to depend on a package.
    pub(super) fn reference(&self, name: &str) -> Option<String> {
        (!self.base.is_empty()).then(|| format!("{}{}{name}", self.protocol, self.base))
    }
}

/// The host and its port, `:8080` or nothing; `None` if that is none.
fn split(host: &str) -> Option<(&str, &str)> {
    let end = match host.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']')?;
            rest[..end].parse::<Ipv6Addr>().ok()?;
            end + 2
        }
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_name = name.starts_with('[') || name.bytes().all(fits) && !name.starts_with(['-', '.']);
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    (is_name && is_port && !name.is_empty() && host.len() <= LONGEST).then_some((name, port))
}

fn is_this_machine(name: &str) -> bool {
    let address = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(host: &str, told: Option<&str>, tls: bool) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().expect("is a header"));
        Address::of(&headers, &Uri::from_static("/x"), told, tls).reference("a/b")
    }

    #[test]
    fn references_are_what_people_write() {
        for (host, told, tls, expected) in [
            ("hub.acme.co", None, true, "hub.acme.co/a/b"),
            ("Hub.Acme.co:443", None, false, "hub.acme.co/a/b"),
            ("hub.acme.co:8443", None, true, "hub.acme.co:8443/a/b"),
            ("localhost:8080", None, false, "http://localhost:8080/a/b"),
            ("localhost:8080", None, true, "localhost:8080/a/b"),
            ("127.0.0.1:80", None, false, "http://127.0.0.1/a/b"),
            ("[::1]:8080", None, false, "http://[::1]:8080/a/b"),
            ("hub", None, false, "https://hub/a/b"),
            ("127.0.0.1:8080", Some("hub.mu.com/"), false, "hub.mu.com/a/b"),
        ] {
            assert_eq!(reference(host, told, tls).as_deref(), Some(expected), "{host}");
        }
    }

    #[test]
    fn a_host_that_is_none_is_not_repeated() {
        for host in
            ["", "a b", "x\"><script>", "a/b", "a;rm", "a:0", "a:x", "-a", "[a]", "[::1", "$(x)"]
        {
            assert_eq!(reference(host, None, false), None, "{host}");
        }
    }
}
