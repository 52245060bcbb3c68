//! Authentication at a registry, which requires a password, or a token from a server that it names.
//!
//! `challenge.rs` reads what the registry requires, `stores.rs` finds passwords in the files of container
//! tools, and `helper.rs` runs programs that know them. A password goes to the registry that it was stored
//! for, and over https to the token server that this registry names, if that is in the same domain; never to
//! another one. The client decides which requests get credentials.

mod challenge;
mod helper;
mod stores;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mu_provider::http::{Authorization, Guard, Http, Secret, check_lead};
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, ProviderError, SafeUrl, Silent};
use serde::Deserialize;

use self::challenge::Challenge;
pub(crate) use self::stores::Credential;
pub use self::stores::Stores;
use crate::registry::{names_of, shown};

/// The longest answer to a request for a token, in bytes.
const LONGEST_TOKEN: u64 = 1 << 20;

/// How many seconds a token is valid if its server does not say.
const USUAL_AGE: u64 = 60;

/// The challenges and tokens of this run.
#[derive(Debug)]
pub(crate) struct Keys {
    http: Arc<Http>,
    stores: Stores,
    /// By host: its last challenge.
    challenges: Mutex<HashMap<String, Challenge>>,
    /// By host and scope. A second caller waits for the first.
    tokens: Mutex<HashMap<(String, String), Slot>>,
    /// By host, once they were looked for.
    credentials: Mutex<HashMap<String, Option<Credential>>>,
}

type Slot = Arc<Mutex<Option<Token>>>;

/// A token, and until when it is good.
#[derive(Debug, Clone)]
struct Token {
    value: Secret,
    until: Instant,
}

/// An answer to a request for a token.
#[derive(Deserialize)]
struct Granted {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// Lets in to one repository; if that has no name, to the list of all.
#[derive(Debug)]
pub(crate) struct RepositoryGuard {
    pub(crate) keys: Arc<Keys>,
    /// Host and port of the registry.
    pub(crate) host: String,
    pub(crate) repository: String,
    pub(crate) writes: bool,
}

impl RepositoryGuard {
    /// The scope to request, if the registry does not name one.
    fn scope(&self) -> String {
        if self.repository.is_empty() {
            return "registry:catalog:*".to_owned();
        }
        let actions = if self.writes { "pull,push" } else { "pull" };
        format!("repository:{}:{actions}", self.repository)
    }
}

impl Guard for RepositoryGuard {
    fn known(&self, url: &SafeUrl) -> Result<Authorization, ProviderError> {
        // An upload server that the registry names gets no credentials.
        if url.host_and_port() != self.host {
            return Ok(Authorization::Nothing);
        }
        let challenge = lock(&self.keys.challenges).get(&self.host).cloned();
        match challenge {
            None => Ok(Authorization::Nothing),
            Some(challenge) => {
                self.keys.shown(url, &challenge, &self.scope(), &Authorization::Nothing)
            }
        }
    }

    fn answer(
        &self,
        url: &SafeUrl,
        challenges: &[&str],
        shown: &Authorization,
    ) -> Result<Option<Authorization>, ProviderError> {
        if url.host_and_port() != self.host {
            return Ok(None);
        }
        let Some(challenge) = Challenge::best(challenges) else { return Ok(None) };
        lock(&self.keys.challenges).insert(self.host.clone(), challenge.clone());
        let scope = self.scope();
        let scope = match &challenge {
            // The registry may ask for more access than this request needs.
            Challenge::Bearer { scope: Some(own), .. } if !self.writes => own.clone(),
            _ => scope,
        };
        let answer = self.keys.shown(url, &challenge, &scope, shown)?;
        let is_new = answer != Authorization::Nothing && answer != *shown;
        Ok(is_new.then_some(answer))
    }
}

impl Keys {
    pub(crate) fn new(http: Arc<Http>, stores: Stores) -> Self {
        Self {
            http,
            stores,
            challenges: Mutex::default(),
            tokens: Mutex::default(),
            credentials: Mutex::default(),
        }
    }

    /// The credentials for `url` that satisfy this challenge, except those that were `refused`.
    fn shown(
        &self,
        url: &SafeUrl,
        challenge: &Challenge,
        scope: &str,
        refused: &Authorization,
    ) -> Result<Authorization, ProviderError> {
        match challenge {
            Challenge::Basic => Ok(match self.credential(url)? {
                Some(Credential::Password { user, password }) => {
                    Authorization::basic(&user, &password)
                }
                Some(Credential::Identity(token)) => Authorization::bearer(&token),
                None => Authorization::Nothing,
            }),
            Challenge::Bearer { realm, service, .. } => {
                let key = (url.host_and_port(), scope.to_owned());
                let slot = Arc::clone(lock(&self.tokens).entry(key).or_default());
                let mut slot = lock(&slot);
                let shown = |token: &Token| {
                    Authorization::bearer(&token.value).known_from(format!("`{}`", plain(realm)))
                };
                let now = Instant::now();
                if let Some(known) = slot.as_ref().filter(|token| token.until > now)
                    && shown(known) != *refused
                {
                    return Ok(shown(known));
                }
                let token = self.token(url, realm, service.as_deref(), scope)?;
                Ok(shown(slot.insert(token)))
            }
        }
    }

