//! Archives that anybody may have made, such as those of a release on a web page: a tar, compressed or not, or a zip, with or without
//! one folder around everything.
//!
//! Whether there is such a folder, and which manifests are inside, is known only when all entries were seen. So these archives are
//! read twice: [`survey`] looks through one, and [`unpack`] hands it to the tree.
//!
//! What every reader of such archives reads alike is read here, too, although mu writes no such archive: several members of gzip, and
//! hard links to files of the archive. What macOS packs beside the files of a person is left out.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read, SeekFrom};

use mu_provider::http::begins_web_page;
use mu_provider::{LONGEST_LFS_POINTER, Limits, TreeError, TreeWriter, is_lfs_pointer, shown_path};

use crate::tar::{self, Sink};
use crate::unpack::{ArchiveError, ArchiveLayout, Members, is_gzip};
use crate::zip::{self, Source};

/// The most bytes of the files that are read before an archive is unpacked.
const MOST_READ: u64 = 64 << 20;

const BUFFER: usize = 128 << 10;

/// How the files are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// A tar, which may be gzip'd.
    Tar,
    /// A zip.
    Zip,
}

impl Packing {
    /// The packing of an archive that is called so, if it is called like one.
    pub fn of(name: &str) -> Option<Self> {
        match &*name.to_ascii_lowercase() {
            name if name.ends_with(".zip") => Some(Self::Zip),
            name if [".tgz", ".tar.gz", ".tar"].iter().any(|end| name.ends_with(end)) => {
                Some(Self::Tar)
            }
            _ => None,
        }
    }
}

/// What is known about an archive before it is unpacked.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// The folder that everything is in, which the package leaves out.
    pub(crate) top: Option<Vec<u8>>,
    /// The wanted files, by their paths in the package.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Whether the package is all that is in it, as it is there.
    pub(crate) is_plain: bool,
    /// As [`Self::is_plain`], besides the folder.
    pub(crate) is_whole: bool,
    /// Whether files in it are hard links to others.
    pub(crate) has_hard_links: bool,
}

/// Looks through an archive of `length` bytes, and reads the files whose paths in the package are `wanted`.
///
/// # Errors
///
/// When the archive is damaged, or contains more than a package can.
pub(crate) fn survey(
    archive: &mut dyn Source,
    length: u64,
    packing: Packing,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Survey, ArchiveError> {
    let limits = Limits::default();
    let mut looking = Looking {
        wanted,
        top: Top::Unknown,
        files: BTreeMap::new(),
        limits,
        entries: 0,
        has_hard_links: false,
        left: limits.most_from(length).min(limits.bytes),
        unread: MOST_READ,
    };
    let is_whole = read(archive, length, packing, None, &mut looking)?;
    let Looking { top, files, has_hard_links, .. } = looking;
    let top = if let Top::One(top) = top { Some(top) } else { None };
    let inside = |path: String| match &top {
        None => Some(path),
        Some(top) => {
            let below = path.as_bytes().strip_prefix(top.as_slice())?;
            Some(std::str::from_utf8(below.strip_prefix(b"/")?).ok()?.to_owned())
        }
    };
    let files = files.into_iter().filter_map(|(path, content)| Some((inside(path)?, content)));
    let files = files.filter(|(path, _)| wanted(path)).collect();
    let is_plain = is_whole && top.is_none();
    Ok(Survey { top, files, is_plain, is_whole, has_hard_links })
}

/// Unpacks an archive of `length` bytes; what is in the folder `top` goes to the tree without it.
///
/// # Errors
///
/// As [`crate::unpack()`].
pub(crate) fn unpack(
    archive: &mut dyn Source,
    length: u64,
    packing: Packing,
    top: Option<&[u8]>,
    tree: &mut TreeWriter,
) -> Result<(), ArchiveError> {
    tree.set_archive_size(length);
    read(archive, length, packing, top, tree).map(drop)
}

/// Looks through an archive in memory, and unpacks it.
///
/// # Errors
///
/// As [`crate::unpack()`].
pub fn unpack_anyones(
    archive: &[u8],
    packing: Packing,
    tree: &mut TreeWriter,
) -> Result<(), ArchiveError> {
    let (length, mut archive) = (archive.len() as u64, io::Cursor::new(archive));
    let Survey { top, .. } = survey(&mut archive, length, packing, &|_| false)?;
    unpack(&mut archive, length, packing, top.as_deref(), tree)
}

/// How an archive of anybody's is laid out, as far as a line of a hub can say it: neither a zip nor a tar that is not compressed and
/// has its files in a folder.
///
/// # Errors
///
/// When it is damaged, or contains more than a package can.
pub fn layout_of_anyones(
    archive: &[u8],
    packing: Packing,
) -> Result<Option<ArchiveLayout>, ArchiveError> {
    let length = archive.len() as u64;
    let found = survey(&mut io::Cursor::new(archive), length, packing, &|_| false)?;
    if !found.is_whole {
        return Ok(None);
    }
    Ok(match (packing, found.top, is_gzip(archive)) {
        (Packing::Tar, Some(_), true) => Some(ArchiveLayout::InFolder),
        (Packing::Tar, None, true) => Some(ArchiveLayout::Files),
        (Packing::Tar, None, false) => Some(ArchiveLayout::Layer),
        (Packing::Tar, Some(_), false) | (Packing::Zip, ..) => None,
    })
}

/// Hands the entries to `sink`; says whether they are all that there is, as they are.
fn read(
    archive: &mut dyn Source,
    length: u64,
    packing: Packing,
    top: Option<&[u8]>,
    sink: &mut impl Sink,
) -> Result<bool, ArchiveError> {
    let mut entries = Entries { sink, top, is_plain: true };
    if packing == Packing::Zip {
        let unpacked = zip::unpack(archive, length, &mut entries);
        if let Err(ArchiveError::NoZip) = unpacked {
            let mut start = Vec::new();
            archive.seek(SeekFrom::Start(0))?;
            archive.take(LONGEST_LFS_POINTER).read_to_end(&mut start)?;
            return Err(in_place_of_archive(&start).unwrap_or(ArchiveError::NoZip));
        }
        return unpacked.map(|()| entries.is_plain);
    }
    archive.seek(SeekFrom::Start(0))?;
    let mut archive = BufReader::with_capacity(BUFFER, archive);
    if is_gzip(archive.fill_buf()?) {
        let inflate = BufReader::with_capacity(BUFFER, Members::new(archive));
        read_tar(inflate, ArchiveError::NoTarInside, &mut entries)?;
    } else {
        read_tar(archive, ArchiveError::NoTar, &mut entries)?;
    }
    Ok(entries.is_plain)
}

/// Hands the entries of a tar to `sink`; if it does not begin as one, the error says what it is instead.
fn read_tar(
    mut archive: BufReader<impl Read>,
    no_tar: ArchiveError,
    sink: &mut impl Sink,
) -> Result<(), ArchiveError> {
    let start = archive.fill_buf()?;
    let is_named = start.get(257..).is_some_and(|rest| rest.starts_with(b"ustar"));
    let other = COMPRESSIONS.iter().find(|(first, _)| start.starts_with(first));
    let other = other.map(|(_, name)| ArchiveError::Compressed(name));
    let other = other.or_else(|| in_place_of_archive(start));
    match tar::unpack(archive, ArchiveLayout::Files, sink) {
        Err(ArchiveError::Truncated | ArchiveError::Entry { number: 1, .. }) if !is_named => {
            Err(other.unwrap_or(no_tar))
        }
        unpacked => unpacked,
    }
}

/// What other compressions begin with.
const COMPRESSIONS: [(&[u8], &str); 5] = [
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"LZIP", "lzip"),
];

