//! `--json`: every command prints one document on stdout, and nothing else.

use std::fs::File;

use serde_json::{Value, json};

use crate::support::git::git;
use crate::support::{Nginx, Package, Sandbox, conforms, described};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1"]);
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/ec2#^1.0"),
        Package::new("aws/ec2", "1.0.6"),
        Package::new("aws/s3", "1.0.0"),
    ]);
    // A warning of every run is in the document.
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "2.0.0"));
    sandbox
}

/// What is asked in a workspace, one after the other.
const IN_A_WORKSPACE: &[&[&str]] = &[
    &["get", "--dry-run"],
    &["get"],
    &["get"],
    &["get", "-g", "aws/s3"],
    &["add", "aws/s3"],
    &["pin"],
    &["unpin"],
    &["remove", "aws/s3"],
    &["get", "aws/s3"],
    &["downgrade", "aws/app#1.0.0"],
    &["upgrade", "--dry-run"],
    &["update"],
    &["update", "aws/app"],
    &["resolve"],
    &["resolve", "--compare"],
    &["what-if", "--with", "aws/s3"],
    &["vendor"],
    &["vendor", "--undo"],
    &["fetch"],
    &["build"],
    &["edit"],
    &["patch"],
    &["patch", "aws/app"],
    &["diff", "aws/app"],
    &["which", "aws/app"],
    &["which", "aws/ec2#^1"],
    &["which", "--all", "aws/app"],
    &["list"],
    &["list", "-g"],
    &["list", "--workspace"],
    &["tree"],
    &["tree", "-i", "aws/app"],
    &["why", "aws/app"],
    &["graph"],
    &["graph", "--format", "svg"],
    &["outdated"],
    &["outdated", "-g"],
    &["affected", "--since", "HEAD"],
    &["images"],
    &["licenses"],
    &["sbom"],
    &["audit"],
    &["audit", "--fix"],
    &["import"],
    &["status"],
    &["info", "aws/app"],
    &["versions", "aws/app"],
    &["trust"],
    &["trust", "show", "aws/app"],
    &["trust", "add", "ada", "github:acme/charts", "-w", "--yes"],
    &["trust", "allow", "aws/app", "-w", "--yes"],
    &["verify"],
    &["verify", "-g"],
    &["verify", "--store"],
    &["registry", "add", "demo.acme.co/", "../hub"],
    &["registry", "list"],
    &["registry", "remove", "demo.acme.co/"],
    &["config", "list"],
    &["config", "get", "base"],
    &["config", "set", "link", "copy"],
    &["config", "unset", "link"],
    &["env"],
    &["version"],
    &["version", "patch"],
    &["doctor"],
    &["plugin", "list"],
    &["completions", "zsh"],
    &["man"],
    &["man", "--into", "man"],
    &["cache", "dir"],
    &["cache", "size"],
    &["cache", "prune"],
    &["cache", "clean"],
    &["schema", "manifest"],
    &["schema", "workspace"],
    &["schema", "lock"],
    &["schema", "answer", "cache", "size"],
    &["init", "acme/web", "-C", "../hub"],
    &["logout", "hub.acme.co"],
];

/// What is asked of hubs.
const OF_HUBS: &[&[&str]] = &[
    &["hub", "init", "../other"],
    &["hub", "token", "add", "../other", "ci", "--namespace", "acme"],
    &["hub", "token", "list", "../other"],
    &["hub", "token", "revoke", "../other", "ci"],
    &["pack", "--dry-run"],
    &["publish", "--to", "../other", "--dry-run"],
    &["publish", "--to", "../other"],
    &["tag", "acme/web#1.0.0", "beta", "--to", "../other"],
    &["yank", "acme/web#1.0.0", "--to", "../other"],
    &["deprecate", "acme/web#1.0.0", "--to", "../other"],
    &["registry", "add", "hub.mu.com/acme/", "../other"],
    &["search", "web"],
    &["mirror", "aws/app", "--to", "../other"],
    &["hub", "check", "../other"],
    &["hub", "tidy", "../other"],
];

#[test]
fn every_answer_is_one_document() {
    let sandbox = sandbox();
    sandbox.write("vendir.yml", "directories: [{path: a, contents: [{path: b, manual: {}}]}]\n");
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet", "."]);
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message", "begin"]);
    for arguments in IN_A_WORKSPACE {
        let mut all = arguments.to_vec();
        all.push("--json");
        let run = sandbox.mu(&all).ok();
        assert!(run.json().is_object(), "{}", run.shown());
        assert_eq!(run.stderr, "", "{}", run.shown());
        // The flag may stand in front, too.
        let mut all = vec!["--json"];
        all.extend(&arguments[..1]);
        all.push("--help");
        sandbox.mu(&all).ok();
    }
}

#[test]
fn hubs_answer_in_one_document_too() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("aws/app", "1.0.0")]);
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    for arguments in OF_HUBS {
        let run = sandbox.mu(&[arguments, &["--json"][..]].concat()).ok();
        assert!(run.json().is_object(), "{}", run.shown());
        assert_eq!(run.stderr, "", "{}", run.shown());
    }
    sandbox.write("token", "secret\n");
    let login = ["login", "hub.acme.co", "--json", "--yes", "--offline"];
    let mut command = sandbox.command(&login);
    command.stdin(File::open(sandbox.path("work/token")).expect("was written"));
    assert_eq!(sandbox.run(&login, command).ok().json()["host"], "hub.acme.co");
}

