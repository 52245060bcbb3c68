//! With the Git server stopped: nothing asks the network for what lock, store or cache already hold.

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

/// Everything that works without asking, in a workspace that has all it needs.
fn check_without_network(sandbox: &Sandbox) {
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["get"]).ok().says(&["nothing to do"]);
    for question in ["list", "tree", "status", "verify"] {
        sandbox.mu(&[question]).ok();
    }
    // Packs are made again from the store …
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
    // Without a lock, too, what is known is enough under --offline.
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
    drop(server);
    check_without_network(&sandbox);
    // What is not here needs the server, and says so.
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
    drop(daemon);
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
    drop(server);
    fs::create_dir_all(sandbox.path("other/.mu")).expect("can be made");
    fs::copy(sandbox.path("work/Mu.yaml"), sandbox.path("other/Mu.yaml")).expect("is ours");
    // A commit that is in the cache is no question to anyone.
    sandbox.mu_in("other", &["get", "--offline"]).ok();
    assert_eq!(fs::read_to_string(sandbox.path("other/Mu.lock")).expect("is there"), lock);
}
