//! Walks a folder and writes its files to a tree, in an order that does not depend on the disk.
//!
//! The tree decides what a package may contain. This only leaves out folders that belong to tools.

use std::ffi::OsStr;
use std::fs::DirEntry;
use std::path::Path;

use mu_provider::fs::{self, AtPath as _, FileError};
use mu_provider::{ErrorKind, ProviderError, TreeError, TreeWriter};

/// Copies everything below `folder`, except `.git` and `.mu` at any depth.
///
/// # Errors
///
/// When a file cannot be read, or `tree` refuses one.
pub fn folder(folder: &Path, tree: &mut TreeWriter) -> Result<(), ProviderError> {
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
