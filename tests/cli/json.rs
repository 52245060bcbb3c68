//! `--json`: one document on stdout, nothing beside it, whatever the command.

use serde_json::Value;

use crate::support::{Package, Sandbox};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1"]);
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/ec2#^1.0"),
        Package::new("aws/ec2", "1.0.6"),
        Package::new("aws/s3", "1.0.0"),
    ]);
    // A warning of every run goes into the document, not beside it.
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "2.0.0"));
    sandbox
}

#[test]
fn every_answer_is_one_document() {
    let sandbox = sandbox();
    for arguments in [
        &["get", "--dry-run"][..],
        &["get"],
        &["get"],
        &["get", "-g", "aws/s3"],
        &["add", "aws/s3"],
        &["pin"],
        &["unpin"],
        &["remove", "aws/s3"],
        &["get", "aws/s3"],
        &["update"],
        &["update", "aws/app"],
        &["resolve"],
        &["what-if", "--with", "aws/s3"],
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
        &["status"],
        &["info", "aws/app"],
        &["versions", "aws/app"],
        &["verify"],
        &["verify", "-g"],
        &["verify", "--store"],
        &["registry", "add", "demo.acme.co/", "../hub"],
        &["registry", "list"],
        &["registry", "remove", "demo.acme.co/"],
        &["doctor"],
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
    ] {
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
