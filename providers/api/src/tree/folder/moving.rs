//! Moves what a file system refuses to rename: between two of them, out of a lower layer of an image, and onto what is mounted.
//!
//! Such a move is no single step. Whoever needs one has noted what it is about to do, as [`crate::Folder::rename`] says.

use std::io;

use super::{Folder, Kind};
use crate::fs::{changing, staged_name};

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
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

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
