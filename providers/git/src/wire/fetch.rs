//! Requests objects, and reads the pack in the answer.
//!
//! One message names all requested objects, and the commits that are already here; no negotiation follows.
//! The extra bytes that this sometimes costs are cheaper than another round trip.

use std::io::{self, Read};

use git2::Oid;

use super::packet::LONGEST_ASIDE;
use super::refs::parse_oid;
use super::{Capabilities, Handshake, Pace, Packet, PacketReader, PacketWriter, WireError};

/// The objects to request from a remote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FetchRequest {
    /// The objects, with all that belongs to them.
    pub(crate) wants: Vec<Oid>,
    /// Commits that are here with all that belongs to them.
    pub(crate) haves: Vec<Oid>,
    /// The commits of `haves` whose parents are not here.
    pub(crate) shallow: Vec<Oid>,
    /// How much of the history to request.
    pub(crate) depth: Depth,
    /// Whether to request only commits, without their files.
    pub(crate) commits_only: bool,
}

/// How much of the history to request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Only the commits, without their parents.
    #[default]
    One,
    /// The whole history.
    Whole,
}

impl FetchRequest {
    /// The bytes to send.
    pub(crate) fn write(&self, handshake: &Handshake) -> Vec<u8> {
        let mut request = PacketWriter::default();
        match handshake {
            Handshake::Two(capabilities) => {
                request.line("command=fetch");
                write_common(&mut request, capabilities);
                request.delimiter();
                for argument in self.arguments() {
                    request.line(&argument);
                }
                self.write_objects(&mut request, |want| want);
                self.write_haves(&mut request);
                request.line("done");
                request.flush();
            }
            Handshake::Zero(capabilities, _) => {
                // Some servers insist on the third word, although nothing is negotiated.
                let mut words =
                    vec!["side-band-64k", "ofs-delta", "multi_ack_detailed", "no-progress"];
                words.extend((!self.haves.is_empty()).then_some("thin-pack"));
                words.extend(self.commits_only.then_some("filter"));
                words.retain(|word| capabilities.has(word));
                let mut words = Some(format!(" {} {AGENT}", words.join(" ")));
                self.write_objects(&mut request, |want| {
                    format!("{want}{}", words.take().unwrap_or_default())
                });
                request.flush();
                self.write_haves(&mut request);
                request.line("done");
            }
        }
        request.into_bytes()
    }

    fn arguments(&self) -> impl Iterator<Item = String> {
        let thin = (!self.haves.is_empty()).then_some("thin-pack");
        ["ofs-delta", "no-progress"].into_iter().chain(thin).map(str::to_owned)
    }

    fn write_objects(&self, request: &mut PacketWriter, mut first: impl FnMut(String) -> String) {
        for want in &self.wants {
            request.line(&first(format!("want {want}")));
        }
        for commit in &self.shallow {
            request.line(&format!("shallow {commit}"));
        }
        if let Some(depth) = self.deepen() {
            request.line(&format!("deepen {depth}"));
        }
        if self.commits_only {
            request.line("filter tree:0");
        }
    }

    fn write_haves(&self, request: &mut PacketWriter) {
        for commit in &self.haves {
            request.line(&format!("have {commit}"));
        }
    }

    /// The depth to name. To get everything, name none, unless a part of it is here.
    fn deepen(&self) -> Option<u32> {
        /// What Git itself means by infinite.
        const INFINITE: u32 = 0x7fff_ffff;
        match self.depth {
            Depth::One => Some(1),
            Depth::Whole => (!self.shallow.is_empty()).then_some(INFINITE),
        }
    }
}

const AGENT: &str = concat!("agent=mu/", env!("CARGO_PKG_VERSION"));

/// Writes the beginning of every request of version 2.
pub(super) fn write_common(request: &mut PacketWriter, capabilities: &Capabilities) {
    if capabilities.has("agent") {
        request.line(AGENT);
    }
    if capabilities.has("object-format") {
        request.line("object-format=sha1");
    }
}

/// The commits that arrived without their parents, and those that are complete from now on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Boundary {
    pub(crate) shallow: Vec<Oid>,
    pub(crate) unshallow: Vec<Oid>,
}

impl Boundary {
    fn add(&mut self, line: &[u8]) -> Result<(), WireError> {
        if let Some(oid) = line.strip_prefix(b"shallow ") {
            self.shallow.push(parse_oid(oid)?);
        } else if let Some(oid) = line.strip_prefix(b"unshallow ") {
            self.unshallow.push(parse_oid(oid)?);
        } else {
            return Err(WireError::Malformed("something else where history should end"));
        }
        Ok(())
    }
}

