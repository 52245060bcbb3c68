//! A tree as it is on disk, for comparing it with what a writer reports.

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::{Entry, FileDigest, Mode, Tree};

/// Reads every file and link below `folder`; folders themselves are not part of a tree.
///
/// # Panics
///
/// When something there cannot be read, or is not a file, a folder or a link.
pub fn read_tree(folder: &Path) -> Tree {
    let mut entries = Vec::new();
    read_folder(folder, "", &mut entries);
    Tree::new(entries)
}

fn read_folder(folder: &Path, prefix: &str, entries: &mut Vec<Entry>) {
    for item in fs::read_dir(folder).expect("the folder can be read") {
        let item = item.expect("the folder can be read");
        let name = item.file_name().into_string().expect("names are UTF-8");
        let path = format!("{prefix}{name}");
        let kind = item.file_type().expect("its kind is known");
        let (mode, content) = if kind.is_dir() {
            read_folder(&item.path(), &format!("{path}/"), entries);
            continue;
        } else if kind.is_symlink() {
            let target = fs::read_link(item.path()).expect("the link can be read");
            (Mode::Symlink, target.to_str().expect("targets are UTF-8").as_bytes().to_vec())
        } else {
            assert!(kind.is_file(), "`{path}` is not a file, a folder or a link");
            (file_mode(&item.path()), fs::read(item.path()).expect("the file can be read"))
        };
        entries.push(Entry {
            path,
            mode,
            sha256: FileDigest::from_bytes(Sha256::digest(&content).into()),
            size: content.len() as u64,
        });
    }
}

#[cfg(unix)]
fn file_mode(path: &Path) -> Mode {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = fs::metadata(path).expect("the file can be read").permissions().mode();
    assert_eq!(mode & 0o7000, 0, "`{}` has set-uid, set-gid or sticky bits", path.display());
    if mode & 0o100 == 0 { Mode::File } else { Mode::Executable }
}

#[cfg(not(unix))]
fn file_mode(_path: &Path) -> Mode {
    Mode::File
}
