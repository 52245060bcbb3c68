//! What a registry as a whole is asked for: whether it accepts the password that is stored for it, as `docker login` does, and the names of
//! its repositories, if it lists them (`_catalog`). Most public registries do not.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use mu_provider::http::{AskedServer, Authorization, Guard};
use mu_provider::{Account, ErrorKind, Location, Progress, ProviderError};
use serde::Deserialize;

use crate::OciProvider;
use crate::auth::{RegistryTokens, RepositoryGuard};
use crate::registry::{Call, To};

/// The longest answer, in bytes.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Shows the password of a registry, and notes whether that was asked for.
#[derive(Debug)]
struct LoginGuard {
    keys: Arc<RegistryTokens>,
    /// Host and port of the registry.
    host: String,
    /// The user of the password, once it was asked for; empty for a token without one.
    user: OnceLock<String>,
}

impl Guard for LoginGuard {
    fn known(&self, _asked: &AskedServer) -> Result<Authorization, ProviderError> {
        Ok(Authorization::Nothing)
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
        let user = self.keys.registry_user(asked)?;
        self.user.get_or_init(|| user);
        Ok(self.keys.login(asked, challenges)?.filter(|answer| answer != shown))
    }

    fn hints(&self, asked: &AskedServer) -> Vec<String> {
        self.keys.hints_of(asked)
    }
}

impl OciProvider {
    pub(crate) fn account_of_registry(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Account>, ProviderError> {
        let registry = self.registry(location);
        let guard = Arc::new(LoginGuard {
            keys: Arc::clone(&self.keys),
            host: registry.host.clone(),
            user: OnceLock::new(),
        });
        let call = Call::get(LONGEST_ANSWER, Some(Arc::clone(&guard) as Arc<dyn Guard>));
        let answer = registry.ask(To::Path("v2/"), &call, progress)?;
        let user = guard.user.get().cloned();
        if answer.is_absent() || (answer.api.is_none() && user.is_none()) {
            let text = format!("`{}` is no OCI registry", answer.url);
            return Err(ProviderError::new(ErrorKind::NotFound, text));
        }
        Ok(user.map(Account::of_user))
    }
}

/// The longest page of names, in bytes.
const LONGEST_PAGE: u64 = 8 << 20;

/// How many names to request at a time.
const NAMES_AT_ONCE: usize = 1_000;

/// How many pages are read.
const MOST_PAGES: usize = 100;

/// A page of names.
#[derive(Deserialize)]
struct Page {
    repositories: Vec<String>,
}

impl OciProvider {
    /// The names of the repositories below a location. A registry that refuses is not worth a word: the packages in it are
    /// found by their names.
    pub(crate) fn names(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Option<BTreeSet<String>> {
        let registry = self.registry(location);
        let guard = RepositoryGuard {
            keys: Arc::clone(&self.keys),
            host: registry.host.clone(),
            repository: String::new(),
            writes: false,
        };
        let call = Call::get(LONGEST_PAGE, Some(Arc::new(guard)));
        let path = format!("v2/_catalog?n={NAMES_AT_ONCE}");
        let mut answer = registry.ask(To::Path(&path), &call, progress).ok()?;
        let before = location.root.as_url().path().trim_matches('/');
        let mut all = BTreeSet::new();
        for _ in 0..MOST_PAGES {
            let page: Page = serde_json::from_slice(&answer.bytes).ok()?;
            let known = all.len();
            all.extend(page.repositories);
            match answer.next().ok().flatten().filter(|_| all.len() > known) {
                Some(next) => answer = registry.ask(To::Url(&next), &call, progress).ok()?,
                None => break,
            }
        }
        let below = |name: &String| match before {
            "" => Some(name.clone()),
            before => name.strip_prefix(before)?.strip_prefix('/').map(str::to_owned),
        };
        Some(all.iter().filter_map(below).collect())
    }
}
