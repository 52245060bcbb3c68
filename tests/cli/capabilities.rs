//! Capabilities: what requires one gets a provider, from what the hub lists, and never two.

use serde_json::json;

use crate::support::{Package, Sandbox, write};

const NETWORK: &str = "net.mu.com/v1/Network";

/// A hub where two packages provide a network and one needs it.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let hub = sandbox.hub();
    hub.publish(&Package::new("acme/api", "1.0.0").key("requires", json!([NETWORK])));
    for name in ["net/calico", "net/cilium"] {
        hub.publish(&Package::new(name, "1.0.0").key("provides", json!([NETWORK])));
    }
    let listed = json!({ "packages": ["net/cilium", "net/calico"] });
    write(hub.folder(), "capabilities/net.mu.com/v1/Network.json", listed.to_string());
    sandbox
}

#[test]
fn the_first_listed_provider_comes_along_and_stays() {
    let sandbox = sandbox();
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [acme/api]\n");
    let run = sandbox.mu(&["get", "--json"]).ok();
    let packages = run.json()["packages"].clone();
    assert_eq!(packages[0]["dependencies"], json!(["hub.mu.com/net/cilium"]));
    assert_eq!(packages[1]["id"], "hub.mu.com/net/cilium");
    let asked = json!([{ "by": "hub.mu.com/acme/api", "spec": format!("capability {NETWORK}") }]);
    assert_eq!(packages[1]["requested"], asked);
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains(&format!("  requires: [{NETWORK}]\n")), "{lock}");
    assert!(lock.contains(&format!("  provides: [{NETWORK}]\n")), "{lock}");

    // Another order in the hub moves nobody who has a lock, not even when something else is added.
    let listed = json!({ "packages": ["net/calico", "net/cilium"] });
    let hub = sandbox.hub();
    write(hub.folder(), "capabilities/net.mu.com/v1/Network.json", listed.to_string());
    hub.release("acme/other", "1.0.0");
    let run = sandbox.mu(&["get", "--json"]).ok();
    assert_eq!(run.json()["changes"], json!([]));
    sandbox.mu(&["get", "acme/other"]).ok();
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains("net/cilium") && !lock.contains("net/calico"), "{lock}");
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
}

#[test]
fn the_workspace_itself_can_require_and_provide() {
    let sandbox = sandbox();
    let manifest = format!("name: acme/shop\nrequires: [{NETWORK}]\n");
    sandbox.write("Mu.yaml", &manifest);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.read("Mu.lock").contains(&format!("[\"capability {NETWORK} by acme/shop\"]")));
    sandbox.mu(&["get", "--locked"]).ok();

    sandbox.write("own/Mu.yaml", &format!("name: acme/own\nprovides: [{NETWORK}]\n"));
    sandbox.mu(&["update"]).ok();
    let lock = sandbox.read("Mu.lock");
    assert!(!lock.contains("net/cilium"), "{lock}");
}

