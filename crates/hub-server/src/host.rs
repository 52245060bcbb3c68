//! The host that a request names, as HTTP requires.
//!
//! Source of the rules: RFC 9112, 3.2. `page/address.rs` decides what comes before the names of packages.

use axum::extract::Request;
use axum::http::{StatusCode, Version, header};

use super::problem::Problem;

/// Checks that a request names one host. If it does not, a proxy in front may have read it differently.
pub(super) fn check(request: &Request) -> Result<(), Problem> {
    let refuse = |detail: &str| Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    let mut named = request.headers().get_all(header::HOST).iter();
    match (named.next(), named.next()) {
        (_, Some(_)) => refuse("the request has more than one `Host`"),
        (None, None) if request.version() == Version::HTTP_11 => {
            refuse("the request has no `Host`, which HTTP/1.1 requires")
        }
        (Some(host), None) if !is_host(host.as_bytes()) => {
            refuse("the `Host` of the request is not a host with or without a port")
        }
        _ => Ok(()),
    }
}

/// Whether a text is a host, with or without a port. It may be empty.
fn is_host(host: &[u8]) -> bool {
    let (name, port) = match host.iter().rposition(|byte| *byte == b':') {
        Some(colon) if !host[colon..].contains(&b']') => (&host[..colon], &host[colon + 1..]),
        _ => (host, &[][..]),
    };
    let inside = name.strip_prefix(b"[").map(|rest| rest.strip_suffix(b"]"));
    let is_name = match inside {
        None => name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(byte)),
        Some(Some(address)) => {
            address.iter().all(|byte| byte.is_ascii_alphanumeric() || b":.".contains(byte))
        }
        Some(None) => false,
    };
    is_name && port.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::is_host;

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        for fine in ["", "hub.acme.co", "HUB:8080", "my_hub:80", "10.0.0.1:1", "[::1]", "[::1]:80"]
        {
            assert!(is_host(fine.as_bytes()), "{fine}");
        }
        for wrong in
            ["a b", "a, b", "a/b", "x\"><script>", "u@h", "a:b", "::1", "[::1", "a]", "\u{e4}"]
        {
            assert!(!is_host(wrong.as_bytes()), "{wrong}");
        }
    }
}
