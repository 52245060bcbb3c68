//! The `git://` protocol: a plain connection, without encryption and without credentials.

use std::io::{self, Read, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use mu_provider::{ErrorKind, ProviderError};

use super::connected::Connected;
use super::session::{Link, Session, describe, not_a_repository};
use crate::remote_url::RemoteUrl;
use crate::wire::{Handshake, PacketWriter, WireError};

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
pub(super) fn open(remote: &RemoteUrl) -> Result<Box<dyn Session>, ProviderError> {
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
