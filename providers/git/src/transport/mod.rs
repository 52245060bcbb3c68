//! Conversations with one remote, over whichever transport its URL asks for.
//!
//! A [`Session`] lists and fetches. Most are a [`Link`], which carries bytes, under Git's protocol;
//! repositories of this machine can be read without either.

mod bundle;
mod connected;
mod credentials;
mod file;
mod git;
mod http;
mod pipe;
mod ssh;
mod without_git;

use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

use mu_provider::http::Http;
use mu_provider::{ErrorKind, Progress, ProviderError};

use self::credentials::GitCredentials;
use crate::programs::Programs;
use crate::remote_url::{RemoteUrl, Scheme};
use crate::settings::Settings;
use crate::wire::{Advertisement, Boundary, FetchRequest, WireError};

/// What all connections are made with.
#[derive(Debug)]
pub(crate) struct Transports {
    http: Arc<Http>,
    programs: Programs,
    /// Read when something is first connected to.
    settings: OnceLock<Settings>,
    credentials: GitCredentials,
}

/// Takes a pack: first where its history ends, then its bytes.
pub(crate) type Receive<'call> =
    dyn FnMut(&Boundary, &mut dyn Read) -> Result<(), ReceiveError> + 'call;

/// Why a pack was not received.
#[derive(Debug)]
pub(crate) enum ReceiveError {
    /// Its bytes could not be read; the conversation knows why.
    Source(io::Error),
    /// It was not taken.
    Refused(ProviderError),
}

/// A conversation with one remote.
pub(crate) trait Session: Send + fmt::Debug {
    /// Branches, tags and HEAD.
    fn advertisement(&mut self, progress: &dyn Progress) -> Result<Advertisement, ProviderError>;

    /// Whether every commit can be asked for, or only the ones that refs point to.
    fn gives_any_commit(&self) -> bool;

    /// Whether commits can be asked for without their files.
    fn gives_commits_only(&self) -> bool;

    /// Fetches what is wanted, and hands it to `receive`.
    ///
    /// A server that has no such object, or will not give it, is [`ErrorKind::NotFound`].
    fn fetch(
        &mut self,
        request: &FetchRequest,
        receive: &mut Receive<'_>,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError>;

    /// Whether it can be asked again.
    fn is_open(&self) -> bool;
}

/// Carries requests to a server and its answers back.
trait Link: Send + fmt::Debug {
    /// Sends a request and yields the answer.
    fn request(
        &mut self,
        request: Vec<u8>,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Read + '_>, ProviderError>;

    /// Why the conversation failed, with what only the link knows.
    fn explain(&mut self, error: WireError) -> ProviderError;

    /// Whether each request stands alone, so that the link outlives a conversation of version 0.
    fn is_stateless(&self) -> bool;
}

impl Transports {
    pub(crate) fn new(http: &Arc<Http>, programs: Programs) -> Self {
        let credentials = GitCredentials::new(http, &programs);
        Self { http: Arc::clone(http), programs, settings: OnceLock::new(), credentials }
    }

    /// Begins a conversation with `remote`.
    pub(crate) fn open(
        &self,
        remote: &RemoteUrl,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Session>, ProviderError> {
        if remote.scheme() == Scheme::File {
            return file::open(remote, &self.programs);
        }
        let settings = self.settings.get_or_init(|| Settings::read(&self.programs));
        let other = settings.instead_of(remote)?;
        let remote = other.as_ref().unwrap_or(remote);
        match remote.scheme() {
            Scheme::Https | Scheme::Http => {
                http::open(remote, &self.http, &self.credentials, progress)
            }
            Scheme::Ssh => ssh::open(remote, &self.programs, settings.ssh_command.as_deref()),
            Scheme::Git => git::open(remote),
            Scheme::File => file::open(remote, &self.programs),
        }
    }
}

/// The error for a conversation about `remote` that failed in the way `error` says.
fn describe(remote: &RemoteUrl, error: WireError) -> ProviderError {
    let kind = match &error {
        WireError::Cut
        | WireError::Abandoned(_)
        | WireError::Io(_)
        | WireError::TooSlow(..)
        | WireError::TooLong(_)
        | WireError::Silent(_) => ErrorKind::Network,
        WireError::Remote(_) => ErrorKind::NotFound,
        WireError::Malformed(_) | WireError::ObjectFormat(_) | WireError::TooMuch(..) => {
            ErrorKind::Protocol
        }
    };
    ProviderError::new(kind, format!("cannot read the Git repository `{remote}`")).because(error)
}

fn not_a_repository(remote: &RemoteUrl) -> ProviderError {
    ProviderError::new(ErrorKind::NotFound, format!("there is no Git repository at `{remote}`"))
}
