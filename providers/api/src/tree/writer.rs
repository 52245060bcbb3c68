//! The one door between fetched content and the disk.
//!
//! Archives, Git trees and plugins are hostile. Every provider hands its files, one by one, to a
//! [`TreeWriter`], which refuses paths that leave the folder, collide, or are reserved; bounds sizes
//! and counts; and hashes each file while it writes it, so that nothing is read twice. Symbolic links
//! are made last, so that no file can be written through one. Formats (tar, Git) are not known here; the
//! rules for paths are in `path`.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::path::{self, escape};
use super::{Entry, Mode, Tree, TreeError};
use crate::FileDigest;

/// Bounds on what is accepted. The defaults are far above any honest package.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Files and links.
    pub entries: usize,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Bytes of a path.
    pub path: usize,
    /// Folders above a file.
    pub depth: usize,
    /// How many times larger than its archive a tree may be, once it is larger than 16 MiB.
    pub ratio: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 200_000, bytes: 8 << 30, path: 1_024, depth: 64, ratio: 200 }
    }
}

/// Below this size a tree's ratio to its archive does not matter.
const RATIO_MATTERS_ABOVE: u64 = 16 << 20;

/// Writes a tree below one folder, and refuses everything that may not be there.
pub struct TreeWriter {
    folder: PathBuf,
    limits: Limits,
    entries: Vec<Entry>,
    links: Vec<(String, String)>,
    /// Folded path → (path as written, whether it is a folder).
    seen: HashMap<String, (String, bool)>,
    /// Folders that were made on disk, by their paths as written.
    made: HashSet<String>,
    /// The folder that was last written to, held open, so that its files are made by name alone.
    #[cfg(unix)]
    current: Option<(String, std::os::fd::OwnedFd)>,
    bytes: u64,
    archive_bytes: Option<u64>,
    buffer: Vec<u8>,
}

