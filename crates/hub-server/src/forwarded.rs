//! Which client a request is from, if a proxy passed it on.
//!
//! Everybody can send `X-Forwarded-For` and `Forwarded`. So they count only on a connection from a proxy that the server's owner
//! trusts, and only as far as trusted proxies wrote them: each appends the address that it was asked from, at the right. The
//! client is the first address from the right that is not a trusted proxy's; whatever is to the left of it, the client may have
//! invented. A header that cannot be read names nobody, and then the client is who connected.
//!
//! A proxy that writes one of the two headers may pass on the other one as its client sent it. So if a request has both, they have to
//! name the same client.
//!
//! Source of `Forwarded`: RFC 7239. `X-Forwarded-For` has no standard: it is a list of addresses, some with a port.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, HeaderValue};
use mu_hub::Network;

/// The header of most proxies.
const USUAL: &str = "x-forwarded-for";

/// The header of the standard.
const STANDARD: &str = "forwarded";

/// The client of a request: limits are for its address, and the log names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Client(pub(super) IpAddr);

impl Client {
    /// The client of a request that arrived on a connection from `peer`.
    pub(super) fn of(peer: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> Self {
        let peer = peer.to_canonical();
        if !is_any_proxy(proxies, peer) {
            return Self(peer);
        }
        let usual =
            named(headers, USUAL, proxies, |line| Some(line.split(',').map(node).collect()));
        let standard = named(headers, STANDARD, proxies, elements);
        let named = match (usual, standard) {
            (Some(named), None) | (None, Some(named)) => named,
            (Some(one), Some(other)) if one == other => one,
            _ => None,
        };
        Self(named.unwrap_or(peer))
    }
}

/// Whether an address is that of a proxy.
pub(super) fn is_any_proxy(proxies: &[Network], address: IpAddr) -> bool {
    proxies.iter().any(|proxy| proxy.contains(address))
}

/// The client that a header names, or none if it cannot be read; `None` if there is no such header.
///
/// `read` turns one line of the header into its addresses, with none for each that is not one.
fn named(
    headers: &HeaderMap,
    name: &str,
    proxies: &[Network],
    read: impl Fn(&str) -> Option<Vec<Option<IpAddr>>>,
) -> Option<Option<IpAddr>> {
    let mut lines = headers.get_all(name).iter().peekable();
    lines.peek()?;
    let read = |line: &HeaderValue| read(line.to_str().ok()?);
    // A line that cannot be read is like one with something that is not an address.
    let addresses = lines.flat_map(|line| read(line).unwrap_or_else(|| vec![None]));
    let mut found = None;
    for address in addresses.collect::<Vec<_>>().into_iter().rev() {
        found = address;
        if address.is_none_or(|address| !is_any_proxy(proxies, address)) {
            break;
        }
    }
    Some(found)
}

/// The address in an entry such as `10.0.0.1`, `10.0.0.1:4711`, `2001:db8::1` or `[2001:db8::1]:4711`.
fn node(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = || text.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || {
        let inside = text.strip_prefix('[')?.strip_suffix(']')?;
        inside.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
    };
    bare().or_else(with_port).or_else(in_brackets).map(|address| address.to_canonical())
}

/// The addresses under `for` in a line of `Forwarded`, one for each proxy; `None` if the line breaks the rules.
///
/// ```text
/// for=192.0.2.60;proto=http, for="[2001:db8::1]:4711";by=203.0.113.43
/// └──────── element ───────┘ └─────────────── element ──────────────┘
/// ```
fn elements(line: &str) -> Option<Vec<Option<IpAddr>>> {
    let element = |element: &str| -> Option<IpAddr> {
        let pairs = parts(element, ';')?;
        let mut found = None;
        for pair in pairs {
            let (key, value) = pair.trim().split_once('=')?;
            if key.eq_ignore_ascii_case("for") && found.replace(value).is_some() {
                return None;
            }
        }
        // An address has no characters that would be escaped.
        let value = found?;
        node(value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value))
    };
    Some(parts(line, ',')?.into_iter().map(element).collect())
}

