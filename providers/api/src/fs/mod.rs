//! The only door to files, for mu, its providers and hubs. Every error names the path, writes are atomic, and locks say what they
//! wait for. A test can end the program instead of a certain change to files, as a kill would, at every important moment, one
//! after the other; only debug builds do this.
//!
//! Nothing here knows the content of the files. Fetched content goes through [`crate::TreeWriter`] instead.

mod entry;
mod file;
mod lock;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::entry::*;
pub use self::file::*;
pub use self::lock::*;

/// A file operation that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// The error of `action` (a verb, such as `read`) on `path`.
    pub fn new(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self { action, path: path.into(), source }
    }

    /// Whether something was to be taken away, so that another place for new files is no way out.
    pub fn is_of_removal(&self) -> bool {
        self.action.starts_with("remove") || self.action.starts_with("move")
    }

    /// Whether something new was to be made.
    pub fn is_of_making(&self) -> bool {
        self.action.starts_with("make")
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why it failed.
    pub fn reason(&self) -> &io::Error {
        &self.source
    }

    /// Why it failed, by itself.
    pub(crate) fn into_reason(self) -> io::Error {
        self.source
    }

    /// The reason as a kind, for programs.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether a symbolic link is in the way, which mu does not follow there.
    pub fn is_link(&self) -> bool {
        self.source.get_ref().is_some_and(|why| why.is::<FollowsNoLinks>())
    }

    /// Whether the file or folder is not there.
    pub fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }
}

/// Why something is not done: a symbolic link is in the way.
#[derive(Debug, thiserror::Error)]
#[error("it is a symbolic link, and mu follows no links there: it could lead to files outside")]
pub(crate) struct FollowsNoLinks;

impl From<FollowsNoLinks> for io::Error {
    fn from(why: FollowsNoLinks) -> Self {
        Self::new(io::ErrorKind::InvalidInput, why)
    }
}

/// Names the path in the error of a file operation.
pub trait AtPath<T> {
    /// Names `action` and `path` in the error.
    ///
    /// # Errors
    ///
    /// When the operation failed.
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|source| FileError::new(action, path, plain(source)))
    }
}

/// The system's error, without the name of a temporary file, which says nothing to people.
fn plain(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.source());
    let code = inner.and_then(|inner| inner.downcast_ref::<io::Error>()?.raw_os_error());
    code.map_or(error, io::Error::from_raw_os_error)
}

impl From<FileError> for crate::ProviderError {
    fn from(error: FileError) -> Self {
        Self::new(crate::ErrorKind::Io, error.to_string()).because(error.source)
    }
}

/// The result of an operation; `None` if the file or folder does not exist.
fn if_there<T>(result: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// How many changes are left; zero for no limit.
#[cfg(debug_assertions)]
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Ends this process, without any clean-up, instead of its change number `number`, counted from 1.
#[cfg(debug_assertions)]
pub fn end_at_change(number: u64) {
    LEFT.store(number, Ordering::SeqCst);
}

/// Counts a change that is about to happen, in files here or in a hub.
#[inline]
pub fn changing() {
    #[cfg(debug_assertions)]
    if LEFT.load(Ordering::SeqCst) > 0 && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        std::process::abort();
    }
}
