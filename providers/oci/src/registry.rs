//! One registry: how to reach it, and what its answers have in common.
//!
//! References have `oci://`, which means https. mu tries http first for a registry on this machine, and uses
//! http for others only if that is allowed. It remembers for the run what works.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use mu_provider::http::{Guard, Http, Method, Response, names_of};
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, Progress, ProviderError, SafeUrl};

use crate::auth::other_logins;
use crate::kept::WithoutLists;
use crate::wire::{self, short};

/// A registry.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) http: Arc<Http>,
    /// Host and port, as requests name them.
    pub(crate) host: String,
    pub(crate) insecure: bool,
    is_loopback: bool,
    /// How it was reached.
    scheme: Mutex<Option<&'static str>>,
    /// Whether it was found to keep no lists of referrers, by this run or an earlier one.
    keeps_no_referrers: AtomicBool,
    /// Whether it has said so in this run.
    has_said_so: AtomicBool,
    /// The registries that earlier runs found to keep no lists of referrers.
    without_lists: Arc<WithoutLists>,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Statuses that are answers, in addition to 404.
    pub(crate) allow: Vec<u16>,
    /// The longest answer that is read, in bytes.
    pub(crate) limit: u64,
    pub(crate) guard: Option<Arc<dyn Guard>>,
}