/// What is served in place of an archive, if it begins like that.
fn in_place_of_archive(start: &[u8]) -> Option<ArchiveError> {
    let what = match start {
        [] => "empty",
        _ if begins_web_page(start) => "a web page",
        _ if is_lfs_pointer(start) => "a pointer of Git LFS, and not the file that it stands for",
        _ if start.trim_ascii_start().starts_with(b"<?xml") => "an XML document",
        _ => return None,
    };
    Some(ArchiveError::Other(what))
}

/// The entries of an archive on their way to `sink`.
struct Entries<'a, S> {
    sink: &'a mut S,
    /// The folder that all is in, which is left out of paths.
    top: Option<&'a [u8]>,
    /// Whether all came through as it is.
    is_plain: bool,
}

impl<S: Sink> Entries<'_, S> {
    /// The path in the package; `None` of what is no part of it.
    fn inside<'path>(&mut self, path: &'path [u8]) -> Result<Option<&'path [u8]>, TreeError> {
        if is_of_macos(path) {
            self.is_plain = false;
            return Ok(None);
        }
        let Some(top) = self.top else { return Ok(Some(path)) };
        match path.strip_prefix(top) {
            Some(b"" | b"/") => Ok(None),
            // Below the folder, it would be an absolute path.
            Some([b'/', b'/', ..]) => {
                let reason = "it has two slashes, one after the other";
                Err(TreeError::Path { path: shown_path(path), reason })
            }
            Some([b'/', below @ ..]) => Ok(Some(below)),
            _ => {
                let what = "not in the same folder as the others";
                Err(TreeError::Kind { path: shown_path(path), what })
            }
        }
    }
}

/// Whether macOS has packed it beside what a person wanted to pack: attributes of files, and how a folder looks in the Finder.
fn is_of_macos(path: &[u8]) -> bool {
    let name = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    name == b"__MACOSX" || path == b".DS_Store" || (path == name && name.starts_with(b"._"))
}

