//! The same tree has the same digest from a hub, from Git and from a folder.

use crate::support::git::{HttpServer, Origin};
use crate::support::{Package, Sandbox, digest_of};

#[test]
fn a_tree_has_one_digest_wherever_it_comes_from() {
    let sandbox = Sandbox::with_dependencies(&[]);
    let package = Package::new("acme/tree", "1.0.0")
        .file("run.sh*", "#!/bin/sh\n")
        .file("deep/er/file.txt", "text\r\nwith line ends\n")
        .file("link", "-> deep/er/file.txt")
        .file("empty", "")
        .file("ünïcode name.txt", "ü");
    let published = sandbox.hub().publish(&package);
    package.write_into(&sandbox.path("elsewhere/tree"));
    let origin = Origin::new("tree.git");
    package.write_into(origin.folder());
    origin.commit(&[]);
    origin.git(&["tag", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    let git = format!("{}tree.git#v1.0.0", server.root());
    sandbox.mu(&["get", "acme/tree", &git, "../elsewhere/tree"]).ok();
    let digest = digest_of(&sandbox.path("elsewhere/tree"));
    assert_eq!(published, digest);
    let lock = sandbox.lock();
    let packages = lock["packages"].as_array().expect("is a list");
    let mut providers = Vec::new();
    for package in packages {
        assert_eq!(package["digest"], *digest, "{package}");
        let source = package["source"].as_str().expect("is text");
        providers.push(source.split('+').next().expect("has a provider").to_owned());
    }
    providers.sort();
    assert_eq!(providers, ["git", "hub", "path"]);
    sandbox.mu(&["verify"]).ok().says(&["3 packs verified"]);
    sandbox.mu(&["verify", "--store"]).ok().says(&["1 tree verified"]);
}

#[test]
fn a_folder_that_changes_is_noticed() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.place("elsewhere/lib", &Package::new("acme/lib", "1.0.0").file("a.txt", "one"));
    sandbox.mu(&["get", "../elsewhere/lib"]).ok();
    let before = sandbox.lock()["packages"][0]["digest"].clone();
    std::fs::write(sandbox.path("elsewhere/lib/a.txt"), "two").expect("is ours");
    sandbox.mu(&["get", "--locked"]).fails();
    sandbox.mu(&["get"]).ok();
    assert_ne!(sandbox.lock()["packages"][0]["digest"], before);
    let run = sandbox.mu(&["which", "../elsewhere/lib"]);
    assert!(run.status <= 1, "{}", run.shown());
    sandbox.mu(&["verify"]).ok();
}
