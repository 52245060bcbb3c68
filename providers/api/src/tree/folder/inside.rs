//! What mu does below a folder by paths that others wrote: nothing is read, made, replaced or removed through a link.

use std::fs::Permissions;
use std::io::{self, Read as _};

use super::{Folder, Kind};
use crate::fs::{AtPath as _, FileError, FollowsNoLinks, LARGEST, changing, staged_name};
use crate::{InnerPath, Mode};

impl Folder {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    ///
    /// When it is not there, or is not a folder.
    pub fn at(path: &std::path::Path) -> Result<Self, FileError> {
        Self::open(path).at("open the folder", path)
    }

    /// Opens a folder in it.
    ///
    /// # Errors
    ///
    /// When it is not there or not a folder, or there is a link on the way.
    pub fn inner(&self, path: &InnerPath) -> Result<Self, FileError> {
        self.open_folder(path.as_str())
            .map_err(|error| self.refused("open the folder", path, error))
    }

    /// Opens a folder in it; creates it and those above it if necessary.
    ///
    /// # Errors
    ///
    /// When one cannot be made or opened, or there is a link on the way.
    pub fn make_inner(&self, path: &InnerPath) -> Result<Self, FileError> {
        self.open_or_make(path.as_str())
            .map_err(|error| self.refused("make the folder", path, error))
    }

    /// What is at `path`, if anything; a link there is one.
    ///
    /// # Errors
    ///
    /// When there is a link on the way, or a folder cannot be opened.
    pub fn look_at(&self, path: &InnerPath) -> Result<Option<Kind>, FileError> {
        Ok(self.above(path)?.and_then(|above| above.kind(path.leaf())))
    }

    /// The content of the regular file at `path`; `None` if nothing is there.
    ///
    /// # Errors
    ///
    /// When something else is there or on the way, such as a link, or it cannot be read.
    pub fn read(&self, path: &InnerPath) -> Result<Option<Vec<u8>>, FileError> {
        let refused = |error| self.refused("read", path, error);
        let Some(above) = self.above(path)? else { return Ok(None) };
        match above.kind(path.leaf()) {
            None => return Ok(None),
            Some(Kind::File) => {}
            Some(_) => return Err(refused(not_a_file())),
        }
        let (file, metadata) = above.open_file(path.leaf()).map_err(refused)?;
        let mut content = Vec::new();
        // A file may grow while it is read.
        let most = file.take(LARGEST + 1).read_to_end(&mut content).map_err(refused)?;
        if metadata.len().max(most as u64) > LARGEST {
            return Err(refused(io::ErrorKind::FileTooLarge.into()));
        }
        Ok(Some(content))
    }

    /// The text of the regular file at `path`; `None` if nothing is there.
    ///
    /// # Errors
    ///
    /// As [`Folder::read`], and when it is not UTF-8.
    pub fn read_text(&self, path: &InnerPath) -> Result<Option<String>, FileError> {
        let Some(content) = self.read(path)? else { return Ok(None) };
        let text = String::from_utf8(content).map_err(|_| {
            self.refused(
                "read",
                path,
                io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"),
            )
        })?;
        Ok(Some(text))
    }

    /// Replaces a file as a whole: readers see the old content or the new one. It creates the folders above it, keeps the permissions,
    /// and does not touch a file that already has this content.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or something else is there or on the way, such as a link. Then nothing has changed.
    pub fn write(&self, path: &InnerPath, content: &[u8]) -> Result<(), FileError> {
        if self.read(path)?.is_some_and(|present| present == content) {
            return Ok(());
        }
        let permissions = self.open_file(path.as_str()).map(|(_, file)| file.permissions());
        self.place(path, Mode::File, permissions.ok(), content)
    }

    /// Puts a file or a link to `path`, in the place of another one; `content` is the content, or the link's target. What is a file can
    /// be changed by its owner. It creates the folders above.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or there is a link on the way, or a folder in its place.
    pub fn put(&self, path: &InnerPath, mode: Mode, content: &[u8]) -> Result<(), FileError> {
        self.place(path, mode, None, content)
    }

