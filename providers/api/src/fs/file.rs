//! Files as a whole: only regular ones are read, and only up to a limit; and where one is written, readers see the old content
//! or the new one, whatever happens in between.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::{AtPath as _, FileError, changing, create_folder, if_there, metadata, rename};
use crate::tree::needs_a_copy;

/// How many bytes are written at once, if there are so many.
const PIECE: usize = 64 << 10;

/// Replaces a file as a whole: readers see the old content or the new one, whatever happens in between.
///
/// It creates the folder if necessary, keeps the permissions, and does not touch a file that already has this
/// content.
///
/// # Errors
///
/// When the folder or the file cannot be written, or a symbolic link is there. Then nothing has changed.
pub fn write_atomic(path: &Path, content: &[u8]) -> Result<(), FileError> {
    if let Ok(present) = read(path)
        && present == content
        && !path.is_symlink()
    {
        return Ok(());
    }
    copy_atomic(path, &mut &*content)
}

/// Replaces a file as [`write_atomic`] does; if a symbolic link is there, it replaces the target.
///
/// Use it only for the user's own files: whoever creates a link there decides which file is written.
///
/// # Errors
///
/// When the folder or the file cannot be written; the old file is unchanged then.
pub fn write_through_links(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    write_atomic(&target, content)
}

/// Replaces a file as a whole with what `content` yields, as [`write_atomic`] does.
///
/// # Errors
///
/// When `content` cannot be read, the folder or the file cannot be written, or a symbolic link or a device is there. Then
/// nothing has changed.
pub fn copy_atomic(path: &Path, content: &mut dyn io::Read) -> Result<(), FileError> {
    let found = fs::symlink_metadata(path).ok();
    let problem = found.as_ref().map(Metadata::file_type).and_then(|found| {
        if found.is_symlink() {
            Some("it is a symbolic link, and its target may belong to somebody else")
        } else if is_device(found) {
            // The system would let a file take the place of `/dev/null`.
            Some("it is a device, and no file may take its place")
        } else {
            None
        }
    });
    if let Some(problem) = problem {
        let error = io::Error::new(io::ErrorKind::InvalidInput, problem);
        return Err(FileError::new("write", path, error));
    }
    let mut staged = stage(path)?;
    // What comes in small pieces is not written in small pieces.
    let mut writer = io::BufWriter::with_capacity(PIECE, staged.as_file_mut());
    let copied = io::copy(content, &mut writer).and_then(|_| io::Write::flush(&mut writer));
    drop(writer);
    copied.at("write", path)?;
    let permissions = found.map(|found| found.permissions());
    match set_permissions(staged.as_file(), permissions) {
        // The file is mu's own: this file system has no permissions that can be set.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        result => result.at("write", path)?,
    }
    put(staged, path)
}

#[cfg(unix)]
fn is_device(found: fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    found.is_char_device() || found.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_found: fs::FileType) -> bool {
    false
}

/// Replaces a file as a whole, as [`write_atomic`] does; only its owner can read it.
///
/// # Errors
///
/// When the folder or the file cannot be written; the old file is unchanged then.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let mut staged = stage(path)?;
    // A temporary file is private from the start.
    io::Write::write_all(&mut staged, content).at("write", path)?;
    put(staged, path)
}

/// Replaces a file as a whole, as [`write_atomic`] does, and returns when that is on the disk. Returns what is known of the file.
///
/// # Errors
///
/// When the folder or the file cannot be written; the old file is unchanged then.
pub fn replace_durably(path: &Path, content: &[u8]) -> Result<Metadata, FileError> {
    put(stage_durably(path, content)?, path)?;
    sync_folder(path)?;
    metadata(path)
}

/// Creates a file, and returns when that is on the disk. Returns what is known of it; `None` if a file is there already, which
/// stays as it is.
///
/// # Errors
///
/// When the folder or the file cannot be written.
pub fn create_durably(path: &Path, content: &[u8]) -> Result<Option<Metadata>, FileError> {
    let staged = stage_durably(path, content)?;
    changing();
    match staged.persist_noclobber(path) {
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        result => result.map_err(|error| error.error).at("write", path)?,
    };
    sync_folder(path)?;
    metadata(path).map(Some)
}

/// Creates a new file beside `path` with this content, and its folder if necessary, all of which is on the disk then. Others may
/// read it as far as the user lets them read new files; where a group may write into the folder, it may write what is new there, too.
fn stage_durably(path: &Path, content: &[u8]) -> Result<NamedTempFile, FileError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let is_new = |folder: &&Path| !folder.is_dir();
    let new: Vec<&Path> = folder.ancestors().take_while(is_new).collect();
    create_folder(folder)?;
    new.iter().rev().for_each(|folder| share(folder));
    new.into_iter().try_for_each(sync_folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(STAGED);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut staged = builder.tempfile_in(folder).at("write a file in", folder)?;
    share(staged.path());
    let written = io::Write::write_all(&mut staged, content);
    written.and_then(|()| staged.as_file().sync_all()).at("write", path)?;
    Ok(staged)
}

