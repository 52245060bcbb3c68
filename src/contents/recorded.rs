//! What Git has recorded of files in a checkout, where the system or Git's settings have them otherwise: line ends, and whether they may
//! be executed. Without Git, everything is as it is there.

#[cfg(feature = "git")]
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
#[cfg(feature = "git")]
use std::path::PathBuf;

#[cfg(feature = "git")]
use mu_provider::ErrorKind;
use mu_provider::ProviderError;

#[cfg(feature = "git")]
use super::rules::Rules;
#[cfg(feature = "git")]
use super::{Content, Owned, PackageItem, stays};
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
    let mut files: BTreeMap<PathBuf, Vec<&mut Option<Vec<u8>>>> = BTreeMap::new();
    for item in chosen {
        if let Content::File { place, recorded, .. } = &mut item.content {
            files.entry(fs::canonicalize(place)?).or_default().push(recorded);
        }
    }
    let places: Vec<PathBuf> = files.keys().cloned().collect();
    for (place, content) in recorded_line_ends(folder, environment, &places)? {
        for recorded in files.remove(&place).into_iter().flatten() {
            *recorded = Some(content.clone());
        }
    }
    Ok(())
}

/// Takes links for those files that Git has made of links, where it makes none: as they are recorded, or what they lead to where a link
/// would be none in the package. One to a folder elsewhere stays a file.
#[cfg(feature = "git")]
pub(super) fn take_recorded_links(
    folder: &Path,
    owned: &Owned,
    keeps_links: bool,
    environment: &Environment,
    chosen: &mut [PackageItem],
) -> Result<(), ProviderError> {
    let links = local_git(environment).recorded_links(folder).map_err(|error| {
        let text = format!("it is not known which files of `{}` are links", folder.display());
        ProviderError::new(ErrorKind::Io, text).because(error)
    })?;
    if links.is_empty() {
        return Ok(());
    }
    for item in chosen {
        let Content::File { place, .. } = &item.content else { continue };
        let real = fs::canonicalize(place)?;
        let (Some(above), true) = (real.parent(), links.contains(&real)) else { continue };
        let Some(target) = fs::read_text_if_there(&real)? else { continue };
        let led = fs::canonicalize(&above.join(&target)).ok();
        let is_inside = led.as_ref().is_none_or(|led| owned.is_inside(led));
        if keeps_links && is_inside && stays(&item.path, &target) {
            item.content = Content::Link(target);
        } else if let Some(led) = led.filter(|led| led.is_file() && owned.is_author_path(led)) {
            let executable = fs::is_executable(&fs::metadata(&led)?);
            item.content = Content::File { place: led, executable, recorded: None };
        }
    }
    Ok(())
}

/// Leaves out files that are of this machine alone: Git does not track them, and ignores them by rules that only this user or this clone has.
/// Others never get them. Where such rules leave out the package itself, or its manifest, they say nothing about its files.
#[cfg(feature = "git")]
pub(super) fn leave_out_own_files(
    folder: &Path,
    manifest: Option<&str>,
    top: &Path,
    environment: &Environment,
    chosen: &mut Vec<PackageItem>,
) -> Result<(), ProviderError> {
    let mut real: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for item in &*chosen {
        if let Content::File { place, .. } = &item.content {
            real.insert(place.clone(), fs::canonicalize(place)?);
        }
    }
    let places: Vec<PathBuf> = real.values().cloned().collect();
    let ignored = local_git(environment).ignored_files(folder, &places).map_err(|error| {
        let text = format!("it is not known what Git ignores in `{}`", folder.display());
        ProviderError::new(ErrorKind::Io, text).because(error)
    })?;
    if ignored.is_empty() {
        return Ok(());
    }
    // What everybody's rules leave out, and is chosen all the same, is there for others, too.
    let rules = Rules::of_everybody(top)?;
    let mut own = BTreeSet::new();
    for place in ignored {
        if !rules.leave_out_on_the_way(top, &place, false)? {
            own.insert(place);
        }
    }
    let manifest = manifest.and_then(|manifest| fs::canonicalize(&folder.join(manifest)).ok());
    if manifest.is_some_and(|manifest| own.contains(&manifest)) {
        return Ok(());
    }
    chosen.retain(|item| match &item.content {
        Content::File { place, .. } => real.get(place).is_none_or(|place| !own.contains(place)),
        _ => true,
    });
    Ok(())
}

/// What Git has recorded of files whose line ends it has turned.
#[cfg(feature = "git")]
fn recorded_line_ends(
    folder: &Path,
    environment: &Environment,
    places: &[PathBuf],
) -> Result<BTreeMap<PathBuf, Vec<u8>>, ProviderError> {
    local_git(environment).recorded_line_ends(folder, places).map_err(|error| {
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
    {
        let place = fs::canonicalize(file)?;
        let mut recorded = recorded_line_ends(folder, environment, std::slice::from_ref(&place))?;
        return Ok(recorded.remove(&place).unwrap_or(content));
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
