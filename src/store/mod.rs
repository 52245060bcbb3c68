//! The content-addressed store: every tree that was ever fetched, once, under its digest.
//!
//! A tree gets here only after it was hashed and compared. [`crate::packs`] links installed packs from here;
//! the store knows nothing of workspaces or locks.
//!
//! ```text
//! store/lock             shared by every run that uses the store, exclusive for `mu cache prune`
//! store/trees/HEX/files/ the files, read-only
//! store/trees/HEX/list   one line an entry; a tree counts only while this is there
//! store/archives/HASH    the digest of the tree that an archive had
//! store/linked/HASH      a link to each packs folder that holds links to trees
//! store/staging/RANDOM/  what a run is writing; locked by it, removed by the next run if it died
//! ```
//!
//! The list of a stored tree is what linking needs, so that no folder is walked. After a line with the format's version, one with the package's own name and version, and one with the size
//! of every entry come exactly the lines of the content digest ([`Tree::lines`]). So a list is checked by
//! hashing it directly.

mod beside;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::SystemTime;

use mu_provider::{Digest, Entry, Folder, Limits, ProviderError, Tree, TreeWriter, threads};

use crate::fs::{self, FileError, Lock, Sharing};
use crate::store::beside::{FILES, LIST, Staged, StoreStaging};

pub use crate::store::beside::Unpacking;

/// The store's folder in the cache.
const STORE: &str = "store";

/// The folder of all trees.
const TREES: &str = "trees";

/// Why a tree is not in the store.
#[derive(Debug, thiserror::Error)]
pub enum TreeStoreError {
    /// The provider failed, or the fetched content was refused.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The content is not what the lock or the index says.
    #[error("the content is not what was expected: expected {expected}, got {actual}")]
    Mismatch {
        /// The digest in the lock or the index.
        expected: Digest,
        /// The digest of the content.
        actual: Digest,
    },
    /// A tree in the store was changed after it was checked.
    #[error("`{}` in the store was changed after it was checked", path.display())]
    Corrupt {
        /// The changed file.
        path: PathBuf,
    },
    /// The store must not be written, and lacks the tree.
    #[error("the store in `{}` does not have it, and --store-readonly forbids adding it", folder.display())]
    ReadOnly {
        /// The store's folder.
        folder: PathBuf,
    },
    /// The disk refused.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A tree that is in the store.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Its content digest.
    pub digest: Digest,
    /// The folder that holds its files.
    pub folder: PathBuf,
    /// Its files.
    pub tree: Arc<Tree>,
    /// The package's own name and version, separated by a space, if its manifest has them in plain form; else
    /// empty. So users of the tree need not read its manifest again.
    pub called: Arc<str>,
    /// When it was checked; a file that changed later is not trusted. `None` if this run has written its
    /// files, which then need no second check.
    pub checked: Option<SystemTime>,
    /// Whether the store cannot be written.
    is_read_only: bool,
}

impl Stored {
    /// Notes that its files are what its list says now, after the system has changed their times.
    ///
    /// Without the note, as in a store that cannot be written, they are checked again the next time.
    pub fn was_checked(&self) {
        if self.is_read_only {
            return;
        }
        let list = self.folder.with_file_name(LIST);
        let _ = fs::touch(&list);
    }
}

/// The store below one cache folder.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    staging: OnceLock<StoreStaging>,
    /// Held while that is created.
    making: Mutex<()>,
    /// The folder of all trees, once it exists.
    trees: OnceLock<Folder>,
    limits: Limits,
    /// Whether nothing in its folder may be changed.
    readonly: bool,
    /// What this run has added, so that nothing that was just written is read again.
    added: Mutex<HashMap<Digest, Stored>>,
}

impl Store {
    /// The store in the cache folder `cache`; creates nothing yet.
    pub fn new(cache: &Path) -> Self {
        Self {
            folder: cache.join(STORE),
            staging: OnceLock::new(),
            making: Mutex::default(),
            trees: OnceLock::new(),
            limits: Limits::default(),
            readonly: false,
            added: Mutex::default(),
        }
    }

