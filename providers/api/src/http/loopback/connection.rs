//! One connection: how it is made, and what has come over it that nobody has read yet.

use std::io::{self, BufReader, Read};
use std::net::TcpStream;
use std::time::Duration;

use url::Url;

/// Most answers of a hub fit, head and all, so that one read is enough.
const BUFFER: usize = 32 << 10;

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Connection {
    authority: String,
    reader: BufReader<Counted>,
}

/// Counts whether anything came since the last request.
#[derive(Debug)]
struct Counted {
    stream: TcpStream,
    has_answered: bool,
}

impl Connection {
    /// Connects to the server of `url`, whose name and port are `authority`.
    pub(super) fn open(
        url: &Url,
        authority: &str,
        connect_timeout: Duration,
        timeout: Duration,
    ) -> io::Result<Self> {
        let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in url.socket_addrs(|| None)? {
            match TcpStream::connect_timeout(&address, connect_timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(timeout))?;
                    stream.set_write_timeout(Some(timeout))?;
                    let counted = Counted { stream, has_answered: false };
                    let reader = BufReader::with_capacity(BUFFER, counted);
                    return Ok(Self { authority: authority.to_owned(), reader });
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Host and port of the server.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// For what is sent.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.reader.get_ref().stream
    }

    /// For what comes back.
    pub(super) fn reader(&mut self) -> &mut impl io::BufRead {
        &mut self.reader
    }

    /// Whether any of an answer came.
    pub(super) fn has_answered(&self) -> bool {
        self.reader.get_ref().has_answered
    }

    /// The connection as it is between two requests; `None` if more came than was asked for.
    pub(super) fn rested(mut self) -> Option<Self> {
        self.reader.get_mut().has_answered = false;
        self.reader.buffer().is_empty().then_some(self)
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.has_answered |= count > 0;
        Ok(count)
    }
}

/// Whether an error says that nothing came in time.
pub(super) fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
