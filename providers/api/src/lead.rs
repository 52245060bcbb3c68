//! A place that somebody named, together with who did: only such a place is asked.
//!
//! What the user and the workspace name may be anywhere. What content of the network names leads only to the network: not to this
//! machine, and not into a private network, unless its own place is there. So a [`Lead`] is made of a setting or a reference of
//! the workspace, or by the check of another one. Whether plain http is allowed, and which credentials are sent, is decided
//! by whoever sends the request.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Deref;

use url::Host;

use crate::{ErrorKind, ProviderError, SafeUrl};

/// Who named a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NamedBy {
    /// The user, in a command or in `~/.mu`, or a default of mu.
    User,
    /// The workspace, in its manifests, its lock or its settings.
    #[default]
    Workspace,
    /// A package or a registry.
    Content,
}

/// A URL that may be asked. It is equal to any other with the same URL.
#[derive(Clone)]
pub struct Lead {
    url: SafeUrl,
    named_by: NamedBy,
}

impl Lead {
    /// A place that the user or a default of mu names.
    pub fn of_user(url: SafeUrl) -> Self {
        Self { url, named_by: NamedBy::User }
    }

    /// A place that the workspace names.
    pub fn of_workspace(url: SafeUrl) -> Self {
        Self { url, named_by: NamedBy::Workspace }
    }

    /// A place of which nothing is known but that content of the network names it.
    ///
    /// # Errors
    ///
    /// When it is on this machine, or in a private network.
    pub fn of_content(url: SafeUrl) -> Result<Self, ProviderError> {
        match Reach::of(&url).objection(Reach::Network) {
            None => Ok(Self { url, named_by: NamedBy::Content }),
            Some(why) => {
                Err(refused(&format!("`{url}`, which neither you nor the workspace name,"), why))
            }
        }
    }

    /// A place that content from this one names.
    ///
    /// # Errors
    ///
    /// When it is nearer to this machine than this place is.
    pub fn leads_to(&self, url: SafeUrl) -> Result<Self, ProviderError> {
        if url == self.url {
            return Ok(self.clone());
        }
        if let Some(why) = nearer(&self.url, &url) {
            return Err(refused(&format!("`{url}`, which `{}` names,", self.url), why));
        }
        Ok(Self { url, named_by: NamedBy::Content })
    }

    /// The same place at a URL on the same server: its folder, or where a repository ends in it.
    ///
    /// # Errors
    ///
    /// When that is elsewhere.
    pub fn within(&self, url: SafeUrl) -> Result<Self, ProviderError> {
        let (own, other) = (self.url.as_url(), url.as_url());
        let is_same = own.host_str() == other.host_str() && own.port() == other.port();
        let is_file = |url: &SafeUrl| Reach::of(url) == Reach::Files;
        if is_same && is_file(&self.url) == is_file(&url) {
            return Ok(Self { url, named_by: self.named_by });
        }
        self.leads_to(url)
    }

    /// This place with a slash at the end of its path.
    #[must_use]
    pub fn with_trailing_slash(&self) -> Self {
        Self { url: self.url.as_folder(), named_by: self.named_by }
    }

    /// Who named it.
    pub fn named_by(&self) -> NamedBy {
        self.named_by
    }

    /// Its URL alone, for comparing and showing.
    pub fn url(&self) -> &SafeUrl {
        &self.url
    }
}

impl Deref for Lead {
    type Target = SafeUrl;

    fn deref(&self) -> &SafeUrl {
        &self.url
    }
}

impl PartialEq for Lead {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl Eq for Lead {}

impl Hash for Lead {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.url.hash(state);
    }
}

impl PartialOrd for Lead {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Lead {
    fn cmp(&self, other: &Self) -> Ordering {
        self.url.cmp(&other.url)
    }
}

impl fmt::Display for Lead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.url, formatter)
    }
}

impl fmt::Debug for Lead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.url, formatter)
    }
}

/// The networks that can reach a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The files of this machine.
    Files,
    /// This machine alone.
    Machine,
    /// A private network, judged by the address. For a name, this is not known before the lookup.
    Private,
    /// Everyone, as far as known.
    Network,
}

impl Reach {
    /// The networks that can reach a host, which may have a port.
    pub fn of_host(host: &str) -> Self {
        SafeUrl::parse(&format!("https://{host}/")).map_or(Self::Network, |url| Self::of(&url))
    }

    /// The networks that can reach a URL.
    pub fn of(url: &SafeUrl) -> Self {
        if url.scheme() == "file" || url.scheme().ends_with("+file") {
            return Self::Files;
        }
        // The name of a bucket may be that of a host.
        if url.is_bucket() {
            return Self::Network;
        }
        if url.is_loopback() {
            return Self::Machine;
        }
        match url.real_host() {
            Some(Host::Ipv4(address)) => Self::of_address(address.into()),
            Some(Host::Ipv6(address)) => Self::of_address(address.into()),
            _ => Self::Network,
        }
    }

