//! The repository around a workspace: whether Git tracks or ignores a folder of it, and what this clone alone ignores.
//!
//! libgit2 reads the repository, and runs no program. Only `info/exclude` is ever written: a file that no commit contains.

use std::path::{Path, PathBuf};

use git2::{ErrorCode, Repository};
use mu_provider::fs::{self, FileError, canonicalize};
use mu_provider::{Folder, InnerPath, OwnPath};

/// The patterns that this clone alone ignores.
const EXCLUDE: OwnPath = InnerPath::own("info/exclude");

/// What Git knows about a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// At least one file of it is tracked, or it is a submodule.
    Tracked,
    /// Git ignores all of it.
    Ignored,
    /// Git shows it as untracked.
    Untracked,
}

/// The repository around a workspace.
pub struct Surroundings {
    repository: Repository,
    /// The root of the checkout, without links in its path.
    root: PathBuf,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Surroundings").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Surroundings {
    /// The repository around `workspace`; `None` if it is in no checkout, or in one that ignores all of it.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn of(workspace: &Path) -> Result<Option<Self>, git2::Error> {
        let repository = match Repository::discover(workspace) {
            Ok(repository) => repository,
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let root = repository.workdir().and_then(|root| canonicalize(root).ok());
        let Some(root) = root else { return Ok(None) };
        let around = Self { repository, root };
        let Some(place) = around.place(workspace) else { return Ok(None) };
        let is_foreign = !place.is_empty() && around.standing_of(&place)? == Standing::Ignored;
        Ok((!is_foreign).then_some(around))
    }

    /// What Git knows about a folder of the checkout; `None` if it is outside.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn standing(&self, folder: &Path) -> Result<Option<Standing>, git2::Error> {
        match self.place(folder) {
            Some(place) => self.standing_of(&place).map(Some),
            None => Ok(None),
        }
    }

    fn standing_of(&self, place: &str) -> Result<Standing, git2::Error> {
        let index = self.repository.index()?;
        let below = format!("{place}/");
        let is_tracked = index.get_path(Path::new(place), 0).is_some()
            || index.iter().any(|entry| entry.path.starts_with(below.as_bytes()));
        if is_tracked || place.is_empty() {
            return Ok(Standing::Tracked);
        }
        // With a slash at the end, patterns for folders count too.
        let is_ignored = self.repository.is_path_ignored(&below)?;
        Ok(if is_ignored { Standing::Ignored } else { Standing::Untracked })
    }

    /// The path of a folder in the checkout, with slashes; the folder itself need not exist.
    fn place(&self, folder: &Path) -> Option<String> {
        let mut above = folder;
        let mut rest = Vec::new();
        let real = loop {
            match canonicalize(above) {
                Ok(real) => break real,
                Err(_) => {
                    rest.push(above.file_name()?);
                    above = above.parent()?;
                }
            }
        };
        let inside = real.strip_prefix(&self.root).ok()?;
        let parts = inside.components().map(|part| part.as_os_str()).chain(rest.into_iter().rev());
        let parts: Option<Vec<&str>> = parts.map(std::ffi::OsStr::to_str).collect();
        Some(parts?.join("/"))
    }

    /// Makes this clone ignore these files and folders, unless Git ignores them already. Returns the patterns that are new.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read, or `info/exclude` cannot be written.
    pub fn ignore(&self, paths: &[(&Path, bool)]) -> Result<Vec<String>, SurroundingsError> {
        let mut new = Vec::new();
        for (path, is_folder) in paths {
            let Some(place) = self.place(path) else { continue };
            let slash = if *is_folder { "/" } else { "" };
            if !self.repository.is_path_ignored(format!("{place}{slash}"))? {
                new.push(format!("/{}{slash}", escaped(&place)));
            }
        }
        if new.is_empty() {
            return Ok(new);
        }
        let mut text = self.read()?.unwrap_or_default();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        for pattern in &new {
            text.push_str(pattern);
            text.push('\n');
        }
        self.write(&text)?;
        Ok(new)
    }

    /// Takes back what [`Self::ignore`] wrote for a folder.
    ///
    /// # Errors
    ///
    /// When `info/exclude` cannot be read or written.
    pub fn no_longer_ignore(&self, folder: &Path) -> Result<(), FileError> {
        let Some(place) = self.place(folder) else { return Ok(()) };
        let pattern = format!("/{}/", escaped(&place));
        let Some(text) = self.read()? else { return Ok(()) };
        let kept: String =
            text.split_inclusive('\n').filter(|line| line.trim_end() != pattern).collect();
        if kept.len() < text.len() {
            self.write(&kept)?;
        }
        Ok(())
    }

    /// The pattern that makes this clone ignore a folder, and the file that it belongs in, for people.
    pub fn pattern(&self, folder: &Path) -> Option<(String, PathBuf)> {
        let place = self.place(folder)?;
        Some((format!("/{}/", escaped(&place)), self.exclude_file()))
    }

    fn read(&self) -> Result<Option<String>, FileError> {
        Folder::at(self.repository.commondir())?.read_text(&EXCLUDE.into())
    }

    /// Writes the patterns. Whoever unpacked the repository can have put links into it, and those are not followed.
    fn write(&self, patterns: &str) -> Result<(), FileError> {
        let repository = Folder::at(self.repository.commondir())?;
        repository.write(&EXCLUDE.into(), patterns.as_bytes())?;
        self.exclude_file().parent().into_iter().for_each(fs::remove_left_behind);
        Ok(())
    }

    fn exclude_file(&self) -> PathBuf {
        self.repository.commondir().join(EXCLUDE.as_str())
    }
}

/// What prevents mu from making Git ignore something.
#[derive(Debug, thiserror::Error)]
pub enum SurroundingsError {
    /// The repository cannot be read.
    #[error("cannot read the Git repository around the workspace")]
    Git(#[from] git2::Error),
    /// The file of patterns cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A path as a pattern that matches only itself.
fn escaped(place: &str) -> String {
    let mut text = String::with_capacity(place.len());
    for character in place.chars() {
        if matches!(character, '*' | '?' | '[' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text
}
