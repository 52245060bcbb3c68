//! `login`, `logout` and `whoami`: tokens for the hosts that packages come from, stored on this machine.
//!
//! The command line asks for a token; it never comes as an argument. A token is stored if a server accepts it.
//!
//! Whose a password or token is, the servers behind a base say. A host alone does not say what it serves, so it is asked as a
//! hub and as an OCI registry, and a place on it as a chart repository, too. Only requests that the host itself asks a password
//! for show one.

use std::sync::Arc;

use mu_provider::http::{AskedServer, Credential, Credentials, Secret, names_of, token_variable};
use mu_provider::{Account, ErrorKind, Lead, Location, Provider, ProviderError, SafeUrl};

use crate::index::Providers;
use crate::ops::session::events::Work;
use crate::ops::session::{client, credentials, providers};
use crate::ops::{Code, CommandError, Session};
use crate::reference::Base;

pub use crate::ops::session::credentials::TokenStorage;

/// A host that a token is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Host, and port if it is not the default one.
    pub host: String,
    /// The start of the ids of its packages.
    prefix: String,
    /// The variable with a token for it, which takes precedence over the stored token, if it is set.
    pub variable: Option<String>,
}

/// The host behind a base: where its registry is, if the settings say so.
pub fn host_of(session: &Session, base: &str) -> Result<Host, CommandError> {
    let place = base.split_once("://").map_or(base, |(_, rest)| rest);
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let prefix = format!("{}{}/", host.to_ascii_lowercase(), path.trim_end_matches('/'));
    let registries = &session.workspace.settings.registries;
    let registry = registries.iter().find(|registry| registry.prefix == prefix);
    let host = match registry.and_then(|registry| registry.url.as_ref()) {
        Some(url) => check(&prefix, url)?,
        None => {
            let authority = prefix.split('/').next().unwrap_or_default();
            Base::parse(authority)?.host_port().to_owned()
        }
    };
    let is_set = |variable: &String| session.environment.variable(variable).is_some();
    let names = names_of(&host);
    // It is stored for the last one.
    let variable = names.iter().find_map(|name| token_variable(name).filter(is_set));
    let host = names.last().map_or(host.clone(), |&name| name.to_owned());
    Ok(Host { host, prefix, variable })
}

fn check(prefix: &str, url: &SafeUrl) -> Result<String, CommandError> {
    if url.scheme() == "file" {
        let message = format!("`{prefix}` is served from a folder, `{url}`, which takes no token");
        return Err(CommandError::new(Code::Usage, message));
    }
    if url.is_bucket() {
        let message = format!("`{prefix}` is in a bucket, `{url}`, which takes no token");
        return Err(CommandError::new(Code::Usage, message)
            .hint("its credentials come from variables: `mu hub --help` lists them"));
    }
    if url.scheme() == "http" && !url.is_loopback() {
        let message = format!("`{prefix}` uses plain http, and mu never sends tokens over it");
        return Err(CommandError::new(Code::Usage, message)
            .hint(format!("`mu registry add {prefix} URL` gives the registry an https URL")));
    }
    Ok(url.host_and_port())
}

/// Where a token was stored, and what the server said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedIn {
    /// Where it is.
    pub stored: TokenStorage,
    /// Whose it is; `None` if no server could be asked, and the user wanted it stored all the same.
    pub account: Option<Account>,
}

/// Stores a token for a host, if its server accepts it; if no server can be asked, only if the user wants it.
pub fn log_in(session: &Session, host: &Host, token: &Secret) -> Result<LoggedIn, CommandError> {
    let text = token.expose();
    if text.is_empty() || text.contains(|character: char| !character.is_ascii_graphic()) {
        let message = "a token is one word of visible ASCII characters; this is not";
        return Err(CommandError::new(Code::Usage, message));
    }
    let account = accepted(session, host, token)?;
    let home = &session.environment.mu_home;
    // Docker's registry has three names and one token: an old one must not stay stored under another name.
    for name in names_of(&host.host).into_iter().filter(|name| *name != host.host) {
        credentials::remove(home, name)?;
    }
    Ok(LoggedIn { stored: credentials::store(home, &host.host, token)?, account })
}

