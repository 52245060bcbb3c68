//! Which hosts belong to the same people, as far as their names say: those below one registrable domain.
//!
//! The list of public suffixes says where names are handed out to everybody: by a registrar (`co.uk`), or by a company to its customers
//! (`github.io`). It is compiled in, so nothing is asked.

use crate::SafeUrl;

/// Where names are handed out to customers, although the list of public suffixes lacks it: registries of containers, and clouds.
const SHARED: [&str; 8] = [
    "amazonaws.com",
    "amazonaws.com.cn",
    "azurecr.cn",
    "azurecr.io",
    "azurecr.us",
    "container-registry.com",
    "jfrog.io",
    "tencentcloudcr.com",
];

/// Whether both are hosts of the same registrable domain, reached by https at its usual port: `auth.docker.io` and
/// `registry-1.docker.io`, but not `a.github.io` and `b.github.io`.
pub(super) fn is_same_site(one: &SafeUrl, other: &SafeUrl) -> bool {
    let is_usual = |url: &SafeUrl| url.scheme() == "https" && url.as_url().port().is_none();
    let domain = |url: &SafeUrl| registrable(url.as_url().domain()?).map(str::to_owned);
    is_usual(one) && is_usual(other) && domain(one).is_some_and(|own| domain(other) == Some(own))
}

/// The part of a host's name that somebody has registered: `acme.co.uk` of `registry.acme.co.uk`; `None` for a host of this machine, and
/// for one whose name nobody can register, such as `co.uk`.
fn registrable(host: &str) -> Option<&str> {
    let host = host.trim_end_matches('.');
    if host == "localhost" || host.ends_with(".localhost") {
        return None;
    }
    let domain = psl::domain_str(host)?;
    if !SHARED.iter().any(|shared| *shared == domain || domain.ends_with(&format!(".{shared}"))) {
        return Some(domain);
    }
    // Somebody's whole name below it.
    (domain != host).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_one_owner_has_registered_is_a_site() {
        for (one, other, expected) in [
            ("https://registry-1.docker.io/v2/", "https://auth.docker.io/token", true),
            ("https://registry.gitlab.com/v2/", "https://gitlab.com/jwt/auth", true),
            ("https://r.acme.co.uk/", "https://auth.acme.co.uk/", true),
            ("https://r.acme.co.uk/", "https://evil.co.uk/", false),
            ("https://r.acme.co.uk/", "https://co.uk/", false),
            ("https://a.github.io/", "https://b.github.io/", false),
            ("https://r.a.github.io/", "https://auth.a.github.io/", true),
            ("https://d1.cloudfront.net/", "https://d2.cloudfront.net/", false),
            ("https://a.s3.amazonaws.com/", "https://b.s3.amazonaws.com/", false),
            (
                "https://1.dkr.ecr.eu-west-1.amazonaws.com/",
                "https://2.dkr.ecr.eu-west-1.amazonaws.com/",
                false,
            ),
            ("https://a.azurecr.io/", "https://b.azurecr.io/", false),
            ("https://a.azurecr.io/", "https://azurecr.io/", false),
            ("https://a.jfrog.io/", "https://b.jfrog.io/", false),
            ("https://a.blob.core.windows.net/", "https://b.blob.core.windows.net/", false),
            ("https://registry.acme.example/", "https://auth.acme.example/", true),
            ("https://registry.lan/", "https://auth.lan/", false),
            ("https://r.xn--bcher-kva.example/", "https://a.bücher.example/", true),
            ("https://r.рф/", "https://a.рф/", false),
            ("https://r.acme.io/", "https://auth.acme.io./", true),
            ("https://acme.io/", "https://auth.acme.io:8443/", false),
            ("http://acme.io/", "http://auth.acme.io/", false),
            ("https://10.0.0.1/", "https://10.0.0.2/", false),
            ("https://localhost/", "https://a.localhost/", false),
            ("https://a.localhost/", "https://b.a.localhost/", false),
            ("https://registry/", "https://registry./", false),
        ] {
            let url = |text: &str| SafeUrl::parse(text).expect("is a URL");
            assert_eq!(is_same_site(&url(one), &url(other)), expected, "{one} {other}");
            assert_eq!(is_same_site(&url(other), &url(one)), expected, "{other} {one}");
        }
    }
}
