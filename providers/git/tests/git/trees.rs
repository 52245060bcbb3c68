//! The content of a commit: modes, links, raw bytes.

use mu_provider::Mode;

use crate::support::{Origin, World, local, told};

#[test]
fn files_come_as_they_are_in_the_repository() {
    let (world, origin) = (World::new(), Origin::new("r.git"));
    // Git would change all of these on the way into a worktree.
    origin.commit(&[
        (".gitattributes", "*.txt text eol=crlf ident filter=lfs\nhidden export-ignore\n"),
        ("a.txt", "one\ntwo\n$Id$\n"),
        ("hidden", "x"),
        ("run", "#!/bin/sh\n"),
        ("link", "-> a.txt"),
    ]);
    origin.git(&["update-index", "--chmod=+x", "run"]);
    origin.git(&["commit", "--quiet", "--message", "can be run"]);
    origin.git(&["tag", "v1.0.0"]);
    let location = local(origin.folder());
    let tree = world.fetch(&location, &world.release(&location, "1.0.0")).expect("can be fetched");
    let found: Vec<(&str, Mode, u64)> =
        tree.entries().iter().map(|entry| (&*entry.path, entry.mode, entry.size)).collect();
    assert_eq!(
        found,
        [
            (".gitattributes", Mode::File, 58),
            ("a.txt", Mode::File, 13),
            ("hidden", Mode::File, 1),
            ("link", Mode::Symlink, 5),
            ("run", Mode::Executable, 10)
        ]
    );
}

#[test]
fn a_pointer_of_git_lfs_is_told() {
    let (world, origin) = (World::new(), Origin::new("r.git"));
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n";
    origin.commit(&[("big.bin", pointer), ("sub/other.bin", pointer), ("small", "x")]);
    origin.git(&["tag", "v1.0.0"]);
    let location = local(origin.folder());
    world.fetch(&location, &world.release(&location, "1.0.0")).expect("can be fetched");
    let said = world.notes.said();
    assert!(said.contains("`big.bin` and 1 more") && said.contains("Git LFS"), "{said}");
}

#[test]
fn a_file_over_the_limit_is_refused() {
    let origin = Origin::new("r.git");
    origin.commit(&[("x", &"x".repeat(2_000))]);
    origin.git(&["tag", "v1.0.0"]);
    let world = World::with(|options| options.largest_file = 1_000);
    let location = local(origin.folder());
    let error =
        world.fetch(&location, &world.release(&location, "1.0.0")).expect_err("is too large");
    assert_eq!(error.kind(), mu_provider::ErrorKind::Integrity);
    assert!(told(&error).contains("limit of 1000"), "{}", told(&error));
}
