//! Upgrades that go step by step: the way is printed, and a refusal names the step that is missing and the way round.

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
    ~ hub.mu.com/ops/kafka 1.0.0 → 1.0.1 → 1.0.3
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
    let run = sandbox.mu(&["resolve", "ops/kafka", "--installed", "ops/kafka#1.0.0", "--explain"]);
    insta::assert_snapshot!(run.ok().shown(), @"
    $ mu resolve ops/kafka --installed ops/kafka#1.0.0 --explain
    hub.mu.com/ops/kafka 1.0.3
      latest by mu resolve

    compared with Mu.lock:
    ~ hub.mu.com/ops/kafka 1.0.0 → 1.0.1 → 1.0.3
    1 package would be in use; nothing was written
    [exit 0]
    ");
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
    hub.mu.com/ops/kafka 1.0.0
    from hub+file://[DIR]/hub/
    asked for:
      1.0.0 by acme/web (at least this version)
    why no newer version:
      1.0.1 to 1.2.0 (4 versions) are not 1.0.0, which acme/web requires
    ways that lead to it:
      acme/web → hub.mu.com/ops/kafka ^1.2
    [exit 0]
    ");
}
