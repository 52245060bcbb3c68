//! Versions that are passed over, or used though they had better not be: too young, deprecated, yanked. Each command that
//! shows or chooses them says so.

use serde_json::{Value, json};

use crate::support::{Package, Sandbox};

fn published(version: &str, when: &str) -> Package {
    Package::new("aws/vm", version).key("published", json!(when))
}

/// A package with an old version and a young one, where versions have to be older than the second.
fn young() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/vm#^1"]);
    sandbox.publish(&[
        published("1.0.0", "2024-01-01T00:00:00Z"),
        published("1.1.0", "2024-06-02T00:00:00Z"),
    ]);
    sandbox.write(".mu/workspace.yaml", "minimumReleaseAge: 2024-06-01\n");
    sandbox
}

#[test]
fn versions_that_are_too_young_are_marked() {
    let sandbox = young();
    insta::assert_snapshot!(sandbox.mu(&["versions", "aws/vm"]).ok().shown(), @"
    $ mu versions aws/vm
    version  published   note
    1.0.0    2024-01-01
    1.1.0    2024-06-02  newer than 2024-06-01 (minimumReleaseAge)
    [exit 0]
    ");
    let json = sandbox.mu(&["versions", "aws/vm", "--json"]).ok().json();
    assert_eq!(
        (&json["versions"][0]["usable"], &json["versions"][1]["usable"]),
        (&json!(true), &json!(false))
    );
    let info = sandbox.mu(&["info", "aws/vm"]).ok();
    assert!(!info.stdout.contains("mu add"), "{}", info.shown());
    info.says(&[
        "aws/vm 1.1.0",
        "cannot be used here: newer than 2024-06-01 (minimumReleaseAge)",
        "1.0.0 is the newest version that can be used here",
    ]);
    // An age says until when.
    let now = jiff::Timestamp::now().to_string();
    sandbox.publish(&[published("1.2.0", &now)]);
    sandbox.write(".mu/workspace.yaml", "minimumReleaseAge: 2 days\n");
    sandbox
        .mu(&["versions", "aws/vm#1.2.0"])
        .ok()
        .says(&["too new until 2", "(minimumReleaseAge)"]);
    // The command line counts more than the settings.
    let older = ["versions", "aws/vm", "--exclude-newer", "2024-03-01"];
    sandbox.mu(&older).ok().says(&["newer than 2024-03-01 (--exclude-newer)"]);
    let any = sandbox.mu(&["versions", "aws/vm", "--exclude-newer", "0"]).ok();
    assert!(!any.stdout.contains("minimumReleaseAge"), "{}", any.shown());
    // What is locked stays in use, however young.
    sandbox.mu(&["get", "--exclude-newer", "0"]).ok();
    sandbox.mu(&["get"]).ok().says(&["up to date"]);
    let json = sandbox.mu(&["info", "aws/vm", "--json"]).ok().json();
    assert_eq!((&json["version"], &json["usable"]), (&json!("1.2.0"), &json!(true)));
}

#[test]
fn a_search_marks_what_is_too_young_or_excluded() {
    let sandbox = young();
    let line = r#"{"name": "aws/vm", "latest": "1.1.0", "description": "Machines"}"#;
    std::fs::write(sandbox.path("hub/catalog.jsonl"), format!("{line}\n")).expect("is ours");
    let young = "newer than 2024-06-01 (minimumReleaseAge); 1.0.0 can be used";
    sandbox.mu(&["search", "machines"]).ok().says(&[young]);
    sandbox.write(".mu/workspace.yaml", "exclude: ['aws/vm#1.1.0']\n");
    let excluded = "excluded in the settings; 1.0.0 can be used";
    sandbox.mu(&["search", "machines"]).ok().says(&[excluded]);
}

/// `aws/app` needs any `aws/vm` of the first major, of which the newest is deprecated.
fn deprecated() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/vm#^1"),
        Package::new("aws/vm", "1.0.0"),
        Package::new("aws/vm", "1.1.0").key("deprecated", json!("use aws/machine")),
    ]);
    sandbox
}

