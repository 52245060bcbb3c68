//! The first answer of a server: its version of the protocol, and its capabilities.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};

use super::refs::Advertisement;
use super::{LONGEST_LISTING, Pace, Paced, PacketReader, WireError};
use crate::words::printable;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::PacketWriter;

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
}
