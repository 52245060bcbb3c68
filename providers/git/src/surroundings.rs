//! The repository around a workspace: whether Git tracks or ignores a folder of it, and what this clone alone ignores.
//!
//! libgit2 reads the repository, and runs no program. What it cannot read is read through a [`StandIn`], also by `git`. An error is
//! never taken for an answer. Only `info/exclude` is ever written: a file that no commit contains.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, Repository};
use mu_provider::fs::{self, FileError, canonicalize};
use mu_provider::{Folder, InnerPath, OwnPath};

use crate::opened::{LocalGit, as_git_sees_it, first_answer, root_of};
use crate::stand_in::{self, Place, StandIn, StandInError};

/// Why libgit2 does not open a repository.
const UNREAD: &str = "libgit2 does not read its format";

/// The patterns that this clone alone ignores.
const EXCLUDE: OwnPath = InnerPath::own(stand_in::EXCLUDE);

/// Where notes are, in what Git keeps of a checkout.
const NOTES: OwnPath = InnerPath::own("mu");

/// What Git knows about a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderStanding {
    /// At least one file of it is tracked, or it is a submodule.
    Tracked,
    /// Git ignores all of it.
    Ignored,
    /// Git shows it as untracked.
    Untracked,
}

/// The repository around a workspace.
pub struct Surroundings {
    place: Place,
    library: Option<Repository>,
    local: LocalGit,
    stand_in: OnceCell<StandIn>,
}

mu_provider::debug_fields!(Surroundings { place });

impl Surroundings {
    /// The repository around `workspace`; `None` if it is in no checkout, or in one that ignores all of it.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn of(workspace: &Path, local: LocalGit) -> Result<Option<Self>, SurroundingsError> {
        let found = Place::around(workspace)?;
        let opened = Repository::discover(workspace);
        let library = match as_git_sees_it(opened, found.as_ref(), &local) {
            Ok(repository) => Some(repository),
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
            Err(_) => None,
        };
        let place = match &library {
            Some(repository) => {
                let root = root_of(repository);
                root.map(|root| Place {
                    root,
                    own: repository.path().to_owned(),
                    common: repository.commondir().to_owned(),
                })
            }
            None => found,
        };
        let Some(place) = place else { return Ok(None) };
        let around = Self { place, library, local, stand_in: OnceCell::new() };
        let Some(place) = around.place(workspace) else { return Ok(None) };
        let is_foreign =
            !place.is_empty() && around.standing_of(&place)? == FolderStanding::Ignored;
        Ok((!is_foreign).then_some(around))
    }

    /// The files below `workspace` that a sparse checkout leaves out and that `is_wanted` by their names: their paths there, and their
    /// content, if it is on this machine. None if the checkout has all files.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn not_checked_out(
        workspace: &Path,
        is_wanted: &dyn Fn(&str) -> bool,
        local: &LocalGit,
    ) -> Result<Vec<(String, Option<String>)>, SurroundingsError> {
        let Some(place) = Place::around(workspace)?.filter(Place::is_sparse) else {
            return Ok(Vec::new());
        };
        let inner = canonicalize(workspace)?;
        let inner = inner.strip_prefix(&place.root).ok().and_then(Path::to_str).unwrap_or_default();
        let prefix = if inner.is_empty() { String::new() } else { format!("{inner}/") };
        let is_inside = |path: &str| path.strip_prefix(&prefix).is_some_and(is_wanted);
        let stand_in = StandIn::new(&place, &local.programs, &local.above)?;
        let found = stand_in.skipped(&is_inside, &local.programs).map_err(|source| {
            let library = "it is a sparse checkout".to_owned();
            SurroundingsError::Unreadable { root: place.root.clone(), library, source }
        })?;
        let inside = found
            .into_iter()
            .filter_map(|(path, content)| Some((path.strip_prefix(&prefix)?.to_owned(), content)));
        Ok(inside.collect())
    }

    /// What Git knows about a folder of the checkout; `None` if it is outside.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn folder_standing(
        &self,
        folder: &Path,
    ) -> Result<Option<FolderStanding>, SurroundingsError> {
        self.place(folder).map(|place| self.standing_of(&place)).transpose()
    }

    /// Whether Git ignores a folder of the checkout and all that is in it. This is quick for folders that it does not ignore.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn ignores(&self, folder: &Path) -> Result<bool, SurroundingsError> {
        let Some(place) = self.place(folder).filter(|place| !place.is_empty()) else {
            return Ok(false);
        };
        Ok(self.is_left_out(&place)? && !self.is_tracked(&place)?)
    }

    fn standing_of(&self, place: &str) -> Result<FolderStanding, SurroundingsError> {
        if place.is_empty() || self.is_tracked(place)? {
            return Ok(FolderStanding::Tracked);
        }
        let is_ignored = self.is_left_out(place)?;
        Ok(if is_ignored { FolderStanding::Ignored } else { FolderStanding::Untracked })
    }

    /// Whether Git would add nothing of a folder: it ignores the folder, or each file in it, as with a `.gitignore` there that has `*`.
    fn is_left_out(&self, place: &str) -> Result<bool, SurroundingsError> {
        let ignored = |repository: &Repository| {
            // With a slash at the end, patterns for folders count too.
            Ok(repository.is_path_ignored(format!("{place}/"))?
                || ignores_each(repository, &self.place.root, place)?)
        };
        let folder = self.place.root.join(place);
        self.answer(&ignored, &|stand_in| {
            let is_empty = fs::entries_if_there(&folder)?.is_empty();
            match is_empty {
                true => stand_in.is_ignored_by_git(&format!("{place}/"), &self.local.programs),
                false => stand_in.would_add_nothing(place, &self.local.programs),
            }
        })
    }

    fn is_tracked(&self, place: &str) -> Result<bool, SurroundingsError> {
        let tracked = |repository: &Repository| {
            let index = repository.index()?;
            let below = format!("{place}/");
            Ok(index.get_path(Path::new(place), 0).is_some()
                || index.iter().any(|entry| entry.path.starts_with(below.as_bytes())))
        };
        self.answer(&tracked, &|stand_in| stand_in.tracks(place, &self.local.programs))
    }

    /// Whether Git ignores a file, or a folder with a slash at the end of its path.
    fn is_ignored(&self, place: &str) -> Result<bool, SurroundingsError> {
        let ignored = |repository: &Repository| repository.is_path_ignored(place);
        self.answer(&ignored, &|stand_in| stand_in.is_ignored_by_git(place, &self.local.programs))
    }

    fn answer<T>(
        &self,
        library: &dyn Fn(&Repository) -> Result<T, git2::Error>,
        program: &dyn Fn(&StandIn) -> Result<T, StandInError>,
    ) -> Result<T, SurroundingsError> {
        let opened = self.library.as_ref().ok_or_else(|| UNREAD.to_owned());
        first_answer(&self.place.root, opened, || self.stand_in(), &|_| true, library, program)
    }

    fn stand_in(&self) -> Result<&StandIn, SurroundingsError> {
        if let Some(stand_in) = self.stand_in.get() {
            return Ok(stand_in);
        }
        let made = StandIn::new(&self.place, &self.local.programs, &self.local.above)?;
        Ok(self.stand_in.get_or_init(|| made))
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
        let inside = real.strip_prefix(&self.place.root).ok()?;
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
            if !self.is_ignored(&format!("{place}{slash}"))? {
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
        Folder::at(&self.place.common)?.read_text(&EXCLUDE.into())
    }

    /// Writes the patterns. Whoever unpacked the repository can have put links into it, and those are not followed.
    fn write(&self, patterns: &str) -> Result<(), FileError> {
        let repository = Folder::at(&self.place.common)?;
        repository.write(&EXCLUDE.into(), patterns.as_bytes())?;
        self.exclude_file().parent().into_iter().for_each(fs::remove_left_behind);
        self.stand_in.get().map_or(Ok(()), StandIn::take_rules)
    }

    fn exclude_file(&self) -> PathBuf {
        self.place.common.join(EXCLUDE.as_str())
    }
}

