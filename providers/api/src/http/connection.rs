//! How the user has set up the way to one server: certificates that it is trusted by, a certificate of the user's own, a proxy.
//!
//! Everything else reaches servers with what the system trusts, through the proxies that the environment names.
//!
//! [`Proxies`] says which proxy a request goes through, if any; `reqwest` makes the connection. Entries of `NO_PROXY` mean what they
//! mean to the tools around: `reqwest` itself knows neither `*.acme.co` nor `acme.co:8443`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use reqwest::{Certificate, Client, ClientBuilder, Identity, Proxy, Url};

use super::Secret;
use crate::{ErrorKind, ProviderError, SafeUrl, fs};

/// The way to one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Connection {
    /// Files, and folders of files, with certificates that are trusted beside the system's.
    pub trusted: Vec<PathBuf>,
    /// The user's own certificate, and its key if that is in another file.
    pub own: Option<(PathBuf, Option<PathBuf>)>,
    /// The proxy; an empty text means none.
    pub proxy: Option<String>,
}

/// How the user has set up the way to one server, and what messages say of that.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// The certificates that it is trusted by, and the user's own.
    pub connection: Connection,
    /// The hint about what is set up there that mu does not do, if its certificate is not accepted.
    pub refused: Option<String>,
}

impl Connection {
    /// Whether it is the usual one.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// The name of the proxy that requests to `url` go through on this way; `None` if there is none.
    pub(super) fn proxy_for(&self, url: &SafeUrl, proxies: &Proxies) -> Option<String> {
        match self.proxy.as_deref() {
            None => proxies.named(url).map(|proxy| proxy.shown.clone()),
            Some("") => None,
            Some(proxy) => (!proxies.is_direct(url)).then(|| shown_proxy(&proxy_url(proxy))),
        }
    }

    /// A client that goes this way.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or is no certificate.
    pub(super) fn client(
        &self,
        mut builder: ClientBuilder,
        proxies: &Proxies,
    ) -> Result<Client, ProviderError> {
        let failed = |path: &Path, error: &dyn std::fmt::Display| {
            let text = format!("`{}` is no certificate that can be used", path.display());
            ProviderError::new(ErrorKind::Io, text).because(error.to_string())
        };
        for place in &self.trusted {
            let files = match fs::metadata(place)?.is_dir() {
                true => fs::entries(place)?.iter().map(std::fs::DirEntry::path).collect(),
                false => vec![place.clone()],
            };
            for file in files.iter().filter(|file| file.is_file()) {
                let found = Certificate::from_pem_bundle(&fs::read(file)?);
                // A folder may have other files, too.
                let found = match found {
                    Err(_) if file != place => continue,
                    found => found.map_err(|error| failed(file, &error))?,
                };
                if found.is_empty() && file == place {
                    return Err(failed(file, &"there is no certificate in it"));
                }
                builder = builder.tls_certs_merge(found);
            }
        }
        if let Some((certificate, key)) = &self.own {
            let mut pem = fs::read(certificate)?;
            if let Some(key) = key {
                pem.push(b'\n');
                pem.extend(fs::read(key)?);
            }
            let own = Identity::from_pem(&pem).map_err(|error| failed(certificate, &error))?;
            builder = builder.identity(own);
        }
        match self.proxy.as_deref() {
            None => builder = proxies.set(builder),
            Some("") => builder = builder.no_proxy(),
            Some(proxy) => {
                let text = proxy_url(proxy);
                Proxy::all(&text).map_err(|error| {
                    let shown = shown_proxy(&text);
                    ProviderError::new(ErrorKind::Network, format!("{shown} is no proxy"))
                        .because(error.without_url().to_string())
                })?;
                let proxies = proxies.clone();
                let through = move |url: &Url| {
                    let is_direct = proxies.is_direct(&url.clone().into());
                    (!is_direct).then(|| text.clone())
                };
                builder = builder.proxy(Proxy::custom(through));
            }
        }
        builder.build().map_err(|error| {
            ProviderError::new(ErrorKind::Network, "cannot set up TLS").because(error.to_string())
        })
    }
}

/// The URL of a proxy, whose scheme may be left out.
fn proxy_url(text: &str) -> String {
    if text.contains("://") { text.to_owned() } else { format!("http://{text}") }
}

/// What messages call the proxy at a URL, which may hold a password.
fn shown_proxy(url: &str) -> String {
    match SafeUrl::parse(url) {
        Ok(url) => format!("`{}`", url.to_string().trim_end_matches('/')),
        Err(_) => "`a text that is no URL`".to_owned(),
    }
}

/// A proxy that the environment names.
#[derive(Debug, Clone)]
pub struct NamedProxy {
    /// What messages call it.
    pub shown: String,
    /// Its URL, which may hold a password.
    pub address: Secret,
}

/// The proxies that the environment names, and the hosts that need none.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    named: Vec<(&'static str, NamedProxy)>,
    direct: Vec<String>,
}

