//! Opens a repository on this machine, or asks `git` where libgit2 cannot read it: partial and sparse checkouts, references in tables,
//! SHA-256. Whoever looks into one does it through here, so that no format counts as "no Git", and no setting of Git as not set.

use std::path::{Path, PathBuf};

use git2::{Config, ConfigLevel, ErrorCode, Repository};
use mu_provider::Programs;
use mu_provider::fs::{self, RunFolder, canonicalize};

use crate::config_text::written;
use crate::programs::GitPrograms;
use crate::stand_in::{AROUND, Place, StandIn, StandInError};
use crate::surroundings::SurroundingsError;

/// A repository that was found, as Git sees it: with its root, and with its settings. The error is why libgit2 cannot read it so.
pub(crate) fn as_git_sees_it(
    found: Result<Repository, git2::Error>,
    place: Option<&Place>,
    local: &LocalGit,
) -> Result<Repository, git2::Error> {
    let repository = with_own_root(found?, place)?;
    if let Some(place) = place {
        take_settings(&repository, place, local)?;
    }
    Ok(repository)
}

/// Gives a repository all settings that Git has for it, where libgit2 does not find or understand some: in the environment, and in files
/// that are included for the URL of a remote. Elsewhere, no program runs.
fn take_settings(
    repository: &Repository,
    place: &Place,
    local: &LocalGit,
) -> Result<(), git2::Error> {
    const NOT_UNDERSTOOD: &str = r"^includeif\.hasconfig:";
    let is_included_for_remotes = || {
        let config = repository.config()?;
        let mut entries = config.entries(Some(NOT_UNDERSTOOD))?;
        Ok::<_, git2::Error>(entries.next().is_some())
    };
    if !local.programs.has_other_settings() && !is_included_for_remotes()? {
        return Ok(());
    }
    let failed = |error: &dyn std::fmt::Display| git2::Error::from_str(&error.to_string());
    let listed = local.programs.configuration(place).map_err(|error| failed(&error))?;
    let Some(listed) = listed else { return Ok(()) };
    let folder = RunFolder::new(&local.above.join(AROUND)).map_err(|error| failed(&error))?;
    let file = folder.path().join("config");
    let text = written(&listed, &|_| true);
    fs::write_atomic(&file, text.as_bytes()).map_err(|error| failed(&error))?;
    let mut config = Config::new()?;
    config.add_file(&file, ConfigLevel::Local, false)?;
    // The copy in memory stays when the file goes.
    repository.set_config(&config.snapshot()?)
}

/// The root of the checkout of a repository, without links in its path; `None` if it has none.
pub(crate) fn root_of(repository: &Repository) -> Option<PathBuf> {
    repository.workdir().and_then(|root| canonicalize(root).ok())
}

/// A repository with the root that Git sees: the folder that holds `.git`. Where that is a link, libgit2 takes what is around the other
/// end of it.
fn with_own_root(repository: Repository, place: Option<&Place>) -> Result<Repository, git2::Error> {
    let Some(place) = place.filter(|place| !repository.is_bare() && !place.names_root()) else {
        return Ok(repository);
    };
    let real = |path: &Path| canonicalize(path).ok();
    let is_it = real(repository.path()).is_some_and(|own| Some(own) == real(&place.own));
    if is_it && repository.workdir().and_then(real).is_none_or(|root| root != place.root) {
        repository.set_workdir(&place.root, false)?;
    }
    Ok(repository)
}

/// Reads repositories on this machine.
#[derive(Debug, Clone)]
pub struct LocalGit {
    pub(crate) programs: GitPrograms,
    /// mu's own folder, for repositories that stand in.
    pub(crate) above: PathBuf,
}

/// What libgit2 reads of a repository.
pub(crate) type ByLibrary<'a, T> = dyn Fn(&Repository) -> Result<T, git2::Error> + 'a;

/// What `git` says of one, through a stand-in.
pub(crate) type ByProgram<'a, T> = dyn Fn(&StandIn) -> Result<T, StandInError> + 'a;

