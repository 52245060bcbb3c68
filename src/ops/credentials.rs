//! Tokens for registries, from `MU_TOKEN_<HOST>`.
//!
//! To which requests a token may be added is decided by the HTTP client.

use std::collections::BTreeMap;

use mu_provider::SafeUrl;
use mu_provider::http::{Credentials, Secret, TOKEN_PREFIX, token_variable};

use crate::env::Environment;

/// The tokens of this run.
#[derive(Debug)]
pub(super) struct Tokens(BTreeMap<String, Secret>);

impl Tokens {
    /// The tokens in the environment.
    pub(super) fn new(environment: &Environment) -> Self {
        let tokens = environment.variables.iter().filter_map(|(name, value)| {
            let host = name.strip_prefix(TOKEN_PREFIX)?;
            let is_usable = !host.is_empty() && !value.trim().is_empty();
            is_usable.then(|| (host.to_owned(), Secret::new(value.trim())))
        });
        Self(tokens.collect())
    }
}

impl Credentials for Tokens {
    fn token(&self, url: &SafeUrl) -> Option<Secret> {
        let token_for =
            |host: &str| self.0.get(&token_variable(host)[TOKEN_PREFIX.len()..]).cloned();
        // A token for one port counts before that for the whole host.
        token_for(&url.host_and_port()).or_else(|| token_for(url.as_url().host_str()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_port_means_all_its_ports() {
        let token = |text: &str| Secret::new(text);
        let tokens = Tokens(BTreeMap::from([
            ("HUB_MU_COM".to_owned(), token("host")),
            ("HUB_MU_COM_81".to_owned(), token("port")),
        ]));
        for (url, expected) in [
            ("https://hub.mu.com/", Some("host")),
            ("https://hub.mu.com:80/", Some("host")),
            ("https://hub.mu.com:81/", Some("port")),
            ("https://mu.com/", None),
        ] {
            let found = tokens.token(&SafeUrl::parse(url).expect("is a URL"));
            assert_eq!(found, expected.map(token), "{url}");
        }
    }
}
