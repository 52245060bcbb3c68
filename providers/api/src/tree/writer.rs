//! The only way for fetched content to the disk.
//!
//! Archives, Git trees and plugins are hostile. Every provider gives its files, one by one, to a [`TreeWriter`]. It refuses
//! paths that leave the folder, collide, or are reserved; it limits sizes and counts; and it hashes each file while it
//! writes it, so that nothing is read twice. Symbolic links are created last, so that no file can be written through one.
//! The writer does not know formats (tar, Git); `path` has the rules for paths.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::fmt;
use std::io::{self, Read, Write as _};

use sha2::{Digest as _, Sha256};

use super::path::{self, escape};
use super::{Entry, Folder, Mode, Tree};
use crate::{FileDigest, Progress, TreeError, and_more};

/// The limits of accepted trees. The defaults are far above any honest package.
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

impl Limits {
    /// How many bytes may become of so many compressed ones.
    pub fn most_from(&self, compressed: u64) -> u64 {
        compressed.saturating_mul(self.ratio).max(RATIO_MATTERS_ABOVE)
    }
}

/// Entries that most trees do not exceed.
const USUAL: usize = 56;

/// Below this size a tree's ratio to its archive does not matter.
const RATIO_MATTERS_ABOVE: u64 = 16 << 20;

/// Writes a tree below one folder, and refuses everything that must not be there.
pub struct TreeWriter {
    folder: Folder,
    limits: Limits,
    entries: Vec<Entry>,
    links: Vec<(String, String)>,
    /// The claimed paths, by their folded form.
    seen: HashMap<String, Claimed>,
    /// The folder of the last claimed path; it and all folders above it are claimed.
    claimed: Option<String>,
    /// The folder that was created last on disk, with all folders above it.
    made: String,
    bytes: u64,
    archive_bytes: Option<u64>,
    /// For content that arrives in pieces; empty until some does.
    buffer: Vec<u8>,
    /// The file whose content is kept, and its content once it is there.
    kept: Option<(&'static str, Option<Vec<u8>>)>,
    /// Which archives whoever unpacks one should hand over.
    pub keeps_archive: KeptArchives,
    /// The archive, byte for byte; `None` if the tree does not come from one, or it was not wanted.
    pub archive: Option<Vec<u8>>,
    /// Files that are only pointers of Git LFS.
    pointers: Vec<String>,
}

/// Which archives are handed over beside a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeptArchives {
    /// None.
    #[default]
    None,
    /// Those of other ecosystems, so that the tools there can read them.
    OfOtherTools,
    /// All of them.
    All,
}

