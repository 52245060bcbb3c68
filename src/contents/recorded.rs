//! What Git has recorded of files in a checkout, where the system or Git's settings have them otherwise: line ends, and whether they may
//! be executed. Without Git, everything is as it is there.

#[cfg(feature = "git")]
use std::collections::BTreeMap;
use std::path::Path;
#[cfg(feature = "git")]
use std::path::PathBuf;

#[cfg(feature = "git")]
use mu_provider::ErrorKind;
use mu_provider::ProviderError;

#[cfg(feature = "git")]
use super::{Content, PackageItem};
use crate::env::Environment;
#[cfg(feature = "git")]
use crate::fs;
#[cfg(feature = "git")]
use crate::workspace::root::local_git;

/// Takes the content that Git has recorded, where Git has turned line ends when it checked files out. Only such files are read here.
#[cfg(feature = "git")]
pub(super) fn take_recorded_line_ends(
    folder: &Path,
    environment: &Environment,
    chosen: &mut [PackageItem],
) -> Result<(), ProviderError> {
    let Some(line_ends) = line_ends(folder, environment)? else { return Ok(()) };
    for item in chosen {
        if let Content::File { place, recorded, .. } = &mut item.content {
            *recorded =
                line_ends.recorded_content(&fs::canonicalize(place)?, || fs::read(place))?;
        }
    }
    Ok(())
}

/// What Git does to line ends in the repository around a folder.
#[cfg(feature = "git")]
fn line_ends(
    folder: &Path,
    environment: &Environment,
) -> Result<Option<mu_provider_git::LineEnds>, ProviderError> {
    local_git(environment).line_ends(folder).map_err(|error| {
        let text = format!("it is not known what Git has recorded of `{}`", folder.display());
        ProviderError::new(ErrorKind::Io, text).because(error)
    })
}

/// The content of one file of a checkout, as Git has recorded its line ends.
///
/// # Errors
///
/// When the repository around it cannot be read.
pub(crate) fn as_recorded(
    file: &Path,
    content: Vec<u8>,
    environment: &Environment,
) -> Result<Vec<u8>, ProviderError> {
    #[cfg(feature = "git")]
    if content.contains(&b'\r')
        && let Some(folder) = file.parent()
        && let Some(line_ends) = line_ends(folder, environment)?
    {
        let recorded =
            line_ends.recorded_content(&fs::canonicalize(file)?, || Ok(content.clone()))?;
        return Ok(recorded.unwrap_or(content));
    }
    #[cfg(not(feature = "git"))]
    let _ = (file, environment);
    Ok(content)
}

/// The modes that Git has recorded of the files around a folder, if the file system has none.
#[cfg(feature = "git")]
pub(super) fn recorded_modes(
    folder: &Path,
    environment: &Environment,
) -> Result<Option<BTreeMap<PathBuf, bool>>, ProviderError> {
    let recorded = local_git(environment).recorded_modes(folder);
    recorded.map_err(|error| {
        let text = format!("it is not known which files of `{}` may be executed", folder.display());
        ProviderError::new(ErrorKind::Io, text).because(error)
    })
}
