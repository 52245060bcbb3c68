//! Asks a registry whether it accepts the password that is stored for it, as `docker login` does.

use std::sync::{Arc, OnceLock};

use mu_provider::http::{AskedServer, Authorization, Guard};
use mu_provider::{Account, ErrorKind, Location, Progress, ProviderError};

use crate::OciProvider;
use crate::auth::RegistryTokens;
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
