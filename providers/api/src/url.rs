//! A URL that cannot print a secret.
//!
//! Userinfo, query and fragment may carry tokens; what is printed, logged, locked or compared here
//! never holds a password or a query value.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use url::Url;

/// A URL whose `Display` and `Debug` leave out passwords and query values. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SafeUrl(Arc<Url>);

impl SafeUrl {
    /// Parses an absolute URL.
    ///
    /// # Errors
    ///
    /// When the text is no absolute URL.
    pub fn parse(text: &str) -> Result<Self, url::ParseError> {
        Url::parse(text).map(Self::from)
    }

    /// The URL with everything it holds, for the connection itself and nothing else.
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

    /// Whether the host is this machine (`localhost`, `127.0.0.0/8`, `::1`).
    pub fn is_loopback(&self) -> bool {
        match self.0.host() {
            Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
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

    /// The URL of `relative` seen from this one, as a browser would join them.
    ///
    /// # Errors
    ///
    /// When the result is no URL.
    pub fn join(&self, relative: &str) -> Result<Self, url::ParseError> {
        self.0.join(relative).map(Self::from)
    }
}

impl From<Url> for SafeUrl {
    fn from(url: Url) -> Self {
        Self(Arc::new(url))
    }
}

impl FromStr for SafeUrl {
    type Err = url::ParseError;

    fn from_str(text: &str) -> Result<Self, url::ParseError> {
        Self::parse(text)
    }
}

impl fmt::Display for SafeUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.password().is_none() && self.0.query().is_none() {
            return fmt::Display::fmt(&*self.0, formatter);
        }
        let mut url = Url::clone(&self.0);
        if url.password().is_some() {
            // Fails only for URLs that cannot hold a password, and this one does.
            let _ = url.set_password(Some("****"));
        }
        if url.query().is_some() {
            url.set_query(Some("****"));
        }
        fmt::Display::fmt(&url, formatter)
    }
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_prints_secrets() {
        let url =
            SafeUrl::parse("https://ada:hunter2@example.com/a?token=hunter2").expect("is a URL");
        let shown = format!("{url} {url:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("ada:****@example.com/a?****"), "{shown}");
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
