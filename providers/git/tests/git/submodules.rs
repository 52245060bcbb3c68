//! Submodules: relative and absolute, nested, missing, and hostile.

use mu_provider::ErrorKind;

use crate::support::{HttpServer, Origin, World, git, local, locked, written};

/// Adds the commit of another repository at `path`, without cloning it.
fn link(origin: &Origin, path: &str, commit: &str, url: Option<&str>) -> String {
    origin.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},{path}")]);
    if let Some(url) = url {
        for (key, value) in [("path", path), ("url", url)] {
            origin.git(&[
                "config",
                "--file",
                ".gitmodules",
                &format!("submodule.{path}.{key}"),
                value,
            ]);
        }
        origin.git(&["add", ".gitmodules"]);
    }
    origin.git(&["commit", "--quiet", "--message", "a submodule"]);
    origin.git(&["rev-parse", "HEAD"])
}

#[test]
fn they_are_fetched_at_their_pinned_commit() {
    let mut origin = Origin::new("group/inner.git");
    let inner = origin.commit(&[("inner.txt", "pinned\n")]);
    origin.commit(&[("inner.txt", "later\n"), ("more.txt", "later\n")]);
    origin.add("group/middle.git");
    origin.commit(&[("middle.txt", "x\n")]);
    let middle = link(&origin, "deps/inner", &inner, Some("../inner.git"));
    origin.add("outer.git");
    origin.commit(&[("pkg/Mu.yaml", "name: a/b\n"), ("other.txt", "x\n")]);
    let outer = link(&origin, "pkg/middle", &middle, Some("../group/middle.git"));
    let server = HttpServer::start(origin.root());
    for root in [server.root(), format!("file://{}/", origin.root().display())] {
        let world = World::new();
        assert_eq!(
            world.paths(&written(&root, "outer.git"), &locked(&outer)),
            [
                ".gitmodules",
                "other.txt",
                "pkg/Mu.yaml",
                "pkg/middle/.gitmodules",
                "pkg/middle/deps/inner/inner.txt",
                "pkg/middle/middle.txt"
            ]
        );
        assert_eq!(
            world.paths(&written(&root, "outer.git/pkg"), &locked(&outer)),
            ["Mu.yaml", "middle/.gitmodules", "middle/deps/inner/inner.txt", "middle/middle.txt"]
        );
        assert_eq!(world.databases().len(), 3);
        let offline = world.again(|options| options.offline = true);
        crate::support::fetch(
            &offline,
            &written(&root, "outer.git"),
            &locked(&outer),
            &world.notes,
        )
        .expect("is all there");
    }
}

#[test]
fn the_digest_is_that_of_a_recursive_clone() {
    let mut origin = Origin::new("inner.git");
    let inner = origin.commit(&[("a/b.txt", "x\n"), ("link", "-> a/b.txt")]);
    origin.add("outer.git");
    let outer = link(&origin, "inner", &inner, Some("../inner.git"));
    let world = World::new();
    let tree = world.fetch(&local(origin.folder()), &locked(&outer)).expect("can be fetched");
    let clone = world.folder.path().join("clone");
    let (from, to) = (origin.folder().to_str().expect("UTF-8"), clone.to_str().expect("UTF-8"));
    let allow = "protocol.file.allow=always";
    git(origin.root(), &["-c", allow, "clone", "--quiet", "--recurse-submodules", from, to]);
    std::fs::remove_dir_all(clone.join(".git")).expect("is there");
    std::fs::remove_file(clone.join("inner/.git")).expect("is there");
    assert_eq!(mu_provider::conformance::read_tree(&clone).digest(), tree.digest());
}

#[test]
fn one_that_comes_from_nowhere_stays_empty() {
    let origin = Origin::new("r.git");
    origin.commit(&[("x", "1")]);
    let commit = link(&origin, "lost", "0123456789abcdef0123456789abcdef01234567", None);
    let world = World::new();
    assert_eq!(world.paths(&local(origin.folder()), &locked(&commit)), ["x"]);
    assert!(world.notes.said().contains("`lost`"), "{}", world.notes.said());
}

#[test]
fn many_that_come_from_nowhere_are_one_warning() {
    let origin = Origin::new("r.git");
    origin.commit(&[("x", "1")]);
    let names: Vec<String> = (0..1_000).map(|number| format!("lost{number:03}")).collect();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let entries: Vec<(&str, &[u8], &str)> =
        names.iter().map(|name| ("160000", name.as_bytes(), commit)).collect();
    let commit = origin.commit_raw(&origin.tree(&entries));
    let world = World::new();
    assert_eq!(world.paths(&local(origin.folder()), &locked(&commit)), [""; 0]);
    let said = world.notes.said();
    assert!(said.contains("`lost000`, `lost001`, `lost002` and 997 more"), "{said}");
    assert!(said.len() < 500, "{said}");
}

#[test]
fn hostile_urls_are_refused() {
    let origin = Origin::new("r.git");
    origin.commit(&[("x", "1")]);
    let server = HttpServer::start(origin.root());
    for url in [
        "--upload-pack=touch /tmp/x",
        "-u:x",
        "ext::sh -c 'touch /tmp/x'",
        "/etc",
        "file:///etc",
        "../../../../etc",
        "ssh://-oProxyCommand=x/a",
        "http://example.com/a.git",
        "https://ada:hunter2@example.com/a.git",
        "ftp://example.com/a.git",
        "ssh://git@$(touch /tmp/x)/a.git",
        "`id`@example.com:a.git",
        "git@a;b:a.git",
    ] {
        let commit = link(&origin, "sub", "0123456789abcdef0123456789abcdef01234567", Some(url));
        let world = World::new();
        let error =
            world.fetch(&written(&server.root(), "r.git"), &locked(&commit)).expect_err(url);
        assert_eq!(error.kind(), ErrorKind::Refused, "{url}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn a_missing_commit_names_the_submodule() {
    let mut origin = Origin::new("inner.git");
    origin.commit(&[("x", "1")]);
    origin.add("outer.git");
    let commit =
        link(&origin, "sub", "0123456789abcdef0123456789abcdef01234567", Some("../inner.git"));
    let world = World::new();
    let error = world.fetch(&local(origin.folder()), &locked(&commit)).expect_err("is not there");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let told = format!("{error} {:?}", error.hints());
    assert!(told.contains("inner.git") && told.contains("`sub`"), "{told}");
}

#[test]
fn towers_of_submodules_end() {
    let mut origin = Origin::new("r0.git");
    let mut commit = origin.commit(&[("x", "1")]);
    for number in 1..12 {
        origin.add(&format!("r{number}.git"));
        commit = link(&origin, "s", &commit, Some(&format!("../r{}.git", number - 1)));
    }
    let world = World::new();
    let error = world.fetch(&local(origin.folder()), &locked(&commit)).expect_err("is too deep");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(error.to_string().contains("repositories deep"), "{error}");
}
