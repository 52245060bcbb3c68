//! Step-by-step upgrades: the steps are printed, and a refusal names the missing step and a way around it.

use serde_json::json;

use crate::support::{Package, Sandbox};

/// An operator whose versions follow each other: 1.0.0, 1.0.1, 1.0.3; 1.2.0 follows 1.1.0 alone, which was withdrawn.
fn sandbox(dependency: &str) -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&[dependency]);
    let follows = |version: &str, before: &str| {
        Package::new("ops/kafka", version).key("upgrade", json!({ "replaces": before }))
    };
    sandbox.publish(&[
        Package::new("ops/kafka", "1.0.0"),
        follows("1.0.1", "1.0.0"),
        follows("1.0.3", "1.0.1"),
        follows("1.1.0", "1.0.3").key("yanked", json!("loses data")),
        follows("1.2.0", "1.1.0"),
    ]);
    sandbox
}

#[test]
fn the_way_of_an_upgrade_is_printed() {
    let sandbox = sandbox("ops/kafka#1.0.0");
    sandbox.mu(&["get"]).ok();
    sandbox.asks_for(&["ops/kafka#~1.0"]);
    insta::assert_snapshot!(sandbox.mu(&["update", "--dry-run"]).ok().shown(), @"
    $ mu update --dry-run
    ~ ops/kafka 1.0.0 → 1.0.1 → 1.0.3
    1 package would be in use; nothing was written
    [exit 0]
    ");
    let json = sandbox.mu(&["update", "--json"]).ok().json();
    assert_eq!(
        json["changes"][0],
        json!({ "id": "hub.mu.com/ops/kafka", "from": "1.0.0", "to": "1.0.3", "via": ["1.0.1"] })
    );
}

#[test]
fn what_is_supposed_to_be_installed_is_where_upgrades_go_from() {
    let sandbox = sandbox("ops/kafka#~1.0");
    // Without a version, the best that one upgrade leads to; of a range, the best that upgrades lead to, whether a
    // manifest or the question requires it.
    for (asked, from) in [
        (&["ops/kafka"][..], [("1.0.0", "1.0.1"), ("1.0.1", "1.0.3"), ("1.0.3", "1.0.3")]),
        (&["ops/kafka#~1.0"], [("1.0.0", "1.0.3"), ("1.0.1", "1.0.3"), ("1.0.3", "1.0.3")]),
        // 1.1.0 may not be in the catalog any more.
        (&["ops/kafka#>=1.0.1"], [("1.0.0", "1.0.3"), ("1.0.1", "1.0.3"), ("1.1.0", "1.2.0")]),
        (&[], [("1.0.0", "1.0.3"), ("1.0.1", "1.0.3"), ("1.0.3", "1.0.3")]),
    ] {
        for (installed, next) in from {
            let installed = format!("ops/kafka#{installed}");
            let arguments = [&["resolve", "--installed", &installed][..], asked].concat();
            let run = sandbox.mu(&arguments).ok();
            assert!(run.stdout.starts_with(&format!("ops/kafka {next}\n")), "{}", run.shown());
            run.does_not_say(&["compared with Mu.lock"]);
        }
    }
    for asked in [&[][..], &["ops/kafka#~1.0"]] {
        // It goes further if it must, step by step.
        let mut arguments = vec!["resolve", "--with", "ops/kafka#1.0.3"];
        arguments.extend(["--installed", "ops/kafka#1.0.0"]);
        arguments.extend(asked);
        let json = sandbox.mu(&[&arguments[..], &["--json"]].concat()).ok().json();
        let moved = json!({
            "id": "hub.mu.com/ops/kafka", "from": "1.0.0", "to": "1.0.3", "via": ["1.0.1"]
        });
        assert_eq!(json["changes"], json!([moved]), "{arguments:?}");
    }
    let update = ["update", "--installed", "ops/kafka#1.0.0", "--dry-run"];
    insta::assert_snapshot!(sandbox.mu(&update).ok().shown(), @"
    $ mu update --installed ops/kafka#1.0.0 --dry-run
    ~ ops/kafka 1.0.0 → 1.0.1 → 1.0.3
    1 package would be in use; nothing was written
    [exit 0]
    ");
    sandbox.mu(&["update", "--installed", "ops/kafka", "--json"]).fails_with("usage");
    // A file lists what is installed, also where nothing is required.
    sandbox.write("cluster/list", "# What runs.\nops/kafka#1.0.0\n\n- \"ops/other#1.0.0\"\n");
    std::fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is there");
    for arguments in [
        &["resolve", "ops/kafka", "--installed", "ops/kafka#1.0.0"][..],
        &["resolve", "--installed", "ops/kafka#1.0.0"],
        &["resolve", "ops/kafka", "--installed", "cluster/list"],
        &["update", "ops/kafka", "--installed", "cluster/list", "--dry-run"],
        &["update", "--installed", "ops/kafka#1.0.0", "--dry-run"],
    ] {
        sandbox.mu(arguments).ok().says(&["ops/kafka", "1.0.1"]);
    }
    let outdated = sandbox.mu(&["outdated", "--installed", "ops/kafka#1.0.0"]).ok();
    outdated.says(&["ops/kafka", "1.0.0", "1.0.3", "1.2.0"]);
    assert!(!sandbox.path("work/Mu.lock").exists());
    sandbox.write("cluster/list", "ops/kafka#1.0.0\nops/kafka#^1\n");
    let run = sandbox.mu(&["resolve", "ops/kafka", "--installed", "cluster/list"]);
    run.says(&["[DIR]/work/cluster/list:2: --installed takes ID#VERSION", "`ops/kafka#^1`"]);
}

#[test]
fn a_way_back_that_no_step_leads_is_a_reinstallation() {
    let sandbox = sandbox("ops/kafka#>=1.0.1");
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["downgrade", "ops/kafka#1.0.0"]).fails();
    run.says(&[
        "ops/kafka 1.0.0 cannot be reached from",
        "hint: reinstall ops/kafka instead of upgrading it: `mu remove ops/kafka && mu add 'ops/kafka#1.0.0'`",
    ])
    .does_not_say(&["PKG#VERSION"]);
    sandbox.mu(&["remove", "ops/kafka"]).ok();
    sandbox.mu(&["add", "ops/kafka#1.0.0"]).ok();
}

#[test]
fn a_refusal_names_the_missing_step_and_the_way_round() {
    let sandbox = sandbox("ops/kafka#1.0.0");
    sandbox.mu(&["get"]).ok();
    sandbox.asks_for(&["ops/kafka#^1.2"]);
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: no version of ops/kafka can be used
      acme/web requires ops/kafka ^1.2
      no version of ops/kafka is ^1.2
        ops/kafka 1.2.0 can be reached only from 1.1.0, not from 1.0.0; the step 1.1.0 is yanked: loses data
        ops/kafka has 1.0.0 to 1.0.3 (3 versions); nearest: 1.0.3

    hint: in acme/web, require ops/kafka ^1.0.3 instead of ^1.2: `mu add 'ops/kafka#^1.0.3'`
    hint: reinstall ops/kafka instead of upgrading it: `mu remove ops/kafka && mu add 'ops/kafka#^1.2'`
    [exit 1]
    ");
    insta::assert_snapshot!(sandbox.mu(&["why", "ops/kafka"]).ok().shown(), @"
    $ mu why ops/kafka
    ops/kafka 1.0.0
    from hub+file://[DIR]/hub/
    required:
      1.0.0 by acme/web
    why no newer version:
      1.0.1 to 1.2.0 (4 versions) are not 1.0.0, which acme/web requires
    paths to it:
      acme/web → ops/kafka ^1.2
    [exit 0]
    ");
}

#[test]
fn what_is_supposed_to_be_installed_brings_what_it_needs() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0").needs("aws/vpc#^1"),
        Package::new("aws/ec2", "1.1.0"),
        Package::new("aws/vpc", "1.0.0"),
    ]);
    for asked in [&["--with", "aws/ec2#1.0.0"][..], &["aws/ec2#1.0.0"]] {
        let arguments = [&["resolve", "--installed", "aws/ec2#1.0.0"][..], asked].concat();
        let run = sandbox.mu(&arguments).ok();
        let expected = "aws/ec2 1.0.0\naws/vpc 1.0.0\n";
        assert!(run.stdout.starts_with(expected), "{}", run.shown());
    }
}

#[test]
fn what_get_has_moved_along_the_graph_stays_with_the_minimal_strategy() {
    let mut sandbox = sandbox("ops/kafka#^1.0.0");
    sandbox.set("MU_RESOLUTION", "minimal");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["get", "ops/kafka#^1.0.1"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/ops/kafka 1.0.1"]);
    let (lock, manifest) = (sandbox.read("Mu.lock"), sandbox.read("Mu.yaml"));
    // The manifest alone means 1.0.0, and no upgrade leads back there.
    sandbox.mu(&["get"]).ok();
    assert_eq!((sandbox.read("Mu.lock"), sandbox.read("Mu.yaml")), (lock, manifest));
}