/// The text that mu keeps about a folder of a checkout under this name, as [`note_in_checkout`] has written it; `None` if there is none.
///
/// # Errors
///
/// When the disk refuses, or a link is in the way.
pub fn noted_in_checkout(folder: &Path, name: &str) -> Result<Option<String>, FileError> {
    let Some((own, file)) = place_of_note(folder, name)? else { return Ok(None) };
    own.read_text(&file)
}

/// Keeps a text about a folder of a checkout, or none, in what Git keeps of that checkout alone: no `git clean` removes it, and no commit
/// has it. Outside of checkouts, nothing is kept.
///
/// # Errors
///
/// When the disk refuses, or a link is in the way.
pub fn note_in_checkout(folder: &Path, name: &str, text: Option<&str>) -> Result<(), FileError> {
    let Some((own, file)) = place_of_note(folder, name)? else { return Ok(()) };
    match text {
        Some(text) => own.write(&file, text.as_bytes()),
        None => own.remove_file(&file),
    }
}

fn place_of_note(folder: &Path, name: &str) -> Result<Option<(Folder, InnerPath)>, FileError> {
    let Some(Place { root, own, .. }) = Place::around(folder)? else { return Ok(None) };
    let folder = canonicalize(folder)?;
    let file = folder.strip_prefix(&root).ok().map(|inside| inside.join(name));
    let file = file.as_deref().and_then(Path::to_str).and_then(|file| InnerPath::parse(file).ok());
    file.map(|file| Ok((Folder::at(&own)?, NOTES.join(&file)))).transpose()
}

/// Why it is not known what Git says, or why mu cannot make it ignore something.
#[derive(Debug, thiserror::Error)]
pub enum SurroundingsError {
    /// Neither libgit2 nor `git` can read the repository.
    #[error("cannot read the Git repository around `{}` ({library})", root.display())]
    Unreadable {
        /// The root of the checkout.
        root: PathBuf,
        /// What libgit2 says.
        library: String,
        /// What happened with `git`.
        source: StandInError,
    },
    /// The file of patterns cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Whether there are files in the folder at `place`, and Git ignores each. A repository in it is one thing, which has to be ignored itself.
fn ignores_each(repository: &Repository, root: &Path, place: &str) -> Result<bool, git2::Error> {
    let failed = |error: FileError| git2::Error::from_str(&error.to_string());
    let (mut open, mut is_any) = (vec![place.to_owned()], false);
    while let Some(place) = open.pop() {
        let folder = root.join(&place);
        if fs::exists(&folder.join(".git")).map_err(failed)? {
            return Ok(false);
        }
        for entry in fs::entries_if_there(&folder).map_err(failed)? {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { return Ok(false) };
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let inner = format!("{place}/{name}");
            let slash = if is_folder { "/" } else { "" };
            if repository.is_path_ignored(format!("{inner}{slash}"))? {
                is_any = true;
            } else if is_folder {
                open.push(inner);
            } else {
                return Ok(false);
            }
        }
    }
    Ok(is_any)
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
