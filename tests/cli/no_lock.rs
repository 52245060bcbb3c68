//! Before there is a lock, or while it lags behind the manifests: what is reported, and that nothing is lost.

use std::fs;

use crate::support::{Package, Sandbox};

#[test]
fn a_manifest_with_the_wrong_name_uninstalls_nothing() {
    for wrong in ["mu.yaml", "Mu.yml"] {
        let sandbox = Sandbox::with_dependencies(&["a/one"]);
        sandbox.publish(&[Package::new("a/one", "1.0.0")]);
        sandbox.mu(&["get"]).ok();
        let to = sandbox.path("work").join(wrong);
        fs::rename(sandbox.path("work/Mu.yaml"), to).expect("is ours");
        let before = crate::support::tree(&sandbox.path("work"));
        for arguments in [&["get"][..], &["update"], &["get", "a/one"], &["get", "--dry-run"]] {
            let run = sandbox.mu(arguments).fails();
            run.says(&[&format!("{wrong}` is not read"), "must be named `Mu.yaml`", "rename `"]);
        }
        assert!(crate::support::tree(&sandbox.path("work")) == before, "nothing has changed");
    }
}

#[test]
fn without_a_lock_that_is_what_is_said() {
    let sandbox = Sandbox::with_dependencies(&["a/one"]);
    sandbox.publish(&[Package::new("a/one", "1.0.0")]);
    for command in ["outdated", "verify"] {
        sandbox.mu(&[command, "--json"]).fails_with("lock-outdated");
        sandbox.mu(&[command]).fails().says(&["there is no Mu.lock yet", "run `mu get`"]);
    }
    for command in ["tree", "graph"] {
        sandbox.mu(&[command]).ok().says(&["warning: there is no Mu.lock yet", "run `mu get`"]);
    }
    let run = sandbox.mu(&["status"]).ok().says(&["there is no Mu.lock yet", "run `mu get`"]);
    run.does_not_say(&["out of date"]);
    let run = sandbox.mu(&["get", "--locked"]).fails();
    run.says(&["there is no Mu.lock yet"]).does_not_say(&["does not fit"]);
    fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is ours");
    let before = sandbox.state();
    sandbox.mu(&["status"]).ok().says(&["there is no package here"]).does_not_say(&["up to date"]);
    for command in ["outdated", "vendor", "get"] {
        sandbox.mu(&[command]).fails().says(&["there is no Mu.yaml", "mu init"]);
    }
    assert!(sandbox.state() == before, "nothing was written");
}

#[test]
fn a_misspelt_manifest_is_to_be_renamed() {
    let sandbox = Sandbox::with_dependencies(&["a/one"]);
    sandbox.publish(&[Package::new("a/one", "1.0.0")]);
    let rename = |from: &str, to: &str| {
        fs::rename(sandbox.path("work").join(from), sandbox.path("work").join(to))
            .expect("is ours");
    };
    let hint = "rename `mu.yml` to `Mu.yaml`";
    rename("Mu.yaml", "mu.yml");
    sandbox.mu(&["status"]).ok().says(&["no package here", hint]).does_not_say(&["mu init"]);
    sandbox.mu(&["get"]).fails().says(&[hint]);
    rename("mu.yml", "Mu.yaml");
    sandbox.mu(&["get"]).ok();
    rename("Mu.yaml", "mu.yml");
    let run = sandbox.mu(&["status"]).ok();
    run.says(&["Mu.lock is out of date", hint]).does_not_say(&["run `mu get`"]);
    sandbox.mu(&["get"]).fails().says(&[hint]);
    assert_eq!(sandbox.locked(), ["hub.mu.com/a/one 1.0.0"]);
}

#[test]
fn the_versions_of_the_workspaces_own_packages_are_their_manifests() {
    let sandbox = Sandbox::with_dependencies(&["net/vpc"]);
    let own = |version| sandbox.place("work/net/vpc", &Package::new("net/vpc", version));
    own("1.2.0");
    sandbox.mu(&["get"]).ok();
    own("9.0.0");
    for arguments in [&["list"][..], &["tree"], &["why", "net/vpc"], &["status"]] {
        sandbox.mu(arguments).ok().says(&["9.0.0"]).does_not_say(&["1.2.0"]);
    }
    // The version of an own package is not a choice, so nothing forbids it.
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["get", "--frozen"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock.replace("1.2.0", "9.0.0"));
}
