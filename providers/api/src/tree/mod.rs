//! The files of a package: what its digest is over, and how they get to the disk.

mod error;
mod folder;
mod path;
mod writer;

pub use self::error::TreeError;
pub use self::folder::Folder;
pub use self::writer::{Limits, TreeWriter};
use crate::{Digest, FileDigest};

/// What an entry of a tree is, as far as its digest is concerned.
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
    /// The folder that it is in, if that is not the tree itself.
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
    /// What a line of [`Tree::lines`] has beside its path, in bytes.
    pub const LINE: usize = 1 + 1 + 64 + 2 + 1;

    /// Makes a tree of entries in any order.
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

    /// Appends what the content digest is over: a line `MODE SHA256HEX  PATH` for every entry, in order.
    pub fn lines(&self, text: &mut String) {
        text.reserve(self.entries.iter().map(|entry| Self::LINE + entry.path.len()).sum());
        for entry in &self.entries {
            text.push(entry.mode.letter());
            text.push(' ');
            entry.sha256.push_to(text);
            text.push_str("  ");
            text.push_str(&entry.path);
            text.push('\n');
        }
    }
}
