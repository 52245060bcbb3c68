//! What Git would record of files whose line ends it turns when it checks them out (`core.autocrlf`, `core.eol`, and attributes such as
//! `eol=crlf`): a package in a folder is the same on every system.
//!
//! Git's own rules are followed as far as they are about line ends. No filter of a checkout is run.

use std::path::{Path, PathBuf};

use git2::{AttrCheckFlags, AttrValue, ObjectType, Oid, Repository};
use mu_provider::fs::{FileError, canonicalize};

use crate::opened::LocalGit;
use crate::stand_in::StandIn;
use crate::surroundings::SurroundingsError;

/// Git looks at so much of a file to find out whether it is text.
const LOOKED_AT: usize = 8_000;

/// What a repository does to line ends.
pub struct LineEnds {
    repository: Repository,
    root: PathBuf,
    /// Whether it turns those of files about which no attribute says anything.
    turns_all: bool,
}

/// What Git does to the line ends of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// It leaves them.
    Leave,
    /// It turns them, unless they were recorded as they are.
    Guess,
    /// It turns them.
    Turn,
}

impl LocalGit {
    /// What the repository around a folder does to line ends; `None` if there is none.
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
    let turns_all = cfg!(windows)
        || says("core.autocrlf", &["true", "yes", "on", "1", "input"])
        || says("core.eol", &["crlf"]);
    let repository = Repository::open(repository.path())?;
    repository.set_workdir(&root, false)?;
    Ok(Some(LineEnds { repository, root, turns_all }))
}

impl LineEnds {
    /// What Git would record of the file at `place`, a path without links, whose content is read if Git may turn its line ends; `None` if
    /// that is the content itself.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn recorded_content(
        &self,
        place: &Path,
        read: impl FnOnce() -> Result<Vec<u8>, FileError>,
    ) -> Result<Option<Vec<u8>>, FileError> {
        let Ok(inside) = place.strip_prefix(&self.root) else { return Ok(None) };
        let rule = self.rule(inside);
        if rule == Rule::Leave {
            return Ok(None);
        }
        let content = read()?;
        let start = content.get(..LOOKED_AT).unwrap_or(&content);
        if start.contains(&0) || !has_windows_ends(&content) {
            return Ok(None);
        }
        let turned = turned(&content);
        let entry = self.repository.index().ok().and_then(|index| index.get_path(inside, 0));
        let Some(entry) = entry else { return Ok(Some(turned)) };
        let is_recorded = |bytes: &[u8]| {
            Oid::hash_object(ObjectType::Blob, bytes).is_ok_and(|hash| hash == entry.id)
        };
        if is_recorded(&content) {
            return Ok(None);
        }
        // Git leaves them in what was recorded with them.
        let stays = rule == Rule::Guess && !is_recorded(&turned) && {
            let blob = self.repository.find_blob(entry.id);
            blob.is_ok_and(|blob| has_windows_ends(blob.content()))
        };
        Ok((!stays).then_some(turned))
    }

    /// What Git does to a file: its attributes say it, and then the settings.
    fn rule(&self, inside: &Path) -> Rule {
        let said = |name: &str| {
            self.repository.get_attr(inside, name, AttrCheckFlags::FILE_THEN_INDEX).ok().flatten()
        };
        match AttrValue::from_string(said("text")) {
            AttrValue::False => Rule::Leave,
            AttrValue::True => Rule::Turn,
            AttrValue::String("auto") => Rule::Guess,
            _ if said("eol").is_some_and(|eol| ["crlf", "lf"].contains(&eol)) => Rule::Turn,
            _ if self.turns_all => Rule::Guess,
            _ => Rule::Leave,
        }
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
