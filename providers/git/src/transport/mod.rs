//! Conversations with one remote, over the transport in its URL.
//!
//! A [`Session`] lists and fetches. Most sessions use Git's protocol over a [`Link`], which carries bytes.
//! Repositories on this machine can be read without either.
//!
//! The `git://` protocol, which is here, is a plain connection, without encryption and without credentials.

mod credentials;
mod file;
mod http;
mod pipe;
mod session;
mod ssh;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use mu_provider::http::Http;
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, ProviderError, causes};

pub(crate) use self::credentials::StoredToken;
pub(crate) use self::session::{ReceiveError, Session};

use self::credentials::{Access, GitCredentials};
use crate::programs::GitPrograms;
use crate::remote_url::{RemoteUrl, Scheme, Substitute, without_login};
use crate::settings::{Settings, Stated};
use crate::transport::session::{Connected, Link, describe, not_a_repository};
use crate::wire::{Handshake, PacketWriter, WireError};

/// The options of all connections.
#[derive(Debug)]
pub(crate) struct Transports {
    http: Arc<Http>,
    programs: GitPrograms,
    /// Read when something is first connected to.
    settings: OnceLock<Result<Settings, ProviderError>>,
    credentials: Arc<GitCredentials>,
    /// The servers that could not be reached over ssh or `git://`, and why. The client for the web knows its own.
    given_up: Mutex<HashMap<Server, String>>,
}

/// A server: how it speaks, its host and its port.
type Server = (Scheme, String, Option<u16>);

/// What the system and `ssh` say if a server cannot be reached at all.
const UNREACHABLE: [&str; 7] = [
    "connection refused",
    "timed out",
    "resolve hostname",
    "lookup address",
    "no route to host",
    "is unreachable",
    "not known",
];

impl Transports {
    pub(crate) fn new(http: &Arc<Http>, programs: GitPrograms) -> Self {
        let credentials = Arc::new(GitCredentials::new(http, &programs));
        Self {
            http: Arc::clone(http),
            programs,
            settings: OnceLock::new(),
            credentials,
            given_up: Mutex::default(),
        }
    }

    /// The token that mu has for a remote on a web server, under the URL that the user's settings give it.
    pub(crate) fn token(&self, remote: &RemoteUrl) -> Result<Option<StoredToken>, ProviderError> {
        let other = self.settings()?.instead_of(remote)?;
        Ok(self.credentials.token(other.as_ref().map_or(remote, |other| &other.remote)))
    }

    /// Where the user's settings of Git lead a remote, without who connects; `None` if it is reached as it is.
    pub(crate) fn led_to(&self, remote: &RemoteUrl) -> Option<String> {
        // A repository of this machine is opened without a look at them.
        let is_here = remote.scheme == Scheme::File;
        let settings = self.settings().ok().filter(|_| !is_here)?;
        let other = settings.instead_of(remote).ok()??;
        Some(without_login(&other.remote.to_string()))
    }

    fn settings(&self) -> Result<&Settings, ProviderError> {
        let read = self.settings.get_or_init(|| Settings::read(&self.programs));
        read.as_ref().map_err(Clone::clone)
    }

    /// Begins a conversation with `remote`.
    pub(crate) fn open(&self, remote: &RemoteUrl) -> Result<Box<dyn Session>, ProviderError> {
        if remote.scheme == Scheme::File {
            return file::open(remote, &self.programs);
        }
        let settings = self.settings()?;
        let other = settings.instead_of(remote)?;
        let (remote, password) = match other {
            Some(Substitute { remote, password }) => (Cow::Owned(remote), password),
            None => (Cow::Borrowed(remote), None),
        };
        let remote = &*remote;
        settings.check_allowed(remote, &self.programs)?;
        match remote.scheme {
            Scheme::Https | Scheme::Http => {
                let web = settings.for_web(remote, &self.programs)?;
                let stated = [
                    password.map(|(user, password)| Stated::Password(user, password)),
                    web.authorization.clone(),
                ];
                let access = Access {
                    stated: stated.into_iter().flatten().collect(),
                    asks: settings.has_ask_pass,
                    challenges: Vec::new(),
                    credentials: Arc::clone(&self.credentials),
                };
                http::open(remote, &self.http, access, web)
            }
            Scheme::Ssh => self.once(remote, || ssh::open(remote, &self.programs, settings)),
            Scheme::Git => self.once(remote, || open_git(remote)),
            Scheme::File => file::open(remote, &self.programs),
        }
    }

    /// Opens a connection, unless its server could not be reached before in this run: many packages may be there.
    fn once<T>(
        &self,
        remote: &RemoteUrl,
        open: impl FnOnce() -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let server = (remote.scheme, remote.host().to_owned(), remote.port());
        if let Some(why) = lock(&self.given_up).get(&server) {
            let error =
                ProviderError::new(ErrorKind::Network, format!("cannot connect to `{remote}`"));
            return Err(error.because(why.clone()));
        }
        open().inspect_err(|error| {
            let why = causes(error).last().map(ToString::to_string).unwrap_or_default();
            let said = why.to_lowercase();
            if error.kind() == ErrorKind::Network
                && UNREACHABLE.iter().any(|words| said.contains(words))
            {
                lock(&self.given_up).insert(server, why);
            }
        })
    }
}

const PORT: u16 = 9418;
const CONNECTING: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
struct Connection {
    remote: RemoteUrl,
    input: TcpStream,
    output: TcpStream,
}

/// Begins a conversation with a `git daemon`.
fn open_git(remote: &RemoteUrl) -> Result<Box<dyn Session>, ProviderError> {
    let port = remote.port().unwrap_or(PORT);
    let input = connect(remote.host(), port).map_err(|error| {
        ProviderError::new(ErrorKind::Network, format!("cannot connect to `{remote}`"))
            .because(error)
    })?;
    let mut greeting = PacketWriter::default();
    let (path, host) = (remote.path(), remote.host());
    greeting.data(format!("git-upload-pack {path}\0host={host}:{port}\0\0version=2\0").as_bytes());
    let greet = |mut input: TcpStream| -> Result<(Connection, Handshake), WireError> {
        input.write_all(&greeting.into_bytes())?;
        let output = input.try_clone()?;
        let mut connection = Connection { remote: remote.clone(), input, output };
        let handshake = Handshake::receive(&mut connection.output)?;
        Ok((connection, handshake))
    };
    let (connection, handshake) = greet(input).map_err(|error| match error {
        // A daemon that is not configured to give reasons closes the connection for everything that it does
        // not export.
        WireError::Cut => not_a_repository(remote).because(WireError::Cut),
        error => describe(remote, error),
    })?;
    Ok(Box::new(Connected::new(remote, connection, handshake)))
}

fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(stream) => {
                stream.set_read_timeout(Some(SILENCE))?;
                stream.set_write_timeout(Some(SILENCE))?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Link for Connection {
    fn request(&mut self, request: Vec<u8>) -> Result<Box<dyn Read + '_>, ProviderError> {
        self.input.write_all(&request).map_err(|error| describe(&self.remote, error.into()))?;
        Ok(Box::new(&mut self.output))
    }

    fn explain(&mut self, error: WireError) -> ProviderError {
        describe(&self.remote, error)
    }
}
