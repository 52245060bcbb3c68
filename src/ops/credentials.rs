//! Tokens for registries, from `MU_TOKEN_<HOST>`.
//!
//! To which requests a token may be added is decided by the HTTP client.

use std::collections::BTreeMap;

use mu_provider::SafeUrl;
use mu_provider::http::{Credentials, Secret};

use crate::env::Environment;

const PREFIX: &str = "MU_TOKEN_";

/// The tokens of this run.
#[derive(Debug)]
pub(super) struct Tokens(BTreeMap<String, Secret>);

impl Tokens {
    /// The tokens in the environment.
    pub(super) fn new(environment: &Environment) -> Self {
        let tokens = environment.variables.iter().filter_map(|(name, value)| {
            let host = name.strip_prefix(PREFIX)?;
            let is_usable = !host.is_empty() && !value.trim().is_empty();
            is_usable.then(|| (host.to_owned(), Secret::new(value.trim())))
        });
        Self(tokens.collect())
    }
}

/// The name of the variable that holds the token for a host: `hub.mu.com:8080` is `MU_TOKEN_HUB_MU_COM_8080`.
pub(super) fn variable_for(host_and_port: &str) -> String {
    let host = host_and_port.chars().map(|character| {
        if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' }
    });
    PREFIX.chars().chain(host).collect()
}

impl Credentials for Tokens {
    fn token(&self, url: &SafeUrl) -> Option<Secret> {
        self.0.get(&variable_for(&url.host_and_port())[PREFIX.len()..]).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_name_hosts() {
        for (host, variable) in [
            ("hub.mu.com", "MU_TOKEN_HUB_MU_COM"),
            ("localhost:8080", "MU_TOKEN_LOCALHOST_8080"),
            ("[::1]:80", "MU_TOKEN____1__80"),
        ] {
            assert_eq!(variable_for(host), variable);
        }
    }
}
