//! What the lock says of its packages: all that selection reads of them, so that what is added fits what is there.

use std::fs;

use mu::manifest::facts::{FACTS, Fact};
use serde_json::json;

use super::support::{Package, Sandbox};

/// A hub where `c/new` must not be used together with `c/old`.
fn sandbox(dependencies: &[&str]) -> Sandbox {
    let sandbox = Sandbox::with_dependencies(dependencies);
    sandbox.publish(&[
        Package::new("c/new", "2.0.0")
            .key("conflicts", json!(["c/old"]))
            .manifest("conflicts: [c/old]\n"),
        Package::new("c/old", "1.0.0"),
        Package::new("c/other", "1.0.0"),
    ]);
    sandbox
}

/// The lock as a mu wrote it that did not yet write what packages conflict with.
fn made_older(sandbox: &Sandbox) -> String {
    let lock = sandbox.read("Mu.lock");
    let is_older = |line: &&str| !line.starts_with("  conflicts: ");
    let older: String = lock.lines().filter(is_older).map(|line| format!("{line}\n")).collect();
    assert_ne!(older, lock);
    sandbox.write("Mu.lock", &older);
    older
}

#[test]
fn what_a_locked_package_conflicts_with_is_not_added() {
    let sandbox = sandbox(&["c/new"]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains("  conflicts: [hub.mu.com/c/old]\n"), "{lock}");
    for add in [["add", "c/old"], ["get", "c/old"]] {
        let run = sandbox.mu(&add).fails();
        assert!(run.stderr.contains("c/new 2.0.0 conflicts with c/old"), "{}", run.stderr);
        assert_eq!(sandbox.read("Mu.lock"), lock);
    }
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["add", "c/other"]).ok();
    assert!(sandbox.read("Mu.lock").contains("  conflicts: [hub.mu.com/c/old]\n"));
}

#[test]
fn a_merged_lock_with_packages_that_conflict_does_not_fit() {
    let sandbox = sandbox(&["c/new"]);
    sandbox.mu(&["get"]).ok();
    let ours = sandbox.read("Mu.lock");
    sandbox.asks_for(&["c/old"]);
    sandbox.mu(&["get"]).ok();
    let theirs = sandbox.read("Mu.lock");
    let entry = &theirs[theirs.find("- id: hub.mu.com/c/old").expect("is locked")..];
    sandbox.asks_for(&["c/new", "c/old"]);
    sandbox.write("Mu.lock", &format!("{ours}{entry}"));
    let run = sandbox.mu(&["get", "--locked"]).fails();
    let said = "c/new 2.0.0 conflicts with c/old 1.0.0";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    sandbox.mu(&["get"]).fails();
}

#[test]
fn an_older_lock_works_and_what_it_does_not_say_is_looked_up_once() {
    // On a machine that has the packages, and on one that has nothing.
    for is_new_machine in [false, true] {
        let sandbox = sandbox(&["c/new"]);
        sandbox.mu(&["get"]).ok();
        let older = made_older(&sandbox);
        for flag in ["--locked", "--frozen", "--offline"] {
            sandbox.mu(&["get", flag]).ok();
            assert_eq!(sandbox.read("Mu.lock"), older, "{flag}");
        }
        if is_new_machine {
            for folder in ["cache", "work/.mu/packs"] {
                fs::remove_dir_all(sandbox.path(folder)).expect("is there");
            }
        }
        let run = sandbox.mu(&["add", "c/old"]).fails();
        assert!(run.stderr.contains("c/new 2.0.0 conflicts with c/old"), "{}", run.stderr);
        assert_eq!(sandbox.read("Mu.lock"), older);
        sandbox.mu(&["add", "c/other"]).ok();
        assert!(sandbox.read("Mu.lock").contains("  conflicts: [hub.mu.com/c/old]\n"));
    }
}

#[test]
fn an_older_lock_can_be_used_where_nothing_can_be_looked_up() {
    let sandbox = sandbox(&["c/new"]);
    sandbox.mu(&["get"]).ok();
    made_older(&sandbox);
    let gone = sandbox.path("hub/index/c/new.jsonl");
    fs::remove_file(&gone).expect("is there");
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
    fs::create_dir(gone).expect("can be made");
    let run = sandbox.mu(&["add", "c/other"]).ok();
    assert!(run.stderr.contains("must not be used together with is not known"), "{}", run.stderr);
}

#[test]
fn a_locked_package_has_every_fact_that_selection_reads_of_it() {
    let sandbox = Sandbox::new();
    sandbox.asks_for(&["{ref: all/facts, channel: stable}"]);
    let package = Package::new("all/facts", "1.0.0")
        .needs("all/needed#^1")
        .key("appVersion", json!("3.1"))
        .key("muVersion", json!(">=0.0.1"))
        .key("provides", json!(["net.mu.com/v1/Network"]))
        .key("requires", json!(["net.mu.com/v1/Disk"]))
        .key("replaces", json!(["all/before"]))
        .key("conflicts", json!(["all/enemy"]))
        .key("constraints", json!({ "kubernetes": ">=1.25" }))
        .key("channels", json!(["stable", "fast"]))
        .manifest(
            "appVersion: \"3.1\"\nmuVersion: \">=0.0.1\"\nprovides: [net.mu.com/v1/Network]\nrequires: [net.mu.com/v1/Disk]\n\
             replaces: [all/before]\nconflicts: [all/enemy]\nconstraints: {kubernetes: \">=1.25\"}\nchannels: [stable, fast]\n",
        );
    sandbox.publish(&[
        package,
        Package::new("all/needed", "1.0.0")
            .key("provides", json!(["net.mu.com/v1/Disk"]))
            .manifest("provides: [net.mu.com/v1/Disk]\n"),
    ]);
    let listed = json!({ "packages": ["all/needed"] }).to_string();
    super::support::write(sandbox.hub().folder(), "capabilities/net.mu.com/v1/Disk.json", listed);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.lock();
    let entry = lock["packages"][0].as_object().expect("is an entry");
    for (fact, what) in FACTS {
        let Fact::Chosen(key) = what else { continue };
        // Only a package whose version has two parts has it.
        if *key != "versioning" {
            assert!(entry.contains_key(*key), "the lock lacks `{key}`, for `{fact}`: {entry:?}");
        }
    }
    // None of it is lost, or asked again, when something is added.
    sandbox.publish(&[Package::new("all/other", "1.0.0")]);
    let before = sandbox.read("Mu.lock");
    let before = &before[before.find("- id: ").expect("has entries")
        ..before.find("- id: hub.mu.com/all/needed").expect("is locked")];
    sandbox.mu(&["get", "all/other"]).ok();
    assert!(sandbox.read("Mu.lock").contains(before), "{}", sandbox.read("Mu.lock"));
}

#[test]
fn the_keys_that_have_facts_are_keys_of_the_lock() {
    let schema = mu::lock::schema();
    let keys = schema["$defs"]["WirePackage"]["properties"].as_object().expect("are there");
    for (fact, what) in FACTS {
        if let Fact::Chosen(key) | Fact::Content(key) = what {
            assert!(keys.contains_key(*key), "`{key}`, for `{fact}`, is no key of the lock");
        }
    }
}