/// The parts of a text between separators that are not in quotes; `None` if quotes are not closed.
fn parts(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (place, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '\\' => return None,
            '"' => is_quoted = !is_quoted,
            _ if character == separator && !is_quoted => {
                parts.push(&text[start..place]);
                start = place + separator.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    (!is_quoted).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client of a connection from `peer` with headers, if 10.0.0.0/8 and `::1` are proxies.
    fn client(peer: &str, sent: &[(&'static str, &str)]) -> String {
        let proxies = ["10.0.0.0/8", "::1"].map(|text| Network::parse(text).expect("is one"));
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            let value = HeaderValue::from_bytes(value.as_bytes()).expect("is a header");
            headers.append(*name, value);
        }
        Client::of(peer.parse().expect("is an address"), &headers, &proxies).0.to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let claim = [("x-forwarded-for", "192.0.2.1")];
        assert_eq!(client("10.1.2.3", &claim), "192.0.2.1");
        assert_eq!(client("::ffff:10.1.2.3", &claim), "192.0.2.1");
        assert_eq!(client("::1", &claim), "192.0.2.1");
        assert_eq!(client("11.0.0.1", &claim), "11.0.0.1");
        assert_eq!(client("11.0.0.1", &[("forwarded", "for=192.0.2.1")]), "11.0.0.1");
        assert_eq!(client("10.1.2.3", &[]), "10.1.2.3");
    }

    #[test]
    fn the_client_is_the_first_from_the_right_that_is_no_proxy() {
        for (sent, expected) in [
            ("192.0.2.9, 192.0.2.1", "192.0.2.1"),
            ("garbage, 192.0.2.1", "192.0.2.1"),
            (",, 192.0.2.1 , 10.0.0.2,10.0.0.3", "192.0.2.1"),
            ("10.0.0.7, 10.0.0.2", "10.0.0.7"),
            ("192.0.2.1:4711, 10.0.0.2:80", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]:4711, [::1]", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            // What cannot be read names nobody.
            ("192.0.2.1, garbage", "10.1.2.3"),
            ("192.0.2.1, unknown, 10.0.0.2", "10.1.2.3"),
            ("192.0.2.1,", "10.1.2.3"),
            ("", "10.1.2.3"),
            ("192.0.2.1\u{e9}", "10.1.2.3"),
        ] {
            assert_eq!(client("10.1.2.3", &[("x-forwarded-for", sent)]), expected, "{sent}");
        }
        let lines = [("x-forwarded-for", "192.0.2.9"), ("x-forwarded-for", "192.0.2.1, 10.0.0.2")];
        assert_eq!(client("10.1.2.3", &lines), "192.0.2.1");
    }

    #[test]
    fn the_standard_header_is_read_as_its_standard_says() {
        for (sent, expected) in [
            ("for=192.0.2.1", "192.0.2.1"),
            ("For=192.0.2.9, FOR=192.0.2.1;proto=https", "192.0.2.1"),
            ("by=10.0.0.1;for=\"[2001:db8::1]:4711\", for=10.0.0.2", "2001:db8::1"),
            ("for=\"192.0.2.1\";host=\"a,b;for=192.0.2.9\"", "192.0.2.1"),
            ("for=unknown", "10.1.2.3"),
            ("for=192.0.2.1, for=_hidden", "10.1.2.3"),
            ("for=192.0.2.1;for=192.0.2.9", "10.1.2.3"),
            ("proto=https", "10.1.2.3"),
            ("192.0.2.1", "10.1.2.3"),
            // A client cannot swallow what a proxy appends.
            ("for=192.0.2.9;x=\", for=192.0.2.1", "10.1.2.3"),
            ("for=192.0.2.9;x=\", for=\"[2001:db8::1]\"", "10.1.2.3"),
            ("for=192.0.2.9;x=\"\"\\, for=\"[2001:db8::1]\"", "10.1.2.3"),
        ] {
            assert_eq!(client("10.1.2.3", &[("forwarded", sent)]), expected, "{sent}");
        }
    }

    #[test]
    fn two_headers_have_to_agree() {
        let both = |usual, standard| {
            client("10.1.2.3", &[("x-forwarded-for", usual), ("forwarded", standard)])
        };
        assert_eq!(both("192.0.2.1", "for=192.0.2.1"), "192.0.2.1");
        assert_eq!(both("192.0.2.1", "for=192.0.2.9"), "10.1.2.3");
        assert_eq!(both("192.0.2.1", "for=garbage"), "10.1.2.3");
        assert_eq!(both("garbage", "for=192.0.2.1"), "10.1.2.3");
    }
}
