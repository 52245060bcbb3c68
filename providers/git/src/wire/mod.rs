//! Git's wire protocol, as far as reading repositories needs it: versions 0 and 2, fetching only.
//!
//! libgit2 supports only version 0, which lists every ref of a remote on every connection, and it cannot
//! leave out files (`filter`). Its HTTP does not know mu's rules for tokens and redirects. Its transports are
//! global, and registering one is unsafe. So mu implements the conversation itself, and libgit2 does what it
//! is good at: packs and objects. Nothing here knows how bytes reach the server.
//!
//! In this file are the first answer of a server, and how slow a server may be: one that sends a byte now and then could keep a
//! conversation alive for ever. Only time spent waiting for the server counts, not the processing of its answer. The transports notice
//! if a server is completely silent.

mod fetch;
mod packet;
mod refs;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::time::{Duration, Instant};

use crate::words::printable;

pub(crate) use self::fetch::{Boundary, Depth, FetchRequest, PackReader};
pub(crate) use self::packet::{LONGEST_LISTING, Packet, PacketReader, PacketWriter, WireError};
pub(crate) use self::refs::{Advertisement, Ref, read_listing, write_listing_request};

/// How long the capabilities of a server of version 2 may be in bytes, with 64 more for each line. Usually
/// there are a few hundred bytes.
const LONGEST_CAPABILITIES: usize = 1 << 20;

/// The capabilities of a server: `name` or `name=value`, as it sent them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Capabilities(BTreeMap<String, String>);

impl Capabilities {
    pub(super) fn add(&mut self, text: &str) {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        self.0.insert(name.to_owned(), value.to_owned());
    }

    /// Whether the server has the capability `name`, with any value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether `word` is one of the words in the server's value of `name`.
    pub(crate) fn says(&self, name: &str, word: &str) -> bool {
        self.0.get(name).is_some_and(|value| value.split(' ').any(|other| other == word))
    }

    fn check_object_format(&self) -> Result<(), WireError> {
        match self.0.get("object-format") {
            Some(format) if format != "sha1" => {
                Err(WireError::ObjectFormat(printable(format.as_bytes())))
            }
            _ => Ok(()),
        }
    }
}

/// The first answer of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// Version 2: its capabilities. Refs have to be requested.
    Two(Capabilities),
    /// Version 0 (or 1, which only says so first): its capabilities, and all refs.
    Zero(Capabilities, Advertisement),
}

impl Handshake {
    /// Reads the first answer of a server.
    pub(crate) fn receive(answer: impl Read) -> Result<Self, WireError> {
        let pace = Pace::telling();
        let answer = BufReader::with_capacity(64 << 10, Paced::new(answer, &pace));
        Self::read(&mut PacketReader::new(answer, LONGEST_LISTING))
    }

    fn read(reader: &mut PacketReader<impl Read>) -> Result<Self, WireError> {
        let mut first = reader.read()?.line().map(<[u8]>::to_vec);
        if first.as_deref().is_some_and(|line| line.starts_with(b"# service=")) {
            if reader.read()?.line().is_some() {
                return Err(WireError::Malformed("no end after the name of the service"));
            }
            first = reader.read()?.line().map(<[u8]>::to_vec);
        }
        match first.as_deref() {
            Some(b"version 2") => Self::read_two(reader),
            Some(b"version 1") => {
                let first = reader.read()?.line().map(<[u8]>::to_vec);
                Self::read_zero(reader, first)
            }
            _ => Self::read_zero(reader, first),
        }
    }

    fn read_two(reader: &mut PacketReader<impl Read>) -> Result<Self, WireError> {
        let mut capabilities = Capabilities::default();
        let mut bytes = 0;
        while let Some(line) = reader.read()?.line() {
            // Short ones take many times their size in memory.
            bytes += line.len() + 64;
            if bytes > LONGEST_CAPABILITIES {
                let limit = LONGEST_CAPABILITIES as u64;
                return Err(WireError::TooMuch(limit, "bytes about what it can do"));
            }
            capabilities.add(&String::from_utf8_lossy(line));
        }
        capabilities.check_object_format()?;
        Ok(Self::Two(capabilities))
    }

