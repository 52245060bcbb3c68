//! What of a folder is the content of its package, as its owner would pack it: for `mu pack` and publishing, for the digest and the
//! installation of a folder that is a dependency, and for the archives of charts. There is one walk for all of them.
//!
//! `walk.rs` walks, and says what links may lead to; `rules.rs` reads `.gitignore` and its like, and knows the archives that follow from a
//! chart's dependencies, and those of the package itself.

pub(crate) mod rules;
mod walk;

#[cfg(feature = "git")]
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mu_formats::helm;
use mu_provider::{ErrorKind, ProviderError, TreeWriter};

use self::rules::{OF_PACKAGES, Rules};
use self::walk::Walk;
use crate::env::Environment;
use crate::formats;
use crate::fs::{self, FileError};
use crate::manifest::{Manifest, ManifestError};
#[cfg(feature = "git")]
use crate::workspace::root::local_git;

pub(crate) use self::rules::{Derived, GZIP, is_archive_of};
pub(crate) use self::walk::Owned;

/// One file or link of a package.
#[derive(Debug)]
pub(crate) struct PackageItem {
    /// Slash-separated path in the package.
    pub(crate) path: String,
    /// Its content.
    pub(crate) content: Content,
}

/// The content of a file or link.
#[derive(Debug)]
pub(crate) enum Content {
    /// A file of this machine.
    File {
        /// Where it is.
        place: PathBuf,
        /// Whether it can be executed.
        executable: bool,
        /// Its content where that is not what is there, but what Git has recorded of it.
        recorded: Option<Vec<u8>>,
    },
    /// A file that mu writes.
    #[cfg(feature = "hub")]
    Text(String),
    /// A link with its target.
    Link(String),
}

/// Whose rules say what belongs to a package.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'a> {
    /// Those of its own manifest, and the ignore rules around.
    Own {
        /// The manifest.
        manifest: &'a Manifest,
        /// The name of its file.
        file: &'a str,
    },
    /// Helm's, for a chart that is worked on.
    Chart,
    /// Nobody's: a chart that was packed elsewhere.
    Packed,
    /// The ignore rules around: a package whose own tool packs it, or a folder without a manifest.
    Other {
        /// The manifest's path in the folder.
        file: Option<&'a str>,
    },
}

impl<'a> Kind<'a> {
    /// The manifest's path in the folder, where it is packed regardless of the rules.
    fn manifest(self) -> Option<&'a str> {
        match self {
            Self::Own { file, .. } => Some(file),
            Self::Other { file } => file,
            Self::Chart | Self::Packed => None,
        }
    }
}

/// A folder whose content is chosen.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) kind: Kind<'a>,
    /// Where links may lead.
    pub(crate) owned: &'a Owned,
    /// What is left out: folders that belong to this machine alone, and a file that is being written.
    pub(crate) others: &'a [PathBuf],
}

/// The content of a package, sorted by the bytes of the paths, and warnings for its author.
pub(crate) fn choose_contents(
    source: &Source<'_>,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<Vec<PackageItem>, ProviderError> {
    let Source { folder, kind, owned, others } = *source;
    let (rules, derived) = match kind {
        Kind::Own { .. } | Kind::Other { .. } => {
            let file = kind.manifest().unwrap_or_default();
            let rules = Rules::for_content(OF_PACKAGES, folder, owned.top(), file, warnings)?;
            (Some(rules.over_left_behind(folder)), None)
        }
        Kind::Chart => {
            let rules = Rules::read_helmignore(folder, warnings)?;
            (Some(rules), Some(rules::derived(folder, environment)?))
        }
        Kind::Packed => (None, None),
    };
    let mut walk = Walk::new(folder, kind, owned, others);
    walk.folder(folder, "", rules.as_ref(), false, warnings)?;
    let mut chosen = walk.chosen();
    if let Some(derived) = derived {
        chosen.retain(|item| !derived.contains(&item.path));
    }
    chosen.sort_unstable_by(|left, right| left.path.as_bytes().cmp(right.path.as_bytes()));
    #[cfg(feature = "git")]
    if owned.has_more()
        && let Some(modes) = recorded_modes(folder, environment)?
    {
        for item in &mut chosen {
            let Content::File { place, executable, .. } = &mut item.content else { continue };
            // As for Git, what is not tracked is an ordinary file.
            let recorded = fs::canonicalize(place).ok().and_then(|real| modes.get(&real));
            *executable = recorded.copied().unwrap_or_default();
        }
    }
    #[cfg(feature = "git")]
    if owned.has_more() {
        take_recorded_line_ends(folder, environment, &mut chosen)?;
    }
    Ok(chosen)
}

