//! What belongs to the author of a package beside its folder: the files that a link in it may lead to.

use std::path::{Path, PathBuf};

use crate::env::Environment;
use crate::fs::{self, FileError};
use crate::workspace::{MU_FOLDER, repository_around};

/// What no package contains, at any depth: the data of Git, similar tools, mu and Finder.
pub(super) const NEVER_PACKED: [&str; 6] = [".git", MU_FOLDER, ".hg", ".svn", ".jj", ".DS_Store"];

/// Where links of a package may lead.
#[derive(Debug)]
pub(crate) struct Owned {
    /// The package's folder, without links.
    package: PathBuf,
    /// What is around it and its author's, without links.
    around: Option<PathBuf>,
    /// The outermost folder whose ignore rules count.
    top: PathBuf,
}

impl Owned {
    /// The package itself, and the repository around it, or the workspace around it if it is in no repository. What is around the home
    /// folder says nothing about what belongs together.
    ///
    /// # Errors
    ///
    /// When the folder cannot be found.
    pub(crate) fn around(folder: &Path, environment: &Environment) -> Result<Self, FileError> {
        let package = fs::canonicalize(folder)?;
        let home = fs::canonicalize(&environment.home);
        let home = home.as_deref().unwrap_or(&environment.home);
        let around = |folder: &Path| {
            let is_workspace = |folder: &&Path| folder.join(MU_FOLDER).is_dir();
            let repository = repository_around(folder).filter(|around| !home.starts_with(around));
            let mut workspaces = folder.ancestors().take_while(|around| !home.starts_with(around));
            let around = repository.or_else(|| workspaces.find(is_workspace));
            around.map(Path::to_owned)
        };
        Ok(Self {
            around: around(&package),
            package,
            // Rules are matched with the paths as they are walked.
            top: around(folder).unwrap_or_else(|| folder.to_owned()),
        })
    }

    /// The package itself alone: it was packed elsewhere.
    ///
    /// # Errors
    ///
    /// When the folder cannot be found.
    pub(crate) fn own_folder_alone(folder: &Path) -> Result<Self, FileError> {
        Ok(Self { package: fs::canonicalize(folder)?, around: None, top: folder.to_owned() })
    }

    /// The outermost folder whose ignore rules count.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// Whether a repository or workspace around the package is its author's, too.
    #[cfg(feature = "git")]
    pub(super) fn has_more(&self) -> bool {
        self.around.is_some()
    }

    /// Whether the file or folder at `real`, a path without links, is inside the package itself.
    pub(super) fn is_inside(&self, real: &Path) -> bool {
        is_kept(&self.package, real)
    }

    /// Whether the file or folder at `real`, a path without links, is the author's.
    pub(super) fn is_author_path(&self, real: &Path) -> bool {
        self.is_inside(real) || self.around.as_ref().is_some_and(|around| is_kept(around, real))
    }
}

/// Whether `real` is in `folder`, and not Git's or mu's own, which is nobody's to give away.
fn is_kept(folder: &Path, real: &Path) -> bool {
    let inner = real.strip_prefix(folder).ok();
    inner.is_some_and(|inner| !inner.iter().any(|part| part.to_str().is_some_and(is_never)))
}

/// Whether no package contains what is called so, at any depth.
pub(super) fn is_never(name: &str) -> bool {
    NEVER_PACKED.iter().any(|never| name.eq_ignore_ascii_case(never))
}
