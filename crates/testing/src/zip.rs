//! Writes zip archives, also such as no tool would write.

use std::io::Write as _;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// An entry of a zip.
#[derive(Debug, Clone)]
pub struct ZipEntry {
    /// Its name, as both of its headers have it.
    pub name: Vec<u8>,
    /// The permissions and the kind, as Unix has them; 0 if they are not known.
    pub mode: u32,
    /// Its content.
    pub content: Vec<u8>,
    /// Whether the content is compressed.
    pub is_deflated: bool,
}

impl ZipEntry {
    /// A file (`f`), a program (`x`), a link (`l`) or a folder (`d`).
    pub fn new(name: impl Into<Vec<u8>>, kind: char, content: impl Into<Vec<u8>>) -> Self {
        let mode = match kind {
            'x' => 0o100_755,
            'l' => 0o120_777,
            'd' => 0o040_755,
            _ => 0o100_644,
        };
        Self {
            name: name.into(),
            mode,
            content: content.into(),
            is_deflated: kind == 'f' || kind == 'x',
        }
    }
}

/// A zip of these entries, in this order.
pub fn zip(entries: &[ZipEntry]) -> Vec<u8> {
    let (mut archive, mut list) = (Vec::new(), Vec::new());
    for entry in entries {
        let start = number(archive.len());
        let packed =
            if entry.is_deflated { deflated(&entry.content) } else { entry.content.clone() };
        let mut crc = Crc::new();
        crc.update(&entry.content);
        let mut common = Vec::new();
        common.extend(20_u16.to_le_bytes());
        common.extend((1_u16 << 11).to_le_bytes());
        common.extend((if entry.is_deflated { 8_u16 } else { 0 }).to_le_bytes());
        common.extend([0; 4]);
        common.extend(crc.sum().to_le_bytes());
        common.extend(number(packed.len()));
        common.extend(number(entry.content.len()));
        common.extend(u16::try_from(entry.name.len()).expect("is short").to_le_bytes());
        common.extend([0; 2]);
        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend(&entry.name);
        archive.extend(packed);
        list.extend(b"PK\x01\x02");
        list.extend([20, 3]);
        list.extend(&common);
        list.extend([0; 6]);
        list.extend((entry.mode << 16).to_le_bytes());
        list.extend(start);
        list.extend(&entry.name);
    }
    let start = number(archive.len());
    archive.extend(&list);
    archive.extend(b"PK\x05\x06");
    archive.extend([0; 4]);
    let count = u16::try_from(entries.len()).expect("are few").to_le_bytes();
    archive.extend([count, count].concat());
    archive.extend(number(list.len()));
    archive.extend(start);
    archive.extend([0; 2]);
    archive
}

fn number(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("is small").to_le_bytes()
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(content).expect("goes to memory");
    encoder.finish().expect("goes to memory")
}