    fn read_zero(
        reader: &mut PacketReader<impl Read>,
        first: Option<Vec<u8>>,
    ) -> Result<Self, WireError> {
        let mut capabilities = Capabilities::default();
        let mut refs = Advertisement::default();
        let Some(first) = first else {
            return Ok(Self::Zero(capabilities, refs.sorted()));
        };
        let end = first.iter().position(|byte| *byte == 0);
        let (line, words) = first.split_at(end.unwrap_or(first.len()));
        for word in String::from_utf8_lossy(words).trim_matches('\0').split_ascii_whitespace() {
            match word.strip_prefix("symref=HEAD:") {
                Some(branch) => refs.head_is(branch.as_bytes()),
                None => capabilities.add(word),
            }
        }
        capabilities.check_object_format()?;
        refs.add_line(line)?;
        while let Some(line) = reader.read()?.line() {
            refs.add_line(line)?;
        }
        Ok(Self::Zero(capabilities, refs.sorted()))
    }
}

/// The bytes per second that a server has to send on average over [`WINDOW`], as in Cargo and many other
/// tools.
const LEAST_RATE: u64 = 10;
const WINDOW: Duration = Duration::from_secs(30);

/// How long everything except packs may take in all. A server that prepares a large pack sends next to
/// nothing meanwhile, and takes minutes for the largest repositories.
const LONGEST: Duration = Duration::from_secs(600);

/// What a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It sends its capabilities, or lists refs.
    Telling,
    /// It makes a pack.
    Preparing,
    /// It sends a pack.
    Sending,
}

/// How long one answer has taken so far.
#[derive(Debug)]
pub(crate) struct Pace(RefCell<State>);

#[derive(Debug)]
struct State {
    doing: Doing,
    waited: Duration,
    bytes: u64,
    /// How long was waited in the current window, and for how much.
    window: (Duration, u64),
}

impl Pace {
    /// The pace of an answer that is all lines.
    pub(crate) fn telling() -> Self {
        Self::of(Doing::Telling)
    }

    /// The pace of an answer that a pack is part of.
    pub(crate) fn preparing() -> Self {
        Self::of(Doing::Preparing)
    }

    fn of(doing: Doing) -> Self {
        let window = (Duration::ZERO, 0);
        Self(RefCell::new(State { doing, waited: Duration::ZERO, bytes: 0, window }))
    }

    /// Notes bytes of a pack. From the first one on, only these count.
    pub(super) fn note_pack(&self, bytes: usize) {
        let mut state = self.0.borrow_mut();
        if state.doing != Doing::Sending {
            state.doing = Doing::Sending;
            state.window = (Duration::ZERO, 0);
        }
        state.window.1 += bytes as u64;
    }

    /// Takes note of bytes, and of how long they were waited for.
    fn note(&self, waited: Duration, bytes: usize) -> Result<(), WireError> {
        let mut state = self.0.borrow_mut();
        let is_first = state.bytes == 0;
        state.waited += waited;
        state.bytes += bytes as u64;
        if state.doing != Doing::Sending && state.waited > LONGEST {
            return Err(WireError::TooLong(LONGEST.as_secs()));
        }
        // Before the first byte, a server may have to start, or a user to touch a security key.
        if state.doing == Doing::Preparing || is_first {
            return Ok(());
        }
        state.window.0 += waited;
        if state.doing == Doing::Telling {
            state.window.1 += bytes as u64;
        }
        if state.window.0 >= WINDOW {
            if state.window.1 < LEAST_RATE * WINDOW.as_secs() {
                return Err(WireError::TooSlow(LEAST_RATE, WINDOW.as_secs()));
            }
            state.window = (Duration::ZERO, 0);
        }
        Ok(())
    }
}

/// Reads as long as the server keeps the pace.
#[derive(Debug)]
pub(crate) struct Paced<'pace, R> {
    inner: R,
    pace: &'pace Pace,
}

impl<'pace, R> Paced<'pace, R> {
    pub(crate) fn new(inner: R, pace: &'pace Pace) -> Self {
        Self { inner, pace }
    }
}