/// Whose the server says a token is; `None` if none can be asked, and the user wants it stored.
fn accepted(
    session: &Session,
    host: &Host,
    token: &Secret,
) -> Result<Option<Account>, CommandError> {
    let candidate = Candidate { host: host.host.clone(), token: token.clone() };
    let providers = providers_with(session, Arc::new(candidate));
    let why = match ask(session, &providers, &host.prefix) {
        Ok(ServerVerdict::Accepted(account)) => return Ok(Some(account)),
        Ok(ServerVerdict::Nothing) => None,
        Err(error) if error.code == Code::Auth => {
            let refused = format!("`{}` does not accept the token; it was not stored", host.host);
            return Err(error.while_doing(refused));
        }
        Err(error) => Some(error),
    };
    let question = format!("`{}` cannot be asked whether the token is good; store it?", host.host);
    if session.options.yes || session.events.confirm(&question) {
        return Ok(None);
    }
    let message = format!(
        "`{}` cannot be asked whether the token is good, as a hub, an OCI registry or a guarded chart repository can; it was not stored",
        host.host
    );
    let error = match why {
        Some(why) => why.while_doing(message),
        None => CommandError::new(Code::Usage, message),
    };
    let error = match host.prefix.split_once('/') {
        Some((host, "")) => error.hint(format!(
            "if a hub or a chart repository is below a path there, name that, too: `mu login {host}/PATH`"
        )),
        _ => error,
    };
    Err(error.hint("`--yes` stores it all the same, such as for a Git server"))
}

/// Whose the token is that is used for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenOwner {
    /// The host.
    pub host: String,
    /// What the server says, or else the user that is stored.
    pub account: Account,
    /// Whether the server said it.
    pub is_asked: bool,
}

/// Asks the server behind a base whose the token is that is stored for it.
pub fn whoami(session: &Session, base: &str) -> Result<TokenOwner, CommandError> {
    let Host { host, prefix, .. } = host_of(session, base)?;
    let http = session.http();
    let schemes = ["https", "http"].map(|scheme| SafeUrl::parse(&format!("{scheme}://{host}/")));
    let user = schemes.into_iter().flatten().find_map(|url| http.stored_user(&url));
    let nobody = || {
        CommandError::new(Code::Auth, format!("nobody is logged in at `{host}`"))
            .hint(format!("`mu login {}` stores a token", prefix.trim_end_matches('/')))
    };
    match ask(session, session.index().providers(), &prefix) {
        Ok(ServerVerdict::Accepted(account)) => Ok(TokenOwner { host, account, is_asked: true }),
        Ok(ServerVerdict::Nothing) => {
            let name = user.ok_or_else(nobody)?;
            Ok(TokenOwner { host, account: Account::of_user(name), is_asked: false })
        }
        Err(error) if error.code == Code::Auth && user.is_none() => Err(nobody()),
        Err(error) => Err(error),
    }
}

/// Removes the stored token of a host; returns whether there was one.
pub fn logout(session: &Session, host: &Host) -> Result<bool, CommandError> {
    let mut was_there = false;
    for name in names_of(&host.host) {
        was_there |= credentials::remove(&session.environment.mu_home, name)?;
    }
    Ok(was_there)
}

/// One token, for one host.
pub(crate) struct Candidate {
    /// Host, and port if it is not the default one.
    pub(crate) host: String,
    pub(crate) token: Secret,
}

impl Credentials for Candidate {
    fn find(&self, asked: &AskedServer) -> Option<Credential> {
        let is_it = asked.host_and_unusual_port() == self.host;
        is_it.then(|| Credential::token(asked, self.token.clone()))
    }
}

/// What servers say of a password or token.
pub(crate) enum ServerVerdict {
    /// One accepts it.
    Accepted(Account),
    /// No server asks for it where mu looked, or none is there that could be asked.
    Nothing,
}

