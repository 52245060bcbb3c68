//! How a pack's files come out of the store: cloned, linked or copied.
//!
//! The store's list has the entries of a pack; no folder is walked here.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::SystemTime;

use mu_provider::{Entry, Folder, Mode};

use crate::fs::{self, AtPath as _, FileError};
use crate::packs::PacksError;
use crate::store::{Stored, TreeStoreError};
use crate::workspace::Link;

/// Creates the files of packs, and remembers what the file system does not support.
#[derive(Debug)]
pub(super) struct Linker {
    /// The best way that may still work; see `CLONE` and the others.
    way: AtomicU8,
    fallback: u8,
}

const CLONE: u8 = 0;
const HARD_LINK: u8 = 1;
const COPY: u8 = 2;

impl Linker {
    pub(super) fn new(mode: Link) -> Self {
        let (way, fallback) = match mode {
            Link::Auto | Link::Symlink => (CLONE, HARD_LINK),
            Link::Clone => (CLONE, COPY),
            Link::Hardlink => (HARD_LINK, COPY),
            Link::Copy => (COPY, COPY),
        };
        Self { way: AtomicU8::new(way), fallback }
    }

    /// Fills the folder `target`, which is empty, with the entries of `stored` that `wanted` accepts; its files are in
    /// `source`.
    pub(super) fn fill_folder(
        &self,
        stored: &Stored,
        source: &Folder,
        target: &Folder,
        wanted: &dyn Fn(&Entry) -> bool,
    ) -> Result<(), PacksError> {
        let mut made = "";
        // A new name counts as a change of the file, and a check that was made now as one of all.
        let mut is_new_check = false;
        for entry in stored.tree.entries().iter().filter(|entry| wanted(entry)) {
            // Entries are sorted, so a folder's files are together.
            if let Some(parent) = entry.parent()
                && parent != made
            {
                for folder in Folder::to_make(parent, made) {
                    target.make_folder(folder).map_err(|error| {
                        FileError::new("make the folder", target.path().join(folder), error)
                    })?;
                }
                made = parent;
            }
            let is_file = entry.mode != Mode::Symlink;
            let is_unchanged =
                is_file && stored.checked.is_none_or(|since| is_unchanged(source, entry, since));
            let corrupt = || TreeStoreError::Corrupt { path: stored.folder.join(&entry.path) };
            // A file in the store that someone changed after it was checked is not installed.
            if is_file && !is_unchanged && !super::recognize::file_matches(source, entry) {
                return Err(corrupt().into());
            }
            let is_linked = is_file && self.way.load(Ordering::Relaxed) == HARD_LINK;
            if is_linked && source.link(&entry.path, target).is_ok() {
                is_new_check = true;
                continue;
            }
            let (from, to) = (stored.folder.join(&entry.path), target.path().join(&entry.path));
            if !is_file {
                let leads_to = fs::read_link(&from)?;
                if !super::recognize::is_target(&leads_to, entry) {
                    return Err(corrupt().into());
                }
                fs::symlink_file(&leads_to, &to)?;
                continue;
            }
            let way = self.make(&from, &to, entry.mode)?;
            is_new_check |= way == HARD_LINK || !is_unchanged;
        }
        if is_new_check {
            stored.was_checked();
        }
        Ok(())
    }

    /// Checks that a tree that will be linked as a whole has not changed since it was checked.
    pub(super) fn check(&self, stored: &Stored, source: &Folder) -> Result<(), PacksError> {
        let Some(since) = stored.checked else { return Ok(()) };
        let mut is_new_check = false;
        for entry in stored.tree.entries().iter().filter(|entry| entry.mode != Mode::Symlink) {
            if is_unchanged(source, entry, since) {
                continue;
            }
            if !super::recognize::file_matches(source, entry) {
                let path = stored.folder.join(&entry.path);
                return Err(TreeStoreError::Corrupt { path }.into());
            }
            is_new_check = true;
        }
        if is_new_check {
            stored.was_checked();
        }
        Ok(())
    }

    /// Makes a file, and returns the way that worked.
    fn make(&self, from: &Path, to: &Path, mode: Mode) -> Result<u8, FileError> {
        loop {
            let way = self.way.load(Ordering::Relaxed);
            let result = match way {
                CLONE => reflink_copy::reflink(from, to)
                    .at("write", to)
                    .and_then(|()| make_writable(to, mode)),
                HARD_LINK => fs::hard_link(from, to),
                _ => fs::copy(from, to).and_then(|()| make_writable(to, mode)),
            };
            match result {
                Err(error) if way != COPY && !is_final(error.kind()) => {
                    // It is not supported here, either across file systems or by this one.
                    let next = if way == CLONE { self.fallback } else { COPY };
                    self.way.store(next, Ordering::Relaxed);
                    let _ = fs::remove_file(to);
                }
                result => return result.map(|()| way),
            }
        }
    }
}

/// Whether the stored file has certainly not changed since it was checked.
fn is_unchanged(source: &Folder, entry: &Entry, checked: SystemTime) -> bool {
    source
        .size_and_time(&entry.path)
        .is_some_and(|(size, modified)| size == entry.size && modified <= checked)
}

/// Errors that another way of copying would have as well.
fn is_final(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::NotFound | ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Lets the owner of a file change it.
#[cfg(unix)]
pub(crate) fn make_writable(path: &Path, mode: Mode) -> Result<(), FileError> {
    use std::os::unix::fs::PermissionsExt as _;
    let bits = if mode == Mode::Executable { 0o755 } else { 0o644 };
    match fs::set_permissions(path, std::fs::Permissions::from_mode(bits)) {
        // The file is mu's own: this file system has no permissions that can be set.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

/// Lets the owner of a file change it.
#[cfg(not(unix))]
pub(crate) fn make_writable(_path: &Path, _mode: Mode) -> Result<(), FileError> {
    Ok(())
}