impl fmt::Debug for TreeWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TreeWriter")
            .field("folder", &self.folder)
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl TreeWriter {
    /// A writer into `folder`, which exists and is empty.
    pub fn new(folder: impl Into<PathBuf>, limits: Limits) -> Self {
        Self {
            folder: folder.into(),
            limits,
            entries: Vec::new(),
            links: Vec::new(),
            seen: HashMap::new(),
            made: HashSet::new(),
            #[cfg(unix)]
            current: None,
            bytes: 0,
            archive_bytes: None,
            buffer: vec![0; 64 << 10],
        }
    }

    /// Tells how large the archive is, so that a bomb is known by its ratio.
    pub fn set_archive_size(&mut self, bytes: u64) {
        self.archive_bytes = Some(bytes);
    }

    /// Declares a folder. Empty folders are no part of a package, so nothing is made on disk.
    ///
    /// # Errors
    ///
    /// When the path is refused.
    pub fn directory(&mut self, path: &[u8]) -> Result<(), TreeError> {
        let path = path::check(path, &self.limits)?;
        self.claim(path, true)
    }

    /// Writes a file with what `content` yields.
    ///
    /// # Errors
    ///
    /// When the path or the size is refused, the content breaks off, or the disk refuses.
    pub fn file(
        &mut self,
        path: &[u8],
        executable: bool,
        content: &mut dyn Read,
    ) -> Result<(), TreeError> {
        let path = path::check(path, &self.limits)?;
        self.claim(path, false)?;
        self.make_parent(path)?;
        let mut file = self
            .create(path, executable)
            .map_err(|source| TreeError::Io { path: self.folder.join(path), source })?;
        let mut hash = Sha256::new();
        let mut size = 0_u64;
        loop {
            let count = match content.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    return Err(TreeError::Content { path: escape(path), source });
                }
            };
            size += count as u64;
            self.account(count as u64)?;
            let chunk = &self.buffer[..count];
            hash.update(chunk);
            file.write_all(chunk)
                .map_err(|source| TreeError::Io { path: self.folder.join(path), source })?;
        }
        self.entries.push(Entry {
            path: path.to_owned(),
            mode: if executable { Mode::Executable } else { Mode::File },
            sha256: FileDigest::from_bytes(hash.finalize().into()),
            size,
        });
        Ok(())
    }

    /// Declares a symbolic link; it is made by [`TreeWriter::finish`].
    ///
    /// # Errors
    ///
    /// When the path is refused, or the target is not inside the package. `..` is accepted at the
    /// beginning of a target only: further inside, another link could change what it means.
    pub fn symlink(&mut self, path: &[u8], target: &[u8]) -> Result<(), TreeError> {
        let path = path::check(path, &self.limits)?;
        let target = path::check_target(path, target, &self.limits)?;
        self.claim(path, false)?;
        self.account(target.len() as u64)?;
        self.entries.push(Entry {
            path: path.to_owned(),
            mode: Mode::Symlink,
            sha256: FileDigest::from_bytes(Sha256::digest(target.as_bytes()).into()),
            size: target.len() as u64,
        });
        self.links.push((path.to_owned(), target.to_owned()));
        Ok(())
    }

    /// The error for an entry that is no file, folder or symbolic link.
    pub fn refuse(&self, path: &[u8], what: &'static str) -> TreeError {
        TreeError::Kind { path: escape(&String::from_utf8_lossy(path)), what }
    }

    /// Makes the links, and returns what was written.
    ///
    /// # Errors
    ///
    /// When the disk refuses a link.
    pub fn finish(mut self) -> Result<Tree, TreeError> {
        for (path, target) in std::mem::take(&mut self.links) {
            self.make_parent(&path)?;
            let on_disk = self.folder.join(&path);
            make_link(&target, &on_disk)
                .map_err(|source| TreeError::Io { path: on_disk, source })?;
        }
        Ok(Tree::new(self.entries))
    }

    /// Makes the folders above `path`, each of them once.
    fn make_parent(&mut self, path: &str) -> Result<(), TreeError> {
        let Some((parent, _)) = path.rsplit_once('/') else { return Ok(()) };
        if self.made.contains(parent) {
            return Ok(());
        }
        self.make_parent(parent)?;
        let on_disk = self.folder.join(parent);
        match fs::create_dir(&on_disk) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result.map_err(|source| TreeError::Io { path: on_disk, source })?,
        }
        self.made.insert(parent.to_owned());
        Ok(())
    }

    /// Makes a file that is not there yet, read-only, because packs may share it with the store.
    #[cfg(unix)]
    fn create(&mut self, path: &str, executable: bool) -> io::Result<fs::File> {
        use rustix::fs::{Mode, OFlags, open, openat};
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if self.current.as_ref().is_none_or(|(known, _)| known != parent) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = open(self.folder.join(parent), flags, Mode::empty())?;
            self.current = Some((parent.to_owned(), folder));
        }
        let (_, folder) = self.current.as_ref().expect("was opened if it was not");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let readable = Mode::RUSR | Mode::RGRP | Mode::ROTH;
        let mode =
            if executable { readable | Mode::XUSR | Mode::XGRP | Mode::XOTH } else { readable };
        Ok(openat(folder, name, flags, mode)?.into())
    }

    /// Makes a file that is not there yet.
    #[cfg(not(unix))]
    fn create(&mut self, path: &str, _executable: bool) -> io::Result<fs::File> {
        fs::OpenOptions::new().write(true).create_new(true).open(self.folder.join(path))
    }

    fn account(&mut self, bytes: u64) -> Result<(), TreeError> {
        self.bytes += bytes;
        if self.bytes > self.limits.bytes {
            return Err(TreeError::Limit { what: "its size in bytes", limit: self.limits.bytes });
        }
        if let Some(archive) = self.archive_bytes
            && self.bytes > RATIO_MATTERS_ABOVE
            && self.bytes / archive.max(1) > self.limits.ratio
        {
            return Err(TreeError::Limit {
                what: "the ratio of its size to its archive's",
                limit: self.limits.ratio,
            });
        }
        Ok(())
    }

    /// Reserves `path`, and its parents as folders, against every other spelling of them.
    fn claim(&mut self, path: &str, folder: bool) -> Result<(), TreeError> {
        if self.seen.len() >= self.limits.entries {
            return Err(TreeError::Limit {
                what: "the number of its entries",
                limit: self.limits.entries as u64,
            });
        }
        let folded = path::fold(path);
        // Folding keeps the slashes, so each parent's folded form ends at the same one.
        for ((end, _), (folded_end, _)) in path.match_indices('/').zip(folded.match_indices('/')) {
            let parent = &path[..end];
            match self.seen.get(&folded[..folded_end]) {
                Some((earlier, true)) if earlier == parent => {}
                Some((earlier, _)) => {
                    return Err(TreeError::Collision {
                        first: escape(earlier),
                        second: escape(path),
                    });
                }
                None => {
                    self.seen.insert(folded[..folded_end].to_owned(), (parent.to_owned(), true));
                }
            }
        }
        match self.seen.get(&folded) {
            Some((earlier, true)) if folder && earlier == path => Ok(()),
            Some((earlier, _)) => {
                Err(TreeError::Collision { first: escape(earlier), second: escape(path) })
            }
            None => {
                self.seen.insert(folded, (path.to_owned(), folder));
                Ok(())
            }
        }
    }
}

