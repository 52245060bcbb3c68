//! A lock with another version than its content: edited by hand, or merged wrongly.

use std::fs;

use crate::support::git::{HttpServer, Origin};
use crate::support::{Package, Sandbox};

fn remove(sandbox: &Sandbox, folder: &str) {
    let folder = sandbox.path(folder);
    if folder.exists() {
        fs::remove_dir_all(folder).expect("is ours");
    }
}

/// Checks that everything that uses the lock refuses it, whatever is on this machine already.
fn check(sandbox: &Sandbox, id: &str, edited: &str, real: &str) {
    let good = sandbox.read("Mu.lock");
    let from = format!("- id: {id}\n  version: {real}\n");
    assert!(good.contains(&from), "{good}");
    let bad = good.replace(&from, &format!("- id: {id}\n  version: {edited}\n"));
    let line = bad.lines().position(|line| line == format!("- id: {id}")).expect("is there") + 2;
    sandbox.write("Mu.lock", &bad);
    for forgotten in [&[][..], &["cache/packs"], &["work/.mu/packs"], &["work/.mu/packs", "cache"]]
    {
        for arguments in [&["get"][..], &["get", "--locked"], &["get", "--frozen"]] {
            forgotten.iter().for_each(|folder| remove(sandbox, folder));
            let error = sandbox.mu(&[arguments, &["--json"]].concat()).fails_with("integrity");
            let message = error["message"].as_str().expect("is text").to_owned();
            for part in [&format!("Mu.lock:{line} says that `{id}` is {edited}"), real] {
                assert!(message.contains(part), "{message}");
            }
            assert_eq!(error["details"]["expected"], edited);
            assert_eq!(error["details"]["actual"], real);
            assert_eq!(sandbox.read("Mu.lock"), bad);
        }
    }
    // What the earlier lock installed does not match this one.
    sandbox.write("Mu.lock", &good);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok();
    sandbox.write("Mu.lock", &bad);
    sandbox.mu(&["verify"]).fails().says(&[id, edited, real, "Mu.lock"]);
    sandbox.write("Mu.lock", &good);
}

#[test]
fn the_version_of_a_package_of_a_hub_is_its_manifests() {
    let sandbox = Sandbox::with_dependencies(&["a/one#^1"]);
    sandbox.publish(&[
        Package::new("a/one", "1.1.0").needs("m/two#^1"),
        Package::new("m/two", "1.0.0"),
    ]);
    sandbox.mu(&["get"]).ok();
    check(&sandbox, "hub.mu.com/a/one", "1.1.7", "1.1.0");
    check(&sandbox, "hub.mu.com/m/two", "1.9.0", "1.0.0");
}

#[test]
fn the_version_of_a_commit_is_its_tags() {
    for manifest in ["name: a/b\n", "name: a/b\nversion: 0.9.0\n"] {
        let origin = Origin::new("lib.git");
        origin.commit(&[("Mu.yaml", manifest), ("a.txt", "one")]);
        origin.git(&["tag", "v1.1.0"]);
        origin.commit(&[("a.txt", "two")]);
        origin.git(&["tag", "v1.2.0"]);
        let server = HttpServer::start(origin.root());
        let reference = format!("git+{}lib.git#~1.1", server.root());
        let sandbox = Sandbox::with_dependencies(&[&reference]);
        sandbox.mu(&["get"]).ok();
        let id = format!("{}/lib", server.host());
        check(&sandbox, &id, "1.1.7", "1.1.0");
        // A tag that was moved later does not affect locked versions.
        origin.git(&["tag", "--force", "v1.1.0", "v1.2.0"]);
        for folder in ["work/.mu/packs", "cache"] {
            remove(&sandbox, folder);
        }
        sandbox.mu(&["get", "--locked"]).ok();
        assert_eq!(sandbox.locked(), [format!("{id} 1.1.0")]);
    }
}

#[test]
fn a_commit_that_lost_one_of_its_tags_has_a_way_out() {
    let origin = Origin::new("lib.git");
    origin.commit(&[("a.txt", "one")]);
    origin.git(&["tag", "v1.1.0"]);
    origin.git(&["tag", "v0.9.0"]);
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::with_dependencies(&[&format!("git+{}lib.git#^1.1", server.root())]);
    sandbox.mu(&["get"]).ok();
    origin.commit(&[("a.txt", "two")]);
    origin.git(&["tag", "--force", "v1.1.0"]);
    remove(&sandbox, "work/.mu/packs");
    remove(&sandbox, "cache");
    let id = format!("{}/lib", server.host());
    let run = sandbox.mu(&["get", "--locked"]).fails();
    run.says(&[
        "was edited or merged wrongly",
        &format!("`mu update {id}` takes what is there now"),
    ]);
    sandbox.mu(&["update", &id]).ok();
    sandbox.mu(&["get", "--locked"]).ok();
}
