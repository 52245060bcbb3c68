//! Git over http and https, with the client that all providers share: "smart" http, as every host has it.

use std::io::Read;
use std::sync::Arc;

use mu_provider::http::{Authorization, Http, REDIRECTING, Request, Response};
use mu_provider::{ErrorKind, ProviderError, SafeUrl, brief, without_secrets};

use super::credentials::{Access, ways_to_log_in};
use super::session::{Connected, Link, Session, describe, not_a_repository};
use crate::remote_url::{KNOWN_HOSTS, RemoteUrl};
use crate::settings::WebSettings;
use crate::wire::{Handshake, WireError};

/// What requests call themselves: some hosts answer only Git.
const USER_AGENT: &str = concat!("git/2.0 (mu/", env!("CARGO_PKG_VERSION"), ")");
const SERVICE: &str = "/info/refs?service=git-upload-pack";

/// The data for requests to one repository.
#[derive(Debug)]
struct Connection {
    http: Arc<Http>,
    remote: RemoteUrl,
    /// The URL of the repository, after redirects.
    base: SafeUrl,
    authorization: Authorization,
    web: WebSettings,
    access: Access,
}

/// Begins a conversation with a repository on a web server.
pub(super) fn open(
    remote: &RemoteUrl,
    http: &Arc<Http>,
    access: Access,
    web: WebSettings,
) -> Result<Box<dyn Session>, ProviderError> {
    let mut base = remote.url.as_url().clone();
    // A header has the user. Removing it fails only if the URL cannot have a user.
    let _ = base.set_username("");
    let url = SafeUrl::parse(&format!("{}{SERVICE}", base.as_str().trim_end_matches('/')))
        .map_err(|error| not_a_repository(remote).because(error))?;
    let mut authorization = access.credentials.known(&remote.url);
    if authorization == Authorization::Nothing
        && let Some(offer) = access.unasked(remote)
    {
        authorization = offer.to_authorization();
    }
    let ask = |authorization: &Authorization| {
        let request = common(http.get(&url), remote, authorization, &web).allow(401);
        let stays = REDIRECTING.iter().filter(|_| !web.follows_redirects);
        stays.fold(request, |request, status| request.allow(*status)).send()
    };
    let response = let_in(remote, &access, &mut authorization, &ask)?;
    if REDIRECTING.contains(&response.status()) {
        let to = response.header("location").unwrap_or_default();
        let to = without_secrets(to);
        let to = brief(&to);
        let text = format!(
            "`{remote}` redirects to `{to}`, and `http.followRedirects` in Git's configuration does not let it"
        );
        return Err(ProviderError::new(ErrorKind::Refused, text)
            .hint("name the repository by the URL that it redirects to"));
    }
    let kind = response.header("content-type").unwrap_or_default().to_owned();
    let base = response.url().to_owned();
    let base = base.as_url().as_str().strip_suffix(SERVICE).map(SafeUrl::parse);
    let Some(Ok(base)) = base.filter(|_| kind == "application/x-git-upload-pack-advertisement")
    else {
        return Err(other_kind(remote, response));
    };
    let handshake = Handshake::receive(response).map_err(|error| describe(remote, error))?;
    // Credentials for one host are not sent to another one that it redirects to.
    if !base.is_same_server(&url) {
        authorization = Authorization::Nothing;
    }
    let (http, remote_url) = (Arc::clone(http), remote.clone());
    let link = Connection { http, remote: remote_url, base, authorization, web, access };
    Ok(Box::new(Connected::new(remote, link, handshake)))
}

/// The answer to a request that `ask` sends, again with each of the credentials for `remote` while the server asks for them. Afterwards,
/// `authorization` is what was accepted.
fn let_in(
    remote: &RemoteUrl,
    access: &Access,
    authorization: &mut Authorization,
    ask: &dyn Fn(&Authorization) -> Result<Response, ProviderError>,
) -> Result<Response, ProviderError> {
    let mut response = ask(authorization)?;
    if response.status() != 401 {
        return Ok(response);
    }
    let challenges = response.headers("www-authenticate").map(str::to_owned).collect();
    let access = Access { challenges, ..access.clone() };
    let mut offers = access.offers(remote);
    // A host that a redirect leads to does not get these credentials, so its answer says nothing about them.
    let is_own = |response: &Response| response.url().is_same_server(&remote.url);
    while response.status() == 401 && is_own(&response) {
        let Some(offer) = offers.next() else { break };
        let offer = offer?;
        if offer.to_authorization() == *authorization {
            continue;
        }
        *authorization = offer.to_authorization();
        response = ask(authorization)?;
        let is_refused = response.status() == 401;
        if !is_refused || is_own(&response) {
            access.credentials.judge(remote, &offer, !is_refused);
        }
    }
    if response.status() != 401 {
        return Ok(response);
    }
    if !access.takes_basic() && *authorization == Authorization::Nothing {
        let text = format!(
            "`{remote}` asks for a way to log in that mu does not know: {}",
            brief(&access.challenges.join(", "))
        );
        return Err(ProviderError::new(ErrorKind::Auth, text)
            .hint("use ssh, or state a header in Git's configuration (`http.extraHeader`)"));
    }
    Err(unauthorized(remote, response.url(), &remote.url, authorization))
}

