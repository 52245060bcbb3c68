//! Authentication at a registry, which requires a password, or a token from a server that it names.
//!
//! `challenge.rs` reads what the registry requires, and `stores.rs` finds passwords in the files of container
//! tools, and runs programs that know them. A password belongs to the registry that was asked, whatever
//! server that names for its tokens: where it may go decides the crate `mu-provider`, as for all credentials.

mod challenge;
mod stores;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mu_provider::http::{
    AskedServer, Authorization, Credential, Guard, Http, Recipient, Released, Secret, Withheld,
    check_lead, elsewhere, may_receive, or_variable,
};
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, ProviderError, SafeUrl, Silent};
use serde::Deserialize;

use self::challenge::{Challenge, Scope};
pub use self::stores::Stores;
pub(crate) use self::stores::other_logins;
use crate::registry::shown;

/// The longest answer to a request for a token, in bytes.
const LONGEST_TOKEN: u64 = 1 << 20;

/// How many seconds a token is valid if its server does not say.
const USUAL_AGE: u64 = 60;

/// The user for a token without a user.
const TOKEN_USER: &str = "token";

/// The challenges and tokens of this run.
#[derive(Debug)]
pub(crate) struct RegistryTokens {
    http: Arc<Http>,
    stores: Stores,
    /// By host: its last challenge.
    challenges: Mutex<HashMap<String, Known>>,
    /// The scopes that registries asked for, by host, repository, and whether it is written.
    scopes: Mutex<HashMap<(String, String, bool), String>>,
    /// By host and scope. A second caller waits for the first.
    tokens: Mutex<HashMap<(String, String), Slot>>,
    /// By host and repository, once they were looked for.
    credentials: Mutex<HashMap<(String, String), Option<Credential>>>,
    /// By host: why no password was found, where one may be.
    faults: Mutex<HashMap<String, Vec<String>>>,
    /// By host: the other one, which hands out its tokens and may get no password for it.
    elsewhere: Mutex<HashMap<String, String>>,
}

type Slot = Arc<Mutex<Option<Token>>>;

/// A challenge.
#[derive(Debug, Clone)]
struct Known {
    challenge: Challenge,
    /// Whether the scope was that of the repository, so that those of others can be guessed.
    is_usual: bool,
}

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
    /// A number of seconds, which some servers write as text or with a fraction.
    expires_in: Option<serde_json::Value>,
}

impl Granted {
    /// The token, which some servers leave empty under one of the names.
    fn value(self) -> Option<String> {
        let mut values = [self.token, self.access_token].into_iter().flatten();
        let value = values.find(|token| !token.is_empty())?;
        value.bytes().all(|byte| byte.is_ascii_graphic()).then_some(value)
    }

    /// How many seconds the token is good.
    fn age(&self) -> u64 {
        let stated = self.expires_in.as_ref().and_then(|stated| match stated {
            serde_json::Value::String(text) => text.trim().parse().ok(),
            other => other.as_f64(),
        });
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number that is too large or too small becomes the nearest, which is then limited"
        )]
        stated.map_or(USUAL_AGE, |stated: f64| stated as u64).clamp(USUAL_AGE, 24 * 3600)
    }
}

/// A repository of a registry that was asked.
#[derive(Debug, Clone, Copy)]
struct Repository<'call> {
    asked: &'call AskedServer,
    /// Empty for the list of all.
    name: &'call str,
}

/// Lets in to one repository; if that has no name, to the list of all.
#[derive(Debug)]
pub(crate) struct RepositoryGuard {
    pub(crate) keys: Arc<RegistryTokens>,
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

    fn of<'call>(&'call self, asked: &'call AskedServer) -> Repository<'call> {
        Repository { asked, name: &self.repository }
    }

    fn key(&self) -> (String, String, bool) {
        (self.host.clone(), self.repository.clone(), self.writes)
    }
}

