//! The text before the names of this hub's packages in references.
//!
//! The server's owner can set it. Otherwise it is the host that the browser asked for, which the client
//! chooses and which goes back only to this client.

use std::net::Ipv6Addr;

use axum::http::{HeaderMap, Uri, header};
use mu_manifest::reference::Base;

/// The longest host that is believed, in bytes.
const LONGEST: usize = 260;

/// The header in which a proxy gives the path at which it serves this server.
const PREFIX: &str = "x-forwarded-prefix";

/// The part before a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Address {
    /// The base, with its slash, as in a package's id; empty if it is not known.
    pub(super) base: String,
    /// The URL of this server, with a slash at the end; empty if it is not known.
    pub(super) url: String,
    /// The protocol, if a reference needs one.
    protocol: &'static str,
}

impl Address {
    /// The address in a request to this server, which may or may not use TLS itself.
    pub(super) fn of(headers: &HeaderMap, uri: &Uri, base: Option<&str>, tls: bool) -> Self {
        let mut address = Self::of_host(headers, uri, base, tls);
        if !address.url.is_empty() {
            address.url.push_str(&prefix(headers));
        }
        address
    }

    fn of_host(headers: &HeaderMap, uri: &Uri, base: Option<&str>, tls: bool) -> Self {
        let asked = uri.authority().map(|authority| authority.as_str());
        let asked = asked.or_else(|| headers.get(header::HOST)?.to_str().ok());
        let here = asked.and_then(|host| place(host, tls));
        let Some(base) = base else {
            let Some((protocol, base)) = here else { return Self::default() };
            let url = format!("{protocol}{base}");
            let protocol = match protocol {
                "http://" => protocol,
                // Without the protocol, the host would be read as a name.
                _ if !base.contains(['.', ':']) => protocol,
                _ => "",
            };
            return Self { base, url, protocol };
        };
        let Some((_, base)) = place(base.trim_end_matches('/'), true) else {
            return Self::default();
        };
        let url = match base == Base::default().as_str() {
            // Each organization decides which server has the packages of the default base.
            true => here.map(|(protocol, base)| format!("{protocol}{base}")).unwrap_or_default(),
            false => format!("https://{base}"),
        };
        Self { protocol: if base.contains(['.', ':']) { "" } else { "https://" }, base, url }
    }

    /// Whether references without a host lead here.
    pub(super) fn is_usual(&self) -> bool {
        self.base == Base::default().as_str()
    }

    /// The text to write to depend on a package: only its name, if the base is the default one.
    pub(super) fn reference(&self, name: &str) -> Option<String> {
        if self.is_usual() {
            return Some(name.to_owned());
        }
        (!self.base.is_empty()).then(|| format!("{}{}{name}", self.protocol, self.base))
    }
}

/// The path at which a proxy serves this server, with a slash at the end; empty if no proxy gives one, or if
/// it is not a plain path.
fn prefix(headers: &HeaderMap) -> String {
    let value = headers.get(PREFIX).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let fits = |segment: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        !matches!(segment, "" | "." | "..") && segment.bytes().all(is_plain)
    };
    let path = value.trim_matches('/');
    let is_path = path.len() <= LONGEST && path.split('/').all(fits);
    if is_path { format!("{path}/") } else { String::new() }
}

/// The protocol and the base of a host; `None` if it is not a host.
fn place(host: &str, tls: bool) -> Option<(&'static str, String)> {
    let (name, port) = split(host)?;
    // mu uses plain http only on its own machine, so a proxy in front of this server must provide TLS.
    let (protocol, usual) = match !tls && is_this_machine(name) {
        true => ("http://", ":80"),
        false => ("https://", ":443"),
    };
    let port = if port == usual { "" } else { port };
    Some((protocol, format!("{}{port}/", name.to_ascii_lowercase())))
}

/// The host and its port (`:8080` or empty); `None` if the text is not a host.
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
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
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
    use axum::http::HeaderValue;

    use super::*;

    fn address(host: &str, base: Option<&str>, tls: bool) -> Address {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().expect("is a header"));
        Address::of(&headers, &Uri::from_static("/x"), base, tls)
    }

    fn reference(host: &str, base: Option<&str>, tls: bool) -> Option<String> {
        address(host, base, tls).reference("a/b")
    }

    #[test]
    fn a_server_is_where_it_was_asked_for_or_where_its_owner_says() {
        for (host, base, tls, expected) in [
            ("Hub.acme.co", None, false, "https://hub.acme.co/"),
            ("localhost:8080", None, false, "http://localhost:8080/"),
            ("localhost:8443", None, true, "https://localhost:8443/"),
            ("localhost:8080", Some("hub.acme.co/"), false, "https://hub.acme.co/"),
            ("localhost:8080", Some("hub.mu.com/"), false, "http://localhost:8080/"),
            ("hub.internal", Some("hub.mu.com/"), false, "https://hub.internal/"),
            ("a b", Some("hub.mu.com/"), false, ""),
        ] {
            assert_eq!(address(host, base, tls).url, expected, "{host}");
        }
    }

    #[test]
    fn a_proxy_may_show_a_server_below_a_path() {
        for (value, expected) in [
            ("/mu", "https://hub.acme.co/mu/"),
            ("/team/mu/", "https://hub.acme.co/team/mu/"),
            ("/", "https://hub.acme.co/"),
            ("/../x", "https://hub.acme.co/"),
            ("//other.co", "https://hub.acme.co/other.co/"),
            ("/a\"><script>", "https://hub.acme.co/"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("hub.acme.co"));
            headers.insert(PREFIX, HeaderValue::from_static(value));
            let address = Address::of(&headers, &Uri::from_static("/x"), None, true);
            assert_eq!(address.url, expected, "{value}");
        }
    }

    #[test]
    fn references_are_what_people_write() {
        for (host, base, tls, expected) in [
            ("hub.acme.co", None, true, "hub.acme.co/a/b"),
            ("Hub.Acme.co:443", None, false, "hub.acme.co/a/b"),
            ("hub.acme.co:8443", None, true, "hub.acme.co:8443/a/b"),
            ("localhost:8080", None, false, "http://localhost:8080/a/b"),
            ("localhost:8080", None, true, "localhost:8080/a/b"),
            ("127.0.0.1:80", None, false, "http://127.0.0.1/a/b"),
            ("[::1]:8080", None, false, "http://[::1]:8080/a/b"),
            ("hub", None, false, "https://hub/a/b"),
            ("my_hub.acme.co:8443", None, true, "my_hub.acme.co:8443/a/b"),
            ("localhost:8080", Some("my_hub.acme.co/"), false, "my_hub.acme.co/a/b"),
            ("127.0.0.1:8080", Some("hub.acme.co/"), false, "hub.acme.co/a/b"),
            ("127.0.0.1:8080", Some("hub.mu.com/"), false, "a/b"),
        ] {
            assert_eq!(reference(host, base, tls).as_deref(), Some(expected), "{host}");
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
