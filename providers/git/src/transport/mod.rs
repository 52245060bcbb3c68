//! Conversations with one remote, over the transport in its URL.
//!
//! A [`Session`] lists and fetches. Most sessions use Git's protocol over a [`Link`], which carries bytes.
//! Repositories on this machine can be read without either.

mod bundle;
mod connected;
mod credentials;
mod file;
mod git;
mod http;
mod pipe;
mod session;
mod ssh;
mod without_git;

use std::sync::{Arc, OnceLock};

use mu_provider::ProviderError;
use mu_provider::http::Http;

pub(crate) use self::credentials::Token;
pub(crate) use self::session::{ReceiveError, Session};

use self::credentials::GitCredentials;
use crate::programs::Programs;
use crate::remote_url::{RemoteUrl, Scheme};
use crate::settings::Settings;

/// The options of all connections.
#[derive(Debug)]
pub(crate) struct Transports {
    http: Arc<Http>,
    programs: Programs,
    /// Read when something is first connected to.
    settings: OnceLock<Settings>,
    credentials: GitCredentials,
}

impl Transports {
    pub(crate) fn new(http: &Arc<Http>, programs: Programs) -> Self {
        let credentials = GitCredentials::new(http, &programs);
        Self { http: Arc::clone(http), programs, settings: OnceLock::new(), credentials }
    }

    /// The token that mu has for a remote on a web server, under the URL that the user's settings give it.
    pub(crate) fn token(&self, remote: &RemoteUrl) -> Result<Option<Token>, ProviderError> {
        let other = self.settings().instead_of(remote)?;
        Ok(self.credentials.token(other.as_ref().unwrap_or(remote)))
    }

    fn settings(&self) -> &Settings {
        self.settings.get_or_init(|| Settings::read(&self.programs))
    }

    /// Begins a conversation with `remote`.
    pub(crate) fn open(&self, remote: &RemoteUrl) -> Result<Box<dyn Session>, ProviderError> {
        if remote.scheme == Scheme::File {
            return file::open(remote, &self.programs);
        }
        let settings = self.settings();
        let other = settings.instead_of(remote)?;
        let remote = other.as_ref().unwrap_or(remote);
        match remote.scheme {
            Scheme::Https | Scheme::Http => http::open(remote, &self.http, &self.credentials),
            Scheme::Ssh => ssh::open(remote, &self.programs, settings.ssh_command.as_deref()),
            Scheme::Git => git::open(remote),
            Scheme::File => file::open(remote, &self.programs),
        }
    }
}