/// Lets the group write what is new at `path` if it may write into the folder around it, whatever the user's umask is, as Git does in a
/// shared repository. A file system that knows no modes keeps its own.
#[cfg(unix)]
fn share(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).map(|found| found.permissions().mode());
    let Some(Ok(around)) = path.parent().map(mode) else { return };
    let Ok(own) = mode(path) else { return };
    let shared = own | if path.is_dir() { 0o070 | around & 0o2000 } else { 0o060 };
    if around & 0o020 != 0 && shared != own {
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(shared));
    }
}

#[cfg(not(unix))]
fn share(_: &Path) {}

/// Brings the name of what is at `path` to the disk.
#[cfg(unix)]
fn sync_folder(path: &Path) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder).and_then(|folder| folder.sync_all()).at("write", folder)
}

/// This system writes names at once.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Result<(), FileError> {
    Ok(())
}

/// Moves a staged file into the place of another one.
fn put(staged: NamedTempFile, path: &Path) -> Result<(), FileError> {
    changing();
    let Err(error) = staged.persist(path) else { return Ok(()) };
    let moved = match needs_a_copy(&error.error) {
        true => rename(error.file.path(), path),
        false => Err(FileError::new("write", path, error.error)),
    };
    moved.map_err(|error| FileError::new("write", path, error.into_reason()))
}

#[cfg(unix)]
fn set_permissions(file: &File, permissions: Option<fs::Permissions>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    // A temporary file is private, but a new file of mu's is as readable as any other.
    file.set_permissions(permissions.unwrap_or_else(|| fs::Permissions::from_mode(0o644)))
}

#[cfg(not(unix))]
fn set_permissions(file: &File, permissions: Option<fs::Permissions>) -> io::Result<()> {
    permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))
}

/// Creates a new file beside `path`, and its folder if necessary.
fn stage(path: &Path) -> Result<NamedTempFile, FileError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    create_folder(folder)?;
    let staged = tempfile::Builder::new().prefix(STAGED).tempfile_in(folder);
    staged.at("write a file in", folder)
}

/// How the names of files on their way begin, as no file of a person does; [`RANDOM`] letters and digits follow.
const STAGED: &str = ".mu-staged-";
const RANDOM: usize = 6;

/// A new name of a file on its way.
pub(crate) fn staged_name() -> String {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    // Each state has keys of its own, from the system's random numbers.
    let mut random = RandomState::new().build_hasher().finish();
    let mut name = STAGED.to_owned();
    for _ in 0..RANDOM {
        name.extend(char::from_digit((random % 36) as u32, 36));
        random /= 36;
    }
    name
}

/// How long a file may be on its way; an older one is of a run that was killed.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// Whether a file has the name of one on its way: one that is about to replace another, or that a run left when it was killed.
pub fn is_staged(name: &str) -> bool {
    name.strip_prefix(STAGED).is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Removes what runs that were killed left in a folder: files on their way that are older than an hour.
///
/// What cannot be removed stays, because it does no harm.
pub fn remove_left_behind(folder: &Path) {
    // A link may lead to somebody else's folder.
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir());
    let Some(entries) = is_folder.then(|| fs::read_dir(folder).ok()).flatten() else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_staged))
    {
        let age = entry
            .metadata()
            .ok()
            .filter(fs::Metadata::is_file)
            .and_then(|file| file.modified().ok());
        if age.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > LONGEST) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

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

/// Fills `buffer` from an open file, starting at `offset`, if that waits for no disk: the system has these bytes in memory.
///
/// # Errors
///
/// Where it might wait, or the system cannot tell, [`io::ErrorKind::WouldBlock`]. Also when the file cannot be read, or ends before.
pub fn read_cached_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::io::{Errno, ReadWriteFlags, preadv2, retry_on_intr};
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            let mut part = [io::IoSliceMut::new(&mut buffer[filled..])];
            match retry_on_intr(|| preadv2(file, &mut part, at, ReadWriteFlags::NOWAIT)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(Errno::OPNOTSUPP) if has_no_disk(file) => {
                    return read_at(file, at, &mut buffer[filled..]);
                }
                // The file system cannot tell, or the system does not have the call (Linux 4.14).
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, offset, buffer);
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// Whether a file is in a file system that is nothing but memory (`tmpfs`), as Linux numbers it.
#[cfg(target_os = "linux")]
fn has_no_disk(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == 0x0102_1994)
}

/// Writes all of `bytes` into an open file, starting at `offset`, even if other threads read it.
///
/// # Errors
///
/// When they cannot be written; some of them may be there then.
pub fn write_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, offset);
    #[cfg(windows)]
    {
        let mut written = 0;
        while written < bytes.len() {
            let at = offset + written as u64;
            match std::os::windows::fs::FileExt::seek_write(file, &bytes[written..], at)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => written += count,
            }
        }
        Ok(())
    }
}
