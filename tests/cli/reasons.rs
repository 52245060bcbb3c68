//! Why a package has its version: `why` and `outdated`, with everything that can prevent a newer one.

use serde_json::json;

use crate::support::{Package, Sandbox};

/// A package for each thing that can prevent its newer versions.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&[
        "aws/asked#~1.0",
        "aws/conflict#>=1",
        "aws/excluded#^1",
        "aws/kept#^1",
        "aws/net#^1",
        "aws/yanked#^1",
        "aws/needy#^1",
    ]);
    let settings = "exclude: [\"aws/excluded#1.2.0\"]\nruntime: {kubernetes: 1.24.0}\n";
    sandbox.write(".mu/workspace.yaml", settings);
    let names = ["asked", "conflict", "excluded", "kept", "net", "yanked", "needy"];
    let first = names.map(|name| Package::new(&format!("aws/{name}"), "1.0.0"));
    sandbox.publish(&first);
    sandbox.hub().publish(&Package::new("aws/needy", "1.0.1").needs("aws/asked#^1"));
    sandbox.mu(&["get"]).ok();
    sandbox.publish(&[
        Package::new("aws/asked", "1.1.0"),
        Package::new("aws/asked", "1.2.0"),
        Package::new("aws/conflict", "2.0.0").needs("aws/net#^2"),
        Package::new("aws/excluded", "1.2.0"),
        Package::new("aws/kept", "1.1.0"),
        Package::new("aws/net", "2.0.0"),
        Package::new("aws/yanked", "1.1.0").key("yanked", json!("loses data")),
        Package::new("aws/needy", "1.5.0").key("constraints", json!({"kubernetes": ">=1.25"})),
    ]);
    sandbox
}

#[test]
fn what_stands_against_newer_versions_is_told() {
    let sandbox = sandbox();
    insta::assert_snapshot!(sandbox.mu(&["why", "aws/asked"]).ok().shown(), @"
    $ mu why aws/asked
    aws/asked 1.0.0
    from hub+file://[DIR]/hub/
    required:
      ~1.0 by acme/web (at least this version)
      ^1 by aws/needy (at least this version)
    why no newer version:
      1.1.0 and 1.2.0 are not ~1.0, which acme/web requires
    paths to it:
      acme/web → aws/asked ~1.0
      acme/web → aws/needy ^1 → aws/asked ^1
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["why", "aws/conflict"]).ok().shown(), @"
    $ mu why aws/conflict
    aws/conflict 1.0.0
    from hub+file://[DIR]/hub/
    required:
      >=1 by acme/web (at least this version)
    why no newer version:
      2.0.0 does not fit:
        aws/conflict 2.0.0 requires aws/net ^2
        acme/web requires aws/net ^1
    paths to it:
      acme/web → aws/conflict >=1
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["why", "aws/excluded"]).ok().shown(), @"
    $ mu why aws/excluded
    aws/excluded 1.0.0
    from hub+file://[DIR]/hub/
    required:
      ^1 by acme/web (at least this version)
    why no newer version:
      1.2.0 is excluded
    paths to it:
      acme/web → aws/excluded ^1
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["why", "aws/kept"]).ok().shown(), @"
    $ mu why aws/kept
    aws/kept 1.0.0
    from hub+file://[DIR]/hub/
    required:
      ^1 by acme/web (at least this version)
    why no newer version:
      1.1.0 would fit: `mu update aws/kept` moves up
    paths to it:
      acme/web → aws/kept ^1
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["why", "aws/yanked"]).ok().shown(), @"
    $ mu why aws/yanked
    aws/yanked 1.0.0
    from hub+file://[DIR]/hub/
    required:
      ^1 by acme/web (at least this version)
    why no newer version:
      1.1.0 is yanked: loses data
    paths to it:
      acme/web → aws/yanked ^1
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["why", "aws/needy"]).ok().shown(), @"
    $ mu why aws/needy
    aws/needy 1.0.1
    from hub+file://[DIR]/hub/
    required:
      ^1 by acme/web
    why no newer version:
      1.5.0 needs kubernetes >=1.25, but it is 1.24.0
    paths to it:
      acme/web → aws/needy ^1
    [exit 0]
    ");
    let json = sandbox.mu(&["why", "aws/conflict", "--json"]).ok().json();
    assert_eq!(
        json["versions"][0],
        json!({
            "version": "1.0.0",
            "commit": null,
            "requested": [{ "by": "acme/web", "spec": ">=1", "least": "1.0.0" }],
            "newer": [{
                "versions": "2.0.0",
                "newest": "2.0.0",
                "reason": "conflict",
                "explanation": [
                    "2.0.0 does not fit:",
                    "  aws/conflict 2.0.0 requires aws/net ^2",
                    "  acme/web requires aws/net ^1",
                ],
            }],
            "unknown": null,
        })
    );
}

