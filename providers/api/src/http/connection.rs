//! How the user has set up the way to one server: certificates that it is trusted by, a certificate of the user's own, a proxy.
//!
//! Everything else reaches servers with what the system trusts, through the proxies that the environment names.
//!
//! [`Proxies`] says which proxy a request goes through, if any; `reqwest` makes the connection. Entries of `NO_PROXY` mean what they
//! mean to the tools around: `reqwest` itself knows neither `*.acme.co` nor `acme.co:8443`.
//!
//! [`tls_config`] says whose certificates are trusted: what the system trusts, as the library for that finds out, and one thing that it refuses
//! ([`Verifier`]).

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::{Client, ClientBuilder, Proxy, Url};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, InconsistentKeys, SignatureScheme,
};

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
            let text = format!("`{}` is not a certificate that can be used", path.display());
            ProviderError::new(ErrorKind::Io, text).because(error.to_string())
        };
        let mut trusted = Vec::new();
        for place in &self.trusted {
            let files = match fs::metadata(place)?.is_dir() {
                true => fs::entries(place)?.iter().map(std::fs::DirEntry::path).collect(),
                false => vec![place.clone()],
            };
            for file in files.iter().filter(|file| file.is_file()) {
                let found: Result<Vec<_>, _> =
                    CertificateDer::pem_slice_iter(&fs::read(file)?).collect();
                // A folder may have other files, too.
                let found = match found {
                    Err(_) if file != place => continue,
                    found => found.map_err(|error| failed(file, &error))?,
                };
                if found.is_empty() && file == place {
                    return Err(failed(file, &"there is no certificate in it"));
                }
                trusted.extend(found);
            }
        }
        let own = match &self.own {
            None => None,
            Some((certificate, key)) => {
                let pem = fs::read(certificate)?;
                let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
                let chain = chain.map_err(|error| failed(certificate, &error))?;
                let place = key.as_ref().unwrap_or(certificate);
                let pem = if key.is_some() { fs::read(place)? } else { pem };
                let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
                    let text = format!("`{}` has no key that can be used", place.display());
                    ProviderError::new(ErrorKind::Io, text).because(error.to_string())
                })?;
                Some((chain, key))
            }
        };
        let no_tls = |error: &dyn std::fmt::Display| {
            ProviderError::new(ErrorKind::Network, "cannot set up TLS").because(error.to_string())
        };
        builder =
            builder.tls_backend_preconfigured(tls_config(trusted, own).map_err(|e| no_tls(&e))?);
        match self.proxy.as_deref() {
            None => builder = proxies.set(builder),
            Some("") => builder = builder.no_proxy(),
            Some(proxy) => {
                let text = proxy_url(proxy);
                Proxy::all(&text).map_err(|error| {
                    let shown = shown_proxy(&text);
                    ProviderError::new(ErrorKind::Network, format!("{shown} is not a proxy"))
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
        builder.build().map_err(|error| no_tls(&error))
    }
}

/// How a client speaks TLS that trusts these certificates beside the system's, and shows its own ones and proves them with a key.
///
/// # Errors
///
/// When one of them cannot be used, or there are none at all.
pub(super) fn tls_config(
    trusted: Vec<CertificateDer<'static>>,
    own: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Verifier::new(trusted)?);
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match own {
        Some((chain, key)) => {
            let own = CertifiedKey::new(chain, provider.key_provider.load_private_key(key)?);
            // A certificate of the first version, which `openssl x509 -req` makes, cannot be compared with its key. Whether it is good is for
            // the server to say.
            match own.keys_match() {
                Ok(()) | Err(rustls::Error::InvalidCertificate(_)) => {}
                Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
                Err(error) => return Err(error),
            }
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own)))
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Trusts what the system's library trusts, and a server's certificate that is itself one of the trusted.
///
/// A certificate that is signed by itself mostly says that it is an authority: `openssl req -x509` makes such ones. webpki takes none of
/// these for a server. OpenSSL and Go do, if exactly it was named. That trusts nobody more than before: the server proves that it has the
/// key of a trusted authority, with which it could sign another certificate for its name.
#[derive(Debug)]
struct Verifier {
    usual: rustls_platform_verifier::Verifier,
    /// What is trusted beside the system's.
    trusted: Vec<CertificateDer<'static>>,
}

impl Verifier {
    fn new(trusted: Vec<CertificateDer<'static>>) -> Result<Self, rustls::Error> {
        let usual = rustls_platform_verifier::Verifier::new_with_extra_roots(
            trusted.iter().cloned(),
            Arc::new(ring::default_provider()),
        )?;
        Ok(Self { usual, trusted })
    }

    /// Whether a certificate is, byte for byte, one that was named: here, to the system, or in `SSL_CERT_FILE`.
    fn is_named(&self, certificate: &CertificateDer<'_>) -> bool {
        let systems = || rustls_native_certs::load_native_certs().certs;
        self.trusted.contains(certificate) || systems().contains(certificate)
    }
}

/// Whether a certificate was refused for this alone: that it says that it is an authority. Its time was looked at before.
fn is_for_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(error)) = error else {
        return false;
    };
    error.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.usual.verify_server_cert(certificate, others, name, ocsp, now) {
            Err(error) if is_for_authority(&error) && self.is_named(certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
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
    use std::time::Duration;

    use mu_testing::{AUTHORITY, FIRST_VERSION, LOCALHOST, SELF_SIGNED};

    use super::*;

    #[test]
    fn a_certificate_that_is_signed_by_itself_is_trusted_if_it_was_named_and_for_its_name_and_time_alone()
     {
        let read = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("is one");
        let [own, other, ordinary] =
            [SELF_SIGNED.certificate, AUTHORITY, LOCALHOST.certificate].map(read);
        let verify = |trusted: &CertificateDer<'static>, shown, name: &'static str, year: u64| {
            let verifier = Verifier::new(vec![trusted.clone()]).expect("can be made");
            let name = ServerName::try_from(name).expect("is a name");
            let now = Duration::from_secs((year - 1970) * 31_556_952);
            let now = UnixTime::since_unix_epoch(now);
            let verified = verifier.verify_server_cert(shown, &[], &name, &[], now);
            verified.map(drop).map_err(|error| format!("{error:?}"))
        };
        for (trusted, shown, name, year, expected) in [
            (&own, &own, "localhost", 2030, None),
            (&own, &own, "localhost.example", 2030, Some("NotValidForName")),
            (&own, &own, "localhost", 2130, Some("Expired")),
            (&own, &own, "localhost", 2020, Some("NotValidYet")),
            (&other, &own, "localhost", 2030, Some("CaUsedAsEndEntity")),
            (&other, &ordinary, "localhost", 2030, None),
            (&own, &ordinary, "localhost", 2030, Some("UnknownIssuer")),
            (&other, &other, "localhost", 2030, Some("NotValidForName")),
        ] {
            let verified = verify(trusted, shown, name, year);
            match expected {
                None => assert_eq!(verified, Ok(()), "{name} {year}"),
                Some(word) => {
                    let error = verified.expect_err("is refused");
                    assert!(error.contains(word), "{name} {year}: {error}");
                }
            }
        }
    }

    #[test]
    fn a_certificate_of_the_first_version_is_shown_to_servers_that_want_one() {
        let certificate =
            |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("is one");
        let read = |pem: &str| {
            let key = PrivateKeyDer::from_pem_slice(SELF_SIGNED.key.as_bytes()).expect("is a key");
            tls_config(vec![certificate(AUTHORITY)], Some((vec![certificate(pem)], key))).map(drop)
        };
        assert_eq!(read(FIRST_VERSION), Ok(()));
        assert_eq!(read(SELF_SIGNED.certificate), Ok(()));
        assert!(read(LOCALHOST.certificate).is_err(), "that has another key");
    }

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
