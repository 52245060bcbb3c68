//! A conversation with a remote: over any transport, and in Git's protocol over any link.

use std::fmt;
use std::io::BufReader;
use std::io::{self, Read};

use mu_provider::{ErrorKind, ProviderError};

use crate::remote_url::RemoteUrl;
use crate::wire::{
    Advertisement, Boundary, Depth, FetchRequest, Handshake, LONGEST_LISTING, Pace, Paced,
    PackReader, PacketReader, WireError, read_listing, write_listing_request,
};

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
    /// Branches, tags and HEAD; or at least those whose full names begin with `prefix`.
    fn advertisement(&mut self, prefix: Option<&str>) -> Result<Advertisement, ProviderError>;

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
    let is_unreadable = matches!(error, WireError::ObjectFormat(_));
    let text = format!("cannot read the Git repository `{remote}`");
    let failure = ProviderError::new(kind, text).because(error);
    match is_unreadable {
        true => failure.hint("the files of a clone can be used as a folder: `mu add ../CLONE`"),
        false => failure,
    }
}

/// The error for a place without a repository.
pub(super) fn not_a_repository(remote: &RemoteUrl) -> ProviderError {
    ProviderError::new(ErrorKind::NotFound, format!("there is no Git repository at `{remote}`"))
}

/// A link, and its server's first answer.
#[derive(Debug)]
pub(super) struct Connected<L> {
    remote: RemoteUrl,
    link: L,
    handshake: Handshake,
    open: bool,
}

impl<L: Link> Connected<L> {
    /// Continues after the handshake.
    pub(super) fn new(remote: &RemoteUrl, link: L, handshake: Handshake) -> Self {
        Self { remote: remote.clone(), link, handshake, open: true }
    }

    /// Runs one exchange; after a failure the link is not used again.
    fn exchange<T>(
        &mut self,
        request: Vec<u8>,
        pace: &Pace,
        read: impl FnOnce(&Handshake, &mut dyn Read) -> Result<T, Failure>,
    ) -> Result<T, ProviderError> {
        self.open = false;
        let result = {
            let answer = self.link.request(request)?;
            read(&self.handshake, &mut BufReader::with_capacity(64 << 10, Paced::new(answer, pace)))
        };
        match result {
            Ok(value) => {
                self.open = true;
                Ok(value)
            }
            Err(Failure::Wire(error)) => Err(self.link.explain(error)),
            Err(Failure::Told(error)) => Err(error),
        }
    }
}

/// What an exchange can fail with.
enum Failure {
    Wire(WireError),
    Told(ProviderError),
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl From<ReceiveError> for Failure {
    fn from(error: ReceiveError) -> Self {
        match error {
            // A `PackReader` has put it into the error that `Read` requires.
            ReceiveError::Source(error) => Self::Wire(error.into()),
            ReceiveError::Refused(error) => Self::Told(error),
        }
    }
}

impl<L: Link> Session for Connected<L> {
    fn advertisement(&mut self, prefix: Option<&str>) -> Result<Advertisement, ProviderError> {
        match &self.handshake {
            Handshake::Zero(_, refs) => Ok(refs.clone()),
            Handshake::Two(capabilities) => {
                let request = write_listing_request(capabilities, prefix);
                self.exchange(request, &Pace::telling(), |_, answer| {
                    Ok(read_listing(&mut PacketReader::new(answer, LONGEST_LISTING))?)
                })
            }
        }
    }

    fn gives_any_commit(&self) -> bool {
        match &self.handshake {
            Handshake::Two(_) => true,
            Handshake::Zero(capabilities, _) => {
                ["allow-any-sha1-in-want", "allow-reachable-sha1-in-want"]
                    .iter()
                    .any(|word| capabilities.has(word))
            }
        }
    }

    fn gives_commits_only(&self) -> bool {
        match &self.handshake {
            Handshake::Two(capabilities) => capabilities.says("fetch", "filter"),
            Handshake::Zero(capabilities, _) => capabilities.has("filter"),
        }
    }

    fn fetch(
        &mut self,
        request: &FetchRequest,
        receive: &mut Receive<'_>,
    ) -> Result<(), ProviderError> {
        let mut request = request.clone();
        let (knows_shallow, last) = match &self.handshake {
            Handshake::Two(capabilities) => (capabilities.says("fetch", "shallow"), false),
            Handshake::Zero(capabilities, _) => {
                if !capabilities.has("side-band-64k") {
                    return Err(describe(
                        &self.remote,
                        WireError::Malformed("it has no side-band, as all servers since 2006 have"),
                    ));
                }
                (capabilities.has("shallow"), !self.link.is_stateless())
            }
        };
        if !knows_shallow {
            request.depth = Depth::Whole;
            request.shallow.clear();
        }
        let bytes = request.write(&self.handshake);
        let pace = Pace::preparing();
        self.exchange(bytes, &pace, |handshake, answer| {
            let (boundary, mut pack) = PackReader::open(answer, &pace, handshake, &request)?;
            Ok(receive(&boundary, &mut pack)?)
        })?;
        self.open = !last;
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.open
    }
}
