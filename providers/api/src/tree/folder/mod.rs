//! A folder that is kept open, so that its content is created and found by short paths. Walking a long path for each file is
//! expensive.
//!
//! Paths are not checked here: the caller has created or checked them. What others named is an [`InnerPath`](super::InnerPath),
//! and goes by the functions of `inside`.
//!
//! What a file system refuses to rename is moved all the same: between two of them, out of a lower layer of an image, and onto
//! what is mounted. Such a move is no single step. Whoever needs one has noted what it is about to do, as [`Folder::rename`]
//! says.

#[cfg(unix)]
mod by_descriptor;
#[cfg(not(unix))]
mod by_path;
mod inside;

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

#[cfg(unix)]
use self::by_descriptor::{Held, write_all};
#[cfg(not(unix))]
use self::by_path::{Held, write_all};
use crate::fs::{changing, staged_name};

/// A folder that is kept open. Paths in it are relative to it, with slashes.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    held: Held,
}

impl Folder {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    ///
    /// When it is not there, or is not a folder.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        Ok(Self { held: Held::open(&path)?, path })
    }

    /// Opens a folder in it. It follows no symbolic link, so nobody can lead mu elsewhere.
    ///
    /// # Errors
    ///
    /// When it does not exist, is not a folder, or a part of `path` is a symbolic link
    /// ([`io::ErrorKind::NotADirectory`] or `FilesystemLoop`, depending on the system).
    pub fn open_folder(&self, path: &str) -> io::Result<Self> {
        Ok(Self { held: self.held.open_folder(path)?, path: self.path.join(path) })
    }

    /// Opens a folder in it like [`Folder::open_folder`], and creates it and those above it if necessary.
    ///
    /// # Errors
    ///
    /// When one cannot be created or opened, or is a symbolic link.
    pub fn open_or_make(&self, path: &str) -> io::Result<Self> {
        match self.open_folder(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match path.rsplit_once('/') {
            Some((above, leaf)) => self.open_or_make(above)?.make_folder(leaf)?,
            None => self.make_folder(path)?,
        }
        self.open_folder(path)
    }

    /// The folder at `path`, opened at the first call and then kept in `cell`.
    pub fn open_once(cell: &OnceLock<Self>, path: impl FnOnce() -> PathBuf) -> Option<&Self> {
        if let folder @ Some(_) = cell.get() {
            return folder;
        }
        let opened = Self::open(path()).ok()?;
        Some(cell.get_or_init(|| opened))
    }

    /// The folders to create before `path` exists, the outermost first, if `made` and the folders above it
    /// exist.
    pub fn to_make<'path>(path: &'path str, made: &str) -> impl Iterator<Item = &'path str> {
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        above.chain([path]).filter(move |folder| {
            let beyond = made.strip_prefix(folder);
            !beyond.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a folder in it; if it exists already, that is fine.
    ///
    /// # Errors
    ///
    /// When it cannot be created, or the folder above it does not exist.
    pub fn make_folder(&self, path: &str) -> io::Result<()> {
        changing();
        match self.held.new_folder(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result,
        }
    }

    /// Creates a folder in it, and the missing ones above it.
    ///
    /// # Errors
    ///
    /// When one cannot be created.
    pub fn make_folders(&self, path: &str) -> io::Result<()> {
        match (self.make_folder(path), path.rsplit_once('/')) {
            (Err(error), Some((above, _))) if error.kind() == io::ErrorKind::NotFound => {
                self.make_folders(above)?;
                self.make_folder(path)
            }
            (result, _) => result,
        }
    }

    /// Creates a file that does not exist yet. It is read-only, because packs may share it with the store.
    ///
    /// # Errors
    ///
    /// When it exists, or cannot be created.
    pub fn new_file(&self, path: &str, executable: bool) -> io::Result<File> {
        changing();
        self.held.new_file(path, executable)
    }

    /// Creates a file with this content, like [`Folder::new_file`].
    ///
    /// # Errors
    ///
    /// When it is there, or cannot be written.
    pub fn write_file(&self, path: &str, executable: bool, content: &[u8]) -> io::Result<()> {
        write_all(self.new_file(path, executable)?, content)
    }

    /// Creates a symbolic link that does not exist yet.
    ///
    /// # Errors
    ///
    /// When it exists, or cannot be created.
    pub fn new_symlink(&self, target: &str, path: &str) -> io::Result<()> {
        changing();
        self.held.new_symlink(target, path)
    }

    /// Creates a hard link to the file at `path` at the same path in `to`, where there is none yet.
    ///
    /// # Errors
    ///
    /// When it is not there, or the file system refuses.
    pub fn link(&self, path: &str, to: &Self) -> io::Result<()> {
        changing();
        self.held.link(path, &to.held)
    }

    /// The kind of what is at `path`, if anything; a symbolic link is not followed.
    pub fn kind(&self, path: &str) -> Option<Kind> {
        self.held.kind(path)
    }

    /// The names of the folders directly in it, without a look at each. One that is missing here can still be a
    /// folder: not all file systems say what a name stands for.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn folders(&self) -> io::Result<Vec<String>> {
        self.held.folders()
    }

    /// The names of everything directly in it, in their order, whatever they are made of.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = self.held.all_names()?;
        names.sort_unstable();
        Ok(names)
    }

    /// What the symbolic link at `path` leads to.
    ///
    /// # Errors
    ///
    /// When it is not a symbolic link.
    pub fn read_link(&self, path: &str) -> io::Result<PathBuf> {
        self.held.read_link(path)
    }

    /// Opens the regular file at `path` for reading, with what is known of it. It follows no symbolic link,
    /// there or on the way, and waits for nothing.
    ///
    /// # Errors
    ///
    /// When it does not exist or is not a regular file ([`io::ErrorKind::NotFound`]), or a part of `path` is a
    /// symbolic link.
    pub fn open_file(&self, path: &str) -> io::Result<(File, Metadata)> {
        regular(self.held.open_file(path)?)
    }

    /// Opens the regular file at `path` below `folder`, like [`Folder::open_file`], but only if that waits for no disk: the system has
    /// looked at all parts of the path not long ago.
    ///
    /// # Errors
    ///
    /// As of [`Folder::open_file`]; and where it might wait, or the system cannot tell, [`io::ErrorKind::WouldBlock`].
    pub fn open_cached_file(folder: &Path, path: &str) -> io::Result<(File, Metadata)> {
        #[cfg(target_os = "linux")]
        return regular(by_descriptor::open_cached(folder, path)?);
        // Other systems do not tell what they have in memory.
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (folder, path);
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    /// The size of the regular file at `path`, in bytes, and when its content, its permissions or its names changed last; `None` if it
    /// is not a regular file.
    pub fn size_and_time(&self, path: &str) -> Option<(u64, SystemTime)> {
        self.held.size_and_time(path)
    }
}

