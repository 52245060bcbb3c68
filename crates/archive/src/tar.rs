//! Reads the entries of a tar, one after the other, into a tree.
//!
//! The crate `tar`, which `write.rs` uses, does not read archives here. What makes sure that they have one
//! meaning (two sizes of an entry, hard links, data after the end, the limit for all that
//! belongs to no file) would have to be wrapped around it, and it copies content that is in memory already.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, BufReader, Read};

use mu_provider::{TreeError, TreeWriter, shown_path};

use crate::header::{self, BLOCK, Extension, TarHeader};
use crate::pick::Layers;
use crate::unpack::{ArchiveError, ArchiveLayout};

/// How many bytes may belong to no file: headers, extended headers, padding. The tree limits the rest.
const OVERHEAD: u64 = 16 << 20;

/// How many more bytes each entry allows to belong to no file.
const OVERHEAD_OF_ENTRY: u64 = 8 << 10;

/// The longest extended header, in bytes.
const LONGEST_EXTENSION: u64 = 1 << 20;

/// The source of a tar.
pub(crate) trait Source: Read {
    /// The next `count` bytes without a copy, and moves past them; `None` if they must be read.
    fn next_bytes(&mut self, count: u64) -> Option<&[u8]>;
}

impl Source for &[u8] {
    fn next_bytes(&mut self, count: u64) -> Option<&[u8]> {
        let (next, rest) = self.split_at_checked(usize::try_from(count).ok()?)?;
        *self = rest;
        Some(next)
    }
}

impl<R: Read> Source for BufReader<R> {
    fn next_bytes(&mut self, _count: u64) -> Option<&[u8]> {
        None
    }
}

/// Where the entries of a tar go.
pub trait Sink {
    /// Takes a folder.
    ///
    /// # Errors
    ///
    /// When it is refused.
    fn directory(&mut self, path: &[u8]) -> Result<(), TreeError>;

    /// Takes a symbolic link.
    ///
    /// # Errors
    ///
    /// When it is refused.
    fn symlink(&mut self, path: &[u8], target: &[u8]) -> Result<(), TreeError>;

    /// Takes a file.
    ///
    /// # Errors
    ///
    /// When it is refused, or cannot be read or written.
    fn file(
        &mut self,
        path: &[u8],
        executable: bool,
        content: &mut dyn Read,
    ) -> Result<(), TreeError>;

    /// Takes a file whose content is in memory.
    ///
    /// # Errors
    ///
    /// When it is refused, or cannot be written.
    fn file_in_memory(
        &mut self,
        path: &[u8],
        executable: bool,
        mut content: &[u8],
    ) -> Result<(), TreeError> {
        self.file(path, executable, &mut content)
    }

    /// Takes a hard link, which packages of mu do not have.
    ///
    /// # Errors
    ///
    /// When it is refused.
    fn hard_link(
        &mut self,
        path: &[u8],
        _executable: bool,
        _target: &[u8],
    ) -> Result<(), TreeError> {
        self.odd(path, HARD_LINK)
    }

    /// Takes a file with the content of `target`, a file that came before it.
    ///
    /// # Errors
    ///
    /// When it is refused, there is no such file, or it cannot be read or written.
    fn copy(&mut self, path: &[u8], _executable: bool, _target: &[u8]) -> Result<(), TreeError> {
        self.odd(path, HARD_LINK)
    }

    /// Whether something may not be there that is neither file, folder nor symbolic link.
    ///
    /// # Errors
    ///
    /// When it may not.
    fn odd(&mut self, path: &[u8], what: &'static str) -> Result<(), TreeError>;
}

impl Sink for TreeWriter {
    fn directory(&mut self, path: &[u8]) -> Result<(), TreeError> {
        Self::directory(self, path)
    }

    fn symlink(&mut self, path: &[u8], target: &[u8]) -> Result<(), TreeError> {
        Self::symlink(self, path, target)
    }

    fn file(
        &mut self,
        path: &[u8],
        executable: bool,
        content: &mut dyn Read,
    ) -> Result<(), TreeError> {
        Self::file(self, path, executable, content)
    }

    fn file_in_memory(
        &mut self,
        path: &[u8],
        executable: bool,
        content: &[u8],
    ) -> Result<(), TreeError> {
        Self::file_in_memory(self, path, executable, content)
    }

    fn copy(&mut self, path: &[u8], executable: bool, target: &[u8]) -> Result<(), TreeError> {
        Self::copy(self, path, executable, target)
    }

