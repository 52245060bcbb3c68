//! The runtime and the version of mu in questions: versions that cannot be used here are marked, and not
//! suggested.

use serde_json::{Value, json};

use crate::support::git::{HttpServer, Origin};
use crate::support::{Package, Sandbox};

/// A package whose newest version needs a new Kubernetes, and its middle one an old one.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let needs = |version: &str, range: &str| {
        Package::new("aws/ec2", version)
            .key("constraints", json!({ "kubernetes": range }))
            .key("description", json!("Machines"))
    };
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0").key("description", json!("Machines")),
        needs("1.1.0", "<1.20"),
        needs("2.0.0", ">=1.28"),
    ]);
    sandbox
}

fn settings(sandbox: &Sandbox, key: &str) {
    let settings = sandbox.read(".mu/workspace.yaml");
    sandbox.write(".mu/workspace.yaml", &format!("{settings}\n{key}\n"));
}

/// `VERSION` and whether it can be used.
fn usable(json: &Value) -> Vec<(String, bool)> {
    let versions = json["versions"].as_array().expect("is a list").iter();
    let text = |value: &Value| value.as_str().expect("is text").to_owned();
    let pair = |one: &Value| (text(&one["version"]), one["usable"] == true);
    versions.map(pair).collect()
}

#[test]
fn versions_that_cannot_run_are_marked_with_the_reason() {
    let sandbox = sandbox();
    let ask = ["versions", "aws/ec2", "--runtime", "kubernetes=1.24"];
    insta::assert_snapshot!(sandbox.mu(&ask).ok().shown(), @"
    $ mu versions aws/ec2 --runtime kubernetes=1.24
    version  note
    1.0.0
    1.1.0    needs kubernetes <1.20, but it is 1.24
    2.0.0    needs kubernetes >=1.28, but it is 1.24
    [exit 0]
    ");
    let json = sandbox.mu(&[&ask[..], &["--json"]].concat()).ok().json();
    let expected = [("1.0.0", true), ("1.1.0", false), ("2.0.0", false)];
    assert_eq!(usable(&json), expected.map(|(version, is)| (version.to_owned(), is)));
    assert_eq!(json["versions"][2]["reasons"], json!(["needs kubernetes >=1.28, but it is 1.24"]));
    // Facts that nobody stated exclude nothing.
    let unknown = sandbox.mu(&["versions", "aws/ec2", "--json"]).ok().json();
    assert!(usable(&unknown).iter().all(|(_, is)| *is), "{unknown}");
    // The settings do the same, and the command line takes precedence.
    settings(&sandbox, "runtime: {kubernetes: 1.24}\nexclude: ['aws/ec2#1.0.0']");
    let json = sandbox.mu(&["versions", "aws/ec2", "--json"]).ok().json();
    assert!(usable(&json).iter().all(|(_, is)| !*is), "{json}");
    assert_eq!(json["versions"][0]["reasons"], json!(["excluded in the settings"]));
    let newer = ["versions", "aws/ec2", "--runtime", "kubernetes=1.28.3", "--json"];
    assert_eq!(usable(&sandbox.mu(&newer).ok().json())[2], ("2.0.0".to_owned(), true));
    sandbox.mu(&["versions", "aws/ec2", "--runtime", "kubernetes", "--json"]).fails_with("usage");
}

#[test]
fn nothing_is_offered_that_cannot_be_installed() {
    let sandbox = sandbox();
    let ask = ["info", "aws/ec2", "--runtime", "kubernetes=1.24"];
    let run = sandbox.mu(&ask).ok();
    let expected = "aws/ec2 2.0.0
Machines
cannot be used here: needs kubernetes >=1.28, but it is 1.24
versions     3 versions, from 1.0.0 to 2.0.0
usable       1.0.0 is the newest version that can be used here
";
    assert!(run.stdout.starts_with(expected), "{}", run.shown());
    assert!(!run.stdout.contains("mu add"), "{}", run.shown());
    let json = sandbox.mu(&[&ask[..], &["--json"]].concat()).ok().json();
    assert_eq!((&json["usable"], &json["install"]), (&json!(false), &Value::Null));
    assert_eq!(json["newestUsable"], "1.0.0");
    let older = sandbox.mu(&["info", "aws/ec2#1.0.0", "--runtime", "kubernetes=1.24"]).ok();
    assert!(older.stdout.contains("mu add aws/ec2#1.0.0"), "{}", older.shown());
    let plain = sandbox.mu(&["info", "aws/ec2", "--json"]).ok().json();
    assert_eq!((&plain["usable"], &plain["install"]), (&json!(true), &json!("mu add aws/ec2")));
}

#[test]
fn a_search_marks_what_cannot_run() {
    let sandbox = sandbox();
    let line = r#"{"name": "aws/ec2", "latest": "2.0.0", "description": "Machines"}"#;
    std::fs::write(sandbox.path("hub/catalog.jsonl"), format!("{line}\n")).expect("is ours");
    let ask = ["search", "machines", "--runtime", "kubernetes=1.24"];
    insta::assert_snapshot!(sandbox.mu(&ask).ok().shown(), @"
    $ mu search machines --runtime kubernetes=1.24
    package  newest  note                                                        description
    aws/ec2  2.0.0   needs kubernetes >=1.28, but it is 1.24; 1.0.0 can be used  Machines
    [exit 0]
    ");
    let json = sandbox.mu(&["search", "machines", "--json"]).ok().json();
    assert_eq!(json["packages"][0]["usable"], Value::Null, "nothing was looked at");
    settings(&sandbox, "runtime: {kubernetes: 1.24}");
    let json = sandbox.mu(&["search", "machines", "--json"]).ok().json();
    let found = &json["packages"][0];
    assert_eq!((&found["usable"], &found["newestUsable"]), (&json!(false), &json!("1.0.0")));
    assert_eq!(found["reasons"], json!(["needs kubernetes >=1.28, but it is 1.24"]));
}

#[test]
fn a_repository_says_in_its_manifests_what_it_needs() {
    let origin = Origin::new("ops/kafka.git");
    for (tag, manifest) in [("v1.0.0", ""), ("v1.1.0", "constraints: {kubernetes: '>=1.28'}\n")] {
        origin.commit(&[("Mu.yaml", &format!("name: ops/kafka\n{manifest}"))]);
        origin.git(&["tag", tag]);
    }
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::new();
    let reference = format!("git+{}ops/kafka.git", server.root());
    let old = ["--runtime", "kubernetes=1.24", "--json"];
    let json = sandbox.mu(&[&["versions", &reference][..], &old].concat()).ok().json();
    assert_eq!(usable(&json), [("1.0.0".to_owned(), true), ("1.1.0".to_owned(), false)]);
    let json = sandbox.mu(&[&["info", &reference][..], &old].concat()).ok().json();
    assert_eq!((&json["usable"], &json["newestUsable"]), (&json!(false), &json!("1.0.0")));
}

#[test]
fn a_question_supposes_another_runtime_or_mu_whatever_is_locked() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2", "aws/vpc"]);
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0"),
        Package::new("aws/ec2", "2.0.0").key("constraints", json!({"kubernetes": ">=1.28"})),
        Package::new("aws/vpc", "1.0.0"),
        Package::new("aws/vpc", "2.0.0").key("muVersion", json!(">=9")),
    ]);
    sandbox.mu(&["get"]).ok();
    let chosen = |arguments: &[&str]| {
        let json = sandbox.mu(&[&["resolve", "--json"][..], arguments].concat()).ok().json();
        [0, 1].map(|at: usize| json["packages"][at]["version"].as_str().map(str::to_owned))
    };
    let pair = |one: &str, other: &str| [one, other].map(|text| Some(text.to_owned()));
    assert_eq!(chosen(&[]), pair("2.0.0", "1.0.0"));
    assert_eq!(chosen(&["--runtime", "kubernetes=1.24"]), pair("1.0.0", "1.0.0"));
    // Locked versions stay; a new package gets the newest version that this mu can use.
    let anew = ["aws/ec2", "aws/vpc", "--mu-version", "9.1"];
    assert_eq!(chosen(&anew), pair("2.0.0", "2.0.0"));
    assert_eq!(chosen(&["aws/ec2", "aws/vpc"]), pair("2.0.0", "1.0.0"));
    let listed = sandbox.mu(&["versions", "aws/vpc", "--mu-version", "9.1", "--json"]).ok().json();
    assert_eq!(usable(&listed)[1], ("2.0.0".to_owned(), true));
    sandbox.mu(&["resolve", "--mu-version", "new", "--json"]).fails_with("usage");
}

