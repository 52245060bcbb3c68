//! The content of a commit: modes, links, raw bytes.

use mu_provider::Mode;

use crate::support::{Origin, World, local, locked, manifest, told, written};

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

#[test]
fn links_to_what_is_in_the_same_repository_become_that() {
    let (world, origin) = (World::new(), Origin::new("r.git"));
    origin.commit(&[
        ("LICENSE", "MIT"),
        ("shared/vpc/Mu.yaml", "name: a/vpc\n"),
        ("shared/vpc/LICENSE", "-> ../../LICENSE"),
        ("shared/vpc/inside", "-> Mu.yaml"),
        ("shared/vpc/absent", "-> nowhere"),
        ("shared/vpc/lib", "-> ../lib"),
        ("shared/lib/a", "a"),
        ("shared/lib/deep/b", "-> ../a"),
        ("modules/vpc", "-> ../shared/vpc"),
        ("modules/app/Mu.yaml", "-> ../../shared/vpc/Mu.yaml"),
    ]);
    origin.git(&["tag", "v1.0.0"]);
    let root = format!("file://{}/", origin.root().display());
    let commit = locked(&origin.git(&["rev-parse", "HEAD"]));
    let all = ["LICENSE", "Mu.yaml", "absent", "inside", "lib/a", "lib/deep/b"];
    // Also where a link leads to the package itself.
    for folder in ["shared/vpc", "modules/vpc"] {
        let location = written(&root, &format!("r.git/{folder}"));
        assert_eq!(world.paths(&location, &commit), all, "{folder}");
        let tree = world.fetch(&location, &commit).expect("can be fetched");
        let modes: Vec<Mode> = tree.entries().iter().map(|entry| entry.mode).collect();
        let (file, link) = (Mode::File, Mode::Symlink);
        assert_eq!(modes, [file, file, link, link, file, file], "{folder}");
    }
    let app = written(&root, "r.git/modules/app");
    assert_eq!(manifest(&world.provider, &app, &commit), "name: a/vpc\n");
}

#[test]
fn links_out_of_the_repository_and_around_are_refused() {
    for (files, why) in [
        (&[("pkg/x", "-> ../../outside")][..], "x"),
        (&[("pkg/x", "-> /etc/passwd")][..], "x"),
        (&[("pkg/x", "-> ../y"), ("y", "-> x2"), ("x2", "-> y")][..], "x"),
        (&[("pkg/x", "-> ../pkg")][..], "a folder that it is in"),
        (&[("pkg/x", "-> ../lib"), ("lib/up", "-> ../pkg")][..], "a folder that it is in"),
    ] {
        let (world, origin) = (World::new(), Origin::new("r.git"));
        origin.commit(&[("pkg/Mu.yaml", "name: a/b\n")]);
        origin.commit(files);
        let root = format!("file://{}/", origin.root().display());
        let commit = locked(&origin.git(&["rev-parse", "HEAD"]));
        let error = world.fetch(&written(&root, "r.git/pkg"), &commit).expect_err("is refused");
        assert_eq!(error.kind(), mu_provider::ErrorKind::Integrity, "{files:?}");
        assert!(told(&error).contains(why), "{files:?}: {}", told(&error));
    }
    // Many ways to the same folder are one too many.
    let (world, origin) = (World::new(), Origin::new("r.git"));
    let links: Vec<(String, String)> = (0..30)
        .flat_map(|level| {
            let link = format!("-> ../{}", level + 1);
            ["a", "b"].map(|name| (format!("many/{level}/{name}"), link.clone()))
        })
        .collect();
    let mut files: Vec<(&str, &str)> =
        links.iter().map(|(path, link)| (&**path, &**link)).collect();
    files.extend([("many/30/end", "x"), ("pkg/x", "-> ../many/0")]);
    origin.commit(&files);
    let root = format!("file://{}/", origin.root().display());
    let commit = locked(&origin.git(&["rev-parse", "HEAD"]));
    let error = world.fetch(&written(&root, "r.git/pkg"), &commit).expect_err("is too much");
    assert_eq!(error.kind(), mu_provider::ErrorKind::Integrity);
}
