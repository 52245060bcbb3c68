//! What is taken of an archive that is not wanted as a whole.
//!
//! Whoever gets many archives refuses some of them by their first entries, before they are unpacked. The layer of an image has a
//! few files that describe a package; it may contain what packages cannot, such as devices, and these are skipped, because
//! nothing is written. Both are looked for in memory.
//!
//! Of the layers of an image, some folders may be wanted ([`Layers`]). They are read from the last to the first. What a layer
//! has hides what those before it have at the same place, and what it says was removed (the `.wh.` files of the OCI image
//! specification, section "Whiteouts") is removed from those. Everything outside of the wanted folders is passed over, whatever
//! it is.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufReader, Read};

use flate2::bufread::GzDecoder;
use mu_provider::{Limits, TreeError};

use crate::tar::{self, Sink};
use crate::unpack::{ArchiveError, ArchiveLayout, Members, is_gzip};
use crate::zip;

/// The files of a tar, compressed or not, whose paths are in `wanted`, by their paths; a `/` before these means the root of an
/// image, as nothing is written. At most `most` bytes
/// of files are read, wanted or not.
///
/// # Errors
///
/// When it is damaged, larger than that, or has a wanted file twice.
pub fn pick(
    layer: &[u8],
    wanted: &dyn Fn(&str) -> bool,
    most: u64,
) -> Result<BTreeMap<String, Vec<u8>>, ArchiveError> {
    pick_from(layer, ArchiveLayout::Layer, wanted, most)
}

/// As [`pick`], from an archive that is laid out like this.
///
/// # Errors
///
/// As [`pick`].
pub fn pick_from(
    archive: &[u8],
    layout: ArchiveLayout,
    wanted: &dyn Fn(&str) -> bool,
    most: u64,
) -> Result<BTreeMap<String, Vec<u8>>, ArchiveError> {
    let mut picked = Picked { wanted, files: BTreeMap::new(), most, left: most };
    match (is_gzip(archive), layout) {
        (false, _) => tar::unpack(archive, layout, &mut picked)?,
        (true, ArchiveLayout::Files) => {
            let inflate = io::BufReader::with_capacity(128 << 10, GzDecoder::new(archive));
            tar::unpack(inflate, layout, &mut picked)?;
        }
        (true, ArchiveLayout::Layer | ArchiveLayout::InFolder) => {
            let inflate = io::BufReader::with_capacity(128 << 10, Members::new(archive));
            tar::unpack(inflate, layout, &mut picked)?;
        }
    }
    Ok(picked.files)
}

/// As [`pick`], from a zip.
///
/// # Errors
///
/// As [`pick`].
pub fn pick_zip(
    archive: &[u8],
    wanted: &dyn Fn(&str) -> bool,
    most: u64,
) -> Result<BTreeMap<String, Vec<u8>>, ArchiveError> {
    let mut picked = Picked { wanted, files: BTreeMap::new(), most, left: most };
    zip::unpack(&mut io::Cursor::new(archive), archive.len() as u64, &mut picked)?;
    Ok(picked.files)
}

struct Picked<'a> {
    wanted: &'a dyn Fn(&str) -> bool,
    files: BTreeMap<String, Vec<u8>>,
    most: u64,
    /// How many more bytes of files may be read.
    left: u64,
}