    /// This store, which is only read: nothing is created, locked or removed in its folder.
    #[must_use]
    pub fn read_only(self, readonly: bool) -> Self {
        Self { readonly, ..self }
    }

    /// Whether it is only read.
    pub fn is_read_only(&self) -> bool {
        self.readonly
    }

    /// The folder that holds everything.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps others from pruning while the returned lock lives (or, if exclusive, from using the store).
    pub fn lock(&self, sharing: Sharing, waiting: &mut dyn FnMut()) -> Result<Lock, FileError> {
        Lock::acquire(&self.folder.join("lock"), sharing, waiting)
    }

    /// Whether nothing was ever added.
    pub fn is_empty(&self) -> bool {
        self.trees().is_none()
    }

    /// Whether it contains a tree with this digest.
    pub fn contains(&self, digest: &Digest) -> bool {
        let list = [&*hex(digest), "/", LIST].concat();
        self.trees().is_some_and(|trees| trees.size_and_time(&list).is_some())
    }

    /// Opens the folder that holds the files of a tree.
    pub fn open(&self, stored: &Stored) -> Result<Folder, TreeStoreError> {
        let name = [&*hex(&stored.digest), "/", FILES].concat();
        let opened = self.trees().and_then(|trees| trees.open_folder(&name).ok());
        match opened.map_or_else(|| Folder::open(&stored.folder), Ok) {
            Ok(folder) => Ok(folder),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Err(TreeStoreError::Corrupt { path: stored.folder.clone() })
            }
            Err(error) => Err(FileError::new("open", &stored.folder, error).into()),
        }
    }

    /// The tree with this digest.
    pub fn find(&self, digest: &Digest) -> Result<Option<Stored>, TreeStoreError> {
        if let Some(added) = self.added().get(digest) {
            return Ok(Some(added.clone()));
        }
        let path = self.list_path(digest);
        let Some((text, checked)) = fs::read_dated_text_if_there(&path)? else {
            return Ok(None);
        };
        match parse(&text, digest) {
            Some((tree, called)) => Ok(Some(Stored {
                digest: *digest,
                folder: self.tree_path(digest),
                tree: Arc::new(tree),
                called: called.into(),
                checked: Some(checked),
                is_read_only: self.readonly,
            })),
            // A damaged list counts as missing: the tree is fetched again.
            None => {
                self.remove(digest)?;
                Ok(None)
            }
        }
    }

    /// Forgets what this run remembers of a tree that it has added; the next use reads it from disk.
    pub fn forget_tree(&self, digest: &Digest) {
        self.added().remove(digest);
    }

    /// Adds the tree that `fill` writes, if its digest is `expected` (or none is known yet); `fill` returns the package's own
    /// name and version, as in [`Stored::called`].
    pub fn add(
        &self,
        expected: Option<&Digest>,
        fill: impl FnOnce(&mut TreeWriter) -> Result<String, ProviderError>,
    ) -> Result<Stored, TreeStoreError> {
        let staged = self.staging()?.folder()?;
        match self.add_from(&staged, expected, fill) {
            Ok((stored, true)) => Ok(stored),
            // Its files already existed.
            Ok((stored, false)) => {
                fs::remove_folder(&staged.path())?;
                Ok(stored)
            }
            Err(error) => {
                // The first error counts; the next run removes what this one cannot.
                let _ = fs::remove_folder(&staged.path());
                Err(error)
            }
        }
    }

    /// The tree that `fill` writes, of which nothing is kept.
    pub fn inspect(
        &self,
        fill: impl FnOnce(&mut TreeWriter) -> Result<(), ProviderError>,
    ) -> Result<Tree, TreeStoreError> {
        let staged = self.staging()?.folder()?;
        let mut writer = TreeWriter::new(staged.create_tree_folder()?, self.limits);
        let result = fill(&mut writer).and_then(|()| writer.finish().map_err(ProviderError::from));
        fs::remove_folder(&staged.path())?;
        Ok(result?)
    }

    /// As [`Self::add`], with the staging folder `staged`; also returns whether that has become the tree.
    fn add_from(
        &self,
        staged: &Staged<'_>,
        expected: Option<&Digest>,
        fill: impl FnOnce(&mut TreeWriter) -> Result<String, ProviderError>,
    ) -> Result<(Stored, bool), TreeStoreError> {
        let mut writer = TreeWriter::new(staged.create_tree_folder()?, self.limits);
        let called = fill(&mut writer)?;
        let tree = writer.finish().map_err(ProviderError::from)?;
        let (list, digest) = print(&tree, &called);
        if let Some(expected) = expected
            && *expected != digest
        {
            return Err(TreeStoreError::Mismatch { expected: *expected, actual: digest });
        }
        if self.readonly {
            let missing = || TreeStoreError::ReadOnly { folder: self.folder.clone() };
            return Ok((self.find(&digest)?.ok_or_else(missing)?, false));
        }
        staged.write_list(&list)?;
        if !self.move_new(staged, &digest)? {
            if let Some(present) = self.find(&digest)? {
                return Ok((present, false));
            }
            // It was damaged, or half of it was removed.
            self.remove(&digest)?;
            if !self.move_new(staged, &digest)? {
                // Another run was faster.
                let present = self.find(&digest)?;
                let path = self.folder_of(&digest);
                return Ok((present.ok_or(TreeStoreError::Corrupt { path })?, false));
            }
        }
        let folder = self.tree_path(&digest);
        let stored = Stored {
            digest,
            folder,
            tree: Arc::new(tree),
            called: called.into(),
            checked: None,
            is_read_only: false,
        };
        self.added().insert(digest, stored.clone());
        Ok((stored, true))
    }

    /// Moves what is staged to the place of a tree; `false` if there is one already.
    fn move_new(&self, staged: &Staged<'_>, digest: &Digest) -> Result<bool, FileError> {
        let missing = || Err(ErrorKind::NotFound.into());
        let moved = self.trees().map_or_else(missing, |trees| staged.move_to(trees, &hex(digest)));
        let moved = moved.or_else(|error| match error.kind() {
            // There is no folder of trees yet, or it was removed after it was opened.
            ErrorKind::NotFound => {
                fs::create_folder(&self.folder.join(TREES))?;
                fs::rename(&staged.path(), &self.folder_of(digest))
            }
            _ => Err(FileError::new("move into place", self.folder_of(digest), error)),
        });
        match moved {
            Ok(()) => Ok(true),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The folder of all trees, if it exists.
    fn trees(&self) -> Option<&Folder> {
        Folder::open_once(&self.trees, || self.folder.join(TREES))
    }

    /// Drops a tree. It is first moved out of the way as a whole, so that neither the store nor a pack that
    /// is a link to it ever has half of it.
    pub fn remove(&self, digest: &Digest) -> Result<(), FileError> {
        self.added().remove(digest);
        if self.readonly {
            return Ok(());
        }
        let staged = self.staging()?.folder()?;
        fs::move_away(&self.folder_of(digest), &staged.path())?;
        fs::remove_folder(&staged.path())
    }

    /// The digests of all trees.
    pub fn digests(&self) -> Result<Vec<Digest>, FileError> {
        let mut digests: Vec<Digest> = fs::entries_if_there(&self.folder.join(TREES))?
            .into_iter()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let file: mu_provider::FileDigest = name.parse().ok()?;
                Some(Digest::from_bytes(*file.as_bytes()))
            })
            .filter(|digest| self.contains(digest))
            .collect();
        digests.sort_unstable();
        Ok(digests)
    }

    /// Removes trees without a list: those whose removal was interrupted.
    ///
    /// The caller holds the store's lock exclusively.
    pub fn remove_unlisted(&self) -> Result<(), FileError> {
        for entry in fs::entries_if_there(&self.folder.join(TREES))? {
            if !entry.path().join(LIST).exists() {
                fs::remove_folder(&entry.path())?;
            }
        }
        Ok(())
    }

    fn added(&self) -> MutexGuard<'_, HashMap<Digest, Stored>> {
        threads::lock(&self.added)
    }

    fn staging(&self) -> Result<&StoreStaging, FileError> {
        let _making = threads::lock(&self.making);
        if let Some(staging) = self.staging.get() {
            return Ok(staging);
        }
        let staging = match self.readonly {
            true => StoreStaging::aside()?,
            false => StoreStaging::new(&self.folder.join("staging"))?,
        };
        Ok(self.staging.get_or_init(|| staging))
    }

    /// Where the files of the tree with this digest are, if it is there.
    pub fn tree_path(&self, digest: &Digest) -> PathBuf {
        self.folder_of(digest).join(FILES)
    }

    fn list_path(&self, digest: &Digest) -> PathBuf {
        self.folder_of(digest).join(LIST)
    }

    fn folder_of(&self, digest: &Digest) -> PathBuf {
        self.folder.join(TREES).join(hex(digest))
    }
}

