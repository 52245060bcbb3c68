//! Where a request may go, and whether it may carry a token there. Nothing here sends anything.

use url::Url;

use super::or_variable;
use crate::lead::trespass;
use crate::{ErrorKind, ProviderError, SafeUrl};

/// Checks that mu may connect to `url`: https, or http if it is safe or was allowed.
pub(super) fn check_scheme(url: &SafeUrl, insecure: bool) -> Result<(), ProviderError> {
    check_user(url)?;
    match url.scheme() {
        "https" => Ok(()),
        "http" if insecure || url.is_loopback() => Ok(()),
        "http" => Err(ProviderError::new(
            ErrorKind::Refused,
            format!("`{url}` is refused: plain http can be read and changed in transit"),
        )
        .hint("use https, or accept the risk with `--allow-insecure` or `insecure: true` for that registry")),
        _ => Err(ProviderError::new(ErrorKind::Refused, format!("`{url}` is refused: it is not an http URL"))),
    }
}

/// Refuses a user without a password. A server can only use it as a name, so most likely it is a token.
fn check_user(url: &SafeUrl) -> Result<(), ProviderError> {
    if url.as_url().password().is_some() || !url.may_hold_secret() {
        return Ok(());
    }
    let text = format!(
        "`{url}` is refused: the user name in it may be a token, which does not belong in a URL"
    );
    let host = url.host_and_port();
    let variable = or_variable(&host);
    Err(ProviderError::new(ErrorKind::Refused, text)
        .hint(format!("leave it out; `mu login {host}` stores a token{variable}")))
}

/// The target of a redirect from `from`, if it may be followed.
pub(super) fn redirected(
    from: &SafeUrl,
    location: &str,
    insecure: bool,
) -> Result<SafeUrl, ProviderError> {
    let mut to: Url = from.as_url().join(location).map_err(|error| {
        let text = format!("`{from}` redirects to something that is not a valid URL");
        ProviderError::new(ErrorKind::Protocol, text).because(error)
    })?;
    // Credentials that a server makes up are not the user's. Removing them fails only if the URL cannot have
    // any.
    let _ = to.set_username("");
    let _ = to.set_password(None);
    let to = SafeUrl::from(to);
    if let Some(why) = trespass(from, &to) {
        let text = format!("the redirect from `{from}` to `{to}` is refused: {why}");
        return Err(ProviderError::new(ErrorKind::Refused, text));
    }
    check_scheme(&to, insecure).map_err(|reason| {
        let text = format!("the redirect from `{from}` to `{to}` is refused");
        let refused = ProviderError::new(ErrorKind::Refused, text);
        reason.hints().iter().fold(refused, ProviderError::hint).because(reason.to_string())
    })?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> SafeUrl {
        SafeUrl::parse(text).expect("is a URL")
    }

    #[test]
    fn plain_http_needs_loopback_or_permission() {
        for (text, insecure, fine) in [
            ("https://h/", false, true),
            ("http://h/", false, false),
            ("http://h/", true, true),
            ("http://localhost:8080/", false, true),
            ("http://127.0.0.1.example.com/", false, false),
            ("https://git@h/", false, true),
            ("https://hunter2@h/", false, false),
            ("ftp://h/", true, false),
            ("file:///x", true, false),
        ] {
            let result = check_scheme(&url(text), insecure);
            assert_eq!(result.is_ok(), fine, "{text} {insecure}");
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::Refused);
                assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
            }
        }
    }

    #[test]
    fn redirects_never_become_less_safe() {
        for (from, location, insecure, expected) in [
            ("https://h/a", "b", false, Some("https://h/b")),
            ("https://h/a", "https://other/b", false, Some("https://other/b")),
            ("https://h/a", "http://h/b", true, None),
            ("https://h/a", "http://localhost/b", false, None),
            ("http://localhost/a", "http://h/b", false, None),
            ("http://h/a", "http://other/b", true, Some("http://other/b")),
            ("http://localhost/a", "//localhost:81/b", false, Some("http://localhost:81/b")),
            ("https://h/a", "file:///etc/passwd", false, None),
            ("https://h/a", "https://eve:x@h/b", false, Some("https://h/b")),
            ("https://h/a", "https://localhost/b", false, None),
            ("https://h/a", "https://[::ffff:127.0.0.1]/b", false, None),
            ("http://h/a", "http://10.1.2.3/b", true, None),
            ("https://10.1.2.3/a", "https://10.1.2.4/b", false, Some("https://10.1.2.4/b")),
        ] {
            let result = redirected(&url(from), location, insecure).map(|to| to.to_string());
            assert_eq!(result.as_deref().ok(), expected, "{from} {location}: {result:?}");
        }
    }

    #[test]
    fn a_refused_redirect_names_both_ends() {
        let error = redirected(&url("https://h/a"), "http://h/b?token=x", false)
            .expect_err("leads to plain http");
        let text = error.to_string();
        assert!(text.contains("https://h/a") && text.contains("http://h/b?****"), "{text}");
    }
}
