//! The minimal strategy: the manifests are the state, and every command leaves them saying what is in use.

use serde_json::{Value, json};

use crate::support::{Package, Sandbox};

/// Publishes packages, a line each: `b 1.2: d#^1.3 e#~1`.
fn publish(sandbox: &Sandbox, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (package, needs) = line.split_once(':').expect("has a colon");
        let (name, version) = package.split_once(' ').expect("has a version");
        let package = Package::new(&format!("x/{name}"), &format!("{version}.0"));
        let package = needs
            .split_whitespace()
            .fold(package, |package, need| package.needs(&format!("x/{need}")));
        sandbox.publish(&[package]);
    }
}

/// A workspace in minimal mode whose own package depends on these.
fn sandbox(dependencies: &[&str], lines: &str) -> Sandbox {
    let mut sandbox = Sandbox::with_dependencies(dependencies);
    sandbox.set("MU_RESOLUTION", "minimal");
    publish(&sandbox, lines);
    sandbox
}

/// The graph that explains the method.
const GRAPH: &str = "
    b 1.1: d#^1.1
    b 1.2: d#^1.3
    c 1.1:
    c 1.2: d#^1.4
    c 1.3: f#^1.1
    d 1.1: e#^1.1
    d 1.2: e#^1.1
    d 1.3: e#^1.2
    d 1.4: e#^1.2
    e 1.1:
    e 1.2:
    e 1.3:
    f 1.1: g#^1.1
    g 1.1: f#^1.1";

fn example() -> Sandbox {
    sandbox(&["x/b#^1.2", "x/c#^1.2"], GRAPH)
}

/// `b1.2 c1.3`, of what is locked.
#[track_caller]
fn chosen(sandbox: &Sandbox) -> String {
    let short = |line: &String| {
        let (id, version) = line.split_once(' ').expect("has a version");
        let name = id.trim_start_matches("hub.mu.com/x/");
        format!("{name}{}", version.trim_end_matches(".0"))
    };
    sandbox.locked().iter().map(short).collect::<Vec<_>>().join(" ")
}

/// The dependencies in the manifest, as they stand there.
#[track_caller]
fn listed(sandbox: &Sandbox, manifest: &str) -> Vec<String> {
    let text = sandbox.read(manifest);
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("- "));
    lines.map(str::to_owned).collect()
}

/// Runs a command, and then checks that the manifests alone lead to the same selection.
#[track_caller]
fn run(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let run = sandbox.mu(arguments).ok();
    let state = sandbox.state();
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.state() == state, "`mu get` has nothing to do after {}", run.shown());
    let lock = sandbox.read("Mu.lock");
    std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock, "the manifests say it all after {}", run.shown());
    run.shown().to_owned()
}