impl fmt::Debug for TreeWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TreeWriter")
            .field("folder", &self.folder.path())
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl TreeWriter {
    /// A writer into `folder`, which is empty.
    pub fn new(folder: Folder, limits: Limits) -> Self {
        Self {
            folder,
            limits,
            entries: Vec::with_capacity(USUAL),
            links: Vec::new(),
            seen: HashMap::with_capacity(USUAL),
            claimed: None,
            made: String::new(),
            bytes: 0,
            archive_bytes: None,
            buffer: Vec::new(),
            kept: None,
            keeps_archive: KeptArchives::None,
            archive: None,
            pointers: Vec::new(),
        }
    }

    /// Keeps the content of the file at `path`, so that it need not be read from disk again.
    pub fn keep(&mut self, path: &'static str) {
        self.kept = Some((path, None));
    }

    /// The kept content: `None` if there was no such file, or if it arrived in pieces.
    pub fn take_kept(&mut self) -> Option<Vec<u8>> {
        self.kept.as_mut()?.1.take()
    }

    /// Whether anything was written below a folder.
    pub fn has_in(&self, folder: &str) -> bool {
        let below = |entry: &Entry| {
            entry.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        self.entries.iter().any(below)
    }

    /// Sets the size of the archive, so that a bomb is recognized by its ratio.
    pub fn set_archive_size(&mut self, bytes: u64) {
        self.archive_bytes = Some(bytes);
    }

    /// Checks, before anything is written, how many entries there are so far and how long the path of one is.
    ///
    /// # Errors
    ///
    /// When one of them is over its limit.
    pub fn foresee(&self, entries: usize, path: &[u8]) -> Result<(), TreeError> {
        path::check_length(path, &self.limits)?;
        self.check_count(entries)
    }

    fn check_count(&self, entries: usize) -> Result<(), TreeError> {
        if entries > self.limits.entries {
            return Err(TreeError::Limit {
                what: "the number of its entries",
                limit: self.limits.entries as u64,
            });
        }
        Ok(())
    }

    /// Declares a folder. Empty folders are not part of a package, so this creates nothing on disk.
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
    /// When the path or the size is refused, the content ends early, or writing fails.
    pub fn file(
        &mut self,
        path: &[u8],
        executable: bool,
        content: &mut dyn Read,
    ) -> Result<(), TreeError> {
        let path = path::check(path, &self.limits)?;
        let mut file = self.begin(path, executable)?;
        self.buffer.resize(64 << 10, 0);
        let mut hash = Sha256::new();
        let mut size = 0_u64;
        let mut is_pointer = false;
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
            #[expect(
                clippy::indexing_slicing,
                reason = "a reader reads no more than it has room for"
            )]
            let chunk = &self.buffer[..count];
            is_pointer = size == count as u64 && is_lfs_pointer(chunk);
            hash.update(chunk);
            file.write_all(chunk).map_err(|source| self.unwritable(path, source))?;
        }
        self.end(path, executable, hash, size);
        self.note_pointer(path, is_pointer);
        Ok(())
    }

    /// Writes a file whose content is in memory, which avoids a copy.
    ///
    /// # Errors
    ///
    /// As [`TreeWriter::file`].
    pub fn file_in_memory(
        &mut self,
        path: &[u8],
        executable: bool,
        content: &[u8],
    ) -> Result<(), TreeError> {
        let path = path::check(path, &self.limits)?;
        self.claim(path, false)?;
        self.make_parent(path)?;
        self.account(content.len() as u64)?;
        let written = self.folder.write_file(path, executable, content);
        written.map_err(|source| self.unwritable(path, source))?;
        if let Some((kept, into)) = &mut self.kept
            && *kept == path
        {
            *into = Some(content.to_vec());
        }
        let hash = Sha256::new_with_prefix(content);
        self.end(path, executable, hash, content.len() as u64);
        self.note_pointer(path, is_lfs_pointer(content));
        Ok(())
    }

    fn note_pointer(&mut self, path: &str, is_pointer: bool) {
        if is_pointer {
            self.pointers.push(escape(path));
        }
    }

    /// Tells of the files from `place` that are only pointers of Git LFS: whoever made the tree did not have the files themselves.
    pub fn tell_pointers(&self, place: &dyn fmt::Display, progress: &dyn Progress) {
        let Some((first, others)) = self.pointers.split_first() else { return };
        let others = and_more(others.len());
        progress.warning(&format!(
            "`{first}`{others} of `{place}`: only the Git LFS pointer is there, not the file"
        ));
    }

    /// Writes a file with the content of `target`, a file that was written before.
    ///
    /// # Errors
    ///
    /// As [`TreeWriter::file`], and when there is no such file.
    pub fn copy(&mut self, path: &[u8], executable: bool, target: &[u8]) -> Result<(), TreeError> {
        let written = path::check(target, &self.limits)?;
        // Links are created last, so whatever is there is a file.
        match self.folder.open_file(written) {
            Ok((mut content, _)) => self.file(path, executable, &mut content),
            Err(_) => {
                Err(self.refuse(path, "a hard link to something that is not a file before it"))
            }
        }
    }

    /// Creates a file and the folders above it, unless its path is already there in some spelling.
    fn begin(&mut self, path: &str, executable: bool) -> Result<std::fs::File, TreeError> {
        self.claim(path, false)?;
        self.make_parent(path)?;
        self.folder.new_file(path, executable).map_err(|source| self.unwritable(path, source))
    }

    /// Takes note of a file that was written.
    fn end(&mut self, path: &str, executable: bool, hash: Sha256, size: u64) {
        self.entries.push(Entry {
            path: path.to_owned(),
            mode: if executable { Mode::Executable } else { Mode::File },
            sha256: FileDigest::from_bytes(hash.finalize().into()),
            size,
        });
    }

    fn unwritable(&self, path: &str, source: io::Error) -> TreeError {
        TreeError::Io { path: self.folder.path().join(path), source }
    }

    /// Declares a symbolic link; [`TreeWriter::finish`] creates it.
    ///
    /// # Errors
    ///
    /// When the path is refused, or the target is not inside the package. `..` is accepted only at the beginning of a
    /// target: later, another link could change its meaning.
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

    /// The paths of the links that were declared so far, escaped for messages.
    pub fn links(&self) -> impl ExactSizeIterator<Item = String> {
        self.links.iter().map(|(path, _)| escape(path))
    }

    /// The error for an entry that is not a file, folder or symbolic link.
    pub fn refuse(&self, path: &[u8], what: &'static str) -> TreeError {
        TreeError::Kind { path: escape(&String::from_utf8_lossy(path)), what }
    }

    /// Creates the links, and returns what was written.
    ///
    /// # Errors
    ///
    /// When the disk refuses a link.
    pub fn finish(mut self) -> Result<Tree, TreeError> {
        for (path, target) in std::mem::take(&mut self.links) {
            self.make_parent(&path)?;
            self.folder
                .new_symlink(&target, &path)
                .map_err(|source| self.unwritable(&path, source))?;
        }
        Ok(Tree::new(self.entries))
    }

    /// Creates the folders above `path`.
    fn make_parent(&mut self, path: &str) -> Result<(), TreeError> {
        let Some(parent) = path::parent(path) else { return Ok(()) };
        if self.made == parent {
            return Ok(());
        }
        // Most folders share nearly all folders above them with the previous one.
        for folder in Folder::to_make(parent, &self.made) {
            let made = self.folder.make_folder(folder);
            made.map_err(|source| self.unwritable(folder, source))?;
        }
        parent.clone_into(&mut self.made);
        Ok(())
    }

    fn account(&mut self, bytes: u64) -> Result<(), TreeError> {
        self.bytes += bytes;
        if self.bytes > self.limits.bytes {
            return Err(TreeError::Limit { what: "its size in bytes", limit: self.limits.bytes });
        }
        if let Some(archive) = self.archive_bytes
            && self.bytes > self.limits.most_from(archive)
        {
            return Err(TreeError::Limit {
                what: "the ratio of its size to its archive's",
                limit: self.limits.ratio,
            });
        }
        Ok(())
    }

    /// Reserves `path`, and the folders above it, against every other spelling of them.
    fn claim(&mut self, path: &str, folder: bool) -> Result<(), TreeError> {
        self.check_count(self.seen.len() + 1)?;
        let folded = path::fold(path);
        let parent = path::parent(path);
        if parent != self.claimed.as_deref() {
            self.claim_parents(path, &folded)?;
            self.claimed = parent.map(str::to_owned);
        }
        match self.seen.entry(folded) {
            Slot::Vacant(slot) => {
                let claimed = Claimed::new(path, slot.key(), folder);
                slot.insert(claimed);
                Ok(())
            }
            Slot::Occupied(slot) => {
                let earlier = slot.get().spelling(slot.key());
                if folder && slot.get().folder && earlier == path {
                    return Ok(());
                }
                Err(TreeError::Collision { first: escape(earlier), second: escape(path) })
            }
        }
    }

    /// Reserves the folders above `path`, whose folded form is `folded`.
    fn claim_parents(&mut self, path: &str, folded: &str) -> Result<(), TreeError> {
        // Folding keeps the slashes, so each parent's folded form ends at the same one.
        for ((end, _), (folded_end, _)) in path.match_indices('/').zip(folded.match_indices('/')) {
            let (parent, folded) = (&path[..end], &folded[..folded_end]);
            let Some(claimed) = self.seen.get(folded) else {
                self.seen.insert(folded.to_owned(), Claimed::new(parent, folded, true));
                continue;
            };
            let earlier = claimed.spelling(folded);
            if !claimed.folder || earlier != parent {
                return Err(TreeError::Collision { first: escape(earlier), second: escape(path) });
            }
        }
        Ok(())
    }
}