    fn place(
        &self,
        path: &InnerPath,
        mode: Mode,
        permissions: Option<Permissions>,
        content: &[u8],
    ) -> Result<(), FileError> {
        let refused = |error| self.refused("write", path, error);
        let above = match path.parent() {
            Some(parent) => Some(self.make_inner(&parent)?),
            None => None,
        };
        let above = above.as_ref().unwrap_or(self);
        let staged = staged_name();
        let made = match mode {
            Mode::Symlink => {
                let target = std::str::from_utf8(content);
                let target = target.map_err(|_| refused(io::ErrorKind::InvalidData.into()))?;
                above.new_symlink(target, &staged)
            }
            Mode::File | Mode::Executable => {
                changing();
                let permissions = permissions.or_else(|| own_permissions(mode));
                above.held.new_own_file(&staged, permissions, content)
            }
        };
        let moved = made.and_then(|()| above.rename(&staged, above, path.leaf()));
        if moved.is_err() {
            let _ = above.held.remove_file(&staged);
        }
        moved.map_err(refused)
    }

    /// Moves what is at `from` to `to`, where nothing may be; creates the folders above that.
    ///
    /// # Errors
    ///
    /// When it is not there, something is at `to`, or there is a link on the way.
    pub fn move_inside(&self, from: &InnerPath, to: &InnerPath) -> Result<(), FileError> {
        let refused = |error| self.refused("move into place", to, error);
        let missing = || self.refused("move", from, io::ErrorKind::NotFound.into());
        let source = self.above(from)?.ok_or_else(missing)?;
        if self.look_at(to)?.is_some() {
            return Err(refused(io::ErrorKind::AlreadyExists.into()));
        }
        let target = match to.parent() {
            Some(parent) => Some(self.make_inner(&parent)?),
            None => None,
        };
        let target = target.as_ref().unwrap_or(self);
        source.rename(from.leaf(), target, to.leaf()).map_err(refused)
    }

    /// Removes what is at `path`: a file, a link, or a folder with everything in it. Nothing there is fine.
    ///
    /// # Errors
    ///
    /// When it cannot be removed, or there is a link on the way.
    pub fn remove(&self, path: &InnerPath) -> Result<(), FileError> {
        let Some(above) = self.above(path)? else { return Ok(()) };
        changing();
        above.held.remove(path.leaf()).map_err(|error| self.refused("remove", path, error))
    }

    /// Removes the file or link at `path`. Nothing there is fine.
    ///
    /// # Errors
    ///
    /// When it is a folder or cannot be removed, or there is a link on the way.
    pub fn remove_file(&self, path: &InnerPath) -> Result<(), FileError> {
        let Some(above) = self.above(path)? else { return Ok(()) };
        changing();
        match above.held.remove_file(path.leaf()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.refused("remove", path, error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the folders above `path` that are empty now.
    pub fn remove_empty_above(&self, path: &InnerPath) {
        let mut parent = path.parent();
        while let Some(folder) = parent {
            let Ok(Some(above)) = self.above(&folder) else { return };
            changing();
            // Fails at a folder that is not empty, where this stops.
            if above.held.remove_empty(folder.leaf()).is_err() {
                return;
            }
            parent = folder.parent();
        }
    }

    /// What is directly in it, in the order of the names. Names that are not UTF-8 are left out: nobody could name them.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn entries(&self) -> Result<Vec<(String, Kind)>, FileError> {
        let mut names = self.held.names().at("read the folder", &self.path)?;
        names.sort_unstable();
        let kind = |name: String| self.kind(&name).map(|kind| (name, kind));
        Ok(names.into_iter().filter_map(kind).collect())
    }

    /// The folder that `path` is directly in; `None` if it is not there.
    fn above(&self, path: &InnerPath) -> Result<Option<Self>, FileError> {
        let parent = path.parent();
        let parent = parent.as_ref().map_or(".", InnerPath::as_str);
        match self.open_folder(parent) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.refused("open the folder", path, error)),
        }
    }

    /// The error about `path`, which names the first link on the way if there is one.
    fn refused(&self, action: &'static str, path: &InnerPath, error: io::Error) -> FileError {
        let parts = path.as_str().match_indices('/').map(|(end, _)| &path.as_str()[..end]);
        for part in parts.chain([path.as_str()]) {
            match self.path.join(part) {
                link if link.is_symlink() => {
                    return FileError::new(action, link, FollowsNoLinks.into());
                }
                _ => {}
            }
        }
        FileError::new(action, self.path.join(path), error)
    }
}