    /// The networks that can reach an address.
    pub fn of_address(address: IpAddr) -> Self {
        let address = match address {
            IpAddr::V4(address) => return Self::of_short_address(address),
            IpAddr::V6(address) => address,
        };
        match embedded(&address.octets()) {
            Some(address) => Self::of_short_address(address),
            None if address.is_unspecified() || address.is_loopback() => Self::Machine,
            None if address.is_unique_local()
                || address.is_unicast_link_local()
                // The older addresses of a site.
                || address.segments()[0] & 0xffc0 == 0xfec0 =>
            {
                Self::Private
            }
            None => Self::Network,
        }
    }

    fn of_short_address(address: Ipv4Addr) -> Self {
        let [first, second, ..] = address.octets();
        if address.is_loopback() || first == 0 {
            Self::Machine
        } else if address.is_private()
            || address.is_link_local()
            // Shared by the customers of a provider, and used by clouds for what only their machines reach.
            || (first == 100 && second & 0xc0 == 64)
        {
            Self::Private
        } else {
            Self::Network
        }
    }

    /// Why what everyone from `from` can name may not lead here; `None` if it may.
    pub fn objection(self, from: Self) -> Option<&'static str> {
        match self {
            _ if self >= from => None,
            Self::Files => Some("it goes from elsewhere to the files of this machine"),
            Self::Machine => Some("it goes from the network to this machine"),
            Self::Private | Self::Network => Some("it goes from the network to a private address"),
        }
    }
}

/// The IPv4 address in an IPv6 address, if that only leads there.
fn embedded(octets: &[u8; 16]) -> Option<Ipv4Addr> {
    let [.., a, b, c, d] = *octets;
    let last = Ipv4Addr::new(a, b, c, d);
    match octets {
        // Mapped, and a translator's well-known prefix.
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ..]
        | [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, ..] => Some(last),
        // 6to4.
        [0x20, 0x02, a, b, c, d, ..] => Some(Ipv4Addr::new(*a, *b, *c, *d)),
        // Compatible, except `::` and `::1`.
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ..] if u32::from(last) > 1 => Some(last),
        _ => None,
    }
}

/// Why content from `from` may not name `to`, judged by how near both are; `None` if it may. A server may name itself.
fn nearer(from: &SafeUrl, to: &SafeUrl) -> Option<&'static str> {
    let host = from.as_url().host().filter(|_| !from.is_bucket());
    if host.is_some() && host == to.as_url().host() && Reach::of(to) != Reach::Files {
        return None;
    }
    Reach::of(to).objection(Reach::of(from))
}

/// Checks that content from `from` may name `to` as another place of what it has, under the rules for redirects.
///
/// # Errors
///
/// When it leads from https to plain http, or nearer to this machine than `from` is. A server may name itself.
pub fn check_lead(from: &SafeUrl, to: &SafeUrl) -> Result<(), ProviderError> {
    match trespass(from, to) {
        None => Ok(()),
        Some(why) => Err(refused(&format!("`{to}`, which `{from}` names,"), why)),
    }
}

/// Why `from` may not redirect to `to`.
pub(crate) fn trespass(from: &SafeUrl, to: &SafeUrl) -> Option<&'static str> {
    if from.scheme() == "https" && to.scheme() == "http" {
        return Some("it goes from https to plain http");
    }
    nearer(from, to)
}