impl<R: Read> Read for Paced<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let began = Instant::now();
        let count = self.inner.read(buffer)?;
        self.pace.note(began.elapsed(), count).map_err(io::Error::other)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: &str = "1895753f53a63c055e7cae81ebe4ea5d5805584f";

    fn read(lines: &[&str]) -> Result<Handshake, WireError> {
        let mut writer = PacketWriter::default();
        for line in lines {
            if line.is_empty() { writer.flush() } else { writer.line(line) }
        }
        writer.flush();
        let bytes = writer.into_bytes();
        Handshake::read(&mut PacketReader::new(bytes.as_slice(), LONGEST_LISTING))
    }

    #[test]
    fn tells_the_versions_apart() {
        let two = read(&["# service=git-upload-pack", "", "version 2", "fetch=shallow filter"])
            .expect("is version 2");
        let Handshake::Two(capabilities) = two else { panic!("is version 2: {two:?}") };
        assert!(capabilities.says("fetch", "shallow") && !capabilities.has("ls-refs"));

        for version in [&["version 1"][..], &[]] {
            let first = format!("{OID} HEAD\0side-band-64k symref=HEAD:refs/heads/dev");
            let branch = format!("{OID} refs/heads/dev");
            let lines: Vec<&str> = version.iter().copied().chain([&*first, &branch]).collect();
            let zero = read(&lines).expect("is version 0");
            let Handshake::Zero(capabilities, refs) = zero else {
                panic!("is version 0: {zero:?}")
            };
            assert!(capabilities.has("side-band-64k"));
            assert_eq!(refs.refs.len(), 1);
            assert_eq!(refs.default_branch(), Some("refs/heads/dev"));
        }
    }

    #[test]
    fn an_empty_repository_has_no_refs() {
        let none = format!("{} capabilities^{{}}\0side-band-64k", "0".repeat(40));
        for lines in [&[&*none][..], &[]] {
            let Ok(Handshake::Zero(_, refs)) = read(lines) else { panic!("is version 0") };
            assert!(refs.refs.is_empty());
        }
    }

    #[test]
    fn refuses_other_object_formats_and_html() {
        assert!(matches!(
            read(&["version 2", "object-format=sha256"]),
            Err(WireError::ObjectFormat(_))
        ));
        assert!(matches!(read(&["<html>"]), Err(WireError::Malformed(_))));
    }

    #[test]
    fn capabilities_without_end_are_refused() {
        let many: Vec<String> = (0..20_000).map(|number| format!("c{number}")).collect();
        let lines: Vec<&str> =
            std::iter::once("version 2").chain(many.iter().map(String::as_str)).collect();
        assert!(matches!(read(&lines), Err(WireError::TooMuch(..))));
    }

    #[test]
    fn a_listing_without_end_is_refused() {
        // Refs that are not kept count too.
        let line = format!("{OID} refs/pull/{}\n", "x".repeat(60_000));
        let packet = format!("{:04x}{line}", line.len() + 4);
        let packets = usize::try_from(LONGEST_LISTING).expect("fits") / packet.len() + 1;
        let endless: Vec<u8> = packet.as_bytes().repeat(packets);
        let refused = Handshake::receive(endless.as_slice());
        assert!(matches!(refused, Err(WireError::TooMuch(LONGEST_LISTING, _))), "{refused:?}");
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// After how many seconds mu gives up if `bytes` arrive each second.
    fn lasts(pace: &Pace, bytes: usize) -> Option<usize> {
        (1..=10_000).find(|_| pace.note(SECOND, bytes).is_err())
    }

    #[test]
    fn a_drip_is_given_up() {
        assert_eq!(lasts(&Pace::telling(), 1), Some(31));
        assert_eq!(lasts(&Pace::telling(), 9), Some(31));
        // However fast it is, a listing has to end at some time.
        assert_eq!(lasts(&Pace::telling(), 10), Some(601));
        assert_eq!(lasts(&Pace::telling(), 10_000), Some(601));
        // A server that prepares a large pack sends signs of life.
        assert_eq!(lasts(&Pace::preparing(), 1), Some(601));
    }

    #[test]
    fn a_pack_may_take_long_if_it_comes() {
        let pace = Pace::preparing();
        let send = |bytes| {
            pace.note_pack(bytes);
            pace.note(SECOND, bytes)
        };
        assert!((0..10_000).all(|_| send(10).is_ok()));
        assert!((0..60).any(|_| send(9).is_err()));
    }

    #[test]
    fn what_is_beside_a_pack_does_not_count_for_it() {
        let pace = Pace::preparing();
        pace.note(SECOND, 100).expect("is fine");
        pace.note_pack(12);
        assert_eq!(lasts(&pace, 1_000), Some(30));
    }

    #[test]
    fn the_first_byte_may_take_longer_than_the_next() {
        let pace = Pace::telling();
        pace.note(SECOND * 100, 4).expect("ssh asks for a key to be touched");
        assert_eq!(lasts(&pace, 1), Some(30));
    }
}
