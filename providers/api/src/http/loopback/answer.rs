//! An answer as HTTP/1.1 writes it (RFC 9112): its head, and where its body ends.

use std::io::{self, BufRead as _, Read};
use std::sync::Arc;

use reqwest::StatusCode;
use reqwest::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};

use super::Idle;
use super::connection::{self, Connection};

/// The longest head, or line of a chunked body, in bytes.
const LONGEST_HEAD: u64 = 64 << 10;

/// The most headers.
const HEADERS: usize = 100;

/// Everything before the body.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) extent: Extent,
    /// Whether the connection can be used again after the body.
    pub(super) is_kept: bool,
}

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// After so many bytes.
    Bytes(u64),
    /// With the connection.
    Connection,
    /// After a chunk of no bytes; these are left of the present one.
    Chunks { left: u64, is_first: bool },
}

impl Extent {
    /// How long the body is, where that is known before it comes.
    pub(super) fn length(self) -> Option<u64> {
        match self {
            Self::Bytes(length) => Some(length),
            _ => None,
        }
    }
}

/// Reads the head of the answer to a request, which asked for a head alone or not.
pub(super) fn read_head(connection: &mut Connection, is_head_alone: bool) -> io::Result<Head> {
    let mut text = Vec::with_capacity(512);
    loop {
        text.clear();
        read_lines(connection.reader(), &mut text)?;
        let head = parse(&text, is_head_alone)?;
        // What comes before the answer proper only says that there will be one.
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(malformed("it changes to another protocol"));
        }
        if !head.status.is_informational() {
            return Ok(head);
        }
    }
}

/// Reads up to an empty line.
fn read_lines(reader: &mut impl io::BufRead, text: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let start = text.len();
        let left = LONGEST_HEAD.saturating_sub(start as u64);
        reader.by_ref().take(left).read_until(b'\n', text)?;
        match &text[start..] {
            b"\r\n" | b"\n" => return Ok(()),
            [.., b'\n'] => {}
            _ if text.len() as u64 >= LONGEST_HEAD => {
                return Err(malformed("its head is too long"));
            }
            _ => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn parse(text: &[u8], is_head_alone: bool) -> io::Result<Head> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Response::new(&mut fields);
    let status = match parsed.parse(text) {
        Ok(httparse::Status::Complete(_)) => {
            parsed.code.and_then(|code| StatusCode::from_u16(code).ok())
        }
        _ => None,
    };
    let status = status.ok_or_else(|| malformed("its head is no HTTP"))?;
    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    for field in parsed.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let value = HeaderValue::from_bytes(field.value);
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(malformed("one of its headers is malformed"));
        };
        headers.append(name, value);
    }
    let extent = if is_head_alone || matches!(status.as_u16(), 100..=199 | 204 | 304) {
        Extent::Bytes(0)
    } else {
        extent(&headers)?
    };
    let closes = headers.get_all(CONNECTION).iter().any(|value| {
        let text = value.to_str().unwrap_or_default();
        text.split(',').any(|word| word.trim().eq_ignore_ascii_case("close"))
    });
    let is_kept = parsed.version == Some(1) && !closes && extent != Extent::Connection;
    Ok(Head { status, headers, extent, is_kept })
}

/// Where the body ends, by its headers.
fn extent(headers: &HeaderMap) -> io::Result<Extent> {
    if let Some(coding) = headers.get(TRANSFER_ENCODING) {
        let is_chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked");
        // A length besides could end the body elsewhere.
        return if is_chunked && !headers.contains_key(CONTENT_LENGTH) {
            Ok(Extent::Chunks { left: 0, is_first: true })
        } else {
            Err(malformed("where its body ends can be read in two ways"))
        };
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else { return Ok(Extent::Connection) };
    if lengths.any(|other| other != length) {
        return Err(malformed("it gives two lengths"));
    }
    number(length.as_bytes(), 10).map(Extent::Bytes)
}

fn number(digits: &[u8], radix: u32) -> io::Result<u64> {
    let text = std::str::from_utf8(digits).ok();
    // A sign would be a number to `from_str_radix`, and to nobody else.
    let text = text.filter(|text| text.chars().all(|digit| digit.is_digit(radix)));
    let number = text.and_then(|text| u64::from_str_radix(text, radix).ok());
    number.ok_or_else(|| malformed("its length is no number"))
}

fn malformed(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the answer makes no sense: {reason}"))
}

/// A body on its way. Once all of it is read, its connection is there for the next request.
pub(super) struct Body {
    connection: Option<Connection>,
    extent: Extent,
    keeper: Option<Arc<Idle>>,
}

impl Body {
    /// The body that comes over `connection`, which `keeper` takes afterwards, if it can be kept.
    pub(super) fn new(connection: Connection, extent: Extent, keeper: Option<Arc<Idle>>) -> Self {
        let mut body = Self { connection: Some(connection), extent, keeper };
        if extent == Extent::Bytes(0) {
            body.end();
        }
        body
    }

    fn end(&mut self) {
        let connection = self.connection.take().and_then(Connection::rested);
        if let Some((connection, keeper)) = connection.zip(self.keeper.take()) {
            keeper.keep(connection);
        }
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(connection) = &mut self.connection else { return Ok(0) };
        let reader = connection.reader();
        let left = match &mut self.extent {
            Extent::Connection => {
                let count = reader.read(buffer)?;
                if count == 0 {
                    self.end();
                }
                return Ok(count);
            }
            Extent::Bytes(left) => left,
            Extent::Chunks { left, is_first } => {
                if *left == 0 {
                    *left = next_chunk(reader, std::mem::take(is_first))?;
                }
                if *left == 0 {
                    self.end();
                    return Ok(0);
                }
                left
            }
        };
        let most = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
        let count = reader.read(&mut buffer[..most])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        *left -= count as u64;
        if self.extent == Extent::Bytes(0) {
            self.end();
        }
        Ok(count)
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.read_some(buffer).map_err(|error| {
            if connection::is_silence(&error) {
                io::Error::new(io::ErrorKind::TimedOut, "nothing came any more")
            } else {
                error
            }
        })
    }
}

/// The length of the next chunk; behind the last one, which has none, what trails it is read as well.
fn next_chunk(reader: &mut impl io::BufRead, is_first: bool) -> io::Result<u64> {
    if !is_first && !read_line(reader)?.is_empty() {
        return Err(malformed("a chunk is longer than it says"));
    }
    let line = read_line(reader)?;
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let length = number(digits, 16)?;
    if length == 0 {
        read_lines(reader, &mut Vec::new())?;
    }
    Ok(length)
}

/// A line without its end.
fn read_line(reader: &mut impl io::BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.by_ref().take(LONGEST_HEAD).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(line)
}
