//! Folders as values: written, compared, hashed as the specification requires, and packed into archives, also such as no tool
//! would write.
//!
//! The digest is computed here a second time, so that no test relies on the program's own code.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};
use sha2::{Digest as _, Sha256};
use walkdir::WalkDir;

/// Writes a file and the folders around it. A path that ends in `*` is an executable; content that begins
/// with `-> ` makes a link.
pub fn write(folder: &Path, path: &str, content: impl AsRef<[u8]>) {
    let (path, is_program) = match path.strip_suffix('*') {
        Some(path) => (folder.join(path), true),
        None => (folder.join(path), false),
    };
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("can be made");
    let content = content.as_ref();
    if let Some(target) = content.strip_prefix(b"-> ") {
        let target = std::str::from_utf8(target).expect("targets of tests are text");
        std::os::unix::fs::symlink(target, &path).expect("can be made");
        return;
    }
    fs::write(&path, content).expect("can be written");
    if is_program {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("is ours");
    }
}

/// Files and links by path: the mode letter (`f`, `x` for an executable, `l` for a link), and the content or
/// the link's target.
pub type Files = BTreeMap<String, (char, Vec<u8>)>;

/// Every file and link below a folder.
pub fn tree(folder: &Path) -> Files {
    let mut files = BTreeMap::new();
    for entry in WalkDir::new(folder).into_iter().flatten() {
        let path = entry.path().strip_prefix(folder).expect("is below").to_str().expect("is UTF-8");
        let kind = entry.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(entry.path()).expect("is a link");
            let target = target.to_str().expect("is UTF-8").as_bytes().to_vec();
            files.insert(path.to_owned(), ('l', target));
        } else if kind.is_file() {
            let mode = entry.metadata().expect("is there").permissions().mode();
            let letter = if mode & 0o100 == 0 { 'f' } else { 'x' };
            files.insert(path.to_owned(), (letter, fs::read(entry.path()).expect("can be read")));
        }
    }
    files
}

/// The content digest of a folder, as section 2 of the specification defines it.
pub fn digest_of(folder: &Path) -> String {
    let mut lines = String::new();
    for (path, (mode, content)) in tree(folder) {
        lines.push_str(&format!("{mode} {}  {path}\n", hex(&content)));
    }
    format!("h1:{}", URL_SAFE_NO_PAD.encode(Sha256::digest(lines)))
}

/// SHA-256 in hexadecimal.
pub fn hex(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An archive of files and links, in this order; the same bytes for the same files.
pub fn tar_gz(files: impl IntoIterator<Item = (String, (char, Vec<u8>))>) -> Vec<u8> {
    gzip(&tar(files))
}

/// The same, not compressed.
pub fn tar(files: impl IntoIterator<Item = (String, (char, Vec<u8>))>) -> Vec<u8> {
    let mut builder = ::tar::Builder::new(Vec::new());
    for (path, (mode, content)) in files {
        let mut header = ::tar::Header::new_gnu();
        header.set_mode(if mode == 'x' { 0o755 } else { 0o644 });
        if mode == 'l' {
            header.set_entry_type(::tar::EntryType::Symlink);
            header.set_size(0);
            let target = String::from_utf8(content).expect("is UTF-8");
            builder.append_link(&mut header, path, target).expect("goes to memory");
        } else {
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, path, &content[..]).expect("goes to memory");
        }
    }
    builder.into_inner().expect("goes to memory")
}

/// The bytes, compressed.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).expect("goes to memory");
    encoder.finish().expect("goes to memory")
}

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
