//! With the Git server stopped: no request for what the lock, the store or the cache already have.

use std::fs;

use crate::support::Sandbox;
use crate::support::git::{Daemon, HttpServer, Origin};

fn origin() -> Origin {
    let origin = Origin::new("infra.git");
    for version in ["v1.0.0", "v1.2.0"] {
        origin.commit(&[("Mu.yaml", "name: acme/infra\n"), ("sub/dir/mark.txt", version)]);
        origin.git(&["tag", version]);
    }
    origin
}

/// Everything that works without requests, in a workspace that has everything it needs.
fn check_without_network(sandbox: &Sandbox) {
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    for question in ["list", "tree", "status", "verify"] {
        sandbox.mu(&[question]).ok();
    }
    // Packs are rebuilt from the store …
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok();
    // … and the store again from the cached repository, which has the commits.
    for folder in ["work/.mu/packs", "cache/store"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("was there");
    }
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["get", "--offline"]).ok();
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["get", "--frozen"]).ok();
    sandbox.mu(&["verify"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    // With --offline, cached data is enough even without a lock.
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    sandbox.mu(&["get", "--offline"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

#[test]
fn http_backend_is_not_asked_again() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let root = server.root();
    let reference = format!("{root}infra.git#^1.0");
    let sandbox =
        Sandbox::with_dependencies(&[&reference, &format!("{root}infra.git/sub/dir#v1.0.0")]);
    sandbox.mu(&["get"]).ok();
    let asked = server.requests().len();
    check_without_network(&sandbox);
    assert_eq!(server.requests().len(), asked, "{:?}", server.requests());
    server.refuse();
    check_without_network(&sandbox);
    // Anything that is not here needs the server, and the error says so.
    let error = sandbox.mu(&["update", "--json"]).fails_with("network");
    assert!(error["message"].as_str().expect("is text").contains("infra.git"), "{error}");
    let unknown = format!("{root}other.git#v1.0.0");
    sandbox.mu(&["get", &unknown, "--offline", "--json"]).fails_with("offline");
}

#[test]
fn a_daemon_is_not_asked_again() {
    let origin = origin();
    let daemon = Daemon::start(origin.root());
    let reference = format!("{}infra.git/sub/dir#^1.0", daemon.root());
    let sandbox = Sandbox::with_dependencies(&[&reference]);
    sandbox.mu(&["get"]).ok();
    let asked = daemon.connections();
    check_without_network(&sandbox);
    assert_eq!(daemon.connections(), asked);
    daemon.refuse();
    check_without_network(&sandbox);
    sandbox.mu(&["update", "--json"]).fails_with("network");
}

#[test]
fn another_workspace_of_this_machine_asks_only_what_is_new() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let commit = origin.git(&["rev-parse", "v1.0.0"]);
    let reference = format!("{}infra.git#{commit}", server.root());
    let sandbox = Sandbox::with_dependencies(&[&reference]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    server.refuse();
    fs::create_dir_all(sandbox.path("other/.mu")).expect("can be made");
    fs::copy(sandbox.path("work/Mu.yaml"), sandbox.path("other/Mu.yaml")).expect("is ours");
    // A commit that is in the cache needs no request.
    sandbox.mu_in("other", &["get", "--offline"]).ok();
    assert_eq!(fs::read_to_string(sandbox.path("other/Mu.lock")).expect("is there"), lock);
}

#[test]
fn a_commit_that_is_here_costs_no_network_even_without_a_lock() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let commit = origin.git(&["rev-parse", "v1.0.0"]);
    let reference = format!("{}infra.git#{commit}", server.root());
    let sandbox = Sandbox::with_dependencies(&[&reference]);
    sandbox.mu(&["get"]).ok();
    let (lock, asked) = (sandbox.read("Mu.lock"), server.requests().len());
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    fs::remove_dir_all(sandbox.path("cache/store")).expect("was there");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    sandbox.mu(&["get", &reference]).ok();
    assert_eq!(server.requests().len(), asked, "{:?}", server.requests());
    // Nor does another package of the same commit that nobody has requested yet.
    server.refuse();
    let inside = reference.replace(".git#", ".git/sub/dir#");
    sandbox.mu(&["get", &inside]).ok();
    // The tags may have moved since, so reading them needs a request.
    sandbox.mu(&["outdated", "--json"]).fails_with("network");
}

#[test]
fn a_commit_that_is_here_is_asked_about_when_versions_are_wanted_too() {
    let mut origin = Origin::new("b.git");
    let library = origin.commit(&[("Mu.yaml", "name: b\n")]);
    origin.add("a.git");
    let server = HttpServer::start(origin.root());
    let root = server.root();
    let manifest = format!("name: a\ndependencies: [\"{root}b.git#^1\"]\n");
    let user = origin.commit(&[("Mu.yaml", &manifest)]);
    let pinned = format!("{root}b.git#{library}");
    let sandbox = Sandbox::with_dependencies(&[&pinned]);
    sandbox.mu(&["get"]).ok();
    // Only the tag makes it a version that the other's range accepts.
    crate::support::git::git(&origin.root().join("b.git"), &["tag", "v1.1.0"]);
    sandbox.asks_for(&[&pinned, &format!("{root}a.git#{user}")]);
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.locked().iter().any(|line| line.ends_with("/b 1.1.0")), "{:?}", sandbox.lock());
}