    /// Requests a token from the server that the registry at `url` names.
    fn token(
        &self,
        url: &SafeUrl,
        realm: &str,
        service: Option<&str>,
        scope: &str,
    ) -> Result<Token, ProviderError> {
        let registry = url.host_and_port();
        let place = SafeUrl::parse(realm).map_err(|error| {
            let text = format!("`{registry}` names a place for tokens that is not a valid URL");
            ProviderError::new(ErrorKind::Protocol, text).because(error)
        })?;
        if place.may_hold_secret() || !matches!(place.scheme(), "https" | "http") {
            let text = format!(
                "`{registry}` names `{}` as the place for tokens, which is refused",
                shown(&place)
            );
            return Err(ProviderError::new(ErrorKind::Refused, text));
        }
        check_lead(url, &place)?;
        let credential = self.credential_at(url, &place)?;
        let mut asked = place.as_url().clone();
        asked.set_fragment(None);
        let pairs = [("service", service), ("scope", Some(scope))];
        let pairs = pairs.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let request = match &credential {
            Some(Credential::Identity(token)) => {
                let mut form = asked.clone();
                form.set_query(None);
                form.query_pairs_mut()
                    .extend_pairs(pairs)
                    .append_pair("grant_type", "refresh_token")
                    .append_pair("client_id", "mu")
                    .append_pair("refresh_token", token.expose());
                let body = form.query().unwrap_or_default().as_bytes().to_vec();
                let request = self.http.post(&place).authorization(Authorization::Nothing);
                request.header("content-type", "application/x-www-form-urlencoded").body(body)
            }
            Some(Credential::Password { user, password }) => {
                asked.query_pairs_mut().extend_pairs(pairs);
                let authorization = Authorization::basic(user, password);
                self.http.get(&asked.into()).authorization(authorization)
            }
            None => {
                asked.query_pairs_mut().extend_pairs(pairs);
                self.http.get(&asked.into()).authorization(Authorization::Nothing)
            }
        };
        let bytes = request.fetch(LONGEST_TOKEN, &Silent).map_err(|error| {
            let text = format!("`{}` hands out no token for `{registry}`", shown(&place));
            let failed = ProviderError::new(error.kind(), text).because(error.to_string());
            match (error.kind(), &credential) {
                (ErrorKind::Auth, None) => failed.hint(hint(&registry)),
                (ErrorKind::Auth, Some(_)) => failed.hint(format!(
                    "the password for `{registry}` was not accepted; {}",
                    hint(&registry)
                )),
                _ => failed,
            }
        })?;
        let broken = || {
            let text = format!("`{}` did not answer with a token", shown(&place));
            ProviderError::new(ErrorKind::Protocol, text)
        };
        let granted: Granted = serde_json::from_slice(&bytes).map_err(|_| broken())?;
        let value = granted.token.or(granted.access_token).filter(|token| !token.is_empty());
        let value = value.filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()));
        let age = granted.expires_in.unwrap_or(USUAL_AGE).clamp(USUAL_AGE, 24 * 3600);
        // A little earlier, because requests take time.
        let until = Instant::now() + Duration::from_secs(age - USUAL_AGE / 6);
        Ok(Token { value: Secret::new(value.ok_or_else(broken)?), until })
    }

    /// The credentials for the token server of the registry at `url`: those of the registry, if both are in
    /// one domain, or else those of the token server itself.
    ///
    /// # Errors
    ///
    /// When there is a password, and it may not be shown there.
    fn credential_at(
        &self,
        url: &SafeUrl,
        place: &SafeUrl,
    ) -> Result<Option<Credential>, ProviderError> {
        if is_same_site(url, place) {
            return self.credential(url);
        }
        if let Some(own) = self.credential(place)? {
            return Ok(Some(own));
        }
        if self.credential(url)?.is_none() {
            return Ok(None);
        }
        let (registry, other) = (url.host_and_port(), place.host_and_port());
        let text = format!(
            "`{registry}` asks for its password at `{}`, which is another host: it is not shown there",
            shown(place)
        );
        Err(ProviderError::new(ErrorKind::Refused, text)
            .hint(format!("if that is right, `mu login {other}` stores a password for that host")))
    }

    /// The password for the host of `url`: mu's own, or one from container tools.
    fn credential(&self, url: &SafeUrl) -> Result<Option<Credential>, ProviderError> {
        if !url.is_confidential() {
            return Ok(None);
        }
        let host = url.host_and_port();
        if let Some(known) = lock(&self.credentials).get(&host) {
            return Ok(known.clone());
        }
        // For a registry with several names, a password for any of them is meant.
        let named = names_of(&host)
            .into_iter()
            .filter_map(|name| SafeUrl::parse(&format!("{}://{name}/", url.scheme())).ok());
        let own = named.into_iter().find_map(|url| self.http.options().credentials.token(&url));
        let found = match own {
            Some(own) => Some(Credential::written(&own)),
            None => self.stores.find(&host)?,
        };
        lock(&self.credentials).insert(host, found.clone());
        Ok(found)
    }
}

