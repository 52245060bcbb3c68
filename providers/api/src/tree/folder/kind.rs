//! What is in a folder, by its kind; nothing here looks at a disk.

use std::io;

/// What something in a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, wherever it leads.
    Symlink,
    /// A pipe, a device, a socket.
    Other,
}

pub(super) fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "it is not a regular file")
}
