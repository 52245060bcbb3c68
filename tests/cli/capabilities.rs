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
fn two_providers_are_a_conflict_and_none_is_one_too() {
    let sandbox = sandbox();
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [net/calico, net/cilium]\n");
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: no versions fit together
      acme/shop requires net/calico
      net/calico 1.0.0 provides net.mu.com/v1/Network
      acme/shop requires net/cilium
      net/cilium 1.0.0 provides net.mu.com/v1/Network
      only one package at a time can provide net.mu.com/v1/Network
    [exit 1]
    ");
    let missing = "name: acme/shop\nrequires: [net.mu.com/v1/Firewall]\n";
    sandbox.write("Mu.yaml", missing);
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: nothing provides what is required
      acme/shop requires the capability net.mu.com/v1/Firewall
      nothing provides the capability net.mu.com/v1/Firewall
    [exit 1]
    ");
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