/// Where a request goes.
#[derive(Debug, Clone)]
pub(crate) enum To<'a> {
    /// A path below the registry's root, with its query.
    Path(&'a str),
    /// A place that the registry has named.
    Url(&'a SafeUrl),
}

/// An answer.
#[derive(Debug)]
pub(crate) struct RegistryAnswer {
    pub(crate) url: SafeUrl,
    pub(crate) status: u16,
    pub(crate) etag: Option<String>,
    pub(crate) digest: Option<String>,
    /// All of its links.
    pub(crate) link: String,
    pub(crate) location: Option<String>,
    /// Whether it maintains the list of referrers itself.
    pub(crate) keeps_subject: bool,
    /// What it calls itself.
    pub(crate) api: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

impl Call {
    /// A question.
    pub(crate) fn get(limit: u64, guard: Option<Arc<dyn Guard>>) -> Self {
        let (method, headers, body) = (Method::GET, Vec::new(), Vec::new());
        Self { method, headers, body, allow: Vec::new(), limit, guard }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Accepts manifests and indexes in any format.
    pub(crate) fn accepts_manifests(self) -> Self {
        let [docker, list] = wire::DOCKER;
        self.header("accept", [wire::MANIFEST, wire::INDEX, docker, list].join(", "))
    }
}

impl RegistryAnswer {
    fn read(
        response: Response,
        limit: u64,
        progress: &dyn Progress,
    ) -> Result<Self, mu_provider::http::Failure> {
        let header = |name: &str| response.header(name).map(str::to_owned);
        Ok(Self {
            url: response.url().clone(),
            status: response.status(),
            etag: header("etag"),
            digest: header("docker-content-digest"),
            link: response.headers("link").collect::<Vec<_>>().join(", "),
            location: header("location"),
            keeps_subject: response.header("oci-subject").is_some(),
            api: header("docker-distribution-api-version"),
            bytes: response.bytes(limit, progress)?,
        })
    }

    /// Whether nothing is there.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.status, 404 | 410)
    }

    /// The URL of the next page, if there is one: on this server, and in its API.
    pub(crate) fn next(&self) -> Result<Option<SafeUrl>, ProviderError> {
        let refused = |link: &str, why: &str| {
            let (place, link) =
                (shown(&self.url), without_query(&short(link).replace("\\\"", "\"")));
            let text = format!("`{place}` names a next page that is not read, `{link}`: {why}");
            ProviderError::new(ErrorKind::Protocol, text)
        };
        let found = next_link(&self.link);
        let unread = "a link there is `<URL>; rel=\"next\"`";
        let Some(target) = found.map_err(|UnreadLink| refused(&self.link, unread))? else {
            return Ok(None);
        };
        let named = self.url.join(target).map_err(|_| refused(target, "it is not a URL"))?;
        if named.host_and_port() != self.url.host_and_port() {
            return Err(refused(target, "it is on another server"));
        }
        if !named.as_url().path().starts_with("/v2/") {
            return Err(refused(target, "it is not below `/v2/`, where all of a registry is"));
        }
        // A registry behind a proxy may not know by which scheme it is asked.
        let mut next = self.url.as_url().clone();
        next.set_path(named.as_url().path());
        next.set_query(named.as_url().query());
        Ok(Some(next.into()))
    }
}

/// A link without the query of its URL, which no error shows.
fn without_query(link: &str) -> String {
    let Some((before, query)) = link.split_once('?') else { return link.to_owned() };
    let rest = query.find(['>', ';', ',', ' ']).and_then(|end| query.get(end..));
    format!("{before}?…{}", rest.unwrap_or_default())
}

/// A header that names a next page, and cannot be read.
#[derive(Debug, PartialEq)]
struct UnreadLink;

/// Where the next page is, by a header `Link` (RFC 8288): commas also stand in URLs and in quotes.
fn next_link(header: &str) -> Result<Option<&str>, UnreadLink> {
    let is_next = |one: &str| {
        let one = one.trim().to_ascii_lowercase().replace('"', "");
        one.strip_prefix("rel=").is_some_and(|kinds| kinds.split(' ').any(|kind| kind == "next"))
    };
    let mut rest = header.trim_start_matches([',', ' ', '\t']);
    while !rest.is_empty() {
        let link = rest.strip_prefix('<').and_then(|link| link.split_once('>'));
        let Some((target, parameters)) = link else {
            let names_next = rest.split([';', ',']).any(is_next);
            return if names_next { Err(UnreadLink) } else { Ok(None) };
        };
        let mut is_quoted = false;
        let end = parameters.find(|one: char| {
            is_quoted ^= one == '"';
            one == ',' && !is_quoted
        });
        let end = end.unwrap_or(parameters.len());
        let (parameters, after) = parameters.split_at_checked(end).unwrap_or((parameters, ""));
        if parameters.split(';').any(is_next) {
            return Ok(Some(target));
        }
        rest = after.trim_start_matches([',', ' ', '\t']);
    }
    Ok(None)
}

impl Registry {
    /// A registry that was not contacted yet; `root` is any of its URLs.
    pub(crate) fn new(
        http: &Arc<Http>,
        without_lists: Arc<WithoutLists>,
        root: &SafeUrl,
        insecure: bool,
    ) -> Self {
        let host = api_host(&root.host_and_port()).to_owned();
        Self {
            http: Arc::clone(http),
            keeps_no_referrers: AtomicBool::new(without_lists.has(&host)),
            has_said_so: AtomicBool::new(false),
            without_lists,
            host,
            is_loopback: root.is_loopback(),
            insecure,
            scheme: Mutex::default(),
        }
    }

    /// Whether it was found to keep no lists of referrers.
    pub(crate) fn keeps_no_referrers(&self) -> bool {
        self.keeps_no_referrers.load(Ordering::Relaxed)
    }

    /// Whether it has said in this run that it keeps none. A refusal says nothing, and it may have learned it since an earlier run.
    pub(crate) fn has_said_that_it_keeps_none(&self) -> bool {
        self.has_said_so.load(Ordering::Relaxed)
    }

    /// Whether it has refused requests because there were too many.
    pub(crate) fn is_overloaded(&self) -> bool {
        let scheme = self.schemes();
        let url = scheme.first().and_then(|scheme| self.url(scheme, "").ok());
        url.is_some_and(|url| self.http.takes_turns(&url))
    }

    /// Notes that it does not give any, for this run, and if it has `answered`, for the next ones.
    pub(crate) fn note_no_referrers(&self, answered: bool) {
        self.keeps_no_referrers.store(true, Ordering::Relaxed);
        if answered {
            self.without_lists.add(&self.host);
        }
    }

    /// Notes that it has said that it keeps none.
    pub(crate) fn note_that_it_keeps_none(&self) {
        self.has_said_so.store(true, Ordering::Relaxed);
        self.note_no_referrers(true);
    }

    /// Notes that it keeps them.
    pub(crate) fn note_referrers(&self) {
        if self.keeps_no_referrers.swap(false, Ordering::Relaxed) {
            self.without_lists.remove(&self.host);
        }
    }

    /// The schemes that it may be reached by, the likely one first.
    pub(crate) fn schemes(&self) -> Vec<&'static str> {
        match *lock(&self.scheme) {
            Some(known) => vec![known],
            None if self.is_loopback => vec!["http", "https"],
            None if self.insecure => vec!["https", "http"],
            None => vec!["https"],
        }
    }

    /// The URL of a path of it.
    pub(crate) fn url(&self, scheme: &str, path: &str) -> Result<SafeUrl, ProviderError> {
        let text = format!("{scheme}://{}/{path}", self.host);
        SafeUrl::parse(&text).map_err(|error| {
            ProviderError::new(ErrorKind::Refused, format!("`{text}` is not a URL")).because(error)
        })
    }

    /// Does `work` by the scheme that the registry answers by.
    ///
    /// # Errors
    ///
    /// The first error, if no scheme works.
    pub(crate) fn by_scheme<T>(
        &self,
        mut work: impl FnMut(&'static str) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let mut first = None;
        for scheme in self.schemes() {
            match work(scheme) {
                // Nobody answered, or not with this protocol.
                Err(error) if matches!(error.kind(), ErrorKind::Network | ErrorKind::Protocol) => {
                    first.get_or_insert(error);
                }
                Ok(done) => {
                    lock(&self.scheme).get_or_insert(scheme);
                    return Ok(done);
                }
                // Somebody answered, and wants to know who asks.
                Err(error) if error.kind() == ErrorKind::Auth => return Err(error),
                // The failure with the likelier scheme says more.
                Err(error) => return Err(first.unwrap_or(error)),
            }
        }
        Err(first.expect("there is a scheme, and it failed"))
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// When the registry cannot be reached, or refuses. If nothing is there, that is an answer.
    pub(crate) fn ask(
        &self,
        to: To<'_>,
        call: &Call,
        progress: &dyn Progress,
    ) -> Result<RegistryAnswer, ProviderError> {
        match to {
            To::Url(url) => self.send(url, call, progress),
            To::Path(path) => {
                self.by_scheme(|scheme| self.send(&self.url(scheme, path)?, call, progress))
            }
        }
    }

    fn send(
        &self,
        url: &SafeUrl,
        call: &Call,
        progress: &dyn Progress,
    ) -> Result<RegistryAnswer, ProviderError> {
        let request = self.http.request(call.method.clone(), url).insecure(self.insecure);
        let request = request.guarded(call.guard.clone()).allow(404).allow(410);
        let request = call.allow.iter().fold(request, |request, status| request.allow(*status));
        let headers = call.headers.iter();
        let request =
            headers.fold(request, |request, (name, value)| request.header(name, value.as_str()));
        let mut request = request.body(call.body.clone());
        self.http
            .retry(|| RegistryAnswer::read(request.attempt()?, call.limit, progress))
            .map_err(|error| self.with_hint(error))
    }

    /// Adds where else a registry's password can come from, and how plain http is allowed.
    fn with_hint(&self, error: ProviderError) -> ProviderError {
        match error.kind() {
            // `oci://` never means http, whatever else a reference can have in its place.
            _ if error.is_without_tls() => error.hint_instead(format!(
                "if `{}` is plain http, `insecure: true` for it in the settings allows that, and `--allow-insecure` for one command",
                self.host
            )),
            ErrorKind::Auth => {
                let login = format!("docker login {}", self.host);
                match error.hints().iter().any(|hint| hint.contains(&login)) {
                    true => error,
                    false => error
                        .hint(other_logins(&self.host)),
                }
            }
            _ => error,
        }
    }
}

/// The host that serves a registry: Docker's has other names, too.
pub(crate) fn api_host(host: &str) -> &str {
    names_of(host).first().copied().unwrap_or(host)
}

/// A URL without its query, which no error shows.
pub(crate) fn shown(url: &SafeUrl) -> String {
    let mut url = url.as_url().clone();
    url.set_query(None);
    SafeUrl::from(url).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_links() {
        for (header, expected) in [
            ("</v2/a/tags/list?last=b>; rel=\"next\"", Some("/v2/a/tags/list?last=b")),
            ("</x?last=a,b>; rel=next", Some("/x?last=a,b")),
            ("</x>; title=\"a, <b>\"; rel=\"next\"", Some("/x")),
            ("</first>; rel=\"first\", </x>; rel=\"prev next\"", Some("/x")),
            ("</x>; rel=\"prev\"", None),
            ("/x; rel=\"prev\"", None),
            ("", None),
        ] {
            assert_eq!(next_link(header), Ok(expected), "{header}");
        }
        for header in ["</x; rel=\"next\"", "/x; rel=next", "</first>; rel=first, /x; REL=\"next\""]
        {
            assert_eq!(next_link(header), Err(UnreadLink), "{header}");
        }
    }
}