/// A pointer of Git LFS has fewer bytes.
pub const LONGEST_LFS_POINTER: u64 = 1_024;

/// Whether the content of a file is what Git has in place of a file in Git LFS: a short text with the digest of that.
pub fn is_lfs_pointer(content: &[u8]) -> bool {
    (content.len() as u64) < LONGEST_LFS_POINTER
        && content.starts_with(b"version https://git-lfs.github.com/spec/")
}

/// A path that was claimed.
struct Claimed {
    /// How it was written, if that is not its folded form.
    spelling: Option<String>,
    /// Whether it is a folder.
    folder: bool,
}

impl Claimed {
    fn new(path: &str, folded: &str, folder: bool) -> Self {
        Self { spelling: (path != folded).then(|| path.to_owned()), folder }
    }

    /// How it was written.
    fn spelling<'claimed>(&'claimed self, folded: &'claimed str) -> &'claimed str {
        self.spelling.as_deref().unwrap_or(folded)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let mut writer = TreeWriter::new(Folder::open(&folder).expect("opens"), Limits::default());
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
        assert!(matches!(write(&[(&format!("{long}b"), "1")]), Err(TreeError::PathLimit { .. })));
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
    fn keeps_the_file_that_it_is_asked_for() {
        let folder = std::env::temp_dir().join(format!("mu-tree-kept-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be made");
        let mut writer = TreeWriter::new(Folder::open(&folder).expect("opens"), Limits::default());
        writer.keep("a");
        for path in ["b", "a", "c/a"] {
            writer.file_in_memory(path.as_bytes(), false, path.as_bytes()).expect("can be written");
        }
        fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
        assert_eq!(writer.take_kept().as_deref(), Some(&b"a"[..]));
    }

    #[test]
    fn bounds_what_an_archive_may_become() {
        let folder = std::env::temp_dir().join(format!("mu-tree-bomb-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be made");
        let mut writer = TreeWriter::new(Folder::open(&folder).expect("opens"), Limits::default());
        writer.set_archive_size(1_000);
        let result = writer.file(b"zeros", false, &mut io::repeat(0).take(1 << 30));
        fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
        assert!(matches!(result, Err(TreeError::Limit { .. })), "{result:?}");
    }
}
