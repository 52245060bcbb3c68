//! The folders of a workspace that are not searched for its packages, and why.
//!
//! Collected on the walk that finds the packages, to distinguish an ignored package from a missing one.
//! The disk is not read again.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::root::{MU_FOLDER, WORKSPACE_FILE};

/// Folders that may contain packages which do not belong to the workspace.
#[derive(Debug, Clone, Default)]
pub struct LeftOutFolders {
    alone: HashMap<PathBuf, LeftOutReason>,
    with_all_below: HashMap<PathBuf, LeftOutReason>,
    taken: HashSet<PathBuf>,
}

/// Why a folder is not searched for packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOutReason {
    /// `members` does not name it.
    Unnamed,
    /// It belongs to another tool.
    OtherTool(PathBuf),
    /// It is in another workspace, with this root.
    OwnWorkspace(PathBuf),
    /// It is behind this link.
    Link(PathBuf),
    /// The workspace is a whole disk.
    Disk,
    /// Anyone can put files into this folder.
    Shared(PathBuf),
    /// It was edited, and its edit has ended.
    Ended,
}

impl LeftOutFolders {
    /// Records a folder, but not what is below it.
    pub(super) fn note(&mut self, folder: &Path, why: LeftOutReason) {
        self.alone.insert(folder.to_owned(), why);
    }

    /// Records a folder and everything below it.
    pub(super) fn note_folder_tree(&mut self, folder: &Path, why: LeftOutReason) {
        self.with_all_below.insert(folder.to_owned(), why);
    }

    /// Records that the package in this folder belongs to the workspace anyway.
    pub(super) fn include_folder(&mut self, folder: &Path) {
        self.taken.insert(folder.to_owned());
    }

    /// Whether every folder was searched.
    pub fn is_empty(&self) -> bool {
        self.alone.is_empty() && self.with_all_below.is_empty()
    }

    /// Why a package in `folder` does not belong to the workspace; `None` if the folder was searched, or did
    /// not exist.
    pub fn reason_left_out(&self, folder: &Path) -> Option<&LeftOutReason> {
        if self.taken.contains(folder) {
            return None;
        }
        let above = || folder.ancestors().find_map(|folder| self.with_all_below.get(folder));
        self.alone.get(folder).or_else(above)
    }
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unnamed => {
                write!(formatter, "`members` in `{MU_FOLDER}/{WORKSPACE_FILE}` does not name it")
            }
            Self::OtherTool(folder) => {
                write!(formatter, "packages are not looked for in `{}`", folder.display())
            }
            Self::OwnWorkspace(root) => {
                write!(formatter, "`{}` is a workspace of its own", root.display())
            }
            Self::Link(path) => {
                write!(formatter, "`{}` is a link, which is not followed", path.display())
            }
            Self::Shared(folder) => {
                write!(formatter, "anyone can put packages into `{}`", folder.display())
            }
            Self::Ended => {
                formatter.write_str("its edit has ended; editing the package again uses it")
            }
            Self::Disk => write!(
                formatter,
                "a whole disk is searched only if it has a `{MU_FOLDER}/{WORKSPACE_FILE}`"
            ),
        }
    }
}