impl Guard for RepositoryGuard {
    fn known(&self, asked: &AskedServer) -> Result<Authorization, ProviderError> {
        // An upload server that the registry names gets no credentials.
        if asked.host_and_unusual_port() != self.host {
            return Ok(Authorization::Nothing);
        }
        let known = lock(&self.keys.challenges).get(&self.host).cloned();
        let Some(Known { challenge, is_usual }) = known else { return Ok(Authorization::Nothing) };
        if let Some(scope) = lock(&self.keys.scopes).get(&self.key()).cloned() {
            return self.keys.shown(self.of(asked), &challenge, &scope, &Authorization::Nothing);
        }
        if !is_usual {
            return Ok(Authorization::Nothing);
        }
        match self.keys.shown(self.of(asked), &challenge, &self.scope(), &Authorization::Nothing) {
            // It was a guess. The registry will say what it wants.
            Err(error) if error.kind() != ErrorKind::Network => Ok(Authorization::Nothing),
            result => result,
        }
    }

    fn answer(
        &self,
        asked: &AskedServer,
        challenges: &[&str],
        shown: &Authorization,
    ) -> Result<Option<Authorization>, ProviderError> {
        if asked.host_and_unusual_port() != self.host {
            return Ok(None);
        }
        let Some(challenge) = Challenge::best(challenges) else { return Ok(None) };
        let own = self.scope();
        // The registry knows which scope it wants: it may have another name for the repository.
        let scope = match &challenge {
            Challenge::Bearer { scope: Some(scope), .. } => Scope(scope).with_push(self.writes),
            Challenge::Bearer { scope: None, .. } | Challenge::Basic => own.clone(),
        };
        let is_usual = Scope(&scope).is_covered_by(&own);
        let known = Known { challenge: challenge.clone(), is_usual };
        lock(&self.keys.challenges).insert(self.host.clone(), known);
        lock(&self.keys.scopes).insert(self.key(), scope.clone());
        let answer = self.keys.shown(self.of(asked), &challenge, &scope, shown)?;
        let is_new = answer != Authorization::Nothing && answer != *shown;
        Ok(is_new.then_some(answer))
    }

    fn hints(&self, asked: &AskedServer) -> Vec<String> {
        let elsewhere = self.keys.hints_elsewhere(self.of(asked));
        self.keys.faults_of(asked).into_iter().chain(elsewhere).collect()
    }
}

impl RegistryTokens {
    pub(crate) fn new(http: Arc<Http>, stores: Stores) -> Self {
        Self {
            http,
            stores,
            challenges: Mutex::default(),
            scopes: Mutex::default(),
            tokens: Mutex::default(),
            credentials: Mutex::default(),
            faults: Mutex::default(),
            elsewhere: Mutex::default(),
        }
    }

    /// The credentials for `asked` that satisfy this challenge, except those that were `refused`.
    fn shown(
        &self,
        repository: Repository<'_>,
        challenge: &Challenge,
        scope: &str,
        refused: &Authorization,
    ) -> Result<Authorization, ProviderError> {
        let asked = repository.asked;
        let own = |credential: Credential| {
            let recipient = Recipient::Server(asked.url());
            credential.release(recipient, &self.http.options().token_hosts).ok()
        };
        match challenge {
            Challenge::Basic => {
                let released = self.credential(repository)?.and_then(own);
                Ok(released.map_or(Authorization::Nothing, |released| released.basic(TOKEN_USER)))
            }
            Challenge::Bearer { realm, service, .. } => {
                let key = (asked.host_and_unusual_port(), scope.to_owned());
                let slot = Arc::clone(lock(&self.tokens).entry(key).or_default());
                let mut slot = lock(&slot);
                // A token is for the registry that asked for it, wherever it is from.
                let shown = |token: &Token| {
                    let token = Credential::token(asked, token.value.clone());
                    let released = own(token.known_from(format!("`{}`", plain(realm))));
                    released.map_or(Authorization::Nothing, |released| released.bearer())
                };
                let now = Instant::now();
                if let Some(known) = slot.as_ref().filter(|token| token.until > now)
                    && shown(known) != *refused
                {
                    return Ok(shown(known));
                }
                let released = self.credential(repository)?.and_then(own);
                if let Some(released) = released.filter(Released::is_final) {
                    return Ok(released.bearer());
                }
                let token = self.new_token(repository, realm, service.as_deref(), scope)?;
                Ok(shown(slot.insert(token)))
            }
        }
    }