/// Takes the content that Git has recorded, where Git has turned line ends when it checked files out. Only there, all files are read here.
#[cfg(feature = "git")]
fn take_recorded_line_ends(
    folder: &Path,
    environment: &Environment,
    chosen: &mut [PackageItem],
) -> Result<(), ProviderError> {
    let line_ends = local_git(environment).line_ends(folder).map_err(|error| {
        let text = format!("it is not known what Git has recorded of `{}`", folder.display());
        ProviderError::new(ErrorKind::Io, text).because(error)
    })?;
    let Some(line_ends) = line_ends else { return Ok(()) };
    for item in chosen {
        if let Content::File { place, recorded, .. } = &mut item.content {
            *recorded = line_ends.recorded_content(&fs::canonicalize(place)?, &fs::read(place)?);
        }
    }
    Ok(())
}

/// The modes that Git has recorded of the files around a folder, if the file system has none.
#[cfg(feature = "git")]
fn recorded_modes(
    folder: &Path,
    environment: &Environment,
) -> Result<Option<BTreeMap<PathBuf, bool>>, ProviderError> {
    let recorded = local_git(environment).recorded_modes(folder);
    recorded.map_err(|error| {
        let text = format!("it is not known which files of `{}` may be executed", folder.display());
        ProviderError::new(ErrorKind::Io, text).because(error)
    })
}

/// Writes the content of the package in `folder`, which is not one of the workspace's, into `tree`.
pub(crate) fn write(
    folder: &Path,
    environment: &Environment,
    tree: &mut TreeWriter,
) -> Result<(), ProviderError> {
    // The rules around it are those of where it really is.
    let folder = &fs::canonicalize(folder)?;
    let path = formats::locate_manifest(folder).map_err(|error| unreadable(&error))?;
    let file = path.as_deref().and_then(|path| path.strip_prefix(folder).ok()?.to_str());
    let format = path.as_deref().and_then(formats::format_of_manifest);
    let loaded = match &path {
        Some(path) if format.is_none() => {
            Some(Manifest::load_file(path).map_err(|error| unreadable(&error))?)
        }
        _ => None,
    };
    let kind = match (&loaded, file) {
        (Some(loaded), Some(file)) => Kind::Own { manifest: &loaded.manifest, file },
        (None, _) if format.is_some_and(|format| format.name == helm::FORMAT.name) => Kind::Chart,
        (_, file) => Kind::Other { file },
    };
    let others = [environment.cache.clone(), environment.mu_home.clone()];
    let owned = &Owned::around(folder, environment)?;
    let source = Source { folder, kind, owned, others: &others };
    for PackageItem { path, content } in choose_contents(&source, environment, &mut Vec::new())? {
        match content {
            Content::File { executable, recorded: Some(content), .. } => {
                tree.file_in_memory(path.as_bytes(), executable, &content)?;
            }
            Content::File { place, executable, recorded: None } => {
                let mut file = fs::open(&place)?;
                let written = tree.file(path.as_bytes(), executable, &mut file);
                written.map_err(|error| match error {
                    mu_provider::TreeError::Content { source, .. } => {
                        ProviderError::from(FileError::new("read", &place, source))
                    }
                    other => other.into(),
                })?;
            }
            Content::Link(target) => tree.symlink(path.as_bytes(), target.as_bytes())?,
            #[cfg(feature = "hub")]
            Content::Text(text) => {
                tree.file_in_memory(path.as_bytes(), false, text.as_bytes())?;
            }
        }
    }
    Ok(())
}

fn unreadable(error: &ManifestError) -> ProviderError {
    ProviderError::new(ErrorKind::Manifest, error.to_string())
}