impl Sink for Picked<'_> {
    fn directory(&mut self, _path: &[u8]) -> Result<(), TreeError> {
        Ok(())
    }

    fn symlink(&mut self, _path: &[u8], _target: &[u8]) -> Result<(), TreeError> {
        Ok(())
    }

    fn file(&mut self, path: &[u8], _: bool, content: &mut dyn Read) -> Result<(), TreeError> {
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let name = std::str::from_utf8(path).ok().filter(|path| (self.wanted)(path));
        // One more byte, to notice if the content is longer.
        let mut content = content.take(self.left.saturating_add(1));
        let mut bytes = Vec::new();
        let length = match name {
            Some(_) => content.read_to_end(&mut bytes).map(|length| length as u64),
            None => io::copy(&mut content, &mut io::sink()),
        };
        let length = length.map_err(|source| TreeError::Content {
            path: String::from_utf8_lossy(path).escape_debug().to_string(),
            source,
        })?;
        let over = TreeError::Limit { what: "the size of its files", limit: self.most };
        self.left = self.left.checked_sub(length).ok_or(over)?;
        let Some(name) = name else { return Ok(()) };
        match self.files.insert(name.to_owned(), bytes) {
            None => Ok(()),
            Some(_) => Err(TreeError::Kind { path: name.to_owned(), what: "there twice" }),
        }
    }

    fn copy(&mut self, path: &[u8], _: bool, target: &[u8]) -> Result<(), TreeError> {
        let text = |path: &[u8]| {
            let path = path.strip_prefix(b"/").unwrap_or(path);
            std::str::from_utf8(path).ok().map(str::to_owned)
        };
        let Some(name) = text(path).filter(|path| (self.wanted)(path)) else { return Ok(()) };
        let content = text(target).and_then(|target| self.files.get(&target)).cloned();
        let what = match content {
            None => "a hard link to what is not a manifest",
            Some(content) => match self.files.insert(name.clone(), content) {
                None => return Ok(()),
                Some(_) => "there twice",
            },
        };
        Err(TreeError::Kind { path: name, what })
    }

    fn odd(&mut self, _path: &[u8], _what: &'static str) -> Result<(), TreeError> {
        Ok(())
    }
}

/// Among how many of its first entries the manifest of a package is.
pub const EARLY: usize = 1_000;

/// Whether an archive has [`EARLY`] entries or more, of which the first are no file with one of these names.
///
/// # Errors
///
/// When its beginning is damaged, or hostile.
pub fn lacks_early(archive: &[u8], names: &[&str]) -> Result<bool, ArchiveError> {
    let left = Limits::default().most_from(archive.len() as u64);
    let mut look = Look { names, seen: 0, left, ends: None };
    let inflate = BufReader::with_capacity(128 << 10, GzDecoder::new(archive));
    let read = tar::unpack(inflate, ArchiveLayout::Files, &mut look);
    match (look.ends, read) {
        (Some(Ends::Found), _) | (None, Ok(())) => Ok(false),
        (Some(Ends::TooLate), _) => Ok(true),
        (None, Err(error)) => Err(error),
    }
}

/// Why no more entries are looked at.
enum Ends {
    Found,
    TooLate,
}

struct Look<'a> {
    names: &'a [&'a str],
    seen: usize,
    /// How many more bytes of files may be passed over.
    left: u64,
    ends: Option<Ends>,
}

impl Look<'_> {
    /// Takes note of an entry. The error only ends the reading.
    fn pass(&mut self, is_found: bool) -> Result<(), TreeError> {
        self.seen += 1;
        self.ends = match (is_found, self.seen < EARLY) {
            (true, _) => Some(Ends::Found),
            (false, true) => return Ok(()),
            (false, false) => Some(Ends::TooLate),
        };
        Err(TreeError::Limit { what: "the number of its entries", limit: EARLY as u64 })
    }
}

impl Sink for Look<'_> {
    fn directory(&mut self, _path: &[u8]) -> Result<(), TreeError> {
        self.pass(false)
    }

    fn symlink(&mut self, _path: &[u8], _target: &[u8]) -> Result<(), TreeError> {
        self.pass(false)
    }

    fn file(&mut self, path: &[u8], _: bool, content: &mut dyn Read) -> Result<(), TreeError> {
        let length = io::copy(&mut content.take(self.left.saturating_add(1)), &mut io::sink());
        let length = length.map_err(|source| TreeError::Content {
            path: String::from_utf8_lossy(path).escape_debug().to_string(),
            source,
        })?;
        let ratio = Limits::default().ratio;
        let over =
            TreeError::Limit { what: "the ratio of its size to its archive's", limit: ratio };
        self.left = self.left.checked_sub(length).ok_or(over)?;
        self.pass(self.names.iter().any(|name| name.as_bytes() == path))
    }

    fn odd(&mut self, _path: &[u8], _what: &'static str) -> Result<(), TreeError> {
        self.pass(false)
    }
}