/// Reads the pack out of a server's answer.
#[derive(Debug)]
pub(crate) struct PackReader<'pace, R> {
    packets: PacketReader<R>,
    pace: &'pace Pace,
    chunk: Vec<u8>,
    used: usize,
    ended: bool,
}

impl<'pace, R: Read> PackReader<'pace, R> {
    /// Reads the answer to `request` up to the beginning of the pack.
    pub(crate) fn open(
        inner: R,
        pace: &'pace Pace,
        handshake: &Handshake,
        request: &FetchRequest,
    ) -> Result<(Boundary, Self), WireError> {
        let mut packets = PacketReader::new(inner, LONGEST_ASIDE);
        let mut boundary = Boundary::default();
        match handshake {
            Handshake::Two(_) => open_two(&mut packets, &mut boundary)?,
            Handshake::Zero(..) => {
                if request.deepen().is_some() {
                    while let Some(line) = packets.read()?.line() {
                        boundary.add(line)?;
                    }
                }
                skip_acknowledgments(&mut packets)?;
            }
        }
        Ok((boundary, Self { packets, pace, chunk: Vec::new(), used: 0, ended: false }))
    }

    /// The next piece of the pack; empty at its end.
    fn next_chunk(&mut self) -> Result<(), WireError> {
        self.chunk.clear();
        self.used = 0;
        while self.chunk.is_empty() && !self.ended {
            match self.packets.read()? {
                Packet::Flush => self.ended = true,
                Packet::Delimiter => return Err(WireError::Malformed("a section inside the pack")),
                // Empty ones are signs of life.
                Packet::Data([1]) => {}
                Packet::Data([1, data @ ..]) => {
                    self.chunk.extend_from_slice(data);
                    self.packets.forgive(self.chunk.len());
                    self.pace.note_pack(self.chunk.len());
                }
                Packet::Data([2, ..]) => {}
                Packet::Data([3, reason @ ..]) => {
                    return Err(WireError::Abandoned(crate::words::printable(reason)));
                }
                Packet::Data(_) => return Err(WireError::Malformed("a pack in an unknown band")),
            }
        }
        Ok(())
    }
}

/// Skips what the server says about the commits that are here. The last line is `NAK` or `ACK OID`.
fn skip_acknowledgments(packets: &mut PacketReader<impl Read>) -> Result<(), WireError> {
    loop {
        match packets.read()?.line() {
            Some(b"NAK") => return Ok(()),
            Some(line) if line.starts_with(b"ACK ") => {
                if line.iter().filter(|byte| **byte == b' ').count() == 1 {
                    return Ok(());
                }
            }
            _ => return Err(WireError::Malformed("neither ACK nor NAK before the pack")),
        }
    }
}

fn open_two(
    packets: &mut PacketReader<impl Read>,
    boundary: &mut Boundary,
) -> Result<(), WireError> {
    loop {
        match packets.read()?.line() {
            Some(b"packfile") => return Ok(()),
            Some(b"shallow-info") => {
                while let Some(line) = packets.read()?.line() {
                    boundary.add(line)?;
                }
            }
            Some(_) => while packets.read()?.line().is_some() {},
            None => return Err(WireError::Malformed("an answer without a pack")),
        }
    }
}

