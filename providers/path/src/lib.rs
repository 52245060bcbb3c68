//! Folders on this machine that are no part of the workspace, as packages.
//!
//! A folder has one release, which is whatever lies there now: nothing about it can be kept between
//! two questions. Manifests are handed out as text and not understood here.

mod copy;

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use mu_provider::{
    ErrorKind, Found, Listing, Location, ManifestFile, Progress, Provider, ProviderError, Release,
    TreeWriter,
};

/// The names that a manifest can have.
const MANIFESTS: [&str; 2] = ["Mu.yaml", "Mu.json"];

/// The longest manifest that is read, in bytes.
const LONGEST_MANIFEST: u64 = 4 << 20;

/// Serves folders.
#[derive(Debug, Clone, Copy, Default)]
pub struct PathProvider;

impl PathProvider {
    /// The provider; it keeps nothing.
    pub fn new() -> Self {
        Self
    }
}

impl Provider for PathProvider {
    fn name(&self) -> &str {
        "path"
    }

    fn probe(&self, location: &Location) -> Result<bool, ProviderError> {
        Ok(location.root.scheme() == "file" && folder(location)?.is_dir())
    }

    fn list(
        &self,
        location: &Location,
        _validator: Option<&str>,
        _progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let folder = folder(location)?;
        match fs::metadata(&folder) {
            Ok(metadata) if metadata.is_dir() => Ok(Listing::Found(Found {
                // Name, version and dependencies are in the manifest.
                lines: b"{}\n".to_vec(),
                validator: None,
                max_age: 0,
                location: location.clone(),
            })),
            Err(error) if !is_absence(&error) => Err(unreadable(&folder, error)),
            Ok(_) | Err(_) => Ok(Listing::Absent { tried: vec![folder.display().to_string()] }),
        }
    }

    fn resolve(
        &self,
        location: &Location,
        revision: &str,
        _progress: &dyn Progress,
    ) -> Result<Release, ProviderError> {
        Err(ProviderError::new(
            ErrorKind::NotFound,
            format!(
                "there is no commit `{revision}` in `{}`: a folder has no commits",
                location.describe()
            ),
        ))
    }

    fn manifest(
        &self,
        location: &Location,
        _release: &Release,
        _progress: &dyn Progress,
    ) -> Result<Option<ManifestFile>, ProviderError> {
        let folder = existing(location)?;
        let mut found = None;
        for name in MANIFESTS {
            let Some(text) = read_manifest(&folder.join(name))? else { continue };
            if found.is_some() {
                return Err(ProviderError::new(
                    ErrorKind::Manifest,
                    format!("`{}` has both `Mu.yaml` and `Mu.json`", folder.display()),
                )
                .hint("remove one of them"));
            }
            found = Some(ManifestFile { name: name.to_owned(), text });
        }
        Ok(found)
    }

    fn fetch(
        &self,
        location: &Location,
        _release: &Release,
        tree: &mut TreeWriter,
        _progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        copy::folder(&existing(location)?, tree)
    }
}

/// The folder of a location.
fn folder(location: &Location) -> Result<PathBuf, ProviderError> {
    let root = location.root.as_url().to_file_path().map_err(|()| {
        ProviderError::new(
            ErrorKind::Protocol,
            format!("`{}` is no folder on this machine", location.root),
        )
    })?;
    Ok(if location.path.is_empty() { root } else { root.join(&location.path) })
}

/// The folder of a location, which must be there.
fn existing(location: &Location) -> Result<PathBuf, ProviderError> {
    let folder = folder(location)?;
    match fs::metadata(&folder) {
        Ok(metadata) if metadata.is_dir() => Ok(folder),
        Err(error) if !is_absence(&error) => Err(unreadable(&folder, error)),
        Ok(_) | Err(_) => Err(ProviderError::new(
            ErrorKind::NotFound,
            format!("there is no folder `{}`", folder.display()),
        )),
    }
}

fn read_manifest(path: &Path) -> Result<Option<String>, ProviderError> {
    // A pipe would be waited for, and a folder or a link to nothing is no manifest.
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Err(error) if !is_absence(&error) => return Err(unreadable(path, error)),
        Ok(_) | Err(_) => return Ok(None),
    }
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if is_absence(&error) => return Ok(None),
        Err(error) => return Err(unreadable(path, error)),
    };
    let mut text = String::new();
    match file.take(LONGEST_MANIFEST + 1).read_to_string(&mut text) {
        Ok(_) if text.len() as u64 > LONGEST_MANIFEST => Err(ProviderError::new(
            ErrorKind::Manifest,
            format!("`{}` is longer than {LONGEST_MANIFEST} bytes", path.display()),
        )),
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(unreadable(path, error)),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn unreadable(path: &Path, error: io::Error) -> ProviderError {
    ProviderError::new(ErrorKind::Io, format!("cannot read `{}`", path.display())).because(error)
}