/// The permissions of a new file, which its owner can change.
fn own_permissions(mode: Mode) -> Option<Permissions> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::from_mode(match mode {
        Mode::Executable => 0o755,
        _ => 0o644,
    }));
    #[cfg(not(unix))]
    {
        let _ = mode;
        None
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn inner(path: &str) -> InnerPath {
        InnerPath::parse(path).expect(path)
    }

    /// A folder with a link out of it at each level, and what is outside.
    fn around() -> (tempfile::TempDir, Folder) {
        let around = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir_all(around.path().join("outside/deep/deeper")).expect("makes");
        fs::write(around.path().join("outside/deep/file"), "precious").expect("writes");
        fs::create_dir_all(around.path().join("in/real")).expect("makes");
        for (link, to) in
            [("link", "../outside"), ("real/link", "../../outside"), ("nowhere", "../new")]
        {
            symlink(to, around.path().join("in").join(link)).expect("links");
        }
        let folder = Folder::at(&around.path().join("in")).expect("opens");
        (around, folder)
    }

    fn listing(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).expect("is a folder") {
            let path = entry.expect("is there").path();
            found.push(path.display().to_string());
            if path.is_dir() && !path.is_symlink() {
                found.extend(listing(&path));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn nothing_is_done_through_a_link_and_the_error_names_it() {
        let (around, folder) = around();
        let outside = around.path().join("outside");
        let before = listing(&outside);
        for link in ["link", "real/link"] {
            for rest in ["deep", "deep/file", "deep/new", "new"] {
                let path = inner(&format!("{link}/{rest}"));
                let errors = [
                    folder.read(&path).expect_err("is behind a link"),
                    folder.write(&path, b"x").expect_err("is behind a link"),
                    folder.put(&path, Mode::Executable, b"x").expect_err("is behind a link"),
                    folder.put(&path, Mode::Symlink, b"x").expect_err("is behind a link"),
                    folder.make_inner(&path).expect_err("is behind a link"),
                    folder.inner(&path).expect_err("is behind a link"),
                    folder.look_at(&path).expect_err("is behind a link"),
                    folder.remove(&path).expect_err("is behind a link"),
                    folder.remove_file(&path).expect_err("is behind a link"),
                    folder.move_inside(&path, &inner("stolen")).expect_err("is behind a link"),
                    folder.move_inside(&inner("real"), &path).expect_err("is behind a link"),
                ];
                for error in errors {
                    assert!(error.is_link() && error.path().ends_with(link), "{path}: {error}");
                }
                folder.remove_empty_above(&path);
            }
        }
        for link in ["link", "nowhere"] {
            for error in [
                folder.read(&inner(link)).expect_err("is a link"),
                folder.write(&inner(link), b"x").expect_err("is a link"),
                folder.make_inner(&inner(link)).expect_err("is a link"),
            ] {
                assert!(error.is_link(), "{error}");
            }
        }
        assert_eq!(listing(&outside), before);
        assert_eq!(fs::read(outside.join("deep/file")).expect("is there"), b"precious");
        assert!(!around.path().join("new").exists());
        // A link itself is removed and replaced, and what it leads to stays.
        folder.remove(&inner("real")).expect("is ours");
        folder.remove(&inner("nowhere")).expect("is ours");
        folder.put(&inner("link"), Mode::File, b"mine").expect("is ours");
        assert_eq!(listing(&outside), before);
        assert_eq!(folder.entries().expect("reads"), [("link".to_owned(), Kind::File)]);
    }

    #[test]
    fn files_and_folders_are_made_moved_and_removed() {
        let (_around, folder) = around();
        let path = inner("a/b/file");
        assert_eq!(folder.read(&path).expect("can be looked for"), None);
        folder.write(&path, b"one").expect("writes");
        folder.write(&path, b"two").expect("writes");
        assert_eq!(folder.read_text(&path).expect("reads").as_deref(), Some("two"));
        folder.put(&inner("a/run"), Mode::Executable, b"#!").expect("writes");
        let run = folder.path().join("a/run");
        folder.write(&inner("a/run"), b"#!/bin/sh").expect("writes");
        assert!(crate::fs::is_executable(&crate::fs::metadata(&run).expect("is there")));
        folder.move_inside(&inner("a/b"), &inner("c/d/e")).expect("moves");
        assert_eq!(folder.look_at(&inner("c/d/e/file")).expect("looks"), Some(Kind::File));
        folder.move_inside(&inner("a"), &inner("c/d")).expect_err("something is there");
        folder.remove(&inner("c/d/e")).expect("removes");
        folder.remove(&inner("c/d/e")).expect("is gone");
        folder.remove_empty_above(&inner("c/d/e"));
        assert_eq!(folder.look_at(&inner("c")).expect("looks"), None);
        folder.remove_file(&inner("a")).expect_err("is a folder");
        folder.write(&inner("a"), b"x").expect_err("is a folder");
        folder.read(&inner("a")).expect_err("is a folder");
        let names: Vec<String> =
            folder.entries().expect("reads").into_iter().map(|one| one.0).collect();
        assert_eq!(names, ["a", "link", "nowhere", "real"]);
    }
}