/// The folder of all trees of the store in the cache folder `cache`.
pub fn trees_in(cache: &Path) -> PathBuf {
    cache.join(STORE).join(TREES)
}

/// The files of the tree with this digest in the store of the cache folder `cache`, if it is there.
pub fn tree_in(cache: &Path, digest: &Digest) -> Option<PathBuf> {
    let folder = trees_in(cache).join(hex(digest));
    folder.join(LIST).is_file().then(|| folder.join(FILES))
}

/// Hex, because base64url would collide on file systems that fold case.
fn hex(digest: &Digest) -> String {
    mu_provider::FileDigest::from_bytes(*digest.as_bytes()).to_string()
}

const HEADER: &str = "mu-tree 3";

/// The text of a tree's list, and the tree's digest. `called` is the package's own name and version, without
/// a line feed.
fn print(tree: &Tree, called: &str) -> (String, Digest) {
    // Few sizes have more than seven digits.
    let lines: usize = tree.entries().iter().map(|entry| Tree::LINE + entry.path.len() + 8).sum();
    let mut text = String::with_capacity(HEADER.len() + called.len() + lines + 3);
    for line in [HEADER, called] {
        text.push_str(line);
        text.push('\n');
    }
    for entry in tree.entries() {
        write!(text, "{} ", entry.size).expect("a string takes everything");
    }
    text.push('\n');
    let start = text.len();
    tree.lines(&mut text);
    let digest = Digest::of_lines(&text[start..]);
    (text, digest)
}