/// The error about a place that foreign content names.
fn refused(what: &str, why: &str) -> ProviderError {
    ProviderError::new(ErrorKind::Refused, format!("{what} is refused: {why}"))
        .hint("if you trust it, say so yourself: lead there by `registries` or `overrides` in the settings")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> SafeUrl {
        SafeUrl::parse(text).expect("is a URL")
    }

    #[test]
    fn every_spelling_of_this_machine_is_this_machine() {
        for (text, reach) in [
            ("file:///srv/x", Reach::Files),
            ("git+file:///srv/x", Reach::Files),
            ("http://localhost/", Reach::Machine),
            ("http://localhost./", Reach::Machine),
            ("http://app.localhost/", Reach::Machine),
            ("http://127.9.9.9/", Reach::Machine),
            ("http://2130706433/", Reach::Machine),
            ("http://0x7f.1/", Reach::Machine),
            ("http://0.0.0.0/", Reach::Machine),
            ("http://0.1.2.3/", Reach::Machine),
            ("http://[::1]/", Reach::Machine),
            ("http://[::]/", Reach::Machine),
            ("http://[::ffff:127.0.0.1]/", Reach::Machine),
            ("http://[::127.0.0.1]/", Reach::Machine),
            ("http://[64:ff9b::7f00:1]/", Reach::Machine),
            ("http://[2002:7f00:1::]/", Reach::Machine),
            // The hosts of other schemes are plain texts, which programs read as addresses all the same.
            ("ssh://127.0.0.1/x", Reach::Machine),
            ("ssh://127.1/x", Reach::Machine),
            ("git://LOCALHOST/x", Reach::Machine),
            ("bar://127.0.0.1:1/", Reach::Machine),
            ("bar://0x7f000001/", Reach::Machine),
            ("bar://10.0.0.5/", Reach::Private),
            ("https://10.0.0.5/", Reach::Private),
            ("https://172.16.0.1/", Reach::Private),
            ("https://192.168.0.1/", Reach::Private),
            ("https://169.254.169.254/", Reach::Private),
            ("https://100.100.100.200/", Reach::Private),
            ("https://[fd00::1]/", Reach::Private),
            ("https://[fe80::1]/", Reach::Private),
            ("https://[fec0::1]/", Reach::Private),
            ("https://[64:ff9b::a00:5]/", Reach::Private),
            ("https://1.2.3.4/", Reach::Network),
            ("https://100.128.0.1/", Reach::Network),
            ("https://[2001:db8::1]/", Reach::Network),
            ("https://hub.example/", Reach::Network),
            ("https://127.0.0.1.example/", Reach::Network),
            ("s3://localhost/hub/", Reach::Network),
        ] {
            assert_eq!(Reach::of(&url(text)), reach, "{text}");
        }
    }

    #[test]
    fn what_content_names_is_no_nearer_than_itself() {
        for (from, to, fine) in [
            ("https://h/", "https://cdn/a", true),
            ("https://h/", "https://h:8443/a", true),
            ("https://h/", "https://127.0.0.1/a", false),
            ("https://h/", "https://10.0.0.1/a", false),
            ("https://h/", "file:///etc", false),
            ("https://h/", "git+file:///etc", false),
            ("https://10.0.0.5/", "https://10.0.0.6/a", true),
            ("https://10.0.0.5/", "https://10.0.0.5:81/a", true),
            ("https://10.0.0.5/", "https://127.0.0.1/a", false),
            ("https://10.0.0.5/", "file:///etc", false),
            ("http://127.0.0.1:1/", "http://localhost:2/a", true),
            ("http://127.0.0.1:1/", "https://10.0.0.1/a", true),
            ("http://127.0.0.1:1/", "https://h/a", true),
            ("http://127.0.0.1:1/", "file:///etc", false),
            ("file:///srv/a", "http://127.0.0.1/a", true),
            ("file:///srv/a", "file:///srv/b", true),
            ("s3://localhost/hub/", "http://localhost/a", false),
        ] {
            let lead = Lead::of_user(url(from));
            let result = lead.leads_to(url(to));
            assert_eq!(result.is_ok(), fine, "{from} {to}: {result:?}");
            if let Ok(lead) = result {
                assert_eq!(lead.named_by(), NamedBy::Content);
            }
        }
    }

    #[test]
    fn what_is_part_of_a_place_is_named_by_who_named_the_place() {
        let lead = Lead::of_user(url("https://h/"));
        let within = lead.within(url("https://h/group/repo.git")).expect("is the same server");
        assert_eq!(within.named_by(), NamedBy::User);
        assert_eq!(
            lead.within(url("https://other/")).expect("is fine").named_by(),
            NamedBy::Content
        );
        assert!(lead.within(url("file:///srv")).is_err());
    }

    #[test]
    fn a_place_of_content_is_under_the_rules_for_redirects() {
        for (from, to, fine) in [
            ("https://h/", "https://cdn/a", true),
            ("https://h/", "http://h/a", false),
            ("https://h/", "https://h:8443/a", true),
            ("https://h/", "https://0.0.0.0/a", false),
            ("https://h/", "https://[::1]/a", false),
            ("https://h/", "https://[fd00::1]/a", false),
            ("https://h/", "https://169.254.169.254/latest/meta-data/", false),
            ("https://h/", "https://app.localhost/a", false),
            ("http://192.168.0.2/", "http://192.168.0.2:81/a", true),
            ("http://192.168.0.2/", "http://127.0.0.1/a", false),
            ("http://localhost/", "http://127.0.0.1:81/a", true),
            ("http://localhost/", "https://h/a", true),
        ] {
            let result = check_lead(&url(from), &url(to));
            assert_eq!(result.is_ok(), fine, "{from} {to}: {result:?}");
        }
    }
}
