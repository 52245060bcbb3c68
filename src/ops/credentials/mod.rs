//! Tokens for registries: from `MU_TOKEN_<HOST>`, else those that `mu login` has stored.
//!
//! To which requests a token may be added is decided by the HTTP client.

mod file;
#[cfg(feature = "keyring")]
mod keyring;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use mu_provider::SafeUrl;
use mu_provider::http::{Credentials, Secret, TOKEN_PREFIX, token_variable};

use crate::env::Environment;
use crate::ops::{CommandError, Events};

/// Where a token was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// In the keyring of the operating system.
    Keyring,
    /// In this file, which only its owner can read.
    File(PathBuf),
}

/// The tokens of this run. What is stored is read when a token is first asked for.
pub(super) struct Tokens {
    variables: BTreeMap<String, Secret>,
    home: PathBuf,
    stored: OnceLock<BTreeMap<String, Secret>>,
    events: Arc<dyn Events>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tokens").field("variables", &self.variables).finish_non_exhaustive()
    }
}

impl Tokens {
    /// The tokens in the environment and in `~/.mu`.
    pub(super) fn new(environment: &Environment, events: Arc<dyn Events>) -> Self {
        let tokens = environment.variables.iter().filter_map(|(name, value)| {
            let host = name.strip_prefix(TOKEN_PREFIX)?;
            let is_usable = !host.is_empty() && !value.trim().is_empty();
            is_usable.then(|| (host.to_owned(), Secret::new(value.trim())))
        });
        Self {
            variables: tokens.collect(),
            home: environment.mu_home.clone(),
            stored: OnceLock::new(),
            events,
        }
    }

    /// A stored token: only for the very host and port that it was stored for.
    fn stored(&self, host_and_port: &str) -> Option<Secret> {
        let stored = self.stored.get_or_init(|| {
            if file::is_readable_by_others(&self.home) {
                let path = file::path(&self.home);
                self.events.warning(&format!(
                    "other users can read the tokens in `{0}`; `chmod 600 {0}` keeps them out",
                    path.display()
                ));
            }
            file::read(&self.home).unwrap_or_else(|error| {
                self.events.warning(&format!("no stored token is used: {error}"));
                BTreeMap::new()
            })
        });
        let found = stored.get(host_and_port).cloned();
        #[cfg(feature = "keyring")]
        let found = found.or_else(|| keyring::find(host_and_port));
        found
    }
}

impl Credentials for Tokens {
    fn token(&self, url: &SafeUrl) -> Option<Secret> {
        let host = url.host_and_port();
        let token_for =
            |host: &str| self.variables.get(&token_variable(host)[TOKEN_PREFIX.len()..]).cloned();
        // A token for one port counts before that for the whole host. Most people have no such variable.
        let in_variables = || token_for(&host).or_else(|| token_for(url.as_url().host_str()?));
        let found = if self.variables.is_empty() { None } else { in_variables() };
        found.or_else(|| self.stored(&host))
    }
}

/// Stores a token for a host, in place of the one that was stored before.
///
/// # Errors
///
/// When neither the keyring nor the disk takes it.
pub(super) fn store(home: &Path, host: &str, token: &Secret) -> Result<Stored, CommandError> {
    #[cfg(feature = "keyring")]
    if keyring::store(host, token).is_ok() {
        file::change(home, |tokens| tokens.remove(host).is_some())?;
        return Ok(Stored::Keyring);
    }
    file::change(home, |tokens| {
        tokens.insert(host.to_owned(), token.clone());
        true
    })?;
    Ok(Stored::File(file::path(home)))
}

/// Removes the token that is stored for a host; says whether there was one.
///
/// # Errors
///
/// When the disk refuses.
pub(super) fn remove(home: &Path, host: &str) -> Result<bool, CommandError> {
    let mut was_there = false;
    file::change(home, |tokens| {
        was_there = tokens.remove(host).is_some();
        was_there
    })?;
    #[cfg(feature = "keyring")]
    if keyring::remove(host) {
        was_there = true;
    }
    Ok(was_there)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::NoEvents;

    #[test]
    fn a_variable_for_a_host_without_a_port_means_all_its_ports() {
        let token = |text: &str| Secret::new(text);
        let home = tempfile::tempdir().expect("a temporary folder");
        store(home.path(), "mu.com", &token("stored")).expect("can be written");
        store(home.path(), "hub.mu.com", &token("hidden")).expect("can be written");
        let tokens = Tokens {
            variables: BTreeMap::from([
                ("HUB_MU_COM".to_owned(), token("host")),
                ("HUB_MU_COM_81".to_owned(), token("port")),
            ]),
            home: home.path().to_owned(),
            stored: OnceLock::new(),
            events: Arc::new(NoEvents),
        };
        for (url, expected) in [
            ("https://hub.mu.com/", Some("host")),
            ("https://hub.mu.com:80/", Some("host")),
            ("https://hub.mu.com:81/", Some("port")),
            ("https://mu.com/", Some("stored")),
            ("https://mu.com:81/", None),
            ("https://www.mu.com/", None),
        ] {
            let found = tokens.token(&SafeUrl::parse(url).expect("is a URL"));
            assert_eq!(found, expected.map(token), "{url}");
        }
    }
}
