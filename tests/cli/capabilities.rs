//! Capabilities: what requires one gets exactly one provider, from the hub's list.

use serde_json::json;

use crate::support::git::Origin;
use crate::support::{Package, Sandbox, write};
use crate::ways_out::told;

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
    assert_eq!(packages[1]["dependencies"], json!(["hub.mu.com/net/cilium"]));
    assert_eq!(packages[0]["id"], "hub.mu.com/net/cilium");
    let asked = json!([{ "by": "hub.mu.com/acme/api", "spec": format!("capability {NETWORK}") }]);
    assert_eq!(packages[0]["requested"], asked);
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains(&format!("  requires: [{NETWORK}]\n")), "{lock}");
    assert!(lock.contains(&format!("  provides: [{NETWORK}]\n")), "{lock}");

    // Another order in the hub's list moves nobody who has a lock, not even when something else is added.
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
fn one_provider_of_two_capabilities_comes_before_two() {
    let disk = "store.mu.com/v1/Disk";
    for strategy in ["highest", "minimal"] {
        let sandbox = sandbox();
        let both = json!([NETWORK, disk]);
        sandbox.publish(&[
            Package::new("acme/db", "1.0.0").key("requires", json!([disk])),
            Package::new("disks/local", "1.0.0").key("provides", json!([disk])),
            Package::new("all/one", "1.0.0").key("provides", both),
        ]);
        let list = |capability: &str, packages: &[&str]| {
            let path = format!("capabilities/{capability}.json");
            write(sandbox.hub().folder(), &path, json!({ "packages": packages }).to_string());
        };
        list(NETWORK, &["net/cilium", "all/one", "net/calico"]);
        list(disk, &["disks/local", "all/one"]);
        sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [acme/api, acme/db]\n");
        sandbox.mu(&["get", "--resolution", strategy]).ok();
        let ids = ["acme/api 1.0.0", "acme/db 1.0.0", "all/one 1.0.0"];
        assert_eq!(sandbox.locked(), ids.map(|id| format!("hub.mu.com/{id}")), "{strategy}");
    }
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

/// The sandbox with dependencies of the workspace's package.
fn depending(dependencies: &str) -> Sandbox {
    let sandbox = sandbox();
    sandbox.write("Mu.yaml", &format!("name: acme/shop\ndependencies: {dependencies}\n"));
    sandbox
}

#[test]
fn of_two_providers_one_can_be_done_without() {
    let both = || depending("[net/calico, net/cilium]");
    insta::assert_snapshot!(told(both, &["get"]).shown(), @r"
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
    // A package that is only about to be added must not silently remove something else.
    let one = || depending("[net/calico]");
    insta::assert_snapshot!(told(one, &["add", "net/cilium"]).shown(), @r"
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
    insta::assert_snapshot!(told(one, &["resolve", "--with", "net/cilium"]).shown(), @r"
    $ mu resolve --with net/cilium
    error: no versions fit together
      acme/shop requires net/calico
      net/calico 1.0.0 provides net.mu.com/v1/Network
      mu resolve --with requires net/cilium
      net/cilium 1.0.0 provides net.mu.com/v1/Network
      only one package at a time can provide net.mu.com/v1/Network

    hint: do without net/calico: `mu resolve --with net/cilium --without net/calico`
    [exit 1]
    ");
    // If two are about to be added, either can be left out.
    let none = || depending("[]");
    told(none, &["add", "net/calico", "net/cilium"]).says(&[
        "hint: do without net/calico: `mu add net/cilium`\n",
        "hint: do without net/cilium: `mu add net/calico`\n",
    ]);
    told(none, &["resolve", "net/calico", "net/cilium", "acme/api"]).says(&[
        "hint: do without net/calico: `mu resolve net/cilium acme/api`\n",
        "hint: do without net/cilium: `mu resolve net/calico acme/api`\n",
    ]);
    // A version that does not provide it would be accepted too.
    let newer = || {
        let sandbox = depending("[net/calico#^1, net/cilium]");
        sandbox.hub().publish(&Package::new("net/calico", "2.0.0"));
        sandbox
    };
    insta::assert_snapshot!(told(newer, &["get"]).shown(), @"
    $ mu get
    error: no versions fit together
      acme/shop requires net/calico ^1
      net/calico 1.0.0 provides net.mu.com/v1/Network
      acme/shop requires net/cilium
      net/cilium 1.0.0 provides net.mu.com/v1/Network
      only one package at a time can provide net.mu.com/v1/Network

    hint: in acme/shop, require net/calico ^2.0.0 instead of ^1: `mu add 'net/calico#^2.0.0'`
    hint: do without net/calico: `mu remove net/calico`
    hint: do without net/cilium: `mu remove net/cilium`
    [exit 1]
    ");
}

/// The list of dependencies in the manifest.
fn listed(sandbox: &Sandbox) -> Vec<String> {
    let text = sandbox.read("Mu.yaml");
    text.lines().filter_map(|line| line.trim().strip_prefix("- ")).map(str::to_owned).collect()
}

/// Lists providers in the hub in this order.
fn list(sandbox: &Sandbox, names: &[&str]) {
    let listed = json!({ "packages": names });
    let hub = sandbox.hub();
    write(hub.folder(), "capabilities/net.mu.com/v1/Network.json", listed.to_string());
}

#[test]
fn by_the_minimal_strategy_the_manifest_says_who_provides() {
    let mut sandbox = depending("[]");
    sandbox.set("MU_RESOLUTION", "minimal");
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies:\n  - acme/api\n");
    sandbox.mu(&["get"]).ok();
    assert_eq!(listed(&sandbox), ["acme/api", "net/cilium#>=1.0.0 # indirect"]);
    // This needs no request.
    sandbox.mu(&["get", "--offline", "--locked"]).ok();
    let state = sandbox.state();
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.state() == state, "there was nothing to do");

    // The manifest decides, whatever the hub lists first now.
    list(&sandbox, &["net/calico", "net/cilium"]);
    let lock = sandbox.read("Mu.lock");
    std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);

    let newer = Package::new("net/cilium", "1.1.0").key("provides", json!([NETWORK]));
    sandbox.hub().publish(&newer);
    sandbox.hub().publish(&Package::new("net/cilium", "2.0.0"));
    sandbox.mu(&["update"]).ok();
    assert_eq!(listed(&sandbox), ["acme/api", "net/cilium#>=1.1.0 # indirect"]);
    for command in ["get", "update", "get", "upgrade"] {
        let run = sandbox.mu(&[command, "--json"]).ok();
        assert_eq!(run.json()["changes"], json!([]), "{command}");
        assert_eq!(listed(&sandbox), ["acme/api", "net/cilium#>=1.1.0 # indirect"], "{command}");
    }

    // A required provider replaces one that is only listed.
    sandbox.mu(&["add", "net/calico"]).ok();
    assert_eq!(listed(&sandbox), ["acme/api", "net/calico#^1.0.0"]);
    sandbox.mu(&["remove", "net/calico"]).ok();
    assert_eq!(listed(&sandbox), ["acme/api", "net/calico#>=1.0.0 # indirect"]);
    sandbox.mu(&["add", "net/cilium#^1"]).ok();
    assert_eq!(listed(&sandbox), ["acme/api", "net/cilium#^1"]);
    sandbox.mu(&["remove", "acme/api"]).ok();
    assert_eq!(listed(&sandbox), ["net/cilium#^1"]);
}

#[test]
fn a_provider_is_listed_in_the_manifest_that_requires_one() {
    let mut sandbox = sandbox();
    sandbox.set("MU_RESOLUTION", "minimal");
    sandbox.write("Mu.yaml", &format!("name: acme/shop\nrequires: [{NETWORK}]\n"));
    sandbox.mu(&["get"]).ok();
    assert_eq!(listed(&sandbox), ["net/cilium#>=1.0.0 # indirect"]);
    list(&sandbox, &["net/calico", "net/cilium"]);
    for command in ["update", "get", "upgrade"] {
        let run = sandbox.mu(&[command, "--json"]).ok();
        assert_eq!(run.json()["changes"], json!([]), "{command}");
    }
    assert_eq!(listed(&sandbox), ["net/cilium#>=1.0.0 # indirect"]);
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies:\n  - net/cilium#>=1.0.0 # indirect\n");
    sandbox.mu(&["update"]).ok();
    assert_eq!(listed(&sandbox), [""; 0]);
}

#[test]
fn what_nothing_provides_is_told_with_who_would() {
    let missing = || {
        let sandbox = sandbox();
        sandbox.write("Mu.yaml", "name: acme/shop\nrequires: [net.mu.com/v1/Firewall]\n");
        sandbox
    };
    insta::assert_snapshot!(told(missing, &["get"]).shown(), @r"
    $ mu get
    error: nothing provides what is required
      acme/shop requires the capability net.mu.com/v1/Firewall
      nothing provides the capability net.mu.com/v1/Firewall

    hint: if the runtime has it, write `runtime: {provides: [net.mu.com/v1/Firewall]}` into `.mu/workspace.yaml`; if a package has it without saying so, `packages: {ID: {provides: [net.mu.com/v1/Firewall]}}`
    [exit 1]
    ");

    let excluded = || {
        let sandbox = depending("[acme/api]");
        sandbox.write(".mu/workspace.yaml", "exclude: [net/calico, net/cilium]\n");
        sandbox
    };
    insta::assert_snapshot!(told(excluded, &["get"]).shown(), @"
    $ mu get
    error: nothing provides what is required
      acme/shop requires acme/api
      acme/api 1.0.0 requires the capability net.mu.com/v1/Network
      nothing provides the capability net.mu.com/v1/Network
        net/calico 1.0.0 would, but is excluded
        net/cilium 1.0.0 would, but is excluded

    hint: take `net/calico` out of `exclude` in `.mu/workspace.yaml:1`
    hint: take `net/cilium` out of `exclude` in `.mu/workspace.yaml:1`
    hint: do without acme/api: `mu remove acme/api`
    [exit 1]
    ");

    // A provider that no list names must be required.
    let unlisted = || {
        let sandbox = depending("[acme/api, acme/front, \"acme/vpc#^2\"]");
        let hub = sandbox.hub();
        write(hub.folder(), "capabilities/net.mu.com/v1/Network.json", r#"{"packages": []}"#);
        let front = Package::new("acme/front", "1.0.0").needs("acme/vpc#^1").needs("net/calico");
        hub.publish(&front);
        hub.publish(&Package::new("acme/front", "1.1.0"));
        hub.release("acme/vpc", "1.0.0");
        hub.release("acme/vpc", "2.0.0");
        sandbox
    };
    insta::assert_snapshot!(told(unlisted, &["get"]).shown(), @"
    $ mu get
    error: no versions fit together
      acme/shop requires acme/api
      acme/api 1.0.0 requires the capability net.mu.com/v1/Network
      net/calico is not listed as a provider, so it is used only if it is itself required

    hint: in acme/shop, require net/calico ^1.0.0: `mu add 'net/calico#^1.0.0'`
    hint: do without acme/api: `mu remove acme/api`
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
    assert!(run.stderr.contains("is not a list of packages"), "{}", run.stderr);
}

#[test]
fn what_conflicts_with_a_package_is_not_chosen_beside_it() {
    let sandbox = sandbox();
    let hub = sandbox.hub();
    let alone = |version| Package::new("acme/quiet", version);
    hub.publish(&alone("1.0.0"));
    hub.publish(&alone("1.1.0").key("conflicts", json!(["net/calico"])));
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [acme/quiet, net/calico]\n");
    for resolution in ["highest", "minimal"] {
        let run = sandbox.mu(&["resolve", "--resolution", resolution, "--json"]).ok();
        assert_eq!(run.json()["packages"][0]["version"], "1.0.0", "{resolution}");
    }
    let told = sandbox.mu(&["info", "acme/quiet"]).ok();
    assert!(told.stdout.contains("conflicts    net/calico"), "{}", told.stdout);
    let told = sandbox.mu(&["resolve", "--with", "acme/quiet#1.1.0"]).fails();
    assert!(
        told.stderr.contains("  acme/quiet 1.1.0 conflicts with net/calico\n"),
        "{}",
        told.stderr
    );
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [acme/quiet#1.1.0, net/calico]\n");
    let told = sandbox.mu(&["get"]).fails();
    told.says(&[
        "hint: do without acme/quiet: `mu remove",
        "hint: do without net/calico: `mu remove",
    ]);
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [acme/quiet, net/calico]\n");
    sandbox.mu(&["get"]).ok();

    // A locked package is removed if a manifest of the workspace now conflicts with it.
    let manifest =
        "name: acme/shop\ndependencies: [acme/api, acme/quiet]\nconflicts: [net/cilium]\n";
    sandbox.write("Mu.yaml", manifest);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains("net/calico") && !lock.contains("net/cilium"), "{lock}");
    sandbox.write("Mu.yaml", &manifest.replace("cilium", "calico"));
    sandbox.mu(&["get", "--locked", "--json"]).fails_with("lock-outdated");
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.read("Mu.lock").contains("net/cilium"));
}

#[test]
fn packages_of_one_workspace_that_conflict_are_told_and_not_used_together() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.write("net/calico/Mu.yaml", "name: net/calico\nprovides: [net.mu.com/v1/Network]\n");
    for conflicts in ["net/calico", "net.mu.com/v1/Network"] {
        let manifest = format!("name: net/cilium\nversion: 1.0.0\nconflicts: [{conflicts}]\n");
        sandbox.write("net/cilium/Mu.yaml", &manifest);
        let said = "`net/cilium` conflicts with `net/calico`, and this workspace has both: no package can \
                    depend on both (`conflicts` in `[DIR]/work/net/cilium/Mu.yaml`)";
        for command in ["get", "status"] {
            let run = sandbox.mu(&[command]).ok();
            assert_eq!(run.stderr.matches(said).count(), 1, "{}", run.shown());
        }
    }
    // This also holds through another package, and for a package that only development needs.
    sandbox.write("base/Mu.yaml", "name: base\ndependencies: [hub.mu.com/net/calico]\n");
    sandbox.write(
        "Mu.yaml",
        "name: acme/web\ndependencies: [hub.mu.com/base]\ndevDependencies: [net/cilium]\n",
    );
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: no versions fit together
      acme/web requires net/cilium
      acme/web requires base
      base requires net/calico
      net/cilium conflicts with net/calico

    hint: remove one of the dependencies, or the entry under `conflicts` of the package in `net/cilium`
    [exit 1]
    ");
    sandbox.mu(&["get", "--json"]).fails_with("no-solution");
    sandbox.write("net/cilium/Mu.yaml", "name: net/cilium\nversion: 1.0.0\n");
    let run = sandbox.mu(&["get"]).ok();
    run.does_not_say(&["conflicts"]);
}

#[test]
fn a_branch_or_a_commit_provides_what_its_manifest_says() {
    let origin = Origin::new("net.git");
    let manifest = format!("name: net/own\nversion: 1.2.0\nprovides: [{NETWORK}]\n");
    let commit = origin.commit(&[("Mu.yaml", &manifest)]);
    for strategy in ["highest", "minimal"] {
        for revision in ["main", &commit] {
            let sandbox = sandbox();
            sandbox.write(".mu/workspace.yaml", &format!("resolution: {strategy}\n"));
            sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [acme/api]\n");
            let place = format!("git+file://{}#{revision}", origin.folder().display());
            sandbox.mu(&["add", &place]).ok();
            let locked = sandbox.locked();
            assert_eq!(locked.len(), 2, "{locked:?}");
            assert!(locked.iter().any(|line| line.ends_with("net 1.2.0")), "{locked:?}");
            sandbox.mu(&["get", "--locked"]).ok();
            sandbox.write("Mu.yaml", &format!("name: acme/shop\nrequires: [{NETWORK}]\n"));
            sandbox.mu(&["add", &place]).ok();
        }
    }
}

#[test]
fn a_provider_of_the_workspace_is_locked_with_its_version_wherever_it_is() {
    let provider = |name: &str, version: &str| {
        format!("name: {name}\nversion: {version}\nprovides: [{NETWORK}]\n")
    };
    let needy = "dependencies: [acme/api#^1]\n";
    for strategy in ["highest", "minimal"] {
        for (folder, text, locked) in [
            ("", format!("{}{needy}", provider("acme/m", "1.0.0")), "acme/m 1.0.0"),
            ("y/net/", provider("y/net", "2.5.0"), "y/net 2.5.0"),
            ("elsewhere/", provider("y/net", "2.5.0"), "y/net 2.5.0"),
        ] {
            let sandbox = sandbox();
            sandbox.write(".mu/workspace.yaml", &format!("resolution: {strategy}\n"));
            sandbox.write("Mu.yaml", &format!("name: acme/shop\n{needy}"));
            sandbox.write(&format!("{folder}Mu.yaml"), &text);
            sandbox.mu(&["get"]).ok();
            assert!(sandbox.locked().contains(&format!("hub.mu.com/{locked}")), "{folder}");
            let lock = sandbox.read("Mu.lock");
            sandbox.mu(&["get"]).ok().says(&["up to date"]).does_not_say(&["warning"]);
            sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
            assert_eq!(sandbox.read("Mu.lock"), lock);
            // The lock follows the manifest.
            sandbox.write(&format!("{folder}Mu.yaml"), &text.replace("version: ", "version: 1"));
            sandbox.mu(&["get"]).ok();
            let locked = format!("hub.mu.com/{}", locked.replace(' ', " 1"));
            assert!(sandbox.locked().contains(&locked), "{locked}");
            sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
        }
    }
}

/// Checks that the lock fits, and that a second `get` has nothing to do.
#[track_caller]
fn is_settled(sandbox: &Sandbox) {
    sandbox.mu(&["get", "--locked"]).ok();
    let state = sandbox.state();
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.state() == state, "there was nothing to do");
}

#[test]
fn a_provider_that_gives_way_to_what_get_was_given_is_not_listed() {
    let sandbox = sandbox();
    sandbox.write(".mu/workspace.yaml", "resolution: minimal\n");
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: []\n");
    sandbox.mu(&["get", "net/calico#^1"]).ok();
    sandbox.mu(&["add", "acme/api"]).ok();
    assert_eq!(listed(&sandbox), ["acme/api#^1.0.0"]);
    is_settled(&sandbox);
    // The same if it was listed before.
    sandbox.mu(&["remove", "net/calico"]).ok();
    is_settled(&sandbox);
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies:\n  - acme/api\n");
    std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert_eq!(listed(&sandbox), ["acme/api", "net/cilium#>=1.0.0 # indirect"]);
    sandbox.mu(&["get", "net/calico#^1"]).ok();
    assert_eq!(listed(&sandbox), ["acme/api"]);
    is_settled(&sandbox);
}

#[test]
fn a_listed_provider_stays_listed_when_get_was_given_it_too() {
    for command in [&["update"][..], &["update", "net/cilium"], &["upgrade", "--pre", "net/cilium"]]
    {
        let sandbox = sandbox();
        sandbox.write(".mu/workspace.yaml", "resolution: minimal\n");
        sandbox.write("Mu.yaml", "name: acme/shop\ndependencies:\n  - acme/api\n");
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["get", "net/cilium"]).ok();
        is_settled(&sandbox);
        sandbox.mu(command).ok();
        let expected = ["acme/api", "net/cilium#>=1.0.0 # indirect"];
        assert_eq!(listed(&sandbox), expected, "{command:?}");
        is_settled(&sandbox);
    }
}

#[test]
fn a_provider_that_a_lower_version_brings_is_listed() {
    let sandbox = sandbox();
    let hub = sandbox.hub();
    hub.publish(&Package::new("acme/api", "1.1.0"));
    sandbox.write(".mu/workspace.yaml", "resolution: minimal\n");
    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies:\n  - acme/api#^1.1\n");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["update", "acme/api#1.0.0"]).ok();
    assert_eq!(listed(&sandbox), ["acme/api#^1.0.0", "net/cilium#>=1.0.0 # indirect"]);
    is_settled(&sandbox);
}

#[test]
fn a_package_of_the_workspace_is_not_used_beside_what_conflicts_with_it() {
    for strategy in ["highest", "minimal"] {
        for with in ["acme/shop", "shops.mu.com/v1/Shop"] {
            let sandbox = sandbox();
            let apart = |version| Package::new("acme/apart", version);
            let line = format!("conflicts: [{with}]\n");
            let opposed = apart("1.1.0").manifest(&line).key("conflicts", json!([with]));
            sandbox.publish(&[apart("1.0.0"), opposed]);
            let settings = format!("resolution: {strategy}\n");
            sandbox.write(".mu/workspace.yaml", &settings);
            let manifest = |name: &str, range: &str| {
                let provides =
                    if name == "acme/shop" { "provides: [shops.mu.com/v1/Shop]\n" } else { "" };
                let text =
                    format!("name: {name}\n{provides}dependencies:\n  - acme/apart#{range}\n");
                sandbox.write("Mu.yaml", &text);
            };
            manifest("acme/shop", ">=1.0.0");
            sandbox.mu(&["get"]).ok();
            assert_eq!(sandbox.locked(), ["hub.mu.com/acme/apart 1.0.0"], "{strategy} {with}");
            manifest("acme/other", "^1.1");
            sandbox.mu(&["get"]).ok();
            // Both say it.
            manifest("acme/shop", "^1.1");
            sandbox.mu(&["get", "--locked", "--json"]).fails_with("lock-outdated");
            let told = sandbox.mu(&["get"]).fails();
            told.says(&["acme/apart 1.1.0 conflicts with ", with]);
        }
    }
}

#[test]
fn what_the_settings_say_of_a_package_counts_for_versions_before_it_said_so_itself() {
    let sandbox = Sandbox::with_dependencies(&["net/base#^1"]);
    let provides = |version: &str| {
        let package = Package::new("net/old", version).needs("net/base#^2");
        package.key("provides", json!([NETWORK]))
    };
    sandbox.publish(&[
        Package::new("net/base", "1.0.0"),
        Package::new("net/base", "2.0.0"),
        Package::new("net/old", "1.0.0"),
        provides("1.1.0"),
        Package::new("net/old", "1.2.0"),
        provides("1.3.0"),
    ]);
    list(&sandbox, &["net/old"]);
    let manifest = sandbox.read("Mu.yaml");
    sandbox.write("Mu.yaml", &format!("{manifest}requires: [{NETWORK}]\n"));
    // Those that say so need another `net/base`.
    sandbox.mu(&["get"]).fails().says(&["no versions fit together"]);
    let settings = format!("packages: {{hub.mu.com/net/old: {{provides: [{NETWORK}]}}}}\n");
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/net/base 1.0.0", "hub.mu.com/net/old 1.2.0"]);
}