    fn odd(&mut self, path: &[u8], what: &'static str) -> Result<(), TreeError> {
        Err(self.refuse(path, what))
    }
}

/// Unpacks what `reader` yields, to its end.
pub(crate) fn unpack(
    reader: impl Source,
    layout: ArchiveLayout,
    tree: &mut impl Sink,
) -> Result<(), ArchiveError> {
    Archive::new(reader, layout, None, tree).unpack()
}

/// Unpacks what is wanted of a layer that `reader` yields, to its end.
pub(crate) fn unpack_layer(
    reader: impl Source,
    layers: &mut Layers,
    tree: &mut TreeWriter,
) -> Result<(), ArchiveError> {
    Archive::new(reader, ArchiveLayout::Files, Some(layers), tree).unpack()
}

struct Archive<'tree, R, S> {
    reader: R,
    tree: &'tree mut S,
    /// The entry that is being read, counted from 1.
    number: usize,
    /// Its path, once that is known.
    name: Vec<u8>,
    /// The folders that had an entry.
    folders: HashSet<Vec<u8>>,
    /// Bytes that may still be no file's content.
    overhead: u64,
    layout: ArchiveLayout,
    /// The folder that all is in, once it is known.
    top: Option<Vec<u8>>,
    /// What decides which entries count, where the archive is a layer of an image.
    layers: Option<&'tree mut Layers>,
}

impl<'tree, R: Source, S: Sink> Archive<'tree, R, S> {
    fn new(
        reader: R,
        layout: ArchiveLayout,
        layers: Option<&'tree mut Layers>,
        tree: &'tree mut S,
    ) -> Self {
        let (folders, top, overhead) = (HashSet::new(), None, OVERHEAD);
        let name = Vec::new();
        Self { reader, tree, number: 0, name, folders, overhead, layout, top, layers }
    }

    fn unpack(mut self) -> Result<(), ArchiveError> {
        let mut extension = Extension::default();
        let mut block = [0; BLOCK];
        let mut is_marked = false;
        while !is_marked && self.next_block(&mut block)? {
            is_marked = is_zero(&block);
            if !is_marked {
                self.number += 1;
                self.name.clear();
                self.entry(&block, &mut extension)?;
            }
        }
        match (extension.is_empty(), is_marked) {
            (false, _) => Err(self.malformed("nothing follows its extended header")),
            (true, true) => self.end(),
            // Some programs write no marker, and tar itself wants none. Nothing at all is no archive.
            (true, false) if self.number == 0 => Err(ArchiveError::Truncated),
            (true, false) => Ok(()),
        }
    }

    /// Reads the next block; `false` if nothing follows.
    fn next_block(&mut self, block: &mut [u8; BLOCK]) -> Result<bool, ArchiveError> {
        self.account(BLOCK as u64)?;
        let count = self.reader.read(block.as_mut_slice())?;
        self.reader.read_exact(block.get_mut(count..).filter(|_| count > 0).unwrap_or_default())?;
        Ok(count > 0)
    }

    fn account(&mut self, overhead: u64) -> Result<(), ArchiveError> {
        self.overhead = self.overhead.checked_sub(overhead).ok_or(ArchiveError::Bomb)?;
        Ok(())
    }

    fn entry(
        &mut self,
        block: &[u8; BLOCK],
        extension: &mut Extension,
    ) -> Result<(), ArchiveError> {
        let header = TarHeader::new(block).map_err(|reason| self.malformed(reason))?;
        let size = header.size().map_err(|reason| self.malformed(reason))?;
        match header.kind() {
            b'x' => {
                let records = self.extension(size)?;
                extension.read(&records).map_err(|reason| self.malformed(reason))
            }
            b'g' => {
                let records = self.extension(size)?;
                header::check_global(&records).map_err(|reason| self.malformed(reason))
            }
            b'L' => {
                let content = self.extension(size)?;
                extension.set_path(&content).map_err(|reason| self.malformed(reason))
            }
            b'K' => {
                let content = self.extension(size)?;
                extension.set_target(&content).map_err(|reason| self.malformed(reason))
            }
            kind => self.item(kind, &header, size, std::mem::take(extension)),
        }
    }

