//! Folders as values: written, compared, and hashed as the specification requires.
//!
//! The digest is computed here a second time, so that no test relies on the program's own code.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::GzEncoder;
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