/// The tree in the list of the tree with this digest, and its package's own name and version; `None` if the
/// text is not that list.
fn parse<'text>(text: &'text str, digest: &Digest) -> Option<(Tree, &'text str)> {
    let (called, rest) = text.strip_prefix(HEADER)?.strip_prefix('\n')?.split_once('\n')?;
    let (sizes, lines) = rest.split_once('\n')?;
    if Digest::of_lines(lines) != *digest {
        return None;
    }
    let mut sizes = sizes.split_terminator(' ');
    let entries: Option<Vec<Entry>> = lines
        .split_terminator('\n')
        .map(|line| Entry::from_line(line, sizes.next()?.parse().ok()?))
        .collect();
    let entries = entries.filter(|_| sizes.next().is_none())?;
    Some((Tree::new(entries), called))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_provider::{ErrorKind, Mode};

    fn add(
        store: &Store,
        expected: Option<&Digest>,
        content: &str,
    ) -> Result<Stored, TreeStoreError> {
        store.add(expected, |writer| {
            writer.file(b"a/b", false, &mut content.as_bytes())?;
            Ok(String::new())
        })
    }

    #[test]
    fn keeps_a_tree_once_and_only_if_it_is_the_expected_one() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let store = Store::new(cache.path());
        let stored = add(&store, None, "x").expect("adds");
        assert_eq!(std::fs::read(stored.folder.join("a/b")).expect("reads"), b"x");
        let again = add(&store, Some(&stored.digest), "x").expect("adds");
        assert_eq!(again.digest, stored.digest);
        let wrong = add(&store, Some(&stored.digest), "y");
        assert!(matches!(wrong, Err(TreeStoreError::Mismatch { .. })), "{wrong:?}");
        assert_eq!(store.digests().expect("lists"), [stored.digest]);
        assert_eq!(
            store.find(&stored.digest).expect("finds").map(|found| found.tree),
            Some(stored.tree)
        );
    }

    #[test]
    fn keeps_nothing_of_what_failed() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let store = Store::new(cache.path());
        let failed = store.add(None, |writer| {
            writer.file(b"a", false, &mut "x".as_bytes())?;
            Err(ProviderError::new(ErrorKind::Network, "cut"))
        });
        assert!(failed.is_err());
        assert!(store.digests().expect("lists").is_empty());
        let left: Vec<_> = walkdir::WalkDir::new(cache.path().join("store/staging"))
            .into_iter()
            .flatten()
            .filter(|entry| entry.file_type().is_file() && entry.file_name() != "lock")
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn a_damaged_list_drops_the_tree() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let store = Store::new(cache.path());
        let stored = add(&store, None, "x").expect("adds");
        std::fs::write(store.list_path(&stored.digest), "nonsense").expect("writes");
        let store = Store::new(cache.path());
        assert!(store.find(&stored.digest).expect("finds").is_none());
        assert!(!stored.folder.exists());
        add(&store, None, "x").expect("adds again");
        assert!(store.contains(&stored.digest));
    }

    #[test]
    fn a_tree_whose_removal_broke_off_counts_for_nothing_and_is_added_again() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let store = Store::new(cache.path());
        let digest = add(&store, None, "x").expect("adds").digest;
        std::fs::remove_file(store.list_path(&digest)).expect("removes");
        let store = Store::new(cache.path());
        assert!(!store.contains(&digest) && store.digests().expect("lists").is_empty());
        assert!(store.find(&digest).expect("finds").is_none());
        let stored = add(&store, Some(&digest), "x").expect("adds again");
        assert_eq!(std::fs::read(stored.folder.join("a/b")).expect("reads"), b"x");
        assert_eq!(Store::new(cache.path()).digests().expect("lists"), [digest]);

        std::fs::remove_file(store.list_path(&digest)).expect("removes");
        store.remove_unlisted().expect("removes");
        assert!(!stored.folder.exists());
    }

    fn entry(path: &str, mode: Mode, size: u64) -> Entry {
        let sha256 = mu_provider::FileDigest::from_bytes([7; 32]);
        Entry { path: path.to_owned(), mode, sha256, size }
    }

    #[test]
    fn what_was_printed_reads_back() {
        let entries = [
            entry("a b  c", Mode::File, 0),
            entry("d/é", Mode::Executable, u64::MAX),
            entry("e", Mode::Symlink, 1),
        ];
        for count in 0..=entries.len() {
            let tree = Tree::new(entries[..count].to_vec());
            for called in ["", "aws/ec2 1.0.0"] {
                let (text, digest) = print(&tree, called);
                assert_eq!(digest, tree.digest());
                assert_eq!(parse(&text, &digest), Some((tree.clone(), called)), "{text}");
            }
        }
    }

    #[test]
    fn a_list_that_was_changed_is_none() {
        let tree = Tree::new(vec![entry("a", Mode::File, 1), entry("b", Mode::File, 2)]);
        let (text, digest) = print(&tree, "aws/ec2 1.0.0");
        for changed in [
            text.replace("mu-tree 3", "mu-tree 2"),
            text.replace("aws/ec2 1.0.0\n", ""),
            text.replace("  a", "  c"),
            text.replace("1 2", "1"),
            text.replace("1 2", "1 2 3"),
            text.replace("1 2", "1 x"),
            text[..text.len() - 1].to_owned(),
            text.lines().next().expect("has lines").to_owned(),
            String::new(),
        ] {
            assert_eq!(parse(&changed, &digest), None, "{changed}");
        }
    }
}