impl<R: Read> Read for PackReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.used == self.chunk.len() && !self.ended {
            self.next_chunk().map_err(io::Error::other)?;
        }
        let count = self.chunk.get(self.used..).unwrap_or_default().read(buffer)?;
        self.used += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oid(digit: &str) -> Oid {
        Oid::from_str(&digit.repeat(40)).expect("is an object name")
    }

    fn capabilities(words: &[&str]) -> Capabilities {
        let mut capabilities = Capabilities::default();
        words.iter().for_each(|word| capabilities.add(word));
        capabilities
    }

    #[test]
    fn says_everything_in_one_message() {
        let request = FetchRequest {
            wants: vec![oid("1"), oid("2")],
            haves: vec![oid("3")],
            shallow: vec![oid("3")],
            ..FetchRequest::default()
        };
        let two = request.write(&Handshake::Two(capabilities(&["agent=git", "fetch=shallow"])));
        let two = String::from_utf8(two).expect("is text");
        let one = "1".repeat(40);
        assert!(two.starts_with("0012command=fetch\n"), "{two}");
        assert!(two.contains(&format!("0032want {one}\n")), "{two}");
        assert!(two.contains("000ddeepen 1\n") && two.ends_with("0009done\n0000"), "{two}");

        let zero = Handshake::Zero(
            capabilities(&["side-band-64k", "thin-pack", "multi_ack"]),
            Default::default(),
        );
        let zero = String::from_utf8(request.write(&zero)).expect("is text");
        let expected = format!("want {one} side-band-64k thin-pack agent=mu/");
        assert!(zero.contains(&expected) && zero.matches("side-band").count() == 1, "{zero}");
        assert!(zero.ends_with(&format!("00000032have {}\n0009done\n", "3".repeat(40))), "{zero}");
    }

    #[test]
    fn reads_the_pack_of_either_version() {
        let one = "1".repeat(40);
        let shallow = format!("0034shallow {one}");
        let pack = "0006\u{1}a0007\u{2}xx0007\u{1}bc0000";
        let two = format!("0011shallow-info\n{shallow}0001000dpackfile\n{pack}");
        let zero = format!("{shallow}00000008NAK\n{pack}");
        for (handshake, bytes) in [
            (Handshake::Two(Capabilities::default()), two),
            (Handshake::Zero(Capabilities::default(), Default::default()), zero),
        ] {
            let pace = Pace::preparing();
            let (boundary, mut reader) =
                PackReader::open(bytes.as_bytes(), &pace, &handshake, &FetchRequest::default())
                    .expect("is an answer");
            assert_eq!(boundary.shallow, [oid("1")]);
            let mut read = String::new();
            reader.read_to_string(&mut read).expect("is a pack");
            assert_eq!(read, "abc");
        }
    }

    #[test]
    fn an_error_inside_the_pack_is_the_servers() {
        let handshake = Handshake::Two(Capabilities::default());
        let bytes = "000dpackfile\n000a\u{3}broke";
        let pace = Pace::preparing();
        let (_, mut reader) =
            PackReader::open(bytes.as_bytes(), &pace, &handshake, &FetchRequest::default())
                .expect("is an answer");
        let error = reader.read(&mut [0; 8]).expect_err("is an error");
        assert_eq!(error.to_string(), "the server stopped: broke");
    }

    #[test]
    fn an_answer_that_never_comes_to_its_files_is_refused() {
        let one = "1".repeat(40);
        let shallow = format!("0034shallow {one}");
        let two = Handshake::Two(Capabilities::default());
        let zero = Handshake::Zero(Capabilities::default(), Default::default());
        for (handshake, start, again) in [
            (&two, "0011shallow-info\n", shallow.as_str()),
            (&two, "", &format!("eee4{}0001", "x".repeat(0xeee0))),
            (&two, "000dpackfile\n", &format!("eee5\u{2}{}", "x".repeat(0xeee0))),
            (&zero, "", shallow.as_str()),
            (&zero, "0000", &format!("0037ACK {one} common")),
        ] {
            let endless = Read::chain(start.as_bytes(), Endless(again.as_bytes(), 0));
            let pace = Pace::preparing();
            let opened = PackReader::open(endless, &pace, handshake, &FetchRequest::default());
            let error = match opened {
                Err(error) => error,
                Ok((_, mut pack)) => pack.read(&mut [0; 8]).expect_err("no pack comes").into(),
            };
            assert!(matches!(error, WireError::TooMuch(..)), "{start}: {error}");
        }
    }

    #[test]
    fn the_size_of_a_pack_is_none_of_the_protocols_business() {
        let packet = [&b"fff0\x01"[..], &[7; 0xffeb]].concat();
        let endless = Read::chain(&b"000dpackfile\n"[..], Endless(&packet, 0));
        let (pace, two) = (Pace::preparing(), Handshake::Two(Capabilities::default()));
        let (_, mut pack) =
            PackReader::open(endless, &pace, &two, &FetchRequest::default()).expect("is an answer");
        let much = io::copy(&mut Read::take(&mut pack, 2 * LONGEST_ASIDE), &mut io::sink());
        assert_eq!(much.expect("all of it is pack"), 2 * LONGEST_ASIDE);
    }

    /// The same bytes, repeated for ever.
    struct Endless<'bytes>(&'bytes [u8], usize);

    impl Read for Endless<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let rest = &self.0[self.1..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.1 = (self.1 + count) % self.0.len();
            Ok(count)
        }
    }
}