#[test]
fn a_lock_is_out_of_date_where_the_runtime_cannot_use_what_it_has() {
    for strategy in ["highest", "minimal"] {
        let sandbox = Sandbox::with_dependencies(&["aws/app", "aws/net"]);
        sandbox.publish(&[
            Package::new("aws/app", "1.0.0").needs("aws/ec2#>=1.1"),
            Package::new("aws/ec2", "1.1.0").key("constraints", json!({"kubernetes": ">=1.28"})),
            Package::new("aws/net", "1.0.0"),
        ]);
        sandbox.write(".mu/workspace.yaml", &format!("resolution: {strategy}"));
        sandbox.mu(&["get"]).ok();
        assert!(sandbox.read("Mu.lock").contains("  constraints: [\"kubernetes >=1.28\"]\n"));
        sandbox.publish(&[Package::new("aws/ec2", "1.2.0"), Package::new("aws/net", "1.1.0")]);
        sandbox.mu(&["get", "--locked"]).ok();
        settings(&sandbox, "runtime: {kubernetes: 1.24}");
        let why = "aws/ec2 1.1.0 needs kubernetes >=1.28, but it is 1.24";
        sandbox.mu(&["status"]).ok().says(&[why]);
        sandbox.mu(&["outdated"]).ok().says(&["1.1.0 needs kubernetes >=1.28, but it is 1.24"]);
        sandbox.mu(&["get", "--locked", "--offline"]).fails().says(&[why]);
        sandbox.mu(&["get", "--locked", "--json"]).fails_with("lock-outdated");
        // Only that moves.
        sandbox.mu(&["get"]).ok().says(&["~ aws/ec2 1.1.0 → 1.2.0"]);
        let (app, ec2) = ("hub.mu.com/aws/app 1.0.0", "hub.mu.com/aws/ec2 1.2.0");
        assert_eq!(sandbox.locked(), [app, ec2, "hub.mu.com/aws/net 1.0.0"], "{strategy}");
        sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    }
}