#[test]
fn of_two_providers_one_can_be_done_without() {
    let sandbox = sandbox();
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [net/calico, net/cilium]\n");
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @r"
    $ mu get
    error: no versions fit together
      acme/shop requires net/calico
      net/calico 1.0.0 provides net.mu.com/v1/Network
      acme/shop requires net/cilium
      net/cilium 1.0.0 provides net.mu.com/v1/Network
      only one package at a time can provide net.mu.com/v1/Network

    hint: do without net/calico: `mu remove net/calico`
    hint: do without net/cilium: `mu remove net/cilium`
    [exit 1]
    ");
    follow(&sandbox, &["get"]);

    // What is only about to be added is no reason to take back something else silently.
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [net/calico]\n");
    insta::assert_snapshot!(sandbox.mu(&["add", "net/cilium"]).fails().shown(), @r"
    $ mu add net/cilium
    error: no versions fit together
      acme/shop requires net/calico
      net/calico 1.0.0 provides net.mu.com/v1/Network
      acme/shop requires net/cilium
      net/cilium 1.0.0 provides net.mu.com/v1/Network
      only one package at a time can provide net.mu.com/v1/Network

    hint: do without net/calico: `mu remove net/calico && mu add net/cilium`
    [exit 1]
    ");
    follow(&sandbox, &["add", "net/cilium"]);

    // A version that does not provide it will do as well.
    let calico = Package::new("net/calico", "2.0.0");
    sandbox.hub().publish(&calico);
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [net/calico#^1, net/cilium]\n");
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @r"
    $ mu get
    error: no versions fit together
      acme/shop requires net/calico ^1
      net/calico 1.0.0 provides net.mu.com/v1/Network
      acme/shop requires net/cilium
      net/cilium 1.0.0 provides net.mu.com/v1/Network
      only one package at a time can provide net.mu.com/v1/Network

    hint: ask for net/calico ^2.0.0 instead of ^1: `mu add net/calico#^2.0.0`
    hint: do without net/calico: `mu remove net/calico`
    hint: do without net/cilium: `mu remove net/cilium`
    [exit 1]
    ");
    follow(&sandbox, &["get"]);
}

#[test]
fn what_nothing_provides_is_told_with_who_would() {
    let sandbox = sandbox();
    let missing = "name: acme/shop\nrequires: [net.mu.com/v1/Firewall]\n";
    sandbox.write("Mu.yaml", missing);
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: nothing provides what is required
      acme/shop requires the capability net.mu.com/v1/Firewall
      nothing provides the capability net.mu.com/v1/Firewall
    [exit 1]
    ");

    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [acme/api]\n");
    sandbox.write(".mu/workspace.yaml", "exclude: [net/calico, net/cilium]\n");
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @r"
    $ mu get
    error: nothing provides what is required
      acme/shop requires acme/api
      acme/api 1.0.0 requires the capability net.mu.com/v1/Network
      nothing provides the capability net.mu.com/v1/Network
        net/calico 1.0.0, which would, is excluded by the settings
        net/cilium 1.0.0, which would, is excluded by the settings

    hint: take `net/calico` out of `exclude` in `.mu/workspace.yaml`
    hint: take `net/cilium` out of `exclude` in `.mu/workspace.yaml`
    hint: do without acme/api: `mu remove acme/api`
    [exit 1]
    ");

    // What no list names has to be asked for.
    sandbox.write(".mu/workspace.yaml", "");
    let hub = sandbox.hub();
    write(hub.folder(), "capabilities/net.mu.com/v1/Network.json", r#"{"packages": []}"#);
    let front = Package::new("acme/front", "1.0.0").needs("acme/vpc#^1").needs("net/calico");
    hub.publish(&front);
    hub.publish(&Package::new("acme/front", "1.1.0"));
    hub.release("acme/vpc", "1.0.0");
    hub.release("acme/vpc", "2.0.0");
    let dependencies = "[acme/api, acme/front, \"acme/vpc#^2\"]";
    sandbox.write("Mu.yaml", &format!("name: acme/shop\ndependencies: {dependencies}\n"));
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @r"
    $ mu get
    error: no versions fit together
      acme/shop requires acme/api
      acme/api 1.0.0 requires the capability net.mu.com/v1/Network
      net/calico is not listed as a provider, and counts only where it is asked for
      acme/front 1.0.0 requires acme/vpc ^1
      acme/shop requires acme/vpc ^2
      no version of acme/vpc is both ^1 and ^2

    hint: ask for net/calico ^1.0.0: `mu add net/calico#^1.0.0`
    hint: do without acme/api: `mu remove acme/api`
    [exit 1]
    ");
    follow(&sandbox, &["get"]);
}

/// Runs what a failing command proposes, each from the same state, and checks that it helps.
#[track_caller]
fn follow(sandbox: &Sandbox, arguments: &[&str]) {
    let manifest = sandbox.read("Mu.yaml");
    let json: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let error: serde_json::Value =
        serde_json::from_str(&sandbox.mu(&json).fails().stderr).expect("is JSON");
    let ways = error["error"]["details"]["waysOut"].as_array().expect("are told").clone();
    assert!(!ways.is_empty(), "{error}");
    for way_out in ways {
        sandbox.write("Mu.yaml", &manifest);
        for command in way_out["commands"].as_array().expect("are commands") {
            let command = command.as_str().expect("is a text");
            let words: Vec<&str> =
                command.split(' ').skip(1).map(|word| word.trim_matches('\'')).collect();
            sandbox.mu(&words).ok();
        }
    }
    sandbox.write("Mu.yaml", &manifest);
}

#[test]
fn a_list_that_makes_no_sense_says_so() {
    let sandbox = sandbox();
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [acme/api]\n");
    let hub = sandbox.hub();
    write(hub.folder(), "capabilities/net.mu.com/v1/Network.json", "[]");
    let run = sandbox.mu(&["get"]).fails();
    assert!(run.stderr.contains("is no list of packages"), "{}", run.stderr);
}