fn common<'http>(
    request: Request<'http>,
    remote: &RemoteUrl,
    authorization: &Authorization,
    web: &WebSettings,
) -> Request<'http> {
    let headers = web.headers.iter();
    headers
        .fold(request, |request, (name, value)| request.own_header(name, value))
        .by(&web.connection)
        .header("user-agent", USER_AGENT)
        .header("git-protocol", "version=2")
        .authorization(authorization.clone())
        .insecure(remote.insecure)
}

/// The error for a repository that requires credentials and accepted none.
fn unauthorized(
    remote: &RemoteUrl,
    answered: &SafeUrl,
    asked: &SafeUrl,
    shown: &Authorization,
) -> ProviderError {
    let host = remote.url.host_and_port();
    if !answered.is_same_server(asked) {
        let place = answered.host_and_port();
        let text = format!("`{remote}` redirects to `{place}`, which requires credentials");
        return ProviderError::new(ErrorKind::Auth, text)
            .hint("credentials are not sent to another host: use its URL instead");
    }
    if KNOWN_HOSTS.contains(&remote.host()) && *shown == Authorization::Nothing {
        return not_a_repository(remote)
            .because(
                "the host requires credentials, as it also does for repositories that do not exist",
            )
            .hint(format!("if the repository is private, {}; or use ssh", ways_to_log_in(remote)));
    }
    let error = match shown {
        Authorization::Nothing => format!("`{remote}` requires credentials, and there are none"),
        _ => format!("`{remote}` does not accept the credentials for `{host}`"),
    };
    ProviderError::new(ErrorKind::Auth, error).hint(ways_to_log_in(remote))
}

/// The error for a place that answers, but not as a repository.
fn other_kind(remote: &RemoteUrl, response: Response) -> ProviderError {
    let mut start = Vec::new();
    // If the rest does not arrive, that does no harm.
    let _ = response.take(41).read_to_end(&mut start);
    let dumb = start.len() == 41
        && start.strip_suffix(b"\t").is_some_and(|oid| oid.iter().all(u8::is_ascii_hexdigit));
    if dumb {
        let text = format!("`{remote}` is served as plain files, without Git's own service");
        return ProviderError::new(ErrorKind::Protocol, text)
            .hint("serve it with `git http-backend`, or use another protocol");
    }
    not_a_repository(remote).because("it answers, but not as a Git repository")
}

impl Link for Connection {
    fn request(&mut self, request: Vec<u8>) -> Result<Box<dyn Read + '_>, ProviderError> {
        let url = SafeUrl::parse(&format!("{}/git-upload-pack", self.base.as_url().as_str()))
            .map_err(|error| not_a_repository(&self.remote).because(error))?;
        let Self { http, remote, web, access, .. } = &*self;
        let ask = |authorization: &Authorization| {
            common(http.post(&url), remote, authorization, web)
                .header("content-type", "application/x-git-upload-pack-request")
                .header("accept", "application/x-git-upload-pack-result")
                .body(request.clone())
                // A server that prepares a large pack only sends a few bytes now and then, and packs have their
                // own limits.
                .at_any_pace()
                .allow(401)
                .send()
        };
        // Some servers list for everybody, and ask for credentials only here.
        let mut authorization = self.authorization.clone();
        let response = let_in(remote, access, &mut authorization, &ask)?;
        self.authorization = authorization;
        if response.header("content-type") != Some("application/x-git-upload-pack-result") {
            let error = WireError::Malformed("its type is another");
            return Err(describe(&self.remote, error));
        }
        Ok(Box::new(response))
    }

    fn explain(&mut self, error: WireError) -> ProviderError {
        describe(&self.remote, error)
    }

    fn is_stateless(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use mu_provider::http::{AskedServer, Credential, Recipient, Secret, TokenHosts};

    use super::*;

    #[test]
    fn what_a_public_host_hides_is_not_there() {
        let place = SafeUrl::parse("https://github.com/a/b").expect("is a URL");
        let own = Credential::password(&AskedServer::new(&place), "ada", Secret::new("hunter2"));
        let own = own.release(Recipient::Server(&place), &TokenHosts::default());
        let shown = own.expect("it is its own").basic("");
        for (text, shown, kind) in [
            ("https://github.com/a/b", &Authorization::Nothing, ErrorKind::NotFound),
            ("https://github.com/a/b", &shown, ErrorKind::Auth),
            ("https://git.example.com/a/b", &Authorization::Nothing, ErrorKind::Auth),
        ] {
            let url = SafeUrl::parse(text).expect("is a URL");
            let remote = RemoteUrl::new(&url, false).expect("is accepted");
            let error = unauthorized(&remote, &url, &url, shown);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.hints()[0].contains("MU_TOKEN_"), "{:?}", error.hints());
        }
    }
}
