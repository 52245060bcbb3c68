//! Why a tree is refused.

use std::io;
use std::path::PathBuf;

/// Why a tree was refused, or could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A path that may not be in a package.
    #[error("`{path}` is refused: {reason}")]
    Path {
        /// The path, escaped.
        path: String,
        /// The problem.
        reason: &'static str,
    },
    /// Two paths that would be one file on some file systems.
    #[error(
        "`{first}` and `{second}` are refused: they differ only in case or Unicode form, or one is inside the other"
    )]
    Collision {
        /// The earlier path.
        first: String,
        /// The later one.
        second: String,
    },
    /// A symbolic link that leads out of the package.
    #[error("the link `{path}` to `{target}` is refused: {reason}")]
    Link {
        /// The link, escaped.
        path: String,
        /// Its target, escaped.
        target: String,
        /// The problem.
        reason: &'static str,
    },
    /// An entry that is neither file, folder nor symbolic link.
    #[error("`{path}` is refused: it is {what}")]
    Kind {
        /// The path, escaped.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// More than is accepted.
    #[error("{what} is over the limit of {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much is accepted.
        limit: u64,
    },
    /// The content broke off or could not be read.
    #[error("cannot read the content of `{path}`")]
    Content {
        /// The entry, escaped.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// The disk refused.
    #[error("cannot write `{}`", path.display())]
    Io {
        /// The file on disk.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl TreeError {
    /// Whether this machine's disk is to blame, not the content.
    pub fn is_io(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}
