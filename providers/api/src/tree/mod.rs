//! The files of a package: what its digest is over, and how they get to the disk.

mod disk;
mod error;
mod path;
mod writer;

use sha2::{Digest as _, Sha256};

pub use self::error::TreeError;
pub use self::writer::{Limits, TreeWriter};
use crate::{Digest, FileDigest};

/// So many bytes of lines are hashed together.
const LINES_AT_ONCE: usize = 16 << 10;

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

/// The files of a package, sorted by the bytes of their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    entries: Vec<Entry>,
}

impl Tree {
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

    /// The content digest: SHA-256 over a line `MODE SHA256HEX  PATH` for every entry, in order.
    pub fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        let mut lines = String::with_capacity(LINES_AT_ONCE);
        for entry in &self.entries {
            lines.push(entry.mode.letter());
            lines.push(' ');
            entry.sha256.push_to(&mut lines);
            lines.push_str("  ");
            lines.push_str(&entry.path);
            lines.push('\n');
            if lines.len() >= LINES_AT_ONCE {
                hash.update(&lines);
                lines.clear();
            }
        }
        hash.update(&lines);
        Digest::from_bytes(hash.finalize().into())
    }
}
