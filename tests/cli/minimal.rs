//! The minimal strategy: the manifests are the state, and every command keeps them in line with what is in
//! use.

use serde_json::{Value, json};

use crate::support::{Package, Sandbox};

/// Publishes packages, a line each: `b 1.2: d#^1.3 e#~1`.
fn publish(sandbox: &Sandbox, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (package, needs) = line.split_once(':').expect("has a colon");
        let needs: String = needs.split_whitespace().map(|need| format!(" x/{need}")).collect();
        sandbox.offer(&format!("x/{package}.0:{needs}"));
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
    insta::assert_snapshot!(shown, @"
    $ mu get
    + x/b 1.2.0
    + x/c 1.2.0
    + x/d 1.4.0
    + x/e 1.2.0
    installed 4 packages (4 downloaded, 0 from cache)
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
    insta::assert_snapshot!(shown, @"
    $ mu update x/c
    ~ x/c 1.2.0 → 1.3.0
    + x/f 1.1.0
    + x/g 1.1.0
    x/c ^1.2 → ^1.3.0 in Mu.yaml
    installed 3 packages (3 downloaded, 0 from cache), 6 in all
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
    insta::assert_snapshot!(shown, @"
    $ mu downgrade x/d#1.2.0
    ~ x/b 1.2.0 → 1.1.0 (1.2.0 needs x/d 1.3.0)
    ~ x/c 1.2.0 → 1.1.0 (1.2.0 needs x/d 1.4.0)
    ~ x/d 1.4.0 → 1.2.0
    x/b ^1.2 → ^1.1.0 in Mu.yaml
    x/c ^1.2 → ^1.1.0 in Mu.yaml
    installed 3 packages (3 downloaded, 0 from cache), 4 in all
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
fn a_downgrade_goes_lower_until_every_bound_holds() {
    let sandbox = sandbox(
        &["x/b#^1.2", "x/e#^1.2"],
        "b 1.0: d#^1.1\nb 1.1: d#^1.1 e#<1.2\nb 1.2: d#^1.3\nd 1.1: f#<1.2\nd 1.3: f#^1.2\n\
         e 1.2:\nf 1.1:\nf 1.2:",
    );
    run(&sandbox, &["get"]);
    insta::assert_snapshot!(run(&sandbox, &["update", "x/f#1.1.0"]), @"
    $ mu update x/f#1.1.0
    ~ x/b 1.2.0 → 1.0.0 (1.2.0 needs x/d 1.3.0)
    ~ x/d 1.3.0 → 1.1.0 (1.3.0 needs x/f 1.2.0)
    ~ x/f 1.2.0 → 1.1.0
    x/b ^1.2 → ^1.0.0 in Mu.yaml
    installed 3 packages (3 downloaded, 0 from cache), 4 in all
    [exit 0]
    ");
    assert_eq!(chosen(&sandbox), "b1 d1.1 e1.2 f1.1");
}

#[test]
fn what_the_target_of_a_downgrade_limits_goes_down_with_it() {
    let sandbox = sandbox(&["x/d#^1.3", "x/e#^1.2"], "d 1.2: e#<1.2\nd 1.3:\ne 1.1:\ne 1.2:");
    run(&sandbox, &["get"]);
    let json = sandbox.mu(&["update", "x/d#1.2.0", "--dry-run", "--json"]).ok().json();
    assert_eq!(
        json["lowered"],
        json!([{"id": "hub.mu.com/x/e", "from": "1.2.0", "to": "1.1.0",
                "because": {"by": "hub.mu.com/x/d 1.2.0", "spec": "<1.2"}}])
    );
    let shown = run(&sandbox, &["update", "x/d#1.2.0"]);
    let e = "~ x/e 1.2.0 → 1.1.0 (x/d 1.2.0 needs x/e <1.2)";
    assert!(shown.contains(e), "{shown}");
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/d#^1.2.0", "x/e#^1.1.0"]);
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
    assert!(shown.contains("- x/a 1.1.0 (1.1.0 needs x/d 1.1.0)"), "{shown}");
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

#[test]
fn an_upgrade_raises_what_the_manifest_asks_for() {
    let sandbox = example();
    run(&sandbox, &["get"]);
    publish(&sandbox, "b 2.0: d#^1.3\nc 2.0: d#^1.4\nd 1.9:\nd 2.0:");
    let before = sandbox.state();
    let dry = sandbox.mu(&["upgrade", "--dry-run"]).ok();
    insta::assert_snapshot!(dry.shown(), @"
    $ mu upgrade --dry-run
    ~ x/b 1.2.0 → 2.0.0
    ~ x/c 1.2.0 → 2.0.0
    would write x/b ^1.2 → ^2.0.0 in Mu.yaml
    would write x/c ^1.2 → ^2.0.0 in Mu.yaml
    4 packages would be in use; nothing was written
    [exit 0]
    ");
    assert!(sandbox.state() == before);
    run(&sandbox, &["upgrade", "x/b"]);
    assert_eq!(chosen(&sandbox), "b2 c1.2 d1.4 e1.2");
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/b#^2.0.0", "x/c#^1.2"]);
    run(&sandbox, &["upgrade"]);
    assert_eq!(chosen(&sandbox), "b2 c2 d1.4 e1.2");
}

#[test]
fn with_many_majors_each_moves_within_its_own() {
    let sandbox = sandbox(&["x/d#>=1.0", "x/e#^1.0"], "d 1.0:\nd 1.2:\nd 2.1:\nd 2.3:\ne 1.0:");
    sandbox.write("api/Mu.yaml", "name: acme/api\ndependencies: [x/d#^2.1]\n");
    sandbox.write(".mu/workspace.yaml", "majors: many\n");
    run(&sandbox, &["get"]);
    assert_eq!(chosen(&sandbox), "d1 d2.1 e1");
    // Named, a package moves as far as each requirement on it allows, even one that means another major.
    run(&sandbox, &["update", "x/d", "x/e"]);
    assert_eq!(chosen(&sandbox), "d1 d2.3 e1");
    for command in ["update", "upgrade"] {
        run(&sandbox, &[command]);
        assert_eq!(chosen(&sandbox), "d1.2 d2.3 e1", "{command}");
    }
}

#[test]
fn of_many_majors_that_are_needed_indirectly_each_stays() {
    let lines = "d 1.0:\nd 1.2:\nd 2.0:\nd 2.1:\na 1.0: d#^1.0\nc 1.0: d#^2.0";
    let sandbox = sandbox(&["x/a#^1.0", "x/c#^1.0"], lines);
    sandbox.write(".mu/workspace.yaml", "majors: many\n");
    sandbox.mu(&["update"]).ok();
    assert_eq!(chosen(&sandbox), "a1 c1 d1.2 d2.1");
    // A manifest lists a package once, so the lock says the rest.
    let manifest = ["x/a#^1.0", "x/c#^1.0", "x/d#>=1.2.0 # indirect"];
    assert_eq!(listed(&sandbox, "Mu.yaml"), manifest);
    assert_eq!(sandbox.lock()["extra"], json!(["x/d#>=2.1.0 # indirect"]));
    for command in [&["get", "--locked"][..], &["get"], &["update"], &["get"]] {
        let state = sandbox.state();
        sandbox.mu(command).ok();
        assert!(sandbox.state() == state, "nothing to do: {command:?}");
    }
    // A line of its own is not what the other major needs.
    sandbox.mu(&["add", "x/d#^2.0"]).ok();
    let state = sandbox.state();
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.state() == state, "nothing to do: {}", sandbox.read("Mu.lock"));
    sandbox.mu(&["update"]).ok();
    assert_eq!(chosen(&sandbox), "a1 c1 d1.2 d2.1");
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/a#^1.0", "x/c#^1.0", "x/d#^2.1.0"]);
    assert_eq!(sandbox.lock()["extra"], json!(["x/d#>=1.2.0 # indirect"]));
    let state = sandbox.state();
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.state() == state, "nothing to do: {}", sandbox.read("Mu.lock"));
}

#[test]
fn what_the_manifest_needs_alone_stays_in_it_when_get_was_given_the_same() {
    for command in [&["upgrade", "--pre", "x/a"][..], &["update", "x/a"], &["update"], &["upgrade"]]
    {
        let lines = "a 1.0: b#^1.0\nb 1.0: c#^0.1\nb 1.1:\nc 0.1:\nc 1.0:";
        let sandbox = sandbox(&["x/a#^1.0"], lines);
        run(&sandbox, &["get"]);
        run(&sandbox, &["update", "x/b"]);
        run(&sandbox, &["update", "x/c#1.0.0"]);
        assert_eq!(chosen(&sandbox), "a1 b1.1 c1");
        sandbox.mu(&["get", "x/b"]).ok();
        sandbox.mu(command).ok();
        assert_eq!(chosen(&sandbox), "a1 b1.1 c1", "{command:?}");
        let state = sandbox.state();
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["get"]).ok();
        assert!(sandbox.state() == state, "nothing to do after {command:?}");
        // Without the lock, the manifest says it.
        std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
        sandbox.mu(&["get"]).ok();
        assert_eq!(chosen(&sandbox), "a1 b1.1 c1", "{command:?}");
    }
    // Also where only what was given has moved so far.
    let lines = "a 1.0: b#^1.0\nb 1.0: c#^0.1\nb 1.1:\nc 0.1:\nc 1.0:";
    let sandbox = sandbox(&["x/a#^1.0"], lines);
    sandbox.mu(&["get", "x/b#^1.1"]).ok();
    sandbox.mu(&["update", "x/c#1.0.0"]).ok();
    let state = sandbox.state();
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.state() == state, "nothing to do: {}", sandbox.read("Mu.yaml"));
}

#[test]
fn a_prerelease_that_is_moved_to_is_what_the_manifest_begins_at() {
    for listed_as in ["x/b#^1.0", "x/b#>=1.0.0", "x/b#^1.0.0-rc.1"] {
        let sandbox = sandbox(&[listed_as], "b 1.0:\nb 1.1:");
        sandbox.publish(&[Package::new("x/b", "1.2.0-rc.1")]);
        run(&sandbox, &["get"]);
        run(&sandbox, &["upgrade", "--pre", "x/b"]);
        assert_eq!(chosen(&sandbox), "b1.2.0-rc.1", "{listed_as}");
        run(&sandbox, &["upgrade", "--pre", "x/b"]);
        run(&sandbox, &["update"]);
        assert_eq!(chosen(&sandbox), "b1.2.0-rc.1", "{listed_as}");
    }
}

#[test]
fn what_a_manifest_lists_the_lock_does_not_list_once_more() {
    let sandbox = sandbox(
        &["x/d#2.0"],
        "d 1.0: c#0.2\nd 2.0: b#^2.0 c#>=0.1\nb 2.0:\nb 2.1: d#^1.0\nc 0.1:\nc 0.2:\nc 1.0: b#>=1",
    );
    sandbox.mu(&["get", "x/c#^1.0"]).ok();
    sandbox.mu(&["update"]).ok();
    let state = sandbox.state();
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.state() == state, "nothing to do: {}", sandbox.read("Mu.lock"));
}

#[test]
fn an_upgrade_lowers_nothing() {
    let sandbox = example();
    run(&sandbox, &["get"]);
    run(&sandbox, &["upgrade"]);
    assert_eq!(chosen(&sandbox), "b1.2 c1.3 d1.4 e1.2 f1.1 g1.1");
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/b#^1.2", "x/c#^1.3.0", "x/d#>=1.4.0 # indirect"]);
}

#[test]
fn what_requires_what_nothing_provides_is_not_moved_to() {
    let make = || {
        let sandbox = sandbox(&["x/a#>=1.0"], "a 1.0:");
        let requires = serde_json::json!(["store.mu.com/v1/Disk"]);
        sandbox.publish(&[Package::new("x/a", "1.1.0"), Package::new("x/b", "1.0.0")]);
        for name in ["x/a", "x/b"] {
            sandbox.publish(&[Package::new(name, "2.0.0").key("requires", requires.clone())]);
        }
        run(&sandbox, &["get"]);
        sandbox
    };
    for command in [&["upgrade"][..], &["update"], &["update", "x/a"]] {
        let sandbox = make();
        run(&sandbox, command);
        assert_eq!(chosen(&sandbox), "a1.1", "{command:?}");
    }
    let sandbox = make();
    run(&sandbox, &["add", "x/b"]);
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/a#>=1.0", "x/b#^1.0.0"]);
}

#[test]
fn an_upgrade_goes_on_where_another_one_made_room() {
    let world = "
        a 1.0:
        a 2.0:
        a 2.1:
        b 1.0: a#^1
        b 2.0: a#^2";
    let sandbox = sandbox(&["x/a#^1", "x/b#^1.0"], world);
    run(&sandbox, &["get"]);
    run(&sandbox, &["upgrade"]);
    assert_eq!(chosen(&sandbox), "a2.1 b2");
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/a#^2.1.0", "x/b#^2.0.0"]);
}

#[test]
fn a_downgrade_is_no_upgrade() {
    let sandbox = example();
    run(&sandbox, &["get"]);
    let before = sandbox.state();
    let run = sandbox.mu(&["downgrade", "x/e#1.3.0"]);
    insta::assert_snapshot!(run.shown(), @"
    $ mu downgrade x/e#1.3.0
    error: `x/e` is at 1.2.0, and 1.3.0 is newer

    hint: `mu update 'x/e#1.3.0'` moves there
    [exit 2]
    ");
    assert!(sandbox.state() == before);
}

#[test]
fn what_is_added_begins_at_its_newest() {
    let sandbox = sandbox(&["x/b#^1.1"], GRAPH);
    run(&sandbox, &["get"]);
    let shown = run(&sandbox, &["add", "x/c"]);
    assert!(shown.contains("+ x/c 1.3.0"), "{shown}");
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/b#^1.1", "x/c#^1.3.0"]);
    // One that was only needed by others becomes one's own.
    run(&sandbox, &["update", "x/d#1.2.0"]);
    assert_eq!(listed(&sandbox, "Mu.yaml")[2], "x/d#>=1.2.0 # indirect");
    run(&sandbox, &["add", "x/d#^1.3"]);
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/b#^1.1", "x/c#^1.3.0", "x/d#^1.3"]);
    let json = sandbox.mu(&["resolve", "--json"]).ok().json();
    assert_eq!(
        json["requirements"],
        json!(["hub.mu.com/x/b#^1.1", "hub.mu.com/x/c#^1.3.0", "hub.mu.com/x/d#^1.3"])
    );
}

#[test]
fn what_is_removed_takes_along_what_only_it_needed() {
    let sandbox = example();
    run(&sandbox, &["update", "x/c#1.3.0"]);
    assert_eq!(listed(&sandbox, "Mu.yaml").len(), 3);
    run(&sandbox, &["remove", "x/b"]);
    assert_eq!(chosen(&sandbox), "c1.3 f1.1 g1.1");
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/c#^1.3.0"]);
}

#[test]
fn what_get_was_given_moves_in_the_lock() {
    let sandbox = sandbox(&["x/d#^1.2"], GRAPH);
    sandbox.mu(&["get", "x/b"]).ok();
    assert_eq!(sandbox.lock()["extra"], json!(["x/b#^1.2.0"]));
    assert_eq!(chosen(&sandbox), "b1.2 d1.3 e1.2");
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/d#^1.2"], "the manifest is left alone");
    sandbox.mu(&["update", "x/e#1.3.0"]).ok();
    assert_eq!(sandbox.lock()["extra"], json!(["x/b#^1.2.0"]));
    assert_eq!(listed(&sandbox, "Mu.yaml"), ["x/d#^1.3.0", "x/e#>=1.3.0 # indirect"]);
    sandbox.mu(&["remove", "x/b"]).ok();
    assert_eq!(chosen(&sandbox), "d1.3 e1.3");
}

#[test]
fn without_a_manifest_the_lock_lists_all() {
    let mut sandbox = Sandbox::new();
    sandbox.set("MU_RESOLUTION", "minimal");
    publish(&sandbox, GRAPH);
    sandbox.mu(&["get", "x/b#^1.1"]).ok();
    sandbox.mu(&["update", "x/d"]).ok();
    assert_eq!(sandbox.lock()["extra"], json!(["x/b#^1.1", "x/d#>=1.4.0 # indirect"]));
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    sandbox.mu(&["remove", "x/b"]).ok();
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/x"));
}

#[test]
fn a_line_stands_where_it_is_needed() {
    let mut sandbox = Sandbox::new();
    sandbox.set("MU_RESOLUTION", "minimal");
    publish(&sandbox, GRAPH);
    sandbox.write("one/Mu.yaml", "name: one\ndependencies:\n  - x/c#^1.3\n");
    sandbox.write(
        "two/Mu.yaml",
        "name: two\ndependencies:\n  - x/f#^1.1\ndevDependencies:\n  - x/b#^1.1\n",
    );
    run(&sandbox, &["get"]);
    run(&sandbox, &["update", "x/d"]);
    assert_eq!(listed(&sandbox, "one/Mu.yaml"), ["x/c#^1.3"]);
    let two = sandbox.read("two/Mu.yaml");
    let dev = two.split("devDependencies:").nth(1).expect("is there");
    assert!(dev.contains("- x/d#>=1.4.0 # indirect"), "{two}");
    // One version for all: who requires it says so.
    sandbox.write("three/Mu.yaml", "name: three\ndependencies:\n  - x/d#^1.1\n");
    run(&sandbox, &["get"]);
    assert_eq!(listed(&sandbox, "three/Mu.yaml"), ["x/d#^1.4.0"]);
    assert_eq!(listed(&sandbox, "two/Mu.yaml"), ["x/f#^1.1", "x/b#^1.1"]);
}

#[test]
fn comments_and_layout_stay() {
    let sandbox = example();
    let text = "# the shop\nname: acme/web\n\ndependencies:\n    # for logs\n    - 'x/b#~1.1'   # never 1.3\n    - {ref: \"x/c#>=1.1 <2\", prerelease: false}\n\nlicense: MIT\n";
    sandbox.write("Mu.yaml", text);
    run(&sandbox, &["update", "x/c"]);
    run(&sandbox, &["update", "x/d"]);
    let expected = text
        .replace(">=1.1 <2", ">=1.3.0 <2")
        .replace("false}\n", "false}\n    - 'x/d#>=1.4.0' # indirect\n");
    assert_eq!(sandbox.read("Mu.yaml"), expected);
}

#[test]
fn a_withdrawn_version_is_used_only_where_it_is_named() {
    let sandbox = sandbox(&["x/a#^1.1"], "a 1.0:\na 1.2:");
    let yanked = |version: &str| {
        sandbox.publish(&[Package::new("x/a", version).key("yanked", json!("broken"))]);
    };
    yanked("1.1.0");
    yanked("1.3.0");
    let run = sandbox.mu(&["get"]).ok();
    assert_eq!(chosen(&sandbox), "a1.1");
    run.says(&["1.1.0 was yanked (broken)", "exactly the lowest version of a requirement"]);
    sandbox.mu(&["update"]).ok().does_not_say(&["yanked"]);
    assert_eq!(chosen(&sandbox), "a1.2");
    sandbox.asks_for(&["x/a#>=1.0.5"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(chosen(&sandbox), "a1.2");
}

#[test]
fn strategies_are_shown_beside_each_other() {
    let sandbox = example();
    let before = sandbox.state();
    let run = sandbox.mu(&["resolve", "--compare"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu resolve --compare
    package  highest  minimal
    x/b      1.2.0    1.2.0
    x/c      1.3.0    1.2.0
    x/d      1.4.0    1.4.0
    x/e      1.3.0    1.2.0
    x/f      1.1.0    -
    x/g      1.1.0    -
    4 packages differ
    [exit 0]
    ");
    let json = sandbox.mu(&["resolve", "--compare", "--json"]).ok().json();
    assert_eq!(json["highest"]["resolution"], "highest");
    assert_eq!(json["minimal"]["resolution"], "minimal");
    assert_eq!(
        json["packages"][3],
        json!({"id": "hub.mu.com/x/e", "highest": "1.3.0", "minimal": "1.2.0"})
    );
    assert!(sandbox.state() == before, "nothing is written");
    publish(&sandbox, "z 1.0: e#~1.1\nz 1.1: e#^1.1");
    let one = sandbox.mu(&["resolve", "--compare", "--with", "x/z#^1.0"]).ok();
    insta::assert_snapshot!(one.shown(), @"
    $ mu resolve --compare --with x/z#^1.0
    package  highest  minimal
    x/b      1.2.0    -
    x/c      1.3.0    -
    x/d      1.4.0    -
    x/e      1.3.0    -
    x/f      1.1.0    -
    x/g      1.1.0    -
    x/z      1.1.0    -

    minimal: no versions fit together
      acme/web requires x/b ^1.2
      x/b 1.2.0 requires x/d ^1.3
      x/d 1.3.0 requires x/e ^1.2
      mu resolve --with requires x/z ^1.0
      x/z 1.0.0 requires x/e ~1.1
      at least x/e 1.2.0 is needed, which is not ~1.1
    [exit 0]
    ");
}

#[test]
fn a_conflict_names_what_was_given() {
    let sandbox = example();
    let run = sandbox.mu(&["resolve", "--with", "x/d#1.3.0"]).fails();
    run.says(&["mu resolve --with requires x/d 1.3.0"]).does_not_say(&["mu get requires"]);
    let run = sandbox.mu(&["resolve", "x/c#1.2.0", "x/d#1.3.0"]).fails();
    run.says(&["mu resolve requires x/d 1.3.0"]).does_not_say(&["mu get requires"]);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["update", "x/b#1.9.0"]).fails();
    run.says(&["mu update requires x/b 1.9.0"]);
}

#[test]
fn only_what_is_needed_is_read() {
    let sandbox = sandbox(&["x/a#^1.0"], "a 1.0: b#^1.0\na 1.5: z#^1.0\nb 1.0:\nb 1.5: z#^1.0");
    // There is no such package, and nobody requires it.
    let run = sandbox.mu(&["get", "-v"]).ok();
    run.says(&["chose among 2 packages, and looked at what 2 versions need"]);
    // With the lock, nobody is asked at all.
    std::fs::remove_dir_all(sandbox.path("hub/index")).expect("is ours");
    sandbox.mu(&["get", "-v"]).ok().does_not_say(&["chose among"]);
}

#[test]
fn what_could_move_is_shown() {
    let sandbox = example();
    run(&sandbox, &["get"]);
    let json = sandbox.mu(&["outdated", "--json"]).ok().json();
    let moves: Vec<_> = json["packages"]
        .as_array()
        .expect("is a list")
        .iter()
        .map(|one| format!("{} {} {}", one["id"], one["current"], one["allowed"]))
        .collect();
    assert_eq!(
        moves,
        [r#""hub.mu.com/x/c" "1.2.0" "1.3.0""#, r#""hub.mu.com/x/e" "1.2.0" "1.3.0""#]
    );
}

#[test]
fn a_downgrade_lowers_a_direct_dependency_that_then_needs_something_new() {
    let sandbox = Sandbox::new();
    let hub = sandbox.hub();
    let depends = |name, version, on: &[&str]| {
        hub.publish(&Package::new(name, version).key("dependencies", serde_json::json!(on)));
    };
    depends("b", "1.1.0", &["c#^1.0"]);
    depends("b", "1.2.0", &["d#^1.2"]);
    hub.release("c", "1.0.0");
    hub.release("d", "1.1.0");
    hub.release("d", "1.2.0");
    sandbox.write(".mu/workspace.yaml", "resolution: minimal\n");
    sandbox.write("Mu.yaml", "name: acme/site\ndependencies:\n  - b#^1.2\n");
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["downgrade", "d#1.1.0"]).ok();
    for line in ["+ hub.mu.com/c 1.0.0", "(1.2.0 needs hub.mu.com/d 1.2.0)"] {
        assert!(run.stdout.contains(line), "{}", run.stdout);
    }
    let manifest = sandbox.read("Mu.yaml");
    assert!(manifest.contains("  - b#^1.1.0\n") && !manifest.contains("c#"), "{manifest}");
    let lock = sandbox.read("Mu.lock");
    for chosen in ["b\n  version: 1.1.0", "c\n  version: 1.0.0", "d\n  version: 1.1.0"] {
        assert!(lock.contains(&format!("hub.mu.com/{chosen}")), "{lock}");
    }
}

#[test]
fn what_a_lower_version_moves_is_named_where_nothing_may_move() {
    let mut sandbox = Sandbox::with_dependencies(&["aws/ec2#>=1.0"]);
    sandbox.set("MU_RESOLUTION", "minimal");
    sandbox.offer("aws/ec2 1.2.0:");
    sandbox.mu(&["get"]).ok();
    // The lowest version that a requirement accepts may be published later.
    sandbox.offer("aws/ec2 1.1.0:");
    let run = sandbox.mu(&["get", "--locked", "--refresh"]).fails();
    run.says(&["aws/ec2 would be 1.1.0 instead of 1.2.0", "run `mu get` without --locked"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.1.0"]);
}