/// A foreign URL, for messages.
fn plain(url: &str) -> String {
    SafeUrl::parse(url).map_or_else(|_| "somewhere".to_owned(), |url| shown(&url))
}

fn hint(host: &str) -> String {
    format!(
        "`mu login {host}` takes `USER:PASSWORD`, and mu also finds what `docker login {host}` has stored"
    )
}

/// Whether the password for the registry may go to the other place: the same server, or over https a host of
/// the same domain, such as `auth.docker.io` and `registry-1.docker.io`.
fn is_same_site(registry: &SafeUrl, place: &SafeUrl) -> bool {
    if registry.is_same_server(place) {
        return true;
    }
    let (Some(one), Some(other)) = (registry.as_url().domain(), place.as_url().domain()) else {
        return false;
    };
    let is_plain = registry.scheme() != "https" || place.scheme() != "https";
    if is_plain || registry.is_loopback() || place.is_loopback() {
        return false;
    }
    let is_usual = registry.as_url().port().is_none() && place.as_url().port().is_none();
    let domain = |host: &str| {
        let labels: Vec<&str> = host.trim_end_matches('.').split('.').collect();
        // `acme.co` for `registry.acme.co`, and for itself; `acme.co.uk` for `registry.acme.co.uk`.
        let short = labels.len().saturating_sub(2);
        let is_country = labels.get(short).is_some_and(|label| label.len() <= 3)
            && labels.last().is_some_and(|label| label.len() == 2);
        let from = if is_country { short.saturating_sub(1) } else { short };
        labels.get(from..).map(|labels| labels.join(".")).unwrap_or_default()
    };
    is_usual && one.contains('.') && domain(one) == domain(other)
}

#[cfg(test)]
mod tests {
    use mu_provider::http::{Credentials, HttpOptions};

    use super::*;

    /// Has a token for one host.
    struct Only(&'static str);

    impl Credentials for Only {
        fn token(&self, url: &SafeUrl) -> Option<Secret> {
            (url.host_and_port() == self.0).then(|| Secret::new("ada:secret"))
        }
    }

    #[test]
    fn dockers_registry_has_one_password_under_all_its_names() {
        let ada = Credential::written(&Secret::new("ada:secret"));
        for (stored, asked, expected) in [
            ("docker.io", "registry-1.docker.io", true),
            ("index.docker.io", "registry-1.docker.io", true),
            ("registry-1.docker.io", "registry-1.docker.io", true),
            ("docker.io", "auth.docker.io", false),
            ("docker.io", "docker.io.evil.example", false),
            ("ghcr.io", "registry-1.docker.io", false),
            ("ghcr.io:8443", "ghcr.io:8443", true),
        ] {
            let credentials = Arc::new(Only(stored));
            let http = Http::new(HttpOptions { credentials, ..HttpOptions::default() });
            let keys = Keys::new(http, Stores::default());
            let url = SafeUrl::parse(&format!("https://{asked}/v2/")).expect("is a URL");
            let found = keys.credential(&url).expect("no program is asked");
            assert_eq!(found, expected.then(|| ada.clone()), "{stored} {asked}");
        }
    }

    #[test]
    fn a_password_is_shown_to_its_own_site_alone() {
        for (registry, place, expected) in [
            ("https://registry-1.docker.io/v2/", "https://auth.docker.io/token", true),
            ("https://registry.gitlab.com/v2/", "https://gitlab.com/jwt/auth", true),
            ("https://ghcr.io/v2/", "https://ghcr.io/token", true),
            ("https://ghcr.io/v2/", "https://evil.io/token", false),
            ("https://ghcr.io/v2/", "http://ghcr.io/token", false),
            ("https://r.acme.co.uk/", "https://evil.co.uk/", false),
            ("https://r.acme.co.uk/", "https://auth.acme.co.uk/", true),
            ("https://ghcr.io/v2/", "https://ghcr.io:8443/token", false),
            ("https://10.0.0.1/", "https://10.0.0.2/", false),
            ("http://127.0.0.1:5000/", "http://127.0.0.1:5000/token", true),
            ("http://127.0.0.1:5000/", "http://127.0.0.1:5001/token", false),
            ("http://localhost:5000/", "http://a.localhost:5000/", false),
        ] {
            let url = |text: &str| SafeUrl::parse(text).expect("is a URL");
            assert_eq!(is_same_site(&url(registry), &url(place)), expected, "{registry} {place}");
        }
    }
}
