//! The files of a package: what its digest covers, and how they are written to disk.

// Data from others must not lead to an index out of bounds.
#![deny(clippy::indexing_slicing)]

mod folder;
mod path;
mod writer;

pub(crate) use self::folder::needs_a_copy;
pub use self::folder::{Folder, Kind};
pub use self::path::{InnerPath, OwnPath, shown_path};
pub use self::writer::{KeptArchives, LONGEST_LFS_POINTER, Limits, TreeWriter, is_lfs_pointer};
use crate::{Digest, FileDigest};

/// The kind of an entry, as far as the digest distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A file; `f` in the digest's lines.
    File,
    /// A file that can be executed; `x`.
    Executable,
    /// A symbolic link, whose content is its target; `l`.
    Symlink,
}

impl Mode {
    /// The letter in the lines that the content digest is over.
    pub fn letter(self) -> char {
        match self {
            Self::File => 'f',
            Self::Executable => 'x',
            Self::Symlink => 'l',
        }
    }
}

/// One file or link of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Slash-separated path below the tree's root.
    pub path: String,
    /// What it is.
    pub mode: Mode,
    /// SHA-256 of its content.
    pub sha256: FileDigest,
    /// Bytes of its content.
    pub size: u64,
}

impl Entry {
    /// Its line of [`Tree::lines`], without the end.
    pub fn line(&self) -> String {
        let mut line = String::with_capacity(Tree::LINE + self.path.len());
        self.push_line(&mut line);
        line
    }

    fn push_line(&self, text: &mut String) {
        text.push(self.mode.letter());
        text.push(' ');
        self.sha256.push_to(text);
        text.push_str("  ");
        text.push_str(&self.path);
    }

    /// The entry in a line of [`Tree::lines`], without the line's end. `size` is not in the line and comes
    /// from elsewhere. `None` if the text is not such a line.
    pub fn from_line(line: &str, size: u64) -> Option<Self> {
        let (mode, line) = line.split_once(' ')?;
        let (sha256, path) = line.split_once("  ")?;
        let mode = match mode {
            "f" => Mode::File,
            "x" => Mode::Executable,
            "l" => Mode::Symlink,
            _ => return None,
        };
        Some(Self { mode, sha256: sha256.parse().ok()?, size, path: path.into() })
    }

    /// The folder that contains it, unless that is the tree itself.
    pub fn parent(&self) -> Option<&str> {
        path::parent(&self.path)
    }
}

/// The files of a package, sorted by the bytes of their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    entries: Vec<Entry>,
}

impl Tree {
    /// The length of a line of [`Tree::lines`] without its path, in bytes.
    pub const LINE: usize = 1 + 1 + 64 + 2 + 1;

    /// Creates a tree from entries in any order.
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_unstable_by(|left, right| left.path.as_bytes().cmp(right.path.as_bytes()));
        Self { entries }
    }

    /// The entries, sorted by the bytes of their paths.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Bytes of all files together.
    pub fn size(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).sum()
    }

    /// The content digest: SHA-256 over [`Tree::lines`].
    pub fn digest(&self) -> Digest {
        let mut lines = String::new();
        self.lines(&mut lines);
        Digest::of_lines(&lines)
    }

    /// Appends the text that the content digest covers: a line `MODE SHA256HEX  PATH` for every entry, in
    /// order.
    pub fn lines(&self, text: &mut String) {
        text.reserve(self.entries.iter().map(|entry| Self::LINE + entry.path.len()).sum());
        for entry in &self.entries {
            entry.push_line(text);
            text.push('\n');
        }
    }
}
