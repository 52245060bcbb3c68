//! The checks for every provider, over every transport.

use mu_provider::Location;
use mu_provider::conformance::{Fixture, read_tree};

use crate::support::{Daemon, HttpServer, Origin, World, fake_ssh, git, locked, set, written};

fn check(world: &World, origin: &Origin, root: &str, path: &str) {
    // The provider must write the same as a plain export by Git.
    let expected = world.folder.path().join("expected");
    git(
        origin.folder(),
        &["worktree", "add", "--quiet", expected.to_str().expect("is UTF-8"), "v1.1.0"],
    );
    std::fs::remove_file(expected.join(".git")).expect("a worktree has this file");
    let scratch = world.folder.path().join("scratch");
    std::fs::create_dir(&scratch).expect("can be made");
    Fixture {
        provider: &world.provider,
        location: written(root, path),
        absent: written(root, "nothing.git"),
        other_kind: None,
        versions: vec!["1.0.0", "1.1.0", ""],
        fetched: 1,
        digest: read_tree(&expected).digest(),
        manifest: Some("# for v1.1.0"),
        unknown: Some(locked("0123456789abcdef0123456789abcdef01234567")),
        scratch,
    }
    .check();
}

fn origin() -> Origin {
    let origin = Origin::new("group/ec2.git");
    origin.release("v1.0.0");
    origin.commit(&[
        ("src/run.sh", "#!/bin/sh\n"),
        ("README.md", "hello\n"),
        ("src/link", "-> ../README.md"),
    ]);
    origin.git(&["update-index", "--chmod=+x", "src/run.sh"]);
    origin.git(&["commit", "--quiet", "--message", "can be run"]);
    origin.git(&["checkout", "--quiet", "--", "."]);
    origin.release("v1.1.0");
    origin
}

#[test]
fn over_http() {
    let (world, origin) = (World::new(), origin());
    let server = HttpServer::start(origin.root());
    check(&world, &origin, &server.root(), "group/ec2.git");
}

#[test]
fn over_http_from_an_old_server() {
    let (world, origin) = (World::new(), origin());
    let server = HttpServer::start_old(origin.root());
    check(&world, &origin, &server.root(), "group/ec2.git");
}

#[test]
fn over_the_git_protocol() {
    let (world, origin) = (World::new(), origin());
    let daemon = Daemon::start(origin.root());
    check(&world, &origin, &daemon.root(), "group/ec2.git");
}

#[test]
fn over_ssh() {
    let origin = origin();
    let (program, _) = fake_ssh(origin.root(), origin.root());
    let world = World::with(|options| {
        set(options, "GIT_SSH_COMMAND", program);
    });
    check(&world, &origin, "ssh://git@example.com/", "group/ec2.git");
}

#[test]
fn on_this_machine() {
    let (world, origin) = (World::new(), origin());
    let root = format!("git+file://{}/", origin.root().display());
    check(&world, &origin, &root, "group/ec2.git");
}

#[test]
fn on_this_machine_without_git() {
    let origin = origin();
    let world = World::with(|options| {
        set(options, "PATH", "/nowhere");
    });
    let root = format!("file://{}/", origin.root().display());
    check(&world, &origin, &root, "group/ec2.git");
}

#[test]
fn another_kind_of_place_is_told_from_git() {
    use mu_provider::Provider as _;
    use mu_testing::http::{Reply, TestServer};

    let server =
        TestServer::start(|_, _| Reply::body("<html>").header("content-type", "text/html"));
    let world = World::new();
    let location: Location = written(&server.url(""), "a/b.git");
    assert!(!world.provider.probe(&location).expect("the place answers"));
}
