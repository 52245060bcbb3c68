//! `resolve`: what would be chosen, with every assumption; nothing is written.

use serde_json::{Value, json};

use crate::support::{Package, Sandbox};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0"),
        Package::new("aws/ec2", "1.1.0").needs("aws/vpc#^1"),
        Package::new("aws/ec2", "2.0.0").needs("aws/vpc#^2"),
        Package::new("aws/vpc", "1.0.0"),
        Package::new("aws/vpc", "2.0.0").key("constraints", json!({"kubernetes": ">=1.25"})),
        Package::new("aws/s3", "1.0.0"),
    ]);
    sandbox
}

/// `NAME VERSION` of what is chosen.
#[track_caller]
fn chosen(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let mut all = vec!["resolve", "--json"];
    all.extend(arguments);
    let before = sandbox.state();
    let json = sandbox.mu(&all).ok().json();
    assert!(sandbox.state() == before, "nothing is written");
    let text = |value: &Value| value.as_str().expect("is text").to_owned();
    let packages = json["packages"].as_array().expect("is a list").clone();
    packages
        .iter()
        .map(|package| {
            let id = text(&package["id"]);
            format!("{} {}", id.trim_start_matches("hub.mu.com/"), text(&package["version"]))
        })
        .collect()
}

#[test]
fn the_workspace_is_resolved_as_it_stands() {
    let sandbox = sandbox();
    let run = sandbox.mu(&["resolve"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu resolve
    aws/ec2 1.1.0
    aws/vpc 1.0.0

    compared with Mu.lock:
    + aws/ec2 1.1.0
    + aws/vpc 1.0.0
    2 packages would be in use; nothing was written
    [exit 0]
    ");
    let run = sandbox.mu(&["what-if", "--explain", "--with", "aws/s3"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu what-if --explain --with aws/s3
    aws/ec2 1.1.0
      ^1 by acme/web
    aws/s3 1.0.0
      latest by mu resolve --with
    aws/vpc 1.0.0
      ^1 by aws/ec2

    compared with Mu.lock:
    + aws/ec2 1.1.0
    + aws/s3 1.0.0
    + aws/vpc 1.0.0
    3 packages would be in use; nothing was written
    [exit 0]
    ");
}

#[test]
fn references_stand_instead_and_with_adds() {
    let sandbox = sandbox();
    assert_eq!(chosen(&sandbox, &["aws/s3"]), ["aws/s3 1.0.0"]);
    assert_eq!(
        chosen(&sandbox, &["--with", "aws/s3"]),
        ["aws/vpc 1.0.0", "aws/ec2 1.1.0", "aws/s3 1.0.0"]
    );
    assert_eq!(chosen(&sandbox, &["--with", "aws/ec2#1.0.0"]), ["aws/ec2 1.0.0"]);
    assert_eq!(chosen(&sandbox, &["--with", "aws/ec2#^2"]), ["aws/vpc 2.0.0", "aws/ec2 2.0.0"]);
}

#[test]
fn without_and_exclude_take_away() {
    let sandbox = sandbox();
    assert_eq!(chosen(&sandbox, &["--without", "aws/ec2", "--with", "aws/s3"]), ["aws/s3 1.0.0"]);
    assert_eq!(chosen(&sandbox, &["--exclude", "aws/ec2#1.1.0"]), ["aws/ec2 1.0.0"]);
    assert_eq!(chosen(&sandbox, &["--exclude", "aws/vpc"]), ["aws/ec2 1.0.0"]);
    sandbox.mu(&["resolve", "--exclude", "aws/ec2"]).fails().says(&["aws/ec2", "excluded"]);
}

#[test]
fn what_is_installed_moves_like_everything() {
    let sandbox = sandbox();
    let newest = ["aws/vpc 1.0.0", "aws/ec2 1.1.0"];
    assert_eq!(chosen(&sandbox, &["--installed", "aws/ec2#1.0.0"]), newest);
    let json = sandbox.mu(&["resolve", "--installed", "aws/ec2", "--json"]);
    json.fails_with("usage");
}

#[test]
fn facts_of_the_runtime_decide() {
    let sandbox = sandbox();
    let old = ["--runtime", "kubernetes=1.24.0", "aws/vpc"];
    assert_eq!(chosen(&sandbox, &old), ["aws/vpc 1.0.0"]);
    let new = ["--runtime", "kubernetes=1.29.0", "aws/vpc"];
    assert_eq!(chosen(&sandbox, &new), ["aws/vpc 2.0.0"]);
    sandbox
        .mu(&["resolve", "--runtime", "kubernetes=1.24.0", "aws/vpc#2"])
        .fails()
        .says(&["kubernetes"]);
    sandbox.mu(&["resolve", "--runtime", "kubernetes", "--json"]).fails_with("usage");
}

#[test]
fn it_is_compared_with_the_lock() {
    let sandbox = sandbox();
    sandbox.mu(&["get"]).ok();
    let json = sandbox.mu(&["resolve", "--with", "aws/ec2#1.0.0", "--json"]).ok().json();
    assert_eq!(
        json["changes"],
        json!([
            {"id": "hub.mu.com/aws/ec2", "from": "1.1.0", "to": "1.0.0"},
            {"id": "hub.mu.com/aws/vpc", "from": "1.0.0", "to": null},
        ])
    );
    assert_eq!(json["resolution"], "highest");
}

#[test]
fn only_what_something_here_asks_for_can_be_left_out() {
    let sandbox = sandbox();
    sandbox.mu(&["get"]).ok();
    let transitive = sandbox.mu(&["resolve", "--without", "aws/vpc"]).fails();
    transitive.says(&["nothing here requires `aws/vpc`", "because `aws/ec2` needs it"]);
    let misspelled = sandbox.mu(&["resolve", "--without", "aws/ec3"]).fails();
    misspelled.says(&["did you mean `aws/ec2`?"]);
    assert!(chosen(&sandbox, &["--without", "aws/ec2"]).is_empty());
}

#[test]
fn what_would_be_used_though_it_was_withdrawn_is_told() {
    let mut sandbox = sandbox();
    sandbox.set("MU_RESOLUTION", "minimal");
    sandbox.publish(&[Package::new("aws/s3", "1.1.0").key("yanked", json!("loses data"))]);
    let run = sandbox.mu(&["resolve", "aws/s3#1.1.0"]).ok();
    run.says(&["warning: `aws/s3` 1.1.0 was yanked (loses data)"]);
}

#[test]
fn an_element_stands_for_its_package() {
    let sandbox = sandbox();
    let exports = "exports:\n  VM: {kind: class, path: vm.ts}\n";
    let package = Package::new("std/lib", "1.2.0").manifest(exports);
    sandbox.publish(&[package.file("vm.ts", "export class VM {}\n")]);
    assert_eq!(chosen(&sandbox, &["std/lib/VM#^1"]), ["std/lib 1.2.0"]);
    let with = chosen(&sandbox, &["--with", "hub.mu.com/std/lib/VM"]);
    assert_eq!(with, ["aws/vpc 1.0.0", "aws/ec2 1.1.0", "std/lib 1.2.0"]);
    sandbox.mu(&["resolve", "std/lib/VN#^1"]).fails().says(&["exports no `VN`"]);
}