    /// What shows a registry the password that is stored for it, whatever that allows; `None` if there is none that may be shown.
    pub(crate) fn login(
        &self,
        asked: &AskedServer,
        challenges: &[&str],
    ) -> Result<Option<Authorization>, ProviderError> {
        let repository = Repository { asked, name: "" };
        let Some(challenge) = Challenge::best(challenges) else { return Ok(None) };
        if let Challenge::Bearer { realm, .. } = &challenge
            && self.released(repository, &place_of_tokens(asked, realm)?)?.is_none()
        {
            // Others would be let in, too.
            return Ok(None);
        }
        let shown = self.shown(repository, &challenge, "", &Authorization::Nothing)?;
        Ok((shown != Authorization::Nothing).then_some(shown))
    }

    /// What helps if a registry does not accept the password.
    pub(crate) fn hints_of(&self, asked: &AskedServer) -> Vec<String> {
        self.hints_elsewhere(Repository { asked, name: "" })
    }

    /// The user of the password that is stored for a registry; empty for a token without one.
    pub(crate) fn registry_user(&self, asked: &AskedServer) -> Result<String, ProviderError> {
        let found = self.credential(Repository { asked, name: "" })?;
        let pairs = &self.http.options().token_hosts;
        let released =
            found.and_then(|own| own.release(Recipient::Server(asked.url()), pairs).ok());
        let pair = released.and_then(|released| released.user_and_password(""));
        Ok(pair.map(|(user, _)| user).unwrap_or_default())
    }