#[test]
fn a_lock_knows_what_packages_of_repositories_need_of_the_runtime() {
    let origin = Origin::new("ops/kafka.git");
    origin.commit(&[("Mu.yaml", "name: ops/kafka\nconstraints: {kubernetes: '>=1.28'}\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let sandbox = Sandbox::new();
    let reference = format!("git+file://{}/ops/kafka.git#^1", origin.root().display());
    sandbox.mu(&["get", &reference]).ok();
    settings(&sandbox, "runtime: {kubernetes: 1.24}");
    let why = "1.0.0 needs kubernetes >=1.28, but it is 1.24";
    sandbox.mu(&["get", "--locked"]).fails().says(&[why]);
    sandbox.mu(&["get"]).fails().says(&[why]);
}

#[test]
fn a_lock_of_what_needs_another_mu_is_refused_with_the_reason() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0"),
        Package::new("aws/ec2", "1.1.0").key("muVersion", json!(">=0.1")),
    ]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    assert!(
        lock.contains("  version: 1.1.0\n") && lock.contains("  muVersion: \">=0.1\"\n"),
        "{lock}"
    );
    sandbox.mu(&["get", "--locked"]).ok();
    // As a newer mu locked it.
    sandbox.write("Mu.lock", &lock.replace(">=0.1", ">=9"));
    let index = sandbox.path("hub/index/aws/ec2.jsonl");
    let lines = std::fs::read_to_string(&index).expect("can be read");
    std::fs::write(&index, lines.replace(">=0.1", ">=9")).expect("can be written");
    std::fs::remove_dir_all(sandbox.path("cache/index")).expect("was there");
    let error = sandbox.mu(&["get", "--locked", "--json"]).fails_with("lock-outdated");
    assert!(error["message"].to_string().contains("aws/ec2 1.1.0 needs mu >=9"), "{error}");
    sandbox.mu(&["get"]).ok().says(&["~ aws/ec2 1.1.0 → 1.0.0"]);
}
