//! Packets: the lines of Git's protocol, each with its length in front.

use std::io::{self, Read};

use crate::words::printable;

/// The meanings of a packet's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packet<'buffer> {
    /// `0000`: the end of a message.
    Flush,
    /// `0001`: the end of a section.
    Delimiter,
    /// A line, with its line feed if it had one.
    Data(&'buffer [u8]),
}

impl<'buffer> Packet<'buffer> {
    /// The line without its line feed; `None` at the end of a section or message.
    pub(crate) fn line(self) -> Option<&'buffer [u8]> {
        match self {
            Self::Data(data) => Some(data.strip_suffix(b"\n").unwrap_or(data)),
            Self::Flush | Self::Delimiter => None,
        }
    }
}

/// Why a conversation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// The server ended the conversation in the middle.
    #[error("the connection ended early")]
    Cut,
    /// The server's reason for not continuing.
    #[error("the server says: {0}")]
    Remote(String),
    /// The server gave up in the middle of its answer.
    #[error("the server stopped: {0}")]
    Abandoned(String),
    /// The answer is not Git's protocol.
    #[error("the answer is not Git's protocol: {0}")]
    Malformed(&'static str),
    /// The server names its objects by SHA-256.
    #[error("the repository names its objects by `{0}`, and only sha1 is supported")]
    ObjectFormat(String),
    /// The server sends more than is accepted.
    #[error("the server sends more than {0} {1}")]
    TooMuch(u64, &'static str),
    /// The server is too slow.
    #[error("fewer than {0} bytes a second came for {1} s")]
    TooSlow(u64, u64),
    /// The answer is too long.
    #[error("the answer is not complete after {0} s")]
    TooLong(u64),
    /// The server says nothing.
    #[error("nothing came for {0} s")]
    Silent(u64),
    /// The connection failed.
    #[error("the connection failed")]
    Io(#[source] io::Error),
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            // An error that had to pass through `Read`.
            Ok(error) => error,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Self::Cut,
            Err(error) => Self::Io(error),
        }
    }
}

/// The longest packet that Git allows, without its length.
const LONGEST: usize = 65_516;

/// The largest size of a list of refs in bytes. The largest repositories list several hundred thousand refs
/// in a third of it.
pub(crate) const LONGEST_LISTING: u64 = 64 << 20;

/// The most bytes in addition to a pack: acknowledgments, the ends of history, and progress.
pub(crate) const LONGEST_ASIDE: u64 = 16 << 20;

/// Reads packets one by one.
#[derive(Debug)]
pub(crate) struct PacketReader<R> {
    inner: R,
    buffer: Vec<u8>,
    read: u64,
    limit: u64,
}

impl<R: Read> PacketReader<R> {
    /// A reader of at most `limit` bytes.
    pub(crate) fn new(inner: R, limit: u64) -> Self {
        Self { inner, buffer: Vec::new(), read: 0, limit }
    }

    /// Excludes bytes from the count, because they are counted elsewhere.
    pub(super) fn forgive(&mut self, bytes: usize) {
        self.read = self.read.saturating_sub(bytes as u64);
    }

    fn count(&mut self, bytes: usize) -> Result<(), WireError> {
        self.read += bytes as u64;
        if self.read > self.limit {
            return Err(WireError::TooMuch(self.limit, "bytes that are not files"));
        }
        Ok(())
    }

    /// The next packet.
    pub(crate) fn read(&mut self) -> Result<Packet<'_>, WireError> {
        let mut length = [0_u8; 4];
        self.inner.read_exact(&mut length)?;
        let length = length
            .iter()
            .try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)? as usize))
            .ok_or(WireError::Malformed("a packet without a length"))?;
        self.count(length.max(4))?;
        match length {
            0 => return Ok(Packet::Flush),
            1 => return Ok(Packet::Delimiter),
            2 | 3 => return Err(WireError::Malformed("a packet of an unknown kind")),
            _ if length - 4 > LONGEST => return Err(WireError::Malformed("a packet too long")),
            _ => {}
        }
        self.buffer.resize(length - 4, 0);
        self.inner.read_exact(&mut self.buffer)?;
        if let Some(reason) = self.buffer.strip_prefix(b"ERR ") {
            return Err(WireError::Remote(printable(reason)));
        }
        Ok(Packet::Data(&self.buffer))
    }
}

/// Collects the packets of a request.
#[derive(Debug, Default)]
pub(crate) struct PacketWriter {
    bytes: Vec<u8>,
}

impl PacketWriter {
    /// Adds a line; the line feed is added too.
    pub(crate) fn line(&mut self, text: &str) {
        self.bytes.extend_from_slice(format!("{:04x}{text}\n", text.len() + 5).as_bytes());
    }

    /// Adds bytes as they are.
    pub(crate) fn data(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(format!("{:04x}", data.len() + 4).as_bytes());
        self.bytes.extend_from_slice(data);
    }

    /// Ends a section.
    pub(crate) fn delimiter(&mut self) {
        self.bytes.extend_from_slice(b"0001");
    }

    /// Ends the message.
    pub(crate) fn flush(&mut self) {
        self.bytes.extend_from_slice(b"0000");
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let mut writer = PacketWriter::default();
        writer.line("want x");
        writer.delimiter();
        writer.data(b"\0\n");
        writer.flush();
        let bytes = writer.into_bytes();
        assert_eq!(bytes, b"000bwant x\n00010006\0\n0000");
        let mut reader = PacketReader::new(bytes.as_slice(), 64);
        assert_eq!(reader.read().expect("is a packet").line(), Some(b"want x".as_slice()));
        assert_eq!(reader.read().expect("is a packet"), Packet::Delimiter);
        assert_eq!(reader.read().expect("is a packet"), Packet::Data(b"\0\n"));
        assert_eq!(reader.read().expect("is a packet"), Packet::Flush);
        assert!(matches!(reader.read(), Err(WireError::Cut)));
    }

    #[test]
    fn packets_without_end_are_refused() {
        for packet in ["0000", "0005\u{2}", "0008abcd"] {
            let endless = packet.as_bytes().iter().copied().cycle().take(2_000).collect::<Vec<_>>();
            let mut reader = PacketReader::new(endless.as_slice(), 1_000);
            let error = (0..1_000).find_map(|_| reader.read().err()).expect("is over some day");
            assert!(matches!(error, WireError::TooMuch(1_000, _)), "{packet}: {error}");
        }
    }

    #[test]
    fn refuses_what_is_no_packet() {
        for (bytes, expected) in [
            ("<!DOCTYPE html>", "the answer is not Git's protocol: a packet without a length"),
            ("0003", "the answer is not Git's protocol: a packet of an unknown kind"),
            ("ffff", "the answer is not Git's protocol: a packet too long"),
            ("0009done", "the connection ended early"),
            ("0010ERR no\x1b[31m\n", "the server says: no\\u{1b}[31m"),
        ] {
            let error =
                PacketReader::new(bytes.as_bytes(), 1 << 20).read().expect_err("is not a packet");
            assert_eq!(error.to_string(), expected, "{bytes}");
        }
    }
}
