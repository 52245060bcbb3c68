//! A conversation in Git's protocol over any link.

use std::io::{BufReader, Read};

use mu_provider::ProviderError;

use super::session::{Link, Receive, ReceiveError, Session, describe};
use crate::remote_url::RemoteUrl;
use crate::wire::{
    Advertisement, Depth, FetchRequest, Handshake, LONGEST_LISTING, Pace, Paced, PackReader,
    PacketReader, WireError, read_listing, write_listing_request,
};

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
    fn advertisement(&mut self) -> Result<Advertisement, ProviderError> {
        match &self.handshake {
            Handshake::Zero(_, refs) => Ok(refs.clone()),
            Handshake::Two(capabilities) => {
                let request = write_listing_request(capabilities);
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