/// A file with what is known of it, if it is a regular one.
fn regular(file: File) -> io::Result<(File, Metadata)> {
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(not_a_file()) }
}

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

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "it is not a regular file")
}

/// Whether a rename was refused although a copy can be made: the other place is in another file system (or its folder in a
/// lower layer of an overlay, which is the same error), or something is mounted at one of the two.
pub(crate) fn needs_a_copy(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::CrossesDevices | io::ErrorKind::ResourceBusy)
}

impl Folder {
    /// Moves what is at `path` to `new` in `to`, which must not exist, or be a file if `path` is one, or be an empty folder.
    ///
    /// This is one step, except where the file system cannot do it in one: then content is copied and removed, and a folder or
    /// file that is mounted stays there, empty or with the new content.
    ///
    /// # Errors
    ///
    /// When it does not exist, or something else is in its place.
    pub fn rename(&self, path: &str, to: &Self, new: &str) -> io::Result<()> {
        changing();
        match self.held.rename(path, &to.held, new) {
            Err(error) if needs_a_copy(&error) => self.carry(path, to, new),
            result => result,
        }
    }

    /// The same by copying.
    pub(crate) fn carry(&self, path: &str, to: &Self, new: &str) -> io::Result<()> {
        match self.kind(path) {
            None => Err(io::ErrorKind::NotFound.into()),
            Some(Kind::Folder) => self.carry_folder(path, to, new),
            Some(Kind::File) => self.carry_file(path, to, new),
            Some(Kind::Symlink) => {
                let staged = staged_name();
                let target = self.read_link(path)?;
                let target = target.to_str().ok_or(io::ErrorKind::InvalidData)?;
                to.new_symlink(target, &staged)?;
                to.held.rename(&staged, &to.held, new)?;
                self.held.remove_file(path)
            }
            Some(Kind::Other) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn carry_folder(&self, path: &str, to: &Self, new: &str) -> io::Result<()> {
        to.make_folder(new)?;
        let (from, target) = (self.open_folder(path)?, to.open_folder(new)?);
        if !target.names()?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        // In their order: `list` of a tree in the store comes after its `files`, which count only with it.
        for name in from.names()? {
            let name = name.to_str().ok_or(io::ErrorKind::InvalidData)?;
            from.rename(name, &target, name)?;
        }
        match self.held.remove_empty(path) {
            // Something is mounted there.
            Err(error) if needs_a_copy(&error) => Ok(()),
            result => result,
        }
    }

    fn carry_file(&self, path: &str, to: &Self, new: &str) -> io::Result<()> {
        let (mut file, metadata) = self.open_file(path)?;
        let staged = staged_name();
        let mut copy = to.new_file(&staged, false)?;
        let copied = io::copy(&mut file, &mut copy)
            .and_then(|_| copy.set_permissions(metadata.permissions()))
            .and_then(|()| match to.held.rename(&staged, &to.held, new) {
                Err(error) if needs_a_copy(&error) => {
                    // The file itself is mounted, as containers have single files: only its content can change.
                    let mut file = self.open_file(path)?.0;
                    io::copy(&mut file, &mut to.held.open_to_replace(new)?)?;
                    to.held.remove_file(&staged)
                }
                result => result,
            });
        if copied.is_err() {
            // The first error counts.
            let _ = to.held.remove_file(&staged);
        }
        copied?;
        self.held.remove_file(path)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn no_part_of_a_path_is_followed_through_a_link() {
        let around = tempfile::tempdir().expect("a temporary folder");
        let outside = around.path().join("outside");
        std::fs::create_dir_all(outside.join("deep")).expect("makes");
        std::fs::write(outside.join("deep/file"), "x").expect("writes");
        std::fs::create_dir_all(around.path().join("in/real/deep")).expect("makes");
        std::fs::write(around.path().join("in/real/deep/file"), "x").expect("writes");
        std::os::unix::fs::symlink(&outside, around.path().join("in/link")).expect("links");
        std::os::unix::fs::symlink("../real", around.path().join("in/real/up")).expect("links");
        let folder = Folder::open(around.path().join("in")).expect("opens");

        assert!(folder.open_folder("real/deep").is_ok());
        assert!(folder.open_file("real/deep/file").is_ok());
        for path in ["link", "link/deep", "real/up/deep", "..", "../outside", "real/../../outside"]
        {
            assert!(folder.open_folder(path).is_err(), "{path}");
            assert!(folder.open_or_make(&format!("{path}/new")).is_err(), "{path}");
            assert!(folder.open_file(&format!("{path}/file")).is_err(), "{path}");
            assert!(
                Folder::open_cached_file(folder.path(), &format!("{path}/file")).is_err(),
                "{path}"
            );
        }
        assert_eq!(std::fs::read_dir(&outside).expect("reads").count(), 1);
        assert_eq!(folder.kind("link"), Some(Kind::Symlink));
        assert_eq!(folder.kind("real"), Some(Kind::Folder));
        assert_eq!(folder.kind("none"), None);
        assert_eq!(folder.folders().expect("reads"), ["real"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_was_just_written_is_read_without_waiting() {
        let around = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(around.path().join("a")).expect("makes");
        std::fs::write(around.path().join("a/file"), "content").expect("writes");
        let (file, metadata) =
            Folder::open_cached_file(around.path(), "a/file").expect("is in memory");
        assert_eq!(metadata.len(), 7);
        let mut part = [0; 4];
        crate::fs::read_cached_at(&file, 3, &mut part).expect("is in memory");
        assert_eq!(&part, b"tent");
        let behind = crate::fs::read_cached_at(&file, 4, &mut part).expect_err("ends before");
        assert_eq!(behind.kind(), io::ErrorKind::UnexpectedEof);
        let none = Folder::open_cached_file(around.path(), "a").expect_err("is a folder");
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn parts_are_opened_one_by_one_where_the_system_cannot_do_it_at_once() {
        use rustix::fs::OFlags;
        let around = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir_all(around.path().join("a/b")).expect("makes");
        std::os::unix::fs::symlink("a", around.path().join("link")).expect("links");
        let folder = std::fs::File::open(around.path()).expect("opens").into();
        let open = |path| by_descriptor::open_by_parts(&folder, path, OFlags::RDONLY);
        assert!(open("a").is_ok() && open("a/b").is_ok());
        assert!(open("link").is_err() && open("link/b").is_err() && open("a/c").is_err());
    }

    #[test]
    fn pipes_are_neither_waited_for_nor_read() {
        let around = tempfile::tempdir().expect("a temporary folder");
        let made = std::process::Command::new("mkfifo").arg(around.path().join("pipe")).status();
        assert!(made.expect("runs").success());
        let folder = Folder::open(around.path()).expect("opens");
        assert!(folder.open_file("pipe").is_err());
        assert_eq!(folder.kind("pipe"), Some(Kind::Other));
    }

    #[test]
    fn a_copy_has_all_that_was_there_and_nothing_is_left_behind() {
        let around = tempfile::tempdir().expect("a temporary folder");
        let path = |path: &str| around.path().join(path);
        std::fs::create_dir_all(path("from/old/deep")).expect("makes");
        std::fs::write(path("from/old/deep/program"), "x").expect("writes");
        let program = std::fs::Permissions::from_mode(0o555);
        std::fs::set_permissions(path("from/old/deep/program"), program).expect("is ours");
        std::os::unix::fs::symlink("deep/program", path("from/old/link")).expect("links");
        std::fs::create_dir(path("to")).expect("makes");
        let open = |name: &str| Folder::open(path(name)).expect("opens");
        let (from, to) = (open("from"), open("to"));
        from.carry("old", &to, "new").expect("moves");
        assert!(from.names().expect("lists").is_empty());
        assert_eq!(to.names().expect("lists"), ["new"]);
        assert_eq!(std::fs::read(path("to/new/link")).expect("reads"), b"x");
        let mode = std::fs::metadata(path("to/new/deep/program")).expect("is there");
        assert_eq!(mode.permissions().mode() & 0o777, 0o555);
        // What is in the place of a folder is not mixed with it.
        std::fs::create_dir(path("from/other")).expect("makes");
        let refused = from.carry("other", &to, "new").expect_err("is there");
        assert_eq!(refused.kind(), io::ErrorKind::DirectoryNotEmpty);
        // A file replaces a file.
        std::fs::write(path("from/file"), "2").expect("writes");
        std::fs::write(path("to/file"), "1").expect("writes");
        from.carry("file", &to, "file").expect("moves");
        assert_eq!(std::fs::read(path("to/file")).expect("reads"), b"2");
        assert_eq!(to.names().expect("lists"), ["file", "new"]);
        assert_eq!(
            from.carry("none", &to, "x").expect_err("is not there").kind(),
            io::ErrorKind::NotFound
        );
    }
}
