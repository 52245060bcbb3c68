//! Whose a password or token is: what the servers behind a base say of it.
//!
//! A host alone does not say what it serves, so it is asked as a hub and as an OCI registry, and a place on it as a chart repository, too.
//! Only requests that the host itself asks a password for show one.

use std::sync::Arc;

use mu_provider::http::{AskedServer, Credential, Credentials, Secret};
use mu_provider::{Account, ErrorKind, Lead, Location, Provider, ProviderError, SafeUrl};

use super::events::Work;
use super::{Session, client, providers};
use crate::index::Providers;
use crate::ops::CommandError;

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
pub(crate) fn providers_with(session: &Session, credentials: Arc<dyn Credentials>) -> Providers {
    let (offline, http) = (session.options.offline, client(session, credentials));
    providers::all_providers(&session.environment, offline, &http, &session.folders)
}

/// Asks the servers behind `prefix`, a base or the start of ids, by these providers.
pub(crate) fn ask(
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
    let own = registries.into_iter().filter(|place| place.prefix == prefix);
    let is_set = session.workspace.settings.registries.iter().any(|set| set.prefix == prefix);
    if is_set {
        let own = own.filter_map(|place| place.route.ok()).map(|route| Place {
            provider: route.provider.name().to_owned(),
            location: route.location,
            is_last: false,
        });
        return own.collect();
    }
    let (host, path) = prefix.split_once('/').unwrap_or((prefix, ""));
    let mut places = Vec::new();
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