/// Tests compare every answer with its schema; this checks that there is one for each command.
#[test]
fn every_command_is_among_those_that_are_compared() {
    let asked: Vec<&[&str]> = IN_A_WORKSPACE.iter().chain(OF_HUBS).copied().collect();
    // The rest needs a plugin, and is tested elsewhere.
    let is_elsewhere = |name: &String| name.starts_with("plugin ") && name != "plugin list";
    let described =
        described().iter().filter(|name| !["error", "login", "whoami"].contains(&&***name));
    for name in described.filter(|name| !is_elsewhere(name)) {
        let words: Vec<&str> = name.split(' ').collect();
        assert!(asked.iter().any(|asked| asked.starts_with(&words)), "{name} is not asked");
    }
}

#[test]
fn what_a_schema_does_not_say_is_found() {
    let fits = |answer: Value| conforms("which", &answer);
    let place = |number: Value| json!({ "id": "a/b", "path": "/b", "folder": "/b", "place": number, "version": null, "element": null, "kind": null });
    assert_eq!(fits(place(json!(1))), Ok(()));
    assert_eq!(fits(place(Value::Null)), Ok(()));
    assert_eq!(fits(json!({ "places": [] })), Ok(()));
    for (answer, fault) in [
        (place(json!("1")), "/place: should be"),
        (json!({ "places": [], "more": 1 }), "/more: is not described"),
        (json!({ "warnings": [] }), "should have \"places\""),
        (
            json!({ "places": [{ "place": 1, "path": "/b", "state": "there", "why": null }] }),
            "/places/*/state: ",
        ),
    ] {
        let error = fits(answer).expect_err("is not described");
        assert!(error.contains(fault), "{error}");
    }
}

#[test]
fn warnings_are_in_the_document() {
    let sandbox = sandbox();
    let json = sandbox.mu(&["get", "--json"]).ok().json();
    let warnings = json["warnings"].as_array().expect("is a list");
    assert!(warnings[0].as_str().expect("is text").contains("2.0.0"), "{json}");
}

#[test]
fn what_changes_versions_answers_alike() {
    let sandbox = sandbox();
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().expect("is an object").keys().cloned().collect()
    };
    let first = sandbox.mu(&["get", "--json"]).ok().json();
    for arguments in [&["update"][..], &["add", "aws/s3"], &["remove", "aws/s3"], &["resolve"]] {
        let mut all = arguments.to_vec();
        all.push("--json");
        let json = sandbox.mu(&all).ok().json();
        let common = ["resolution", "packages", "requirements", "changes", "replaced"];
        for key in common {
            assert!(keys(&json).iter().any(|other| other == key), "{arguments:?}: {json}");
        }
        assert_eq!(keys(&json["packages"][0]), keys(&first["packages"][0]), "{arguments:?}");
    }
}

#[test]
fn packages_are_in_the_order_of_installing_and_say_where_their_archives_are() {
    let sandbox = Sandbox::with_dependencies(&["aws/app", "zed/last"]);
    let elsewhere =
        Package::new("net/base", "1.0.0").key("urls", json!(["packs/net/base/base-1.0.0.tgz"]));
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("web/lib#^1").needs("net/base#^1"),
        Package::new("web/lib", "1.0.0").needs("net/base#^1"),
        elsewhere,
        Package::new("zed/last", "1.0.0"),
    ]);
    let order = ["net/base", "web/lib", "aws/app", "zed/last"];
    let server = Nginx::serve(&sandbox.path("hub"), "");
    for root in [format!("file://{}/", sandbox.path("hub").display()), server.url("")] {
        sandbox.hub_is_at(&root);
        for arguments in [
            &["resolve", "--json"][..],
            &["get", "--dry-run", "--json"],
            &["get", "--json"],
            &["get", "--json"],
            &["update", "--json"],
        ] {
            let json = sandbox.mu(arguments).ok().json();
            let packages = json["packages"].as_array().expect("is a list").clone();
            let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
            let ids: Vec<String> = packages.iter().map(|one| text(one, "id")).collect();
            assert_eq!(ids, order.map(|name| format!("hub.mu.com/{name}")), "{arguments:?}");
            let urls: Vec<String> = packages.iter().map(|one| text(one, "url")).collect();
            let place = |name: &str| {
                let (_, leaf) = name.split_once('/').expect("has two parts");
                format!("{root}packs/{name}/{leaf}-1.0.0.tgz")
                    .replace(&sandbox.root().display().to_string(), "[DIR]")
            };
            assert_eq!(urls, order.map(place), "{arguments:?}");
            assert!(
                packages.iter().all(|one| text(one, "archive").starts_with("sha256:")),
                "{json}"
            );
        }
    }
}

#[test]
fn a_mistake_in_a_manifest_of_another_ecosystem_is_one_in_a_manifest() {
    let crossplane =
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nspec: {dependsOn: 7}\n";
    for (name, text) in [
        ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies: 7\n"),
        ("kcl.mod", "[package]\nname = \"shop\"\nversion = \"1.0.0\"\n[dependencies]\nk8s = 7\n"),
        ("crossplane.yaml", crossplane),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write(name, text);
        let error = sandbox.mu(&["get", "--json"]).fails_with("manifest");
        assert!(
            error["details"]["path"].as_str().is_some_and(|path| path.ends_with(name)),
            "{error}"
        );
    }
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "registries: 7\n");
    sandbox.mu(&["get", "--json"]).fails_with("workspace");
}