/// Whether what libgit2 reads is in a stand-in, too, which has the index and the objects alone.
pub(crate) type IsInStandIn<'a> = dyn Fn(&StandIn) -> bool + 'a;

/// The first answer of libgit2, of libgit2 in the stand-in if it is there, and of `git` in that. `opened` is the repository with this
/// root, or why libgit2 does not open it.
pub(crate) fn first_answer<'s, T>(
    root: &Path,
    opened: Result<&Repository, String>,
    stand_in: impl FnOnce() -> Result<&'s StandIn, SurroundingsError>,
    is_in_stand_in: &IsInStandIn<'_>,
    library: &ByLibrary<'_, T>,
    program: &ByProgram<'_, T>,
) -> Result<T, SurroundingsError> {
    let read = opened.and_then(|found| library(found).map_err(|error| error.message().to_owned()));
    let first = match read {
        Ok(answer) => return Ok(answer),
        Err(first) => first,
    };
    let stand_in = stand_in()?;
    if is_in_stand_in(stand_in)
        && let Ok(answer) = stand_in.open().and_then(|repository| library(&repository))
    {
        return Ok(answer);
    }
    program(stand_in).map_err(|source| SurroundingsError::Unreadable {
        root: root.to_owned(),
        library: first,
        source,
    })
}

impl LocalGit {
    /// Reads them with `git` among `programs` where need be, with a repository in mu's own folder `above`.
    pub fn new(programs: &Programs, above: &Path) -> Self {
        let programs = GitPrograms::new(programs.clone(), above);
        Self { programs, above: above.to_owned() }
    }

    /// What there is in the repository around a folder; `None` if there is none.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(crate) fn around<T>(
        &self,
        folder: &Path,
        is_in_stand_in: &IsInStandIn<'_>,
        library: &ByLibrary<'_, T>,
        program: &ByProgram<'_, T>,
    ) -> Result<Option<T>, SurroundingsError> {
        let place = Place::around(folder)?;
        let opened = Repository::discover(folder);
        if place.is_none()
            && opened.as_ref().is_err_and(|error| error.code() == ErrorCode::NotFound)
        {
            return Ok(None);
        }
        self.read(folder, place, opened, is_in_stand_in, library, program).map(Some)
    }

    /// What there is in the repository in a folder, bare or with a checkout.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be read.
    pub(crate) fn of<T>(
        &self,
        folder: &Path,
        library: &ByLibrary<'_, T>,
        program: &ByProgram<'_, T>,
    ) -> Result<T, SurroundingsError> {
        let (place, opened) = (Place::of(folder), Repository::open(folder));
        self.read(folder, place, opened, &|_| false, library, program)
    }

    fn read<T>(
        &self,
        folder: &Path,
        place: Option<Place>,
        opened: Result<Repository, git2::Error>,
        is_in_stand_in: &IsInStandIn<'_>,
        library: &ByLibrary<'_, T>,
        program: &ByProgram<'_, T>,
    ) -> Result<T, SurroundingsError> {
        let root = place.as_ref().map_or(folder, |place| &place.root);
        let opened = as_git_sees_it(opened, place.as_ref(), self);
        let opened = opened.as_ref().map_err(|error| error.message().to_owned());
        let made = std::cell::OnceCell::new();
        let stand_in = || {
            let Some(place) = &place else {
                let library = match &opened {
                    Ok(_) => "it is not a checkout".to_owned(),
                    Err(error) => error.clone(),
                };
                let source = StandInError::NoCheckout;
                return Err(SurroundingsError::Unreadable {
                    root: root.to_owned(),
                    library,
                    source,
                });
            };
            let stand_in = StandIn::new(place, &self.programs, &self.above)?;
            Ok(made.get_or_init(|| stand_in))
        };
        first_answer(root, opened.clone(), stand_in, is_in_stand_in, library, program)
    }
}
