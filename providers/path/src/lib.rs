//! Folders on this machine, outside the workspace, as packages.
//!
//! A folder has one release: its current content. Nothing about it can be stored from one call to the next.
//! Manifests are returned as text, without parsing them.
//!
//! [`copy_folder`] walks a folder and writes its files to a tree, in an order that does not depend on the disk. The tree decides what a package may contain. This only leaves out folders that belong to tools.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]

use std::ffi::OsStr;
use std::fs::DirEntry;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mu_provider::TreeError;
use mu_provider::fs::FileError;
use mu_provider::fs::{self, AtPath as _};
use mu_provider::{
    ErrorKind, Facts, Found, Listing, Location, ManifestFile, PlaceKind, Progress, Provider,
    ProviderError, Release, TreeWriter,
};

/// The longest manifest that is read, in bytes.
const LONGEST_MANIFEST: u64 = 4 << 20;

/// Writes what of a folder is the content of its package.
pub type PackageContentWriter =
    Arc<dyn Fn(&Path, &mut TreeWriter) -> Result<(), ProviderError> + Send + Sync>;

/// Serves folders.
#[derive(Clone)]
pub struct PathProvider {
    contents: PackageContentWriter,
}

impl PathProvider {
    /// Creates the provider, which has no state; `contents` says what belongs to a package.
    pub fn new(contents: PackageContentWriter) -> Self {
        Self { contents }
    }
}

mu_provider::debug_fields!(PathProvider {});

impl Provider for PathProvider {
    fn name(&self) -> &str {
        "path"
    }

    fn facts(&self) -> Facts {
        Facts { place: "a folder", kind: PlaceKind::Folder, ..Facts::default() }
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
        if !fs::metadata_if_there(&folder)?.is_some_and(|metadata| metadata.is_dir()) {
            return Ok(Listing::absent(vec![folder.display().to_string()]));
        }
        // Name, version and dependencies are in the manifest.
        Ok(Listing::Found(Found::new(location, b"{}\n".to_vec(), None, None)))
    }

    fn manifest(
        &self,
        location: &Location,
        _release: &Release,
        _progress: &dyn Progress,
    ) -> Result<Option<ManifestFile>, ProviderError> {
        let folder = existing(location)?;
        let list = |inner: &str| {
            let entries = fs::entries_if_there(&folder.join(inner))?.into_iter();
            let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
            let mut names: Vec<String> =
                files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            Ok(names)
        };
        let both = || {
            let text = format!("`{}` has both `Mu.yaml` and `Mu.json`", folder.display());
            ProviderError::new(ErrorKind::Manifest, text).hint("remove one of them")
        };
        ManifestFile::find(&|path| read_manifest(&folder, path), &list, &both)
    }

    fn fetch(
        &self,
        location: &Location,
        _release: &Release,
        tree: &mut TreeWriter,
        _progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        (self.contents)(&existing(location)?, tree)
    }
}

/// The folder of a location.
fn folder(location: &Location) -> Result<PathBuf, ProviderError> {
    let root = location.root.as_url().to_file_path().map_err(|()| {
        let text = format!("`{}` is not a folder on this machine", location.root);
        ProviderError::new(ErrorKind::Protocol, text)
    })?;
    Ok(if location.path.is_empty() { root } else { root.join(&location.path) })
}

/// The folder of a location, which must be there.
fn existing(location: &Location) -> Result<PathBuf, ProviderError> {
    let folder = folder(location)?;
    if fs::metadata_if_there(&folder)?.is_some_and(|metadata| metadata.is_dir()) {
        return Ok(folder);
    }
    let text = format!("there is no folder `{}`", folder.display());
    Err(ProviderError::new(ErrorKind::NotFound, text))
}

fn read_manifest(folder: &Path, path: &str) -> Result<Option<String>, ProviderError> {
    let path = &folder.join(path);
    // A folder or a pipe is not a manifest.
    if !fs::metadata_if_there(path)?.is_some_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    if !fs::canonicalize(path)?.starts_with(fs::canonicalize(folder)?) {
        let text = format!("`{}` is a link out of its package", path.display());
        return Err(ProviderError::new(ErrorKind::Refused, text)
            .hint("replace the link by what it leads to"));
    }
    let Some(file) = fs::open_if_there(path)? else { return Ok(None) };
    let mut text = String::new();
    file.take(LONGEST_MANIFEST + 1).read_to_string(&mut text).at("read", path)?;
    if text.len() as u64 > LONGEST_MANIFEST {
        let text = format!("`{}` is longer than {LONGEST_MANIFEST} bytes", path.display());
        return Err(ProviderError::new(ErrorKind::Manifest, text));
    }
    Ok(Some(text))
}

/// Copies everything below `folder`, except `.git` and `.mu` at any depth.
///
/// # Errors
///
/// When a file cannot be read, or `tree` refuses one.
pub fn copy_folder(folder: &Path, tree: &mut TreeWriter) -> Result<(), ProviderError> {
    below(folder, &[], tree)
}

fn below(folder: &Path, prefix: &[u8], tree: &mut TreeWriter) -> Result<(), ProviderError> {
    let mut items = fs::entries(folder)?;
    items.sort_unstable_by_key(DirEntry::file_name);
    for item in items {
        let name = item.file_name();
        if name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case(".mu") {
            continue;
        }
        let path = [prefix, bytes(&name)].concat();
        let on_disk = item.path();
        let kind = item.file_type().at("look at", &on_disk)?;
        if kind.is_dir() {
            // The folder is declared before it is entered, because the tree limits the depth.
            tree.directory(&path)?;
            below(&on_disk, &[&path, b"/".as_slice()].concat(), tree)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(&on_disk)?;
            tree.symlink(&path, bytes(target.as_os_str()))?;
        } else if kind.is_file() {
            let mut file = fs::open(&on_disk)?;
            let executable = fs::is_executable(&file.metadata().at("look at", &on_disk)?);
            let written = tree.file(&path, executable, &mut file);
            written.map_err(|error| match error {
                TreeError::Content { source, .. } => {
                    ProviderError::from(FileError::new("read", &on_disk, source))
                }
                other => other.into(),
            })?;
        } else {
            let refused = tree.refuse(&path, "a device, a pipe or a socket");
            return Err(ProviderError::new(ErrorKind::Integrity, refused.to_string()));
        }
    }
    Ok(())
}

fn bytes(name: &OsStr) -> &[u8] {
    name.as_encoded_bytes()
}