    /// Requests a token from the server that the registry names: with the registry's password if that may go there, or else without one,
    /// which is enough for what everybody may read.
    fn new_token(
        &self,
        repository: Repository<'_>,
        realm: &str,
        service: Option<&str>,
        scope: &str,
    ) -> Result<Token, ProviderError> {
        let registry = repository.asked.host_and_unusual_port();
        let place = place_of_tokens(repository.asked, realm)?;
        let released = self.released(repository, &place)?;
        let mut url = place.as_url().clone();
        url.set_fragment(None);
        let scope = Some(scope).filter(|scope| !scope.is_empty());
        let pairs = [("service", service), ("scope", scope)];
        let pairs = pairs.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let request = match released.as_ref().map(|released| (released, released.identity())) {
            Some((_, Some(token))) => {
                let mut form = url.clone();
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
            Some((released, None)) => {
                url.query_pairs_mut().extend_pairs(pairs);
                self.http.get(&url.into()).authorization(released.basic(TOKEN_USER))
            }
            None => {
                url.query_pairs_mut().extend_pairs(pairs);
                self.http.get(&url.into()).authorization(Authorization::Nothing)
            }
        };
        let helped = |error: ProviderError| {
            let hints = match (&released, self.hints_elsewhere(repository)) {
                (Some(_), _) => {
                    let text = format!("the password for `{registry}` was not accepted");
                    vec![format!("{text}; {}", hint(&registry))]
                }
                (None, hints) => {
                    let mut all = self.faults_of(repository.asked);
                    all.extend(if hints.is_empty() { vec![hint(&registry)] } else { hints });
                    all
                }
            };
            hints.into_iter().fold(error, ProviderError::hint)
        };
        let bytes = request.fetch(LONGEST_TOKEN, &Silent).map_err(|error| {
            let text = format!("`{}` hands out no token for `{registry}`", shown(&place));
            let failed = ProviderError::new(error.kind(), text).because(error.to_string());
            match error.kind() {
                ErrorKind::Auth => helped(failed),
                ErrorKind::NotFound | ErrorKind::Protocol if released.is_none() => helped(failed),
                _ => failed,
            }
        })?;
        let broken = || {
            let text = format!("`{}` did not answer with a token", shown(&place));
            let failed = ProviderError::new(ErrorKind::Protocol, text);
            if released.is_none() { helped(failed) } else { failed }
        };
        let granted: Granted = serde_json::from_slice(&bytes).map_err(|_| broken())?;
        let age = granted.age();
        let value = granted.value();
        // A little earlier, because requests take time.
        let until = Instant::now() + Duration::from_secs(age - USUAL_AGE / 6);
        Ok(Token { value: Secret::new(value.ok_or_else(broken)?), until })
    }

    /// The registry's password for the server that it names for its tokens; `None` if there is none that may go there. That server's own
    /// password is another one's.
    fn released(
        &self,
        repository: Repository<'_>,
        place: &SafeUrl,
    ) -> Result<Option<Released>, ProviderError> {
        let asked = repository.asked;
        let (named, pairs) = (Recipient::Named(place), &self.http.options().token_hosts);
        if may_receive(asked, named, pairs) == Err(Withheld::Foreign) {
            lock(&self.elsewhere).insert(asked.host_and_unusual_port(), place.host_and_port());
        }
        Ok(self.credential(repository)?.and_then(|own| own.release(named, pairs).ok()))
    }

    /// What helps if a registry refuses that names another host for its tokens, which may get no password for it; empty if it does not.
    fn hints_elsewhere(&self, repository: Repository<'_>) -> Vec<String> {
        let registry = repository.asked.host_and_unusual_port();
        let other = lock(&self.elsewhere).get(&registry).cloned();
        let Some(other) = other else { return Vec::new() };
        let has_none = matches!(self.credential(repository), Ok(None));
        let login = has_none.then(|| hint(&registry));
        login.into_iter().chain([elsewhere(&registry, "tokens", &other)]).collect()
    }

    /// What kept passwords for a registry from being found.
    fn faults_of(&self, asked: &AskedServer) -> Vec<String> {
        let faults = lock(&self.faults).get(&asked.host_and_unusual_port()).cloned();
        let faults = faults.unwrap_or_default().into_iter();
        faults.map(|why| format!("a password may be where mu cannot look: {why}")).collect()
    }

    /// The password for a repository: mu's own, which is for the whole registry, or one from container tools.
    fn credential(&self, repository: Repository<'_>) -> Result<Option<Credential>, ProviderError> {
        let Repository { asked, name } = repository;
        if !asked.url().is_confidential() {
            return Ok(None);
        }
        let key = (asked.host_and_unusual_port(), name.to_owned());
        if let Some(known) = lock(&self.credentials).get(&key) {
            return Ok(known.clone());
        }
        let own = Credential::stored(self.http.options().credentials.as_ref(), asked);
        let found = match own {
            Some(own) => Some(own),
            None if name.is_empty() => {
                let mut faults = Vec::new();
                let found = self.stores.find(asked, &mut faults)?;
                lock(&self.faults).insert(asked.host_and_unusual_port(), faults);
                found
            }
            None => {
                let mut faults = Vec::new();
                let found = match self.stores.in_folders(asked, name, &mut faults) {
                    Some(own) => Some(own),
                    None => self.credential(Repository { asked, name: "" })?,
                };
                let mut all = lock(&self.faults);
                let all = all.entry(asked.host_and_unusual_port()).or_default();
                faults.retain(|fault| !all.contains(fault));
                all.extend(faults);
                found
            }
        };
        lock(&self.credentials).insert(key, found.clone());
        Ok(found)
    }
}

/// The URL at which a registry wants tokens to be asked for.
fn place_of_tokens(asked: &AskedServer, realm: &str) -> Result<SafeUrl, ProviderError> {
    let registry = asked.host_and_unusual_port();
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
    check_lead(asked.url(), &place)?;
    Ok(place)
}

/// A foreign URL, for messages.
fn plain(url: &str) -> String {
    SafeUrl::parse(url).map_or_else(|_| "somewhere".to_owned(), |url| shown(&url))
}

fn hint(host: &str) -> String {
    let (variable, others) = (or_variable(host), other_logins(host));
    format!("`mu login {host}` takes `USER:PASSWORD`{variable}; {others}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_with_tokens_are_read_as_servers_write_them() {
        for (answer, age, value) in [
            (r#"{"token": "t", "expires_in": 300}"#, 300, Some("t")),
            (r#"{"token": "t", "expires_in": "300"}"#, 300, Some("t")),
            (r#"{"token": "t", "expires_in": 299.5}"#, 299, Some("t")),
            (r#"{"token": "t", "expires_in": -1}"#, 60, Some("t")),
            (r#"{"token": "t", "expires_in": 1e300}"#, 86_400, Some("t")),
            (r#"{"token": "t", "expires_in": null}"#, 60, Some("t")),
            (r#"{"token": "", "access_token": "t"}"#, 60, Some("t")),
            (r#"{"token": null, "access_token": "t"}"#, 60, Some("t")),
            (r#"{"token": "a b"}"#, 60, None),
            (r#"{}"#, 60, None),
        ] {
            let granted: Granted = serde_json::from_str(answer).expect(answer);
            assert_eq!(granted.age(), age, "{answer}");
            assert_eq!(granted.value().as_deref(), value, "{answer}");
        }
    }
}
