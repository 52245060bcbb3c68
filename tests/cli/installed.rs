//! What is supposed to be installed in a cluster, and the best state that it can reach from there: catalogs of operators, channels and
//! upgrade graphs, without anything of it in a manifest.

use mu_testing::{Bundle, Operators};
use serde_json::json;

use crate::support::Sandbox;

/// A sandbox without a workspace's own package, and a catalog that is the base: `odf-operator` in two channels, which needs
/// `ocs-operator`, and requires a kind that two operators provide.
fn cluster() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut operators = Operators::new(&sandbox.path("catalog"));
    let after = |package: &str, version: &str, before: &str| json!({"name": format!("{package}.v{version}"), "replaces": format!("{package}.v{before}")});
    operators.package("odf-operator", "stable");
    let odf = |version, before| after("odf-operator", version, before);
    let stable = [json!("odf-operator.v3.1.0"), odf("3.5.7", "3.1.0"), odf("3.6.0", "3.5.7")];
    operators.channel("odf-operator", "stable", &stable);
    let fast = [json!("odf-operator.v3.5.7"), odf("4.0.0", "3.5.7")];
    operators.channel("odf-operator", "fast", &fast);
    for (version, needs) in
        [("3.1.0", ">=1.0.0"), ("3.5.7", ">=1.1.0"), ("3.6.0", ">=1.1.0"), ("4.0.0", ">=2.0.0")]
    {
        let bundle = Bundle::new("odf-operator", version).needs("ocs-operator", needs);
        let bundle = bundle.requires("storage.example/v1/Noobaa");
        operators.bundle(&bundle.image(&format!("quay.io/acme/odf@sha256:{}", digit(version))));
    }
    operators.package("ocs-operator", "stable");
    let ocs = |version, before| after("ocs-operator", version, before);
    let entries = [json!("ocs-operator.v1.0.0"), ocs("1.1.0", "1.0.0"), ocs("2.0.0", "1.1.0")];
    operators.channel("ocs-operator", "stable", &entries);
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        operators.bundle(&Bundle::new("ocs-operator", version));
    }
    for name in ["mcg-operator", "noobaa-operator"] {
        operators.package(name, "stable");
        operators.channel(name, "stable", &[json!(format!("{name}.v1.0.0"))]);
        operators.bundle(&Bundle::new(name, "1.0.0").provides("storage.example/v1/Noobaa"));
    }
    let place = format!("olm+file://{}", sandbox.path("catalog").display());
    let settings = format!("base: ops.example\nregistries:\n  ops.example/: {place}\n");
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox
}

fn digit(version: &str) -> String {
    version.chars().next().expect("has one").to_string().repeat(64)
}

/// What `mu resolve` answers, each as `NAME VERSION`.
fn chosen(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let answer = sandbox.mu(&[&["resolve", "--json"], arguments].concat()).ok().json();
    let packages = answer["packages"].as_array().expect("is a list").iter();
    let text = |value: &serde_json::Value| value.as_str().expect("is text").to_owned();
    packages
        .map(|one| {
            format!("{} {}", text(&one["id"]).replace("ops.example/", ""), text(&one["version"]))
        })
        .collect()
}

#[test]
fn a_cluster_moves_to_the_best_state_that_it_can_reach() {
    let sandbox = cluster();
    let others = "noobaa-operator";
    // Nothing is installed: the best of the default channel, and the fewest providers.
    let fresh = chosen(&sandbox, &["odf-operator", others]);
    assert_eq!(fresh, ["noobaa-operator 1.0.0", "ocs-operator 2.0.0", "odf-operator 3.6.0"]);
    for (installed, next) in [
        ("odf-operator#3.1.0@stable", "odf-operator 3.5.7"),
        ("odf-operator#3.5.7@stable", "odf-operator 3.6.0"),
        ("odf-operator#3.6.0@stable", "odf-operator 3.6.0"),
        ("odf-operator#3.5.7@fast", "odf-operator 4.0.0"),
    ] {
        let found = chosen(&sandbox, &["odf-operator", others, "--installed", installed]);
        assert!(found.contains(&next.to_owned()), "{installed}: {found:?}");
    }
    // All of a list moves together, each one upgrade.
    sandbox.write("cluster.txt", "odf-operator#3.1.0@stable\nocs-operator#1.0.0\n");
    let found = chosen(&sandbox, &["odf-operator", others, "--installed", "cluster.txt"]);
    assert_eq!(found, ["noobaa-operator 1.0.0", "ocs-operator 1.1.0", "odf-operator 3.5.7"]);
    // The same with a manifest.
    sandbox.write("Mu.yaml", "name: acme/cluster\ndependencies: [odf-operator, noobaa-operator]\n");
    assert_eq!(chosen(&sandbox, &["--installed", "cluster.txt"]), found);
    // What is asked for and cannot be reached is refused, with a way.
    let run = ["resolve", "odf-operator#3.1.0", others, "--installed", "odf-operator#3.6.0@stable"];
    sandbox.mu(&run).fails().says(&["odf-operator 3.1.0 cannot be reached from 3.6.0"]);
}

#[test]
fn whoever_says_what_is_installed_learns_of_upgrades() {
    let sandbox = cluster();
    let run = sandbox.mu(&["outdated", "--installed", "odf-operator#3.1.0@stable"]).ok();
    run.says(&["odf-operator", "3.1.0", "3.6.0"]).does_not_say(&["Mu.lock"]);
    let json = sandbox.mu(&["outdated", "--installed", "odf-operator#3.6.0@stable", "--json"]);
    let packages = json.ok().json()["packages"].clone();
    assert_eq!(packages[0]["current"], "3.6.0", "4.0.0 is in another channel");
    assert_eq!(
        (&packages[0]["allowed"], &packages[0]["newest"]),
        (&json!("3.6.0"), &json!("4.0.0"))
    );
    let dry = ["update", "odf-operator", "--installed", "odf-operator#3.1.0@stable", "--dry-run"];
    sandbox.mu(&dry).ok().says(&["odf-operator 3.1.0 → 3.5.7 → 3.6.0"]);
    assert!(!sandbox.path("work/Mu.lock").exists());
}

#[test]
fn a_client_learns_where_the_image_of_a_bundle_is() {
    let sandbox = cluster();
    let answer = sandbox.mu(&["resolve", "odf-operator", "--json"]).ok().json();
    let packages = answer["packages"].as_array().expect("is a list").iter();
    let odf = packages.into_iter().find(|one| one["id"] == "ops.example/odf-operator");
    let url = format!("oci://quay.io/acme/odf@sha256:{}", digit("3"));
    assert_eq!(odf.expect("is there")["url"], *url);
    // Its name finds the package.
    let found = sandbox.mu(&["search", "odf-operator.v3.5.7", "--json"]).ok().json();
    assert_eq!(found["packages"][0]["id"], "ops.example/odf-operator");
    let all = sandbox.mu(&["search", "--json"]).ok().json();
    assert_eq!(all["total"], 4);
}