    /// Hands one file, folder or link to the tree.
    fn item(
        &mut self,
        kind: u8,
        header: &TarHeader<'_>,
        size: u64,
        extension: Extension,
    ) -> Result<(), ArchiveError> {
        if extension.size.is_some_and(|other| other != size) {
            return Err(self.malformed("its two sizes differ"));
        }
        let mut path = extension.path.map_or_else(|| header.path(), Cow::Owned);
        let hidden = extension.sparse.as_deref().filter(|name| !name.is_empty());
        self.name.extend_from_slice(hidden.unwrap_or(&path));
        // Where it ends is said in several ways, so it is refused even by those who only look.
        if kind == b'S' || extension.sparse.is_some() {
            let path = shown_path(&self.name);
            return Err(TreeError::Kind { path, what: SPARSE }.into());
        }
        // Before there was a letter for folders, a slash said it, and still does where an old format is asked for.
        let is_old_folder = kind == b'\0' && size == 0 && path.ends_with(b"/");
        let kind = if is_old_folder { b'5' } else { kind };
        if self.layout == ArchiveLayout::InFolder && path.contains(&b'\\') {
            // Helm has packed charts so on Windows, and reads them.
            if path.contains(&b'/') {
                return Err(self.malformed("its path has slashes and backslashes"));
            }
            path.to_mut().iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
        }
        if kind == b'5' && matches!(&*path, b"." | b"./") {
            return Ok(());
        }
        self.overhead += OVERHEAD_OF_ENTRY;
        let path = match (&mut self.layers, self.layout) {
            (Some(layers), _) => match layers.wanted(&path) {
                Some(path) => path,
                None => return self.pass_over(size),
            },
            (None, ArchiveLayout::Files | ArchiveLayout::Layer) => without_dot(&path),
            // The folder itself, as some tools write it.
            (None, ArchiveLayout::InFolder) if kind == b'5' && !path.contains(&b'/') => {
                b"".as_slice()
            }
            (None, ArchiveLayout::InFolder) => self.below_top(without_dot(&path))?,
        };
        let mode = header.mode().map_err(|reason| self.malformed(reason))?;
        // Of a folder, they say nothing about what is in it.
        if mode & 0o7000 != 0 && kind != b'5' {
            let what = "something with set-uid, set-gid or sticky bits";
            self.tree.odd(path, what)?;
        }
        if !matches!(kind, b'0' | b'\0') && size != 0 {
            return match dumped(kind) {
                Some(what) => Err(TreeError::Kind { path: shown_path(path), what }.into()),
                None => Err(self.malformed("it has content, but is not a file")),
            };
        }
        match kind {
            b'0' | b'\0' if path.ends_with(b"/") => {
                Err(self.malformed("a file's path ends with a slash"))
            }
            b'0' | b'\0' => self.file(path, mode & 0o100 != 0, size),
            b'5' => self.folder(path),
            b'2' => {
                let target = extension.target.as_deref().unwrap_or_else(|| header.target());
                Ok(self.tree.symlink(path, target)?)
            }
            b'1' => {
                let target = extension.target.as_deref().unwrap_or_else(|| header.target());
                let (target, executable) = (without_dot(target), mode & 0o100 != 0);
                match self.layout {
                    ArchiveLayout::Files => Ok(self.tree.hard_link(path, executable, target)?),
                    // In images, it is the file that it leads to.
                    ArchiveLayout::Layer => Ok(self.tree.copy(path, executable, target)?),
                    // Helm finds nothing in it.
                    ArchiveLayout::InFolder => Ok(self.tree.odd(path, EMPTY_LINK)?),
                }
            }
            _ => Ok(self.tree.odd(path, special(kind))?),
        }
    }

