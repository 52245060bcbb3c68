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
        self.0.get(&token_variable(&url.host_and_port())[TOKEN_PREFIX.len()..]).cloned()
    }
}
