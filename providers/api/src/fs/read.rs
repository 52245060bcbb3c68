//! Reads files: only regular ones, and only up to a limit.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::SystemTime;

use super::{AtPath as _, FileError, if_there};

/// The size limit of a file that is read as a whole. A lock of 100,000 packages has about 40 MB.
pub(crate) const LARGEST: u64 = 128 << 20;

/// Reads a file of UTF-8 text.
///
/// # Errors
///
/// When it cannot be read, is not a regular file, is larger than 128 MiB, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    text(path, read(path)?)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|_| {
        let error = io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
        FileError::new("read", path, error)
    })
}

/// Reads a file of UTF-8 text, and returns when it was last changed; `None` if it does not exist.
///
/// # Errors
///
/// As [`read_text`], when it is there.
pub fn read_dated_text_if_there(path: &Path) -> Result<Option<(String, SystemTime)>, FileError> {
    let read = || {
        let opened = open_with_metadata(path)?;
        let changed = opened.1.modified()?;
        Ok((read_whole(opened, LARGEST)?, changed))
    };
    match if_there(read().at("read", path))? {
        Some((bytes, changed)) => Ok(Some((text(path, bytes)?, changed))),
        None => Ok(None),
    }
}

/// Reads a file.
///
/// # Errors
///
/// When it cannot be read, is not a regular file, or is larger than 128 MiB.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    open_with_metadata(path).and_then(|opened| read_whole(opened, LARGEST)).at("read", path)
}

/// Reads an open file, if it has no more than `most` bytes.
fn read_whole((file, metadata): (File, Metadata), most: u64) -> io::Result<Vec<u8>> {
    let too_large = || {
        let problem = format!("it is larger than {} MiB", most >> 20);
        io::Error::new(io::ErrorKind::FileTooLarge, problem)
    };
    let size = metadata.len();
    if size > most {
        return Err(too_large());
    }
    // One more byte of room, so that the end is found without asking for the rest.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    // A file may grow while it is read.
    io::Read::take(file, most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

/// Opens a regular file for reading. It does not wait for a pipe or read a device: a checkout may contain
/// either.
///
/// # Errors
///
/// When it is not there, or is not a regular file.
pub fn open(path: &Path) -> Result<File, FileError> {
    Ok(open_with_metadata(path).at("read", path)?.0)
}

/// Opens a file with `options`.
///
/// # Errors
///
/// When the system refuses.
pub fn open_with(path: &Path, options: &OpenOptions) -> Result<File, FileError> {
    options.open(path).at("open", path)
}

fn open_with_metadata(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        return Ok((file, metadata));
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
}

/// Reads a file of UTF-8 text; `None` when it is not there.
///
/// # Errors
///
/// When it is there and cannot be read, or is not UTF-8.
pub fn read_text_if_there(path: &Path) -> Result<Option<String>, FileError> {
    if_there(read_text(path))
}

/// Reads a file; `None` when it is not there.
///
/// # Errors
///
/// When it is there and cannot be read.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    if_there(read(path))
}

/// Opens a file to read parts of it; `None` if it does not exist.
///
/// # Errors
///
/// When it is there and cannot be opened.
pub fn open_if_there(path: &Path) -> Result<Option<File>, FileError> {
    if_there(open(path))
}

/// Fills `buffer` from an open file, starting at `offset`, even if other threads read it too.
///
/// # Errors
///
/// When it cannot be read, or ends before.
pub fn read_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset);
    #[cfg(windows)]
    {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            match std::os::windows::fs::FileExt::seek_read(file, &mut buffer[filled..], at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(())
    }
}
