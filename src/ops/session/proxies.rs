//! The proxies and trusted certificates that the environment names, for messages. The HTTP client finds them itself.

use mu_provider::SafeUrl;
use mu_provider::http::Proxies;

use crate::env::Environment;

/// The proxies that the environment names, as messages call them.
pub(super) fn proxies(environment: &Environment) -> Proxies {
    let names = [
        ("https", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
        ("http", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]),
    ];
    let named = names.into_iter().filter_map(|(scheme, names)| {
        let name = names.into_iter().find(|name| environment.variable(name).is_some())?;
        let value = environment.variable(name)?;
        // A value without a protocol means http, as for curl.
        let url = SafeUrl::parse(value).or_else(|_| SafeUrl::parse(&format!("http://{value}")));
        let shown = url.map_or_else(
            |_| "whose address is not a URL".to_owned(),
            |url| format!("`{}://{}`", url.scheme(), url.host_and_port()),
        );
        Some((scheme, format!("{shown} ({name})")))
    });
    let no_proxy = ["NO_PROXY", "no_proxy"].into_iter().find_map(|name| environment.variable(name));
    Proxies::new(named.collect(), no_proxy.unwrap_or_default())
}

/// The variables that name trusted certificates.
pub(super) fn certificates(environment: &Environment) -> Option<String> {
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"]
        .map(|name| environment.variable(name).map(|value| format!("{name} is `{value}`")));
    let named: Vec<String> = named.into_iter().flatten().collect();
    (!named.is_empty()).then(|| named.join(", "))
}