impl Proxies {
    /// The proxies, each by the scheme that it is for, and the value of `NO_PROXY`.
    pub fn new(named: Vec<(&'static str, NamedProxy)>, no_proxy: &str) -> Self {
        let direct = no_proxy.split(',').map(str::trim).filter(|host| !host.is_empty());
        Self { named, direct: direct.map(str::to_ascii_lowercase).collect() }
    }

    /// The proxy for requests to `url`; `None` if there is none.
    fn named(&self, url: &SafeUrl) -> Option<&NamedProxy> {
        if self.is_direct(url) {
            return None;
        }
        let mut named = self.named.iter();
        named.find(|(scheme, _)| *scheme == url.scheme()).map(|(_, proxy)| proxy)
    }

    /// Whether requests to `url` go through no proxy.
    fn is_direct(&self, url: &SafeUrl) -> bool {
        let (host, port) = (url.as_url().host_str(), url.as_url().port_or_known_default());
        let host = host.unwrap_or_default();
        url.is_loopback() || self.direct.iter().any(|entry| covers(entry, host, port))
    }

    /// The hosts of all of them.
    pub(super) fn hosts(&self) -> impl Iterator<Item = String> {
        let host = |(_, proxy): &(_, NamedProxy)| {
            Some(Url::parse(proxy.address.expose()).ok()?.host_str()?.to_owned())
        };
        self.named.iter().filter_map(host)
    }

    /// A client that uses them.
    pub(super) fn set(&self, builder: ClientBuilder) -> ClientBuilder {
        let proxies = self.clone();
        let through = move |url: &Url| {
            let proxy = proxies.named(&url.clone().into())?;
            Some(proxy.address.expose().to_owned())
        };
        builder.proxy(Proxy::custom(through))
    }
}

/// Whether an entry of `NO_PROXY` covers a host: `*`, a domain and its subdomains (`acme.co`, `.acme.co` or `*.acme.co`), an address, or
/// a block of addresses; with a port behind it, for that port alone.
fn covers(entry: &str, host: &str, port: Option<u16>) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if entry == "*" {
        return true;
    }
    let with_port = entry.rsplit_once(':').filter(|(before, _)| {
        !before.contains(':') || (before.starts_with('[') && before.ends_with(']'))
    });
    if let Some((entry, own)) = with_port {
        return own.parse().ok() == port && covers(entry, host, None);
    }
    let entry = entry.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<IpAddr>() {
        return match entry.split_once('/') {
            Some((block, length)) => is_in(address, block, length),
            None => entry.parse() == Ok(address),
        };
    }
    let domain = entry.strip_prefix('*').unwrap_or(entry);
    let domain = domain.strip_prefix('.').unwrap_or(domain);
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether an address is in a block such as `10.0.0.0/8`.
fn is_in(address: IpAddr, block: &str, length: &str) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let (Ok(block), Ok(length)) = (block.parse::<IpAddr>(), length.parse::<u32>()) else {
        return false;
    };
    let ((address, size), (block, block_size)) = (bits(address), bits(block));
    let rest = 128_u32.saturating_sub(length);
    size == block_size
        && length <= size
        && (address ^ block).checked_shr(rest).unwrap_or_default() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_that_a_way_goes_through_is_named() {
        let proxy = NamedProxy { shown: "P".to_owned(), address: Secret::new("http://p") };
        let proxies = Proxies::new(vec![("https", proxy)], "near.acme.co");
        for (own, url, expected) in [
            (None, "https://hub.acme.co/", Some("P")),
            (Some(""), "https://hub.acme.co/", None),
            (Some("q:3128"), "https://hub.acme.co/", Some("`http://q:3128`")),
            (Some("q:3128"), "https://near.acme.co/", None),
        ] {
            let way = Connection { proxy: own.map(str::to_owned), ..Connection::default() };
            let url = SafeUrl::parse(url).expect("is a URL");
            assert_eq!(way.proxy_for(&url, &proxies).as_deref(), expected, "{own:?} {url}");
        }
        let way =
            Connection { proxy: Some("http://ada:hunter2@q".into()), ..Connection::default() };
        let url = SafeUrl::parse("https://hub.acme.co/").expect("is a URL");
        let shown = way.proxy_for(&url, &proxies).expect("there is one");
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn some_hosts_need_no_proxy() {
        let of = |no_proxy: &str, url: &str| {
            let proxy = NamedProxy { shown: "P".to_owned(), address: Secret::new("http://p") };
            let proxies = Proxies::new(vec![("https", proxy)], no_proxy);
            Connection::default().proxy_for(&SafeUrl::parse(url).expect("is a URL"), &proxies)
        };
        for (no_proxy, url, is_proxied) in [
            ("", "https://hub.acme.co/", true),
            ("", "http://hub.acme.co/", false),
            ("", "https://localhost/", false),
            ("*", "https://hub.acme.co/", false),
            ("x.co, Acme.co", "https://hub.acme.co/", false),
            (".acme.co", "https://acme.co/", false),
            ("acme.co", "https://notacme.co/", true),
            ("10.0.0.0/8", "https://10.1.2.3/", false),
            ("10.0.0.0/8", "https://11.1.2.3/", true),
            ("10.1.2.3", "https://10.1.2.3/", false),
            ("0.0.0.0/0", "https://10.1.2.3/", false),
            ("fd00::/8", "https://[fd00::1]/", false),
            ("10.0.0.0/x", "https://10.1.2.3/", true),
            ("*.acme.co", "https://hub.acme.co/", false),
            ("*.acme.co", "https://notacme.co/", true),
            ("hub.acme.co:443", "https://hub.acme.co/", false),
            ("hub.acme.co:8443", "https://hub.acme.co/", true),
            ("hub.acme.co:8443", "https://hub.acme.co:8443/", false),
            (":443", "https://hub.acme.co/", true),
            ("10.1.2.3:443", "https://10.1.2.3/", false),
            ("[fd00::1]:443", "https://[fd00::1]/", false),
            ("fd00::1", "https://[fd00::1]/", false),
        ] {
            assert_eq!(of(no_proxy, url).is_some(), is_proxied, "{no_proxy} {url}");
        }
    }
}