#[cfg(unix)]
fn make_link(target: &str, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(windows)]
fn make_link(target: &str, at: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    fn write(actions: &[(&str, &str)]) -> Result<Tree, TreeError> {
        let folder = std::env::temp_dir().join(format!(
            "mu-tree-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the temporary folder can be made");
        let mut writer = TreeWriter::new(&folder, Limits::default());
        let result = actions
            .iter()
            .try_for_each(|(path, what)| match what.strip_prefix("-> ") {
                Some(target) => writer.symlink(path.as_bytes(), target.as_bytes()),
                None if *what == "/" => writer.directory(path.as_bytes()),
                None => writer.file(path.as_bytes(), *what == "x", &mut what.as_bytes()),
            })
            .and_then(|()| writer.finish());
        fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
        result
    }

    #[test]
    fn digest_is_over_sorted_lines() {
        let tree =
            write(&[("b", "2"), ("a/c", "x"), ("a-b", "1"), ("l", "-> a/c")]).expect("is fine");
        let paths: Vec<&str> = tree.entries().iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["a-b", "a/c", "b", "l"]);
        let lines: String =
            [('f', "1", "a-b"), ('x', "x", "a/c"), ('f', "2", "b"), ('l', "a/c", "l")]
                .iter()
                .map(|(mode, content, path)| {
                    let hash = FileDigest::from_bytes(Sha256::digest(content.as_bytes()).into());
                    format!("{mode} {hash}  {path}\n")
                })
                .collect();
        assert_eq!(tree.digest(), Digest::from_bytes(Sha256::digest(lines.as_bytes()).into()));
        assert_eq!(
            Tree::default().digest().to_string(),
            "h1:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
        );
    }

    #[test]
    fn refuses_what_may_not_be_in_a_package() {
        for hostile in [
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "./a",
            "a\\b",
            "C:x",
            ".git/config",
            "a/.GIT/x",
            ".gi\u{200c}t/x",
            "GIT~1/x",
            ".git./x",
            ".git::$INDEX_ALLOCATION/x",
            ".mu/packs/x",
            ".MU/x",
            "a\u{1b}b",
        ] {
            assert!(matches!(write(&[(hostile, "1")]), Err(TreeError::Path { .. })), "{hostile}");
        }
        let long = "a/".repeat(600);
        assert!(matches!(write(&[(&format!("{long}b"), "1")]), Err(TreeError::Limit { .. })));
    }

    #[test]
    fn refuses_paths_that_would_be_one_file() {
        for (first, second) in [
            ("a", "A"),
            ("a", "a"),
            ("é", "e\u{301}"),
            ("straße", "STRASSE"),
            ("a/x", "A/y"),
            ("a", "a/b"),
        ] {
            assert!(
                matches!(write(&[(first, "1"), (second, "2")]), Err(TreeError::Collision { .. })),
                "{first} {second}"
            );
        }
        assert!(matches!(write(&[("a", "-> b"), ("a/x", "1")]), Err(TreeError::Collision { .. })));
        write(&[("a", "/"), ("a/", "/"), ("a/x", "1"), ("a/y", "2")])
            .expect("a folder may be declared twice");
    }

    #[test]
    fn refuses_links_that_leave_the_package() {
        for (path, target) in [
            ("l", "/etc"),
            ("l", ".."),
            ("a/l", "../../x"),
            ("l", "a/../../b"),
            ("l", "a/.."),
            ("l", ".git/hooks"),
            ("l", ""),
            ("l", "a\\b"),
        ] {
            assert!(
                matches!(write(&[(path, &format!("-> {target}"))]), Err(TreeError::Link { .. })),
                "{path} {target}"
            );
        }
        write(&[("a/b/l", "-> ../../c"), ("c", "1")]).expect("stays inside");
    }

    #[test]
    fn bounds_what_an_archive_may_become() {
        let folder = std::env::temp_dir().join(format!("mu-tree-bomb-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be made");
        let mut writer = TreeWriter::new(&folder, Limits::default());
        writer.set_archive_size(1_000);
        let result = writer.file(b"zeros", false, &mut io::repeat(0).take(1 << 30));
        fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
        assert!(matches!(result, Err(TreeError::Limit { .. })), "{result:?}");
    }
}
