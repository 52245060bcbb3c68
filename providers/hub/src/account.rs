//! Asks a hub whose a token is: its server, or else whatever guards its files.

use mu_provider::http::AskedServer;
use mu_provider::{Account, ErrorKind, Location, Progress, ProviderError};
use serde::Deserialize;

use crate::HubProvider;
use crate::root::Root;
use mu_archive::below;
use mu_archive::document::Asking;

/// The longest answer of a server, in bytes.
const LONGEST_ANSWER: u64 = 64 << 10;

/// What a server says of a token.
#[derive(Deserialize)]
struct Answer {
    name: String,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default)]
    can: Vec<String>,
    expires: Option<String>,
}

impl HubProvider {
    pub(crate) fn account_of_hub(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Account>, ProviderError> {
        let url = location.root.with_trailing_slash();
        if url.scheme() == "file" || url.is_bucket() {
            return Ok(None);
        }
        let asking = Asking { limit: LONGEST_ANSWER, ..self.asking(location, progress) };
        let root = self.root(&url, &asking)?;
        if let Some(api) = &root.file.api {
            let place = below(&below(&root.url, api)?.as_folder(), "whoami")?;
            let request = asking.http.get(&place).insecure(asking.insecure);
            // The hub says where its changes go, so the token is the hub's own.
            let request = request.named_by(&AskedServer::new(&root.url));
            // Servers of earlier versions do not know the question.
            let known = [404, 405, 410, 501];
            let request = known.into_iter().fold(request, |request, status| request.allow(status));
            let mut request = request.header("accept", "application/json");
            let answer = asking.http.retry(|| {
                let response = request.attempt()?;
                if response.status() != 200 {
                    return Ok(None);
                }
                response.bytes(LONGEST_ANSWER, asking.progress).map(Some)
            })?;
            if let Some(bytes) = answer {
                let answer: Answer = serde_json::from_slice(&bytes).map_err(|error| {
                    let text = format!("the answer from `{place}` does not say whose a token is");
                    ProviderError::new(ErrorKind::Protocol, text).because(error)
                })?;
                let Answer { name, namespaces, can, expires } = answer;
                return Ok(Some(Account { name, namespaces, can, expires }));
            }
        }
        let user = asking.http.user_let_in(&Root::hub_file(&root.url)?, asking.insecure)?;
        Ok(user.map(Account::of_user))
    }
}