/// The providers with other passwords and tokens than those of the user, without plugins.
fn providers_with(session: &Session, credentials: Arc<dyn Credentials>) -> Providers {
    let (offline, http) = (session.options.offline, client(session, credentials));
    providers::all_providers(&session.environment, offline, &http, &session.folders)
}

/// Asks the servers behind `prefix`, a base or the start of ids, by these providers.
fn ask(
    session: &Session,
    providers: &Providers,
    prefix: &str,
) -> Result<ServerVerdict, CommandError> {
    // Who accepts it is the answer. Else, a refusal says more than a server that cannot be reached; and this counts
    // only if no other one has answered.
    let (mut refused, mut unreachable) = (None, None);
    let mut is_answered = false;
    for Place { provider: name, location, is_last } in places(session, prefix) {
        if is_last && (is_answered || refused.is_some()) {
            continue;
        }
        let Ok(provider) = providers.get(&name) else { continue };
        match ask_one(session, &provider, &location) {
            Ok(Some(account)) => return Ok(ServerVerdict::Accepted(account)),
            Ok(None) => is_answered = true,
            Err(error) => match error.kind() {
                ErrorKind::Auth => {
                    refused.get_or_insert(error);
                }
                ErrorKind::Network | ErrorKind::Offline => {
                    unreachable.get_or_insert(error);
                }
                // There is something else.
                _ => is_answered = true,
            },
        }
    }
    match refused.or(unreachable.filter(|_| !is_answered)) {
        Some(error) => Err(error.into()),
        None => Ok(ServerVerdict::Nothing),
    }
}

fn ask_one(
    session: &Session,
    provider: &Arc<dyn Provider>,
    location: &Location,
) -> Result<Option<Account>, ProviderError> {
    let progress = Work::begin(&session.events, location.root.to_string().as_str());
    provider.account(location, &progress)
}

/// A place that may have packages, and the name of its provider.
struct Place {
    provider: String,
    location: Location,
    /// Whether it is asked only if nobody answers at the others.
    is_last: bool,
}

/// Where packages are whose ids start with `prefix`: where the settings say, or else where they would be.
fn places(session: &Session, prefix: &str) -> Vec<Place> {
    let registries = session.index().registries();
    let is_set = session.workspace.settings.registries.iter().any(|set| set.prefix == prefix);
    let (host, path) = prefix.split_once('/').unwrap_or((prefix, ""));
    // A host says nothing of the paths below it that are hubs, but the settings may: the token is for all of them.
    let is_meant = |registry: &str, root: &SafeUrl| match is_set {
        true => registry == prefix,
        false => path.is_empty() && root.host_and_port() == host,
    };
    let own = registries.into_iter().filter_map(|place| {
        let route =
            place.route.ok().filter(|route| is_meant(&place.prefix, &route.location.root))?;
        let provider = route.provider.name().to_owned();
        Some(Place { provider, location: route.location, is_last: false })
    });
    let mut places: Vec<Place> = own.collect();
    if is_set {
        return places;
    }
    let is_here = SafeUrl::parse(&format!("https://{host}/")).is_ok_and(|url| url.is_loopback());
    let mut add = |provider: &str, scheme: &str, rest: &str, is_last: bool| {
        let Ok(url) = SafeUrl::parse(&format!("{scheme}://{host}/{rest}")) else { return };
        let mut location = Location::new(Lead::of_user(url), "");
        location.insecure = session.options.allow_insecure;
        places.push(Place { provider: provider.to_owned(), location, is_last });
    };
    // Servers on this machine rarely speak TLS. An OCI registry is asked by both.
    for scheme in if is_here { &["http", "https"][..] } else { &["https"] } {
        let is_last = is_here && *scheme == "https";
        add("hub", scheme, path, is_last);
        if !path.is_empty() {
            add("helm", scheme, path, is_last);
        }
    }
    add("oci", "https", "", false);
    places.sort_by_key(|place| place.is_last);
    places
}