#[test]
fn each_package_gets_the_highest_of_what_is_needed_at_least() {
    let sandbox = example();
    let shown = run(&sandbox, &["get"]);
    insta::assert_snapshot!(shown, @r"
    $ mu get
    + hub.mu.com/x/b 1.2.0
    + hub.mu.com/x/c 1.2.0
    + hub.mu.com/x/d 1.4.0
    + hub.mu.com/x/e 1.2.0
    4 packages in use (4 fetched, 0 already on this machine)
    [exit 0]
    ");
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/b#^1.2", "x/c#^1.2"]);
    assert_eq!(sandbox.lock()["resolution"], "minimal");
}

#[test]
fn newer_releases_change_nothing() {
    let sandbox = example();
    run(&sandbox, &["get"]);
    let lock = sandbox.read("Mu.lock");
    publish(&sandbox, "b 1.9: z#^1\nd 1.9:\ne 1.9:\nz 1.0:");
    run(&sandbox, &["get"]);
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

#[test]
fn everything_moves_to_its_newest() {
    let sandbox = example();
    let shown = run(&sandbox, &["update"]);
    assert_eq!(chosen(&sandbox), "b1.2 c1.3 d1.4 e1.3 f1.1 g1.1", "{shown}");
    assert_eq!(
        listed(&sandbox, "Mu.yaml"),
        ["x/b#^1.2", "x/c#^1.3.0", "x/d#>=1.4.0 # indirect", "x/e#>=1.3.0 # indirect"]
    );
    assert_eq!(sandbox.mu(&["update", "--json"]).ok().json()["changes"], json!([]));
}

#[test]
fn one_package_moves_and_others_only_as_it_needs() {
    let sandbox = example();
    run(&sandbox, &["get"]);
    let shown = run(&sandbox, &["update", "x/c"]);
    insta::assert_snapshot!(shown, @r"
    $ mu update x/c
    ~ hub.mu.com/x/c 1.2.0 → 1.3.0
    + hub.mu.com/x/f 1.1.0
    + hub.mu.com/x/g 1.1.0
    wrote Mu.yaml
    6 packages in use (3 fetched, 3 already on this machine)
    [exit 0]
    ");
    assert_eq!(chosen(&sandbox), "b1.2 c1.3 d1.4 e1.2 f1.1 g1.1");
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/b#^1.2", "x/c#^1.3.0", "x/d#>=1.4.0 # indirect"]);
}

#[test]
fn a_downgrade_lowers_what_needs_more_and_says_why() {
    let sandbox = example();
    run(&sandbox, &["get"]);
    let before = sandbox.state();
    let dry = sandbox.mu(&["downgrade", "x/d#1.2.0", "--dry-run"]).ok();
    assert!(sandbox.state() == before);
    let shown = run(&sandbox, &["downgrade", "x/d#1.2.0"]);
    insta::assert_snapshot!(shown, @r"
    $ mu downgrade x/d#1.2.0
    ~ hub.mu.com/x/b 1.2.0 → 1.1.0 (1.2.0 needs hub.mu.com/x/d 1.3.0)
    ~ hub.mu.com/x/c 1.2.0 → 1.1.0 (1.2.0 needs hub.mu.com/x/d 1.4.0)
    ~ hub.mu.com/x/d 1.4.0 → 1.2.0
    wrote Mu.yaml
    4 packages in use (3 fetched, 1 already on this machine)
    [exit 0]
    ");
    for line in shown.lines().filter(|line| line.starts_with('~')) {
        assert!(dry.stdout.contains(line), "{}", dry.shown());
    }
    assert_eq!(chosen(&sandbox), "b1.1 c1.1 d1.2 e1.2");
    let lines = ["x/b#^1.1.0", "x/c#^1.1.0", "x/d#>=1.2.0 # indirect", "x/e#>=1.2.0 # indirect"];
    assert_eq!(listed(&sandbox, "Mu.yaml"), lines);
}

#[test]
fn a_downgrade_drops_what_no_lower_version_helps() {
    let sandbox = sandbox(
        &["x/a#^1.1", "x/b#^1.0"],
        "a 1.1: d#^1.1 u#^1.0\nb 1.0: d#^1.0\nd 1.0:\nd 1.1:\nu 1.0:",
    );
    run(&sandbox, &["get"]);
    let json = sandbox.mu(&["update", "x/d#1.0.0", "--dry-run", "--json"]).ok().json();
    let d = "hub.mu.com/x/d";
    assert_eq!(
        json["lowered"],
        json!([
            {"id": "hub.mu.com/x/a", "from": "1.1.0", "to": null,
             "because": {"id": d, "version": "1.1.0"}},
            {"id": "hub.mu.com/x/u", "from": "1.0.0", "to": null, "because": null},
        ])
    );
    assert_eq!(
        json["changes"],
        json!([
            {"id": "hub.mu.com/x/a", "from": "1.1.0", "to": null},
            {"id": d, "from": "1.1.0", "to": "1.0.0"},
            {"id": "hub.mu.com/x/u", "from": "1.0.0", "to": null},
        ])
    );
    let shown = run(&sandbox, &["update", "x/d#1.0.0"]);
    assert!(shown.contains("- hub.mu.com/x/a 1.1.0 (1.1.0 needs hub.mu.com/x/d 1.1.0)"), "{shown}");
    assert_eq!(chosen(&sandbox), "b1 d1");
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/b#^1.0"]);
}

#[test]
fn cycles_and_superseded_requirements_count() {
    let graph = "a 1.0: c#^1.0\nb 1.0: c#^1.1\nc 1.0: d#^1.5 a#^1.0\nc 1.1:\nd 1.5:\nd 1.6:";
    let sandbox = sandbox(&["x/a#^1", "x/b#^1"], graph);
    run(&sandbox, &["get"]);
    assert_eq!(chosen(&sandbox), "a1 b1 c1.1 d1.5");
    let lock = sandbox.lock();
    let d = &lock["packages"][3];
    assert_eq!(d["requested"], json!(["^1.5 by hub.mu.com/x/c"]), "{lock}");
}

#[test]
fn the_lock_neither_holds_back_nor_up() {
    let sandbox = example();
    run(&sandbox, &["get"]);
    let lock = sandbox.read("Mu.lock");
    // As a merge of two branches may leave it.
    for (from, to) in [("1.4.0", "1.3.0"), ("1.2.0", "1.3.0")] {
        sandbox.write(
            "Mu.lock",
            &lock.replace(&format!("version: {from}"), &format!("version: {to}")),
        );
        sandbox.mu(&["get"]).ok();
        assert_eq!(chosen(&sandbox), "b1.2 c1.2 d1.4 e1.2");
    }
}

#[test]
fn another_strategy_selects_anew() {
    let sandbox = example();
    run(&sandbox, &["get"]);
    let highest = ["get", "--resolution", "highest", "--json"];
    let json: Value = sandbox.mu(&highest).ok().json();
    assert_eq!(json["resolution"], "highest");
    assert_eq!(chosen(&sandbox), "b1.2 c1.3 d1.4 e1.3 f1.1 g1.1");
    sandbox.mu(&["get"]).ok();
    assert_eq!(chosen(&sandbox), "b1.2 c1.2 d1.4 e1.2");
}