impl<S: Sink> Sink for Entries<'_, S> {
    fn directory(&mut self, path: &[u8]) -> Result<(), TreeError> {
        self.inside(path)?.map_or(Ok(()), |path| self.sink.directory(path))
    }

    fn symlink(&mut self, path: &[u8], target: &[u8]) -> Result<(), TreeError> {
        self.inside(path)?.map_or(Ok(()), |path| self.sink.symlink(path, target))
    }

    fn file(
        &mut self,
        path: &[u8],
        executable: bool,
        content: &mut dyn Read,
    ) -> Result<(), TreeError> {
        match self.inside(path)? {
            Some(path) => self.sink.file(path, executable, content),
            None => {
                let source = io::copy(content, &mut io::sink());
                source
                    .map(drop)
                    .map_err(|source| TreeError::Content { path: shown_path(path), source })
            }
        }
    }

    fn hard_link(&mut self, path: &[u8], executable: bool, target: &[u8]) -> Result<(), TreeError> {
        self.is_plain = false;
        let Some(inside) = self.inside(path)? else { return Ok(()) };
        match self.inside(target)? {
            Some(target) => self.sink.copy(inside, executable, target),
            None => {
                self.sink.odd(path, "a hard link to something that is not a file of the package")
            }
        }
    }

    fn odd(&mut self, path: &[u8], what: &'static str) -> Result<(), TreeError> {
        self.sink.odd(path, what)
    }
}

/// The folder at the top, as far as it is known.
enum Top {
    Unknown,
    One(Vec<u8>),
    /// There is none, or more than one.
    None,
}

/// Whether a path is wanted that is in a folder.
fn is_below(path: &str, wanted: &dyn Fn(&str) -> bool) -> bool {
    path.split_once('/').is_some_and(|(_, below)| wanted(below))
}

/// Reads an archive without writing anything.
struct Looking<'a> {
    wanted: &'a dyn Fn(&str) -> bool,
    top: Top,
    files: BTreeMap<String, Vec<u8>>,
    limits: Limits,
    entries: usize,
    has_hard_links: bool,
    /// How many more bytes of files there may be.
    left: u64,
    /// How many more bytes of wanted files there may be.
    unread: u64,
}

impl Looking<'_> {
    /// Takes note of an entry.
    fn pass(&mut self, path: &[u8], is_folder: bool) -> Result<(), TreeError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            let limit = self.limits.entries as u64;
            return Err(TreeError::Limit { what: "the number of its files", limit });
        }
        let mut segments = path.splitn(2, |byte| *byte == b'/');
        let first = segments.next().unwrap_or_default();
        let is_inside = segments.next().is_some() || is_folder;
        let is_name = !matches!(first, b"" | b"." | b"..");
        self.top = match std::mem::replace(&mut self.top, Top::None) {
            Top::Unknown if is_inside && is_name => Top::One(first.to_vec()),
            Top::One(top) if is_inside && top == first => Top::One(top),
            _ => Top::None,
        };
        Ok(())
    }
}

impl Sink for Looking<'_> {
    fn directory(&mut self, path: &[u8]) -> Result<(), TreeError> {
        self.pass(path, true)
    }

    fn symlink(&mut self, path: &[u8], _target: &[u8]) -> Result<(), TreeError> {
        self.pass(path, false)
    }

    fn file(&mut self, path: &[u8], _: bool, content: &mut dyn Read) -> Result<(), TreeError> {
        self.pass(path, false)?;
        let shown = || shown_path(path);
        let name = std::str::from_utf8(path).ok();
        let name = name.filter(|path| (self.wanted)(path) || is_below(path, self.wanted));
        let limit = if name.is_some() { self.unread.min(self.left) } else { self.left };
        // One more byte, to notice if the content is longer.
        let mut content = content.take(limit.saturating_add(1));
        let mut bytes = Vec::new();
        let length = match name {
            Some(_) => content.read_to_end(&mut bytes).map(|length| length as u64),
            None => io::copy(&mut content, &mut io::sink()),
        };
        let length = length.map_err(|source| TreeError::Content { path: shown(), source })?;
        if length > limit {
            return Err(TreeError::Limit { what: "the size of its files", limit });
        }
        self.left -= length;
        let Some(name) = name else { return Ok(()) };
        self.unread -= length;
        match self.files.insert(name.to_owned(), bytes) {
            None => Ok(()),
            Some(_) => Err(TreeError::Kind { path: shown(), what: "there twice" }),
        }
    }

    fn copy(&mut self, path: &[u8], _: bool, target: &[u8]) -> Result<(), TreeError> {
        self.pass(path, false)?;
        self.has_hard_links = true;
        let text = |path| std::str::from_utf8(path).ok();
        let content = text(target).and_then(|target| self.files.get(target)).cloned();
        match (text(path), content) {
            (Some(name), Some(content)) => drop(self.files.insert(name.to_owned(), content)),
            // Whether it is wanted depends on what is found later, so all that may be must be known.
            (Some(name), None) if (self.wanted)(name) || is_below(name, self.wanted) => {
                return self.odd(path, "a hard link to what is not a manifest");
            }
            _ => {}
        }
        Ok(())
    }

    fn odd(&mut self, path: &[u8], what: &'static str) -> Result<(), TreeError> {
        Err(TreeError::Kind { path: shown_path(path), what })
    }
}
