//! A conversation with a remote, over any transport.

use std::fmt;
use std::io::{self, Read};

use mu_provider::{ErrorKind, ProviderError};

use crate::remote_url::RemoteUrl;
use crate::wire::{Advertisement, Boundary, FetchRequest, WireError};

/// Takes a pack: first the commits where its history ends, then its bytes.
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
    fn advertisement(&mut self) -> Result<Advertisement, ProviderError>;

    /// Whether every commit can be requested, or only those of refs.
    fn gives_any_commit(&self) -> bool;

    /// Whether commits can be requested without their files.
    fn gives_commits_only(&self) -> bool;

    /// Fetches the requested objects, and passes them to `receive`.
    ///
    /// If a server has no such object, or refuses to send it, the error is [`ErrorKind::NotFound`].
    fn fetch(
        &mut self,
        request: &FetchRequest,
        receive: &mut Receive<'_>,
    ) -> Result<(), ProviderError>;

    /// Whether it can be used again.
    fn is_open(&self) -> bool;
}

/// Carries requests to a server and its answers back.
pub(super) trait Link: Send + fmt::Debug {
    /// Sends a request and yields the answer.
    fn request(&mut self, request: Vec<u8>) -> Result<Box<dyn Read + '_>, ProviderError>;

    /// Why the conversation failed, with what only the link knows.
    fn explain(&mut self, error: WireError) -> ProviderError;

    /// Whether each request is independent, so that the link survives a conversation of version 0.
    fn is_stateless(&self) -> bool {
        false
    }
}

/// The error for a conversation about `remote` that failed with `error`.
pub(super) fn describe(remote: &RemoteUrl, error: WireError) -> ProviderError {
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

/// The error for a place without a repository.
pub(super) fn not_a_repository(remote: &RemoteUrl) -> ProviderError {
    ProviderError::new(ErrorKind::NotFound, format!("there is no Git repository at `{remote}`"))
}