#[test]
fn what_is_known_is_told_where_registries_cannot_be_asked() {
    let sandbox = sandbox();
    std::fs::rename(sandbox.path("hub"), sandbox.path("gone")).expect("is ours");
    insta::assert_snapshot!(sandbox.mu(&["why", "aws/asked"]).ok().shown(), @"
    $ mu why aws/asked
    aws/asked 1.0.0
    from hub+file://[DIR]/hub/
    required:
      ~1.0 by acme/web
      ^1 by aws/needy
    newer versions are not known: hub+file://[DIR]/hub/ no longer lists `aws/asked`
    paths to it:
      acme/web → aws/asked ~1.0
      acme/web → aws/needy ^1 → aws/asked ^1
    [exit 0]
    ");
}

#[test]
fn outdated_tells_what_holds_each_back() {
    let sandbox = sandbox();
    insta::assert_snapshot!(sandbox.mu(&["outdated"]).ok().shown(), @"
    $ mu outdated
    package       current  allowed  newest  note
    aws/asked     1.0.0    1.0.0    1.2.0   ~1.0 by acme/web
    aws/conflict  1.0.0    1.0.0    2.0.0   aws/net ^1 by acme/web
    aws/excluded  1.0.0    1.0.0    1.2.0   1.2.0 is excluded
    aws/kept      1.0.0    1.1.0    1.1.0   only Mu.lock
    aws/needy     1.0.1    1.0.1    1.5.0   1.5.0 needs kubernetes >=1.25, but it is 1.24.0
    aws/net       1.0.0    1.0.0    2.0.0   ^1 by acme/web
    [exit 0]
    ");
    let json = sandbox.mu(&["outdated", "--json"]).ok().json();
    assert_eq!(json["packages"][1]["heldBackBy"], json!(["aws/net ^1 by acme/web"]));
}

#[test]
fn a_version_that_needs_a_folder_of_its_author_is_passed_over() {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1"]);
    sandbox.offer(
        "aws/app 1.0.0: ../lib
         aws/app 1.1.0: aws/log#^1
         aws/app 1.2.0: aws/log#^1 /srv/lib
         aws/log 1.0.0:",
    );
    for resolution in ["highest", "minimal"] {
        let resolved = sandbox.mu(&["resolve", "--json", "--resolution", resolution]).ok().json();
        assert_eq!(resolved["packages"][1]["version"], "1.1.0", "{resolution}");
    }
    sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(sandbox.mu(&["outdated"]).ok().shown(), @"
    $ mu outdated
    package  current  allowed  newest  note
    aws/app  1.1.0    1.1.0    1.2.0   1.2.0 cannot be used: it depends on the folder `/srv/lib`, which is on its author's machine
    [exit 0]
    ");
    sandbox.asks_for(&["aws/app#^1.2"]);
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: no version of aws/app can be used
      acme/web requires aws/app ^1.2
      no version of aws/app is ^1.2
        aws/app 1.2.0 cannot be used: it depends on the folder `/srv/lib`, which is on its author's machine
        aws/app has 1.1.0

    hint: in acme/web, require aws/app ^1.1.0 instead of ^1.2: `mu add 'aws/app#^1.1.0'`
    [exit 1]
    ");
    let minimal = sandbox.mu(&["get", "--resolution", "minimal"]).fails();
    minimal.says(&["aws/app 1.2.0 cannot be used: it depends on the folder `/srv/lib`"]);
}

#[test]
fn a_newer_version_whose_own_needs_cannot_be_met_is_told_with_them() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#>=1"]);
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0"), Package::new("aws/vpc", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    sandbox.publish(&[Package::new("aws/ec2", "2.0.0").needs("aws/vpc#^2")]);
    sandbox.mu(&["why", "aws/ec2"]).ok().says(&["aws/ec2 2.0.0 requires aws/vpc ^2"]);
    insta::assert_snapshot!(sandbox.mu(&["outdated"]).ok().shown(), @"
    $ mu outdated
    package  current  allowed  newest  note
    aws/ec2  1.0.0    1.0.0    2.0.0   aws/ec2 2.0.0 requires aws/vpc ^2
    [exit 0]
    ");
    let json = sandbox.mu(&["outdated", "--json"]).ok().json();
    let reasons = &json["packages"][0]["heldBackBy"];
    assert_eq!(*reasons, json!(["aws/ec2 2.0.0 requires aws/vpc ^2"]));
}

/// A pin in the workspace's own manifest is the user's decision; one in a fetched package is not.
#[test]
fn a_yanked_version_is_used_where_the_workspace_pins_it() {
    let sandbox = Sandbox::with_dependencies(&["aws/lib#1.1.0"]);
    sandbox.publish(&[
        Package::new("aws/lib", "1.0.0"),
        Package::new("aws/lib", "1.1.0").key("yanked", json!("loses data")),
        Package::new("aws/strict", "1.0.0").needs("aws/lib#1.1.0"),
    ]);
    let why = "`aws/lib` 1.1.0 was yanked (loses data); it is used because acme/web \
               requires exactly this version";
    for strategy in ["highest", "minimal"] {
        std::fs::remove_file(sandbox.path("Mu.lock")).ok();
        sandbox.mu(&["get", "--resolution", strategy]).ok().says(&[why]);
        assert!(sandbox.read("Mu.lock").contains("version: 1.1.0"));
        sandbox.mu(&["update", "--resolution", strategy]).ok().says(&[why]);
        sandbox.mu(&["get", "--locked", "--resolution", strategy]).ok();
        sandbox.mu(&["verify"]).ok();
        sandbox.mu(&["outdated", "--resolution", strategy]).says(&["yanked: loses data"]);
    }
    std::fs::remove_file(sandbox.path("Mu.lock")).ok();
    sandbox.asks_for(&["aws/strict#^1"]);
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["aws/strict 1.0.0 requires aws/lib 1.1.0", "1.1.0 is yanked: loses data"]);
    sandbox.asks_for(&["aws/strict#^1", "aws/lib#=1.1.0"]);
    sandbox.mu(&["get"]).ok().says(&[why]);
    // The command line is the user's decision too.
    sandbox.asks_for(&[]);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["get", "aws/lib#1.1.0"]).ok();
    run.says(&["it is used because mu get requires exactly this version"]);
    sandbox.mu(&["resolve", "aws/lib#1.1.0"]).ok().says(&["aws/lib 1.1.0"]);
}

#[test]
fn an_exact_requirement_is_not_a_lower_bound() {
    let sandbox = Sandbox::with_dependencies(&["aws/one#1.0.0", "aws/two"]);
    sandbox.publish(&[
        Package::new("aws/one", "1.0.0"),
        Package::new("aws/one", "1.1.0"),
        Package::new("aws/two", "1.0.0").needs("aws/one#^1.0.0"),
    ]);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["why", "aws/one"]).ok();
    assert!(run.stdout.contains("\n  1.0.0 by acme/web\n"), "{}", run.stdout);
    run.says(&["^1.0.0 by aws/two (at least this version)"]);
}
