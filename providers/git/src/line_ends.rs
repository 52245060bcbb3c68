//! What Git would record of files whose line ends it turns when it checks them out (`core.autocrlf`, `core.eol`): a package in a folder is
//! the same on every system.
//!
//! Git's own rules are followed as far as they are about line ends. No filter of a checkout is run.

use std::path::{Path, PathBuf};

use git2::{AttrCheckFlags, AttrValue, ObjectType, Oid, Repository};
use mu_provider::fs::canonicalize;

use crate::opened::LocalGit;
use crate::stand_in::StandIn;
use crate::surroundings::SurroundingsError;

/// Git looks at so much of a file to find out whether it is text.
const LOOKED_AT: usize = 8_000;

/// A repository that turns line ends.
pub struct LineEnds {
    repository: Repository,
    root: PathBuf,
}

impl LocalGit {
    /// What the repository around a folder does to line ends; `None` if there is none, or nothing says that it turns them.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn line_ends(&self, folder: &Path) -> Result<Option<LineEnds>, SurroundingsError> {
        // What libgit2 cannot read is left as it is.
        let asked = |_: &StandIn| Ok(None);
        Ok(self.around(folder, &|_| false, &turning, &asked)?.flatten())
    }
}

fn turning(repository: &Repository) -> Result<Option<LineEnds>, git2::Error> {
    let Some(root) = repository.workdir().and_then(|root| canonicalize(root).ok()) else {
        return Ok(None);
    };
    let config = repository.config()?;
    let says = |key: &str, values: &[&str]| {
        config.get_string(key).is_ok_and(|value| values.contains(&&*value.to_ascii_lowercase()))
    };
    let turns = cfg!(windows)
        || says("core.autocrlf", &["true", "yes", "on", "1", "input"])
        || says("core.eol", &["crlf"]);
    if !turns {
        return Ok(None);
    }
    let repository = Repository::open(repository.path())?;
    repository.set_workdir(&root, false)?;
    Ok(Some(LineEnds { repository, root }))
}

impl LineEnds {
    /// What Git would record of the file at `place`, a path without links, with this content; `None` if that is the content itself.
    pub fn recorded_content(&self, place: &Path, content: &[u8]) -> Option<Vec<u8>> {
        let inside = place.strip_prefix(&self.root).ok()?;
        let start = content.get(..LOOKED_AT).unwrap_or(content);
        if start.contains(&0) || !has_windows_ends(content) {
            return None;
        }
        let turned = turned(content);
        let hash = |bytes: &[u8]| Oid::hash_object(ObjectType::Blob, bytes).ok();
        if let Some(entry) = self.repository.index().ok()?.get_path(inside, 0) {
            if hash(content) == Some(entry.id) {
                return None;
            }
            if hash(&turned) == Some(entry.id) {
                return Some(turned);
            }
            // Git leaves them in what was recorded with them.
            if self
                .repository
                .find_blob(entry.id)
                .is_ok_and(|blob| has_windows_ends(blob.content()))
            {
                return None;
            }
        }
        let text =
            self.repository.get_attr(inside, "text", AttrCheckFlags::FILE_THEN_INDEX).ok()?;
        (AttrValue::from_string(text) != AttrValue::False).then_some(turned)
    }
}

fn has_windows_ends(content: &[u8]) -> bool {
    content.windows(2).any(|pair| pair == b"\r\n")
}

/// The content with the line ends of Unix.
pub(crate) fn turned(content: &[u8]) -> Vec<u8> {
    let next = content.iter().skip(1).map(Some).chain([None]);
    let kept =
        content.iter().zip(next).filter(|(byte, next)| (**byte, next) != (b'\r', &Some(&b'\n')));
    kept.map(|(byte, _)| *byte).collect()
}
