//! Tests of the project itself: its layers, its documents, its demo.

// The tests use other programs and facts of Unix.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

mod charts;
mod credentials;
mod demo;
mod dependencies;
mod doors;
mod generated;
mod imports;
mod leads;
mod objects;
mod programs;
mod releasing;
mod sessions;
mod shape;
mod tidy;

use std::path::{Path, PathBuf};

/// The folder of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether to write generated files: `BLESS=1 cargo test --test project`.
fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some_and(|value| value == "1")
}

/// The text of a file of the repository.
fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Checks the content of a generated file, or writes it.
fn check_generated(path: &str, expected: &[u8]) {
    let file = root().join(path);
    let found = std::fs::read(&file).unwrap_or_default();
    // A correct file is not touched, because other tests are reading it.
    if is_blessing() && found != expected {
        std::fs::create_dir_all(file.parent().expect("is below the root")).expect("can be made");
        std::fs::write(&file, expected).expect("can be written");
        return;
    }
    assert!(
        found == expected,
        "{path} is out of date; `BLESS=1 cargo test --test project` writes it again"
    );
}

/// All files of the repository below `folder` that Git would have, relative to its root, sorted.
fn files(folder: &str) -> Vec<PathBuf> {
    let skipped = ["target", ".git", "node_modules"];
    let mut files: Vec<PathBuf> = walkdir::WalkDir::new(root().join(folder))
        .into_iter()
        .filter_entry(|entry| !skipped.iter().any(|name| entry.file_name() == *name))
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.path().strip_prefix(root()).expect("is below the root").to_path_buf())
        .collect();
    files.sort();
    files
}
