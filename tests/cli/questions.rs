//! Questions: `list`, `tree`, `graph`, `why`, `outdated`, `status`, `verify`.

use serde_json::json;

use crate::support::{Package, Run, Sandbox};

/// `acme/web` → app → ec2 ⇄ vpc, and s3 beside.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1", "aws/s3#~2.0", "aws/vpc#^1"]);
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/ec2#^1.0"),
        Package::new("aws/ec2", "1.0.6").needs("aws/vpc#~1.1"),
        Package::new("aws/vpc", "1.1.0").needs("aws/ec2#^1"),
        Package::new("aws/s3", "2.0.0"),
    ]);
    sandbox.mu(&["get"]).ok();
    sandbox
}

#[test]
fn questions_about_packages_elsewhere_need_no_package_of_the_workspace() {
    let sandbox = sandbox();
    std::fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is there");
    sandbox.write("y/Mu.yaml", "name: acme/lib\nversion: 1.1.0\n");
    for (text, reason) in [
        ("name: acme/lib\nversion: 1.0.0\n", "`acme/lib` is in this workspace twice"),
        ("name: [\n", "[DIR]/work/x/Mu.yaml:1:7: this is not YAML"),
        ("name: acme/x\nnope: 1\n", "[DIR]/work/x/Mu.yaml:2:1: unknown key `nope`"),
    ] {
        sandbox.write("x/Mu.yaml", text);
        let left_out = format!("warning: the workspace's own packages are left out: {reason}");
        for question in [&["info", "aws/vpc"][..], &["versions", "aws/vpc"]] {
            sandbox.mu(question).ok().says(&[&left_out, "1.1.0"]);
        }
        sandbox.mu(&["search", "vpc"]).says(&[&left_out]);
        let yank = ["yank", "aws/s3#2.0.0", "--reason", "old", "--to", "../hub"];
        sandbox.mu(&yank).ok().says(&[&left_out]);
        sandbox.mu(&["yank", "aws/s3#2.0.0", "--undo", "--to", "../hub"]).ok();
        let tag = ["tag", "aws/s3#2.0.0", "beta", "--to", "../hub"];
        sandbox.mu(&tag).ok().says(&[&left_out]);
        // What is about them still fails.
        sandbox.mu(&["get"]).fails();
    }
}