/// How many bytes of other folders are passed over, in all layers together.
const MOST_PASSED_OVER: u64 = 8 << 30;

/// What the name of an entry begins with that says what was removed.
const WHITEOUT: &[u8] = b".wh.";

/// The entry that says that its whole folder was removed before this layer.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// What the layers that were read so far have, and have removed.
#[derive(Debug)]
pub struct Layers {
    folders: Vec<String>,
    /// Files of layers that were read, and what these have removed.
    hidden: HashSet<Vec<u8>>,
    /// Files of the layer that is being read, and what it has removed.
    now: HashSet<Vec<u8>>,
    left: u64,
    /// How many bytes of the layer that is being read may be passed over.
    left_of_layer: u64,
}

impl Layers {
    /// Takes what is in one of these folders of the image.
    pub fn new(folders: impl IntoIterator<Item = String>) -> Self {
        let folders = folders.into_iter().map(|folder| format!("{}/", folder.trim_matches('/')));
        let (hidden, now) = (HashSet::new(), HashSet::new());
        Self { folders: folders.collect(), hidden, now, left: MOST_PASSED_OVER, left_of_layer: 0 }
    }

    /// Begins a layer of `size` bytes.
    pub(crate) fn begin_layer(&mut self, size: u64) {
        self.left_of_layer = Limits::default().most_from(size);
    }

    /// Ends a layer: what it has hides what is in the next one, which comes before it in the image.
    pub(crate) fn end_layer(&mut self) {
        self.hidden.extend(self.now.drain());
    }

