//! Which files may be executed, where the file system does not tell: on mounts of WSL, SMB and FAT, every file may be.
//!
//! Nothing is trusted here: these are guesses, of which one counts only if it has the expected digest.

use std::io::Read as _;
use std::path::Path;

use mu_provider::{Entry, Mode};

use crate::fs;

/// The entries of a folder as they may be on another file system, if every file in it is executable here: only programs are, as
/// far as their first bytes tell, or no file is.
pub(super) fn elsewhere(folder: &Path, entries: &[Entry]) -> Vec<Vec<Entry>> {
    let mut files = entries.iter().filter(|entry| entry.mode != Mode::Symlink).peekable();
    if files.peek().is_none() || !files.all(|entry| entry.mode == Mode::Executable) {
        return Vec::new();
    }
    let with = |is_program: &dyn Fn(&Entry) -> bool| {
        let entries = entries.iter().cloned().map(|entry| match entry.mode {
            Mode::Executable if !is_program(&entry) => Entry { mode: Mode::File, ..entry },
            _ => entry,
        });
        entries.collect()
    };
    vec![with(&|entry| begins_program(&folder.join(&entry.path))), with(&|_| false)]
}

/// Whether a file begins like a script or a program of Linux.
fn begins_program(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::open(path).map(|file| file.take(4).read_to_end(&mut start));
    read.is_ok_and(|read| read.is_ok()) && (start.starts_with(b"#!") || start == b"\x7fELF")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::packs::hash_folder;
    use std::collections::HashSet;
    use std::os::unix::fs::PermissionsExt;

    fn entries(folder: &Path) -> Vec<Entry> {
        let tree = hash_folder(folder, &HashSet::new()).expect("can be read");
        tree.entries().to_vec()
    }

    #[test]
    fn what_is_executable_everywhere_may_be_so_only_where_it_is_a_program() {
        let around = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str, mode: u32| {
            let path = around.path().join(name);
            std::fs::write(&path, text).expect("writes");
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("is ours");
        };
        write("Mu.yaml", "name: a/b\n", 0o644);
        write("run.sh", "#!/bin/sh\n", 0o755);
        let real = entries(around.path());
        assert!(elsewhere(around.path(), &real).is_empty(), "the file system tells");
        write("Mu.yaml", "name: a/b\n", 0o755);
        let here = entries(around.path());
        assert_ne!(here, real);
        assert_eq!(elsewhere(around.path(), &here)[0], real);
        let none = &elsewhere(around.path(), &here)[1];
        assert!(none.iter().all(|entry| entry.mode == Mode::File));
    }
}