#[test]
fn list_shows_what_is_installed() {
    let sandbox = sandbox();
    let run = sandbox.mu(&["list"]).ok();
    insta::assert_snapshot!(run.narrow(), @"
    $ mu list
    package  version  from
    aws/app  1.0.0  hub+file://[DIR]/hub/
    aws/ec2  1.0.6  hub+file://[DIR]/hub/
    aws/s3  2.0.0  hub+file://[DIR]/hub/
    aws/vpc  1.1.0  hub+file://[DIR]/hub/
    [exit 0]
    ");
    assert_eq!(sandbox.mu(&["ls"]).ok().stdout, run.stdout);
    let json = sandbox.mu(&["list", "--json"]).ok().json();
    assert_eq!(
        json["packages"][0],
        json!({
            "id": "hub.mu.com/aws/app",
            "version": "1.0.0",
            "source": "hub+file://[DIR]/hub/",
            "commit": null,
            "installed": true,
            "path": "[DIR]/work/.mu/packs/hub.mu.com/aws/app",
            "replacedBy": null,
        })
    );
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["list"]).ok().says(&["not installed, run `mu get`"]);
    let run = sandbox.mu(&["list", "--workspace"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu list --workspace
    package   version  folder
    acme/web  0.1.0    .
    [exit 0]
    ");
}

#[test]
fn nothing_installed_is_said_so() {
    let run = Sandbox::new().mu(&["list"]).ok();
    assert_eq!(run.stdout, "");
    run.says(&["nothing is installed here"]);
}

#[test]
fn tree_shows_cycles_once() {
    let sandbox = sandbox();
    let run = sandbox.mu(&["tree"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu tree
    acme/web 0.1.0
    ├── aws/app 1.0.0 [required: ^1]
    │   └── aws/ec2 1.0.6 [required: ^1.0]
    │       └── aws/vpc 1.1.0 [required: ~1.1]
    │           └── aws/ec2 1.0.6 [required: ^1] (cycle)
    ├── aws/s3 2.0.0 [required: ~2.0]
    └── aws/vpc 1.1.0 [required: ^1] (*)
    [exit 0]
    ");
    let run = sandbox.mu(&["tree", "--depth", "1"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu tree --depth 1
    acme/web 0.1.0
    ├── aws/app 1.0.0 [required: ^1]
    ├── aws/s3 2.0.0 [required: ~2.0]
    └── aws/vpc 1.1.0 [required: ^1]
    [exit 0]
    ");
    let run = sandbox.mu(&["tree", "--invert", "aws/ec2"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu tree --invert aws/ec2
    aws/ec2 1.0.6
    ├── aws/app 1.0.0 [requires: ^1.0]
    │   └── acme/web 0.1.0 [requires: ^1]
    └── aws/vpc 1.1.0 [requires: ^1]
        ├── acme/web 0.1.0 [requires: ^1]
        └── aws/ec2 1.0.6 [requires: ~1.1] (cycle)
    [exit 0]
    ");
    let json = sandbox.mu(&["tree", "--json"]).ok().json();
    assert_eq!(json["roots"][0]["name"], "acme/web");
    assert_eq!(json["roots"][0]["dependencies"][0]["spec"], "^1");
}

#[test]
fn graph_shows_cycles_in_every_format() {
    let sandbox = sandbox();
    let run = sandbox.mu(&["graph", "--format", "mermaid"]).ok();
    insta::assert_snapshot!(run.shown(), @r#"
    $ mu graph --format mermaid
    flowchart LR
      n0["acme/web<br/>0.1.0"]:::own
      n1["aws/app<br/>1.0.0"]
      n2["aws/ec2<br/>1.0.6"]
      n3["aws/s3<br/>2.0.0"]
      n4["aws/vpc<br/>1.1.0"]
      n0 -->|"^1"| n1
      n0 -->|"~2.0"| n3
      n0 -->|"^1"| n4
      n1 -->|"^1.0"| n2
      n2 -->|"~1.1"| n4
      n4 -->|"^1"| n2
      classDef own font-weight:bold
    [exit 0]
    "#);
    let json = sandbox.mu(&["graph", "--format", "json"]).ok().json();
    assert_eq!(
        json["nodes"][2],
        json!({ "name": "hub.mu.com/aws/ec2", "id": "hub.mu.com/aws/ec2", "version": "1.0.6", "root": false })
    );
    assert_eq!(json["edges"][0], json!({ "from": 0, "to": 1, "spec": "^1" }));
    assert_eq!(sandbox.mu(&["graph", "--json"]).ok().json(), json);
    let picture = sandbox.mu(&["graph", "--format", "svg"]).ok().stdout;
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    assert_eq!(picture.matches("<g class=\"node").count(), 5, "{picture}");
    assert_eq!(picture.matches("<g class=\"edge back\">").count(), 1, "{picture}");
    assert_eq!(sandbox.mu(&["graph", "--format", "svg"]).ok().stdout, picture);
    let dot = sandbox.mu(&["graph"]).ok().stdout;
    assert!(dot.contains("n4 -> n2 [label=\"^1\"];"), "{dot}");
    sandbox.mu(&["graph", "--format", "png", "--json"]).fails_with("usage");
    let run = Sandbox::new().mu(&["graph", "--format", "svg"]).ok();
    run.says(&["nothing is installed"]);
}

#[test]
fn why_shows_every_way_and_every_wish() {
    let sandbox = sandbox();
    let run = sandbox.mu(&["why", "aws/vpc"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu why aws/vpc
    aws/vpc 1.1.0
    from hub+file://[DIR]/hub/
    required:
      ^1 by acme/web (at least this version)
      ~1.1 by aws/ec2 (at least this version)
    there is no newer release
    paths to it:
      acme/web → aws/vpc ^1
      acme/web → aws/app ^1 → aws/ec2 ^1.0 → aws/vpc ~1.1
    [exit 0]
    ");
    let json = sandbox.mu(&["why", "vpc", "--json"]).ok().json();
    assert_eq!(json["id"], "hub.mu.com/aws/vpc");
    assert_eq!(json["paths"].as_array().expect("is a list").len(), 2);
    sandbox.mu(&["why", "aws/nothing"]).fails().says(&["not installed here"]);
    // Being in one hub does not make names similar.
    sandbox.mu(&["why", "zz/b"]).fails().does_not_say(&["did you mean"]);
}

#[test]
fn outdated_tells_of_locked_versions_that_were_yanked_since() {
    let sandbox = Sandbox::with_dependencies(&["aws/vpc#^1", "aws/s3#1.0.0"]);
    let release = |name: &str, version: &str| sandbox.publish(&[Package::new(name, version)]);
    for (name, version) in [("aws/vpc", "1.0.0"), ("aws/vpc", "1.1.0"), ("aws/s3", "1.0.0")] {
        release(name, version);
    }
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["yank", "aws/vpc#1.1.0", "--reason", "loses data", "--to", "../hub"]).ok();
    sandbox.mu(&["yank", "aws/s3#1.0.0", "--to", "../hub"]).ok();
    // Locked packages cause no request.
    sandbox.mu(&["get"]).ok().does_not_say(&["yanked"]);
    insta::assert_snapshot!(sandbox.mu(&["outdated"]).ok().shown(), @"
    $ mu outdated
    package  current  allowed  newest  note
    aws/s3   1.0.0    1.0.0    1.0.0   1.0.0 is yanked: no reason was given
    aws/vpc  1.1.0    1.0.0    1.0.0   only Mu.lock, 1.1.0 is yanked: loses data
    [exit 0]
    ");
    let json = sandbox.mu(&["outdated", "--json"]).ok().json();
    assert_eq!(json["packages"][1]["yanked"], "loses data");
    insta::assert_snapshot!(sandbox.mu(&["update", "aws/vpc"]).ok().shown(), @"
    $ mu update aws/vpc
    ~ aws/vpc 1.1.0 → 1.0.0
    warning: `aws/s3` 1.0.0 was yanked (no reason was given); it is used because acme/web requires exactly this version
    installed 1 package (1 downloaded, 0 from cache), 2 in all
    [exit 0]
    ");
}

#[test]
fn of_many_ways_the_shortest_are_shown_first() {
    // Six layers of two packages, each of which needs both of the next: 64 ways.
    let sandbox = Sandbox::with_dependencies(&["l/a0", "l/b0"]);
    for layer in 0..5 {
        for side in ["a", "b"] {
            let package = Package::new(&format!("l/{side}{layer}"), "1.0.0");
            let next = layer + 1;
            let package = package.needs(&format!("l/a{next}")).needs(&format!("l/b{next}"));
            sandbox.publish(&[package]);
        }
    }
    for side in ["a", "b"] {
        sandbox.publish(&[Package::new(&format!("l/{side}5"), "1.0.0").needs("l/end")]);
    }
    sandbox.publish(&[Package::new("l/end", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    let ways = |run: &Run| run.stdout.lines().filter(|line| line.contains("→")).count();
    let run = sandbox.mu(&["why", "l/end"]).ok();
    assert_eq!(ways(&run), 20);
    run.says(&["… and 44 more: `mu why l/end --all`"]);
    let run = sandbox.mu(&["why", "l/end", "--all"]).ok();
    assert_eq!(ways(&run), 64);
    run.does_not_say(&["more"]);
    let json = sandbox.mu(&["why", "l/end", "--json"]).ok().json();
    let paths = json["paths"].as_array().expect("is a list");
    let different: std::collections::BTreeSet<String> =
        paths.iter().map(ToString::to_string).collect();
    assert_eq!((different.len(), &json["areAllPaths"]), (64, &json!(true)));
}

#[test]
fn outdated_shows_what_may_move_and_what_holds_back() {
    let sandbox = sandbox();
    sandbox.mu(&["outdated"]).ok().says(&["everything is at its newest version"]);
    for version in ["2.0.9", "2.4.0", "3.0.0"] {
        sandbox.hub().release("aws/s3", version);
    }
    sandbox.hub().release("aws/vpc", "1.2.0");
    let run = sandbox.mu(&["outdated"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu outdated
    package  current  allowed  newest  note
    aws/s3   2.0.0    2.0.9    3.0.0   ~2.0 by acme/web
    aws/vpc  1.1.0    1.1.0    1.2.0   ~1.1 by aws/ec2
    [exit 0]
    ");
    let json = sandbox.mu(&["outdated", "--json"]).ok().json();
    assert_eq!(
        json["packages"][0],
        json!({
            "id": "hub.mu.com/aws/s3",
            "current": "2.0.0",
            "allowed": "2.0.9",
            "newest": "3.0.0",
            "direct": true,
            "heldBackBy": json["packages"][0]["heldBackBy"],
            "movedTo": null,
            "yanked": null,
            "deprecated": null,
        })
    );
    assert!(!json["packages"][0]["heldBackBy"].as_array().expect("is a list").is_empty());
}

#[test]
fn status_tells_what_get_would_mend() {
    let sandbox = sandbox();
    let run = sandbox.mu(&["status"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu status
    workspace [DIR]/work
    package   version  folder
    acme/web  0.1.0    .
    up to date: 4 packages locked and installed
    [exit 0]
    ");
    sandbox.asks_for(&["aws/app#^1", "aws/vpc#^2"]);
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs/hub.mu.com/aws/app")).expect("was there");
    let run = sandbox.mu(&["status"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu status
    workspace [DIR]/work
    package   version  folder
    acme/web  0.1.0    .
    Mu.lock is out of date:
      acme/web requires aws/vpc ^2
      acme/web no longer requires aws/s3 ~2.0
      acme/web no longer requires aws/vpc ^1
    not installed:
      aws/app 1.0.0
    run `mu get`
    [exit 0]
    ");
    let json = sandbox.mu(&["status", "--json"]).ok().json();
    assert_eq!(json["upToDate"], false);
    assert_eq!(json["missing"], json!(["hub.mu.com/aws/app 1.0.0"]));
}

#[test]
fn verify_finds_a_tampered_pack() {
    let sandbox = sandbox();
    sandbox.mu(&["verify"]).ok().says(&["4 packs verified"]);
    // Packs may share files with the store, so a new file replaces the old one.
    let file = sandbox.path("work/.mu/packs/hub.mu.com/aws/s3/Mu.yaml");
    std::fs::remove_file(&file).expect("was there");
    std::fs::write(&file, "name: aws/s3\nversion: 2.0.0\nkeywords: [evil]\n").expect("is ours");
    let run = sandbox.mu(&["verify"]).fails();
    run.says(&["1 of 4 packs failed verification", "aws/s3 2.0.0", "its content changed"]);
    let error = sandbox.mu(&["verify", "--json"]).fails_with("integrity");
    assert_eq!(error["details"]["faults"][0]["what"], "hub.mu.com/aws/s3 2.0.0");
    // An additional file is a change too, and a missing pack is found too.
    std::fs::write(sandbox.path("work/.mu/packs/hub.mu.com/aws/ec2/new"), "").expect("is ours");
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs/hub.mu.com/aws/vpc")).expect("was there");
    sandbox.mu(&["verify"]).fails().says(&["3 of 4 packs", "it is not installed"]);
    for pack in ["s3", "ec2"] {
        let folder = format!("work/.mu/packs/hub.mu.com/aws/{pack}");
        std::fs::remove_dir_all(sandbox.path(&folder)).expect("was there");
    }
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn verify_finds_a_tampered_store() {
    let sandbox = sandbox();
    let digest = sandbox.lock()["packages"][0]["digest"].as_str().expect("is text").to_owned();
    sandbox.mu(&["verify", "--store"]).ok().says(&["4 trees verified"]);
    let files = walkdir::WalkDir::new(sandbox.path("cache")).into_iter().flatten();
    let tampered = files
        .filter(|file| file.file_name() == "Mu.yaml")
        .find(|file| {
            let text = std::fs::read_to_string(file.path()).expect("can be read");
            text.starts_with("name: aws/app")
        })
        .expect("the store holds the manifest");
    std::fs::remove_file(tampered.path()).expect("is ours");
    std::fs::write(tampered.path(), "name: aws/app\n").expect("is ours");
    sandbox.mu(&["verify", "--store"]).fails().says(&[&digest]);
    // A pack made from it would not match the lock, so it is fetched again.
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["get"]).ok().says(&["was changed; fetching it again"]);
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["verify", "--store"]).ok();
}