    /// The path of an entry inside of the image, if it is wanted; takes note of what it hides.
    pub(crate) fn wanted<'path>(&mut self, path: &'path [u8]) -> Option<&'path [u8]> {
        let path = path.strip_prefix(b"./").unwrap_or(path);
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let is_in = |folder: &String| path.starts_with(folder.as_bytes());
        if !self.folders.iter().any(is_in) || path.ends_with(b"/") {
            return None;
        }
        let slash = path.iter().rposition(|byte| *byte == b'/')?;
        let (folder, leaf) = path.split_at_checked(slash)?;
        let leaf = leaf.strip_prefix(b"/").unwrap_or(leaf);
        if leaf == OPAQUE {
            self.now.insert(folder.to_vec());
            return None;
        }
        if let Some(removed) = leaf.strip_prefix(WHITEOUT) {
            self.now.insert([folder, b"/", removed].concat());
            return None;
        }
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut above = ends.chain([path.len()]).filter_map(|end| path.get(..end));
        if above.any(|above| self.hidden.contains(above)) {
            return None;
        }
        self.now.insert(path.to_vec());
        Some(path)
    }

    /// Accounts for content that is passed over; `false` if it is too much.
    pub(crate) fn may_pass_over(&mut self, size: u64) -> bool {
        let left = self.left.min(self.left_of_layer).checked_sub(size);
        self.left = self.left.saturating_sub(size);
        self.left_of_layer = self.left_of_layer.saturating_sub(size);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArchiveWriter;

    /// A tar of files, and a device.
    fn layer(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = ::tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = ::tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            // The library refuses a `/` at the beginning.
            let name = header.as_old_mut().name.get_mut(..path.len()).expect("is short");
            name.copy_from_slice(path.as_bytes());
            header.set_cksum();
            builder.append(&header, *content).expect("goes to memory");
        }
        let mut device = ::tar::Header::new_gnu();
        device.set_entry_type(::tar::EntryType::Char);
        device.set_size(0);
        device.set_mode(0o644);
        builder.append_data(&mut device, "dev/null", &[][..]).expect("goes to memory");
        builder.into_inner().expect("goes to memory")
    }

    #[test]
    fn takes_what_is_wanted_from_layers_of_both_kinds() {
        let plain = layer(&[("kcl.mod", b"a"), ("main.k", b"bb"), ("x/kcl.mod", b"c")]);
        let wanted = |path: &str| path == "kcl.mod";
        let plain_layer = plain.clone();
        for layer in [mu_testing::gzip(&plain), plain] {
            let picked = pick(&layer, &wanted, 100).expect("is a layer");
            assert_eq!(picked, BTreeMap::from([("kcl.mod".to_owned(), b"a".to_vec())]));
            let error = pick(&layer, &wanted, 3).expect_err("is larger");
            assert!(error.to_string().contains("the size of its files"), "{error}");
        }
        for (other, is_it) in [("./kcl.mod", true), ("/kcl.mod", true), ("//kcl.mod", false)] {
            let found = pick(&layer(&[(other, b"a")]), &wanted, 100).expect("is a layer");
            assert_eq!(found.contains_key("kcl.mod"), is_it, "{other}");
            let twice = layer(&[("kcl.mod", b"a"), (other, b"b")]);
            assert_eq!(pick(&twice, &wanted, 100).is_err(), is_it, "{other}");
        }
        // The package of an image may come in several members, and with hard links.
        let (first, second) = plain_layer.split_at(512);
        let members = [mu_testing::gzip(first), mu_testing::gzip(second)].concat();
        assert_eq!(pick(&members, &wanted, 100).expect("is a layer").len(), 1);
        let linked = |names: [&str; 3]| {
            let [file, link, target] = names;
            let mut builder = ::tar::Builder::new(Vec::new());
            let mut header = ::tar::Header::new_gnu();
            header.set_mode(0o644);
            header.set_size(1);
            builder.append_data(&mut header, file, &b"a"[..]).expect("goes to memory");
            header.set_size(0);
            header.set_entry_type(::tar::EntryType::Link);
            builder.append_link(&mut header, link, target).expect("goes to memory");
            builder.into_inner().expect("goes to memory")
        };
        let both = |path: &str| ["kcl.mod", "a"].contains(&path);
        let picked = pick(&linked(["a", "kcl.mod", "a"]), &both, 100).expect("is a layer");
        assert_eq!(picked.get("kcl.mod"), picked.get("a"));
        assert!(pick(&linked(["a", "kcl.mod", "a"]), &wanted, 100).is_err());
        assert!(pick(&linked(["a", "a", "a"]), &both, 100).is_err());
        assert!(pick(b"no tar", &wanted, 100).is_err());
        assert!(pick(&mu_testing::gzip(b"no tar"), &wanted, 100).is_err());
    }

    /// An archive of this many files, then a manifest.
    fn archive(before: usize) -> Vec<u8> {
        let mut writer = ArchiveWriter::new(Vec::new());
        for number in 0..before {
            writer.file(&format!("A{number:06}"), false, 1, &b"x"[..]).expect("goes to memory");
        }
        writer.file("Mu.yaml", false, 1, &b"x"[..]).expect("goes to memory");
        writer.finish().expect("goes to memory")
    }

    #[test]
    fn a_manifest_is_early_or_is_missed() {
        for (before, lacks) in [(0, false), (EARLY - 1, false), (EARLY, true), (30_000, true)] {
            let found = lacks_early(&archive(before), &["Mu.yaml"]).expect("is whole");
            assert_eq!(found, lacks, "{before}");
        }
        // What is small is for whoever unpacks it.
        assert!(!lacks_early(&archive(5), &["other"]).expect("is whole"));
        assert!(lacks_early(b"no gzip", &["Mu.yaml"]).is_err());
    }
}
