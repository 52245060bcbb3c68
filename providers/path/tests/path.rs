//! Folders as packages: the conformance kit, and tests that are specific to folders.

// The tests use other programs and facts of Unix.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use mu_provider::conformance::{self, Fixture, read_tree};
use mu_provider::{
    ErrorKind, Folder, Lead, Limits, Location, Provider, ProviderError, Release, SafeUrl, Silent,
    Tree, TreeWriter,
};
use mu_provider_path::{PathProvider, copy_folder};
use tempfile::TempDir;

fn scratch() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

fn write(folder: &Path, path: &str, content: &str) {
    let file = folder.join(path);
    fs::create_dir_all(file.parent().expect("is below the folder")).expect("can be made");
    fs::write(file, content).expect("can be written");
}

/// A provider for packages that have all that is in their folders.
fn provider() -> PathProvider {
    PathProvider::new(Arc::new(copy_folder))
}

fn location(folder: &Path) -> Location {
    let url = format!("file://{}", folder.display());
    Location::new(Lead::of_user(SafeUrl::parse(&url).expect("is a URL").as_folder()), "")
}

fn fetch(from: &Path, into: &Path) -> Result<Tree, ProviderError> {
    let mut tree = TreeWriter::new(Folder::open(into).expect("opens"), Limits::default());
    provider().fetch(&location(from), &Release::default(), &mut tree, &Silent)?;
    Ok(tree.finish()?)
}

#[test]
fn conforms() {
    let (package, work) = (scratch(), scratch());
    let folder = package.path();
    write(folder, "Mu.yaml", "name: aws/ec2\n");
    write(folder, "run/me.sh", "#!/bin/sh\n");
    fs::set_permissions(folder.join("run/me.sh"), fs::Permissions::from_mode(0o755))
        .expect("is ours");
    symlink("run/me.sh", folder.join("link")).expect("can be made");
    let digest = read_tree(folder).digest();
    // None of these is part of the package.
    write(folder, ".git/config", "x");
    write(folder, "run/.mu/packs/x", "x");
    fs::create_dir(folder.join("empty")).expect("can be made");
    Fixture {
        provider: &provider(),
        location: location(folder),
        absent: location(&folder.join("nothing")),
        other_kind: Some(location(&folder.join("Mu.yaml"))),
        versions: vec![""],
        fetched: 0,
        digest,
        manifest: Some("name: aws/ec2"),
        unknown: None,
        scratch: work.path().to_owned(),
    }
    .check();
}

#[test]
fn a_folder_without_a_manifest_has_none() {
    let package = scratch();
    let provider = provider();
    let manifest = || provider.manifest(&location(package.path()), &Release::default(), &Silent);
    assert_eq!(manifest().expect("the folder is there"), None);
    write(package.path(), "Mu.json", "{}");
    assert_eq!(manifest().expect("is read").map(|file| file.name).as_deref(), Some("Mu.json"));
    write(package.path(), "Mu.yaml", "name: x\n");
    let error = manifest().expect_err("which one is meant?");
    assert_eq!(error.kind(), ErrorKind::Manifest);
}

#[test]
fn a_folder_that_is_gone_is_named() {
    let package = scratch();
    let gone = package.path().join("gone");
    let error = fetch(&gone, package.path()).expect_err("is not there");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(&gone.display().to_string()), "{error}");
}

/// Whether a disk can hold this path, and the provider does not leave it out.
fn can_be_copied(path: &[u8]) -> bool {
    std::str::from_utf8(path).is_ok_and(|path| {
        path.split('/').all(|segment| {
            !matches!(segment.to_ascii_lowercase().as_str(), "" | "." | ".." | ".git" | ".mu")
        })
    })
}

#[test]
fn hostile_trees_are_refused() {
    let mut refused = 0;
    for hostile in conformance::hostile_trees() {
        if !hostile.items.iter().all(|(path, _)| can_be_copied(path)) {
            continue;
        }
        let (package, work) = (scratch(), scratch());
        for (path, item) in &hostile.items {
            let path = std::str::from_utf8(path).expect("was checked");
            let on_disk = package.path().join(path);
            fs::create_dir_all(on_disk.parent().expect("is below")).expect("can be made");
            match item {
                conformance::Item::File(content) => fs::write(&on_disk, content).expect("is new"),
                conformance::Item::Link(target) => symlink(target, &on_disk).expect("is new"),
            }
        }
        let error = fetch(package.path(), work.path()).expect_err(hostile.name);
        assert_eq!(error.kind(), ErrorKind::Integrity, "{}: {error}", hostile.name);
        refused += 1;
    }
    assert!(refused >= 10, "only {refused} could be tried");
}

#[test]
fn a_socket_is_no_part_of_a_package() {
    let (package, work) = (scratch(), scratch());
    let _listener = std::os::unix::net::UnixListener::bind(package.path().join("socket"))
        .expect("a socket can be made");
    let error = fetch(package.path(), work.path()).expect_err("holds a socket");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(error.to_string().contains("`socket`"), "{error}");
}

#[test]
fn a_pipe_is_not_waited_for() {
    let package = scratch();
    let pipe = package.path().join("Mu.yaml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("can be run");
    assert!(made.success());
    let found = provider().manifest(&location(package.path()), &Release::default(), &Silent);
    assert!(found.is_ok_and(|found| found.is_none()));
}