    /// The path inside the archive's only folder; `None` for that folder itself.
    fn below_top<'path>(&mut self, path: &'path [u8]) -> Result<&'path [u8], ArchiveError> {
        let slash = path.iter().position(|byte| *byte == b'/');
        let Some((top, below)) = slash.and_then(|at| path.split_at_checked(at)) else {
            return Err(self.malformed("it is not inside the archive's folder"));
        };
        if self.top.get_or_insert_with(|| top.to_vec()) != top {
            return Err(self.malformed("it is not in the same folder as the entries before it"));
        }
        Ok(below.strip_prefix(b"/").unwrap_or(below))
    }

    fn folder(&mut self, path: &[u8]) -> Result<(), ArchiveError> {
        if !path.is_empty() {
            self.tree.directory(path)?;
        }
        if self.folders.insert(path.strip_suffix(b"/").unwrap_or(path).to_vec()) {
            return Ok(());
        }
        // Twice says the same as once, and is no reason to read more.
        self.account(OVERHEAD_OF_ENTRY)
    }

    fn file(&mut self, path: &[u8], executable: bool, size: u64) -> Result<(), ArchiveError> {
        match self.reader.next_bytes(size) {
            Some(content) => self.tree.file_in_memory(path, executable, content)?,
            None => {
                let mut content = Content { reader: &mut self.reader, left: size };
                self.tree.file(path, executable, &mut content)?;
            }
        }
        self.skip_padding(size)
    }

    /// The content of an entry that describes the next one.
    fn extension(&mut self, size: u64) -> Result<Vec<u8>, ArchiveError> {
        if size > LONGEST_EXTENSION {
            return Err(self.malformed("its extended header is too long"));
        }
        self.account(size)?;
        let mut content = vec![0; usize::try_from(size).expect("1 MiB fits")];
        self.reader.read_exact(&mut content)?;
        self.skip_padding(size)?;
        Ok(content)
    }

    /// Reads an entry that is not wanted, to its end.
    fn pass_over(&mut self, size: u64) -> Result<(), ArchiveError> {
        if self.layers.as_mut().is_some_and(|layers| !layers.may_pass_over(size)) {
            return Err(ArchiveError::Bomb);
        }
        if self.reader.next_bytes(size).is_none() {
            let mut content = Content { reader: &mut self.reader, left: size };
            io::copy(&mut content, &mut io::sink())?;
        }
        self.skip_padding(size)
    }

    fn skip_padding(&mut self, size: u64) -> Result<(), ArchiveError> {
        let over = usize::try_from(size % BLOCK as u64).expect("is less than a block");
        if over > 0 && self.reader.next_bytes((BLOCK - over) as u64).is_none() {
            let mut block = [0; BLOCK];
            let (_, padding) = block.split_at_mut(over);
            self.reader.read_exact(padding)?;
        }
        Ok(())
    }

    /// Reads what follows the first half of the end marker: the second half, which may be missing, then zeros.
    fn end(&mut self) -> Result<(), ArchiveError> {
        let mut block = [0; BLOCK];
        if !self.next_block(&mut block)? {
            return Ok(());
        }
        if !is_zero(&block) {
            return Err(self.malformed("an empty header comes before it"));
        }
        let mut padding = [0; 8 << 10];
        loop {
            let count = self.reader.read(&mut padding)?;
            match padding.get(..count) {
                Some([]) => return Ok(()),
                Some(padding) if is_zero(padding) => self.account(count as u64)?,
                _ => return Err(ArchiveError::Trailing),
            }
        }
    }

    fn malformed(&self, reason: &'static str) -> ArchiveError {
        let name = shown_path(&self.name);
        ArchiveError::Entry { name, number: self.number, reason }
    }
}

/// The content of one entry. If it ends early, that is an error here, and not its end.
struct Content<'archive, R> {
    reader: &'archive mut R,
    left: u64,
}

impl<R: Read> Read for Content<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let want = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if want == 0 {
            return Ok(0);
        }
        let (room, _) = buffer.split_at_mut(want);
        match self.reader.read(room)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.left -= count as u64;
                Ok(count)
            }
        }
    }
}

/// What a hard link is called in messages.
const HARD_LINK: &str = "a hard link";

/// What a hard link is called in messages, where programs disagree about it.
const EMPTY_LINK: &str = "a hard link, which some tools read as an empty file";

/// What a sparse file is called in messages.
const SPARSE: &str =
    "a sparse file (GNU tar makes none without `--sparse`, bsdtar none with `--no-read-sparse`)";

/// The name of an entry's kind that packages cannot contain.
fn special(kind: u8) -> &'static str {
    match kind {
        b'3' | b'4' => "a device",
        b'6' => "a named pipe",
        _ => dumped(kind).unwrap_or("of an unknown kind"),
    }
}

/// The name of an entry's kind that GNU tar writes for backups, and programs disagree about.
fn dumped(kind: u8) -> Option<&'static str> {
    match kind {
        b'D' => Some("a folder of an incremental backup (`tar --listed-incremental`)"),
        b'M' => Some("the rest of a file from another volume (`tar --multi-volume`)"),
        b'V' => Some("the label of a volume (`tar --label`), which some tools read as a file"),
        _ => None,
    }
}

/// A path as `tar -C folder .` writes it, without its `./`.
pub(crate) fn without_dot(path: &[u8]) -> &[u8] {
    path.strip_prefix(b"./").unwrap_or(path)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}