const DEPRECATED: &str = "warning: `aws/vm` 1.1.0 is deprecated: use aws/machine";

#[test]
fn a_deprecated_version_comes_last_and_is_told_when_it_comes() {
    let sandbox = deprecated();
    sandbox.asks_for(&["aws/app"]);
    let run = sandbox.mu(&["get"]).ok();
    assert!(!run.shown().contains("deprecated"), "{}", run.shown());
    assert_eq!(sandbox.lock()["packages"][1]["version"], "1.0.0");
    sandbox.mu(&["info", "aws/vm"]).ok().says(&["aws/vm 1.0.0\n", "from 1.0.0 to 1.1.0"]);
    sandbox.mu(&["outdated"]).ok().says(&["1.1.0 is deprecated"]);
    // What names it gets it, with one line.
    let run = sandbox.mu(&["add", "aws/vm#^1.1"]).ok();
    run.says(&[DEPRECATED]);
    let run = sandbox.mu(&["get", "--json"]).ok().json();
    assert_eq!(run.get("warnings"), None, "it was told when it came: {run}");
    sandbox.publish(&[Package::new("aws/net", "1.0.0")]);
    let other = sandbox.mu(&["add", "aws/net"]).ok();
    assert!(!other.stderr.contains("deprecated"), "{}", other.shown());
    sandbox.mu(&["update"]).ok().says(&[DEPRECATED]);
    let json = sandbox.mu(&["update", "--json"]).ok().json();
    assert_eq!(
        json["warnings"],
        json!([DEPRECATED.replace("warning: ", "").replace("aws/vm`", "hub.mu.com/aws/vm`")])
    );
    sandbox.mu(&["outdated"]).ok().says(&["1.1.0 is deprecated: use aws/machine"]);
    let json = sandbox.mu(&["outdated", "--json"]).ok().json();
    assert_eq!(json["packages"][0]["deprecated"], "use aws/machine");
    sandbox.mu(&["why", "aws/vm"]).ok().says(&["aws/vm 1.1.0\ndeprecated: use aws/machine\n"]);
    // An upgrade raises requirements, and lowers none.
    sandbox.mu(&["upgrade"]).ok().says(&["up to date"]);
    assert!(sandbox.read("Mu.yaml").contains("aws/vm#^1.1\n"), "{}", sandbox.read("Mu.yaml"));
}

#[test]
fn a_newer_version_that_is_passed_over_is_told_with_the_reason() {
    let sandbox = deprecated();
    sandbox.asks_for(&[]);
    sandbox
        .mu(&["add", "aws/vm"])
        .ok()
        .says(&["added aws/vm ^1.0.0 to acme/web (Mu.yaml); 1.1.0 is deprecated"]);
}

#[test]
fn a_yanked_version_that_is_named_says_so_wherever_it_is_asked_about() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("yk/z", "1.0.0").key("yanked", json!("")),
        Package::new("yk/z", "1.1.0").key("yanked", json!("leaks")),
    ]);
    let hint = "although it is yanked: `mu get 'yk/z#1.1.0'`";
    sandbox.mu(&["get", "yk/z#^1"]).fails().says(&[hint]);
    // The way out leads out.
    let named =
        "`yk/z` 1.1.0 was yanked (leaks); it is used because mu get requires exactly this version";
    sandbox.shell("bash", "mu get 'yk/z#1.1.0'").ok().says(&[named]);
    sandbox.mu(&["why", "yk/z"]).ok().says(&["yk/z 1.1.0\nyanked: leaks\n"]);
    sandbox.mu(&["outdated"]).ok().says(&["1.1.0 is yanked: leaks"]);
    let json = sandbox.mu(&["why", "yk/z", "--json"]).ok().json();
    assert_eq!(json["versions"][0]["yanked"], "leaks");
    assert_eq!(json["versions"][0].get("deprecated"), None::<&Value>);
}
