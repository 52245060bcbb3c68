//! Missing packages and versions: similar ones, and where mu looked.

use mu_testing::OciServer;
use mu_testing::http::{Reply, TestServer};
use mu_testing::oci::Behaviour;
use serde_json::json;

use crate::support::git::Origin;
use crate::support::{Hub, Package, Sandbox};

fn sandbox(dependencies: &[&str]) -> Sandbox {
    let sandbox = Sandbox::with_dependencies(dependencies);
    for version in ["1.0.0", "1.4.0", "1.9.3", "2.2.0", "2.3.0"] {
        sandbox.hub().release("aws/vpc", version);
    }
    sandbox
}

#[test]
fn a_misspelt_name_is_compared_with_the_catalog() {
    let sandbox = sandbox(&["aws/vcp#^1"]);
    let catalog = "{\"name\":\"aws/vpc\",\"latest\":\"2.3.0\"}\n{\"name\":\"ops/kafka\"}\n";
    std::fs::write(sandbox.path("hub/catalog.jsonl"), catalog).expect("is ours");
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: package not found: `aws/vcp`
      acme/web requires aws/vcp ^1
      there is no package aws/vcp
        looked at file://[DIR]/hub/hub.json
        looked at file://[DIR]/hub/index/aws/vcp.jsonl
        did you mean aws/vpc?
    [exit 1]
    ");
    let details = &sandbox.mu(&["get", "--json"]).fails_with("not-found")["details"];
    assert_eq!(details["clashes"][0]["similar"], json!(["hub.mu.com/aws/vpc"]));
    assert_eq!(details["requirements"][0]["asked"], json!(["^1"]));
}

#[test]
fn without_a_catalog_names_come_from_the_lock_and_the_workspace() {
    let sandbox = sandbox(&["aws/vpc#^1"]);
    sandbox.write("aws/database/Mu.yaml", "name: aws/database\nversion: 1.0.0\n");
    sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(sandbox.mu(&["get", "aws/vpcs"]).fails().shown(), @"
    $ mu get aws/vpcs
    error: package not found: `aws/vpcs`
      mu get requires aws/vpcs
      there is no package aws/vpcs
        looked at file://[DIR]/hub/hub.json
        looked at file://[DIR]/hub/index/aws/vpcs.jsonl
        did you mean aws/vpc?
    [exit 1]
    ");
    // A package that was requested in vain is not suggested later.
    let again = sandbox.mu(&["get", "aws/vpcss"]).fails();
    again.says(&["did you mean aws/vpc?"]).does_not_say(&["aws/vpcs "]);
    insta::assert_snapshot!(sandbox.mu(&["get", "aws/databse"]).fails().shown(), @"
    $ mu get aws/databse
    error: package not found: `aws/databse`
      mu get requires aws/databse
      there is no package aws/databse
        looked at file://[DIR]/hub/hub.json
        looked at file://[DIR]/hub/index/aws/databse.jsonl
        did you mean aws/database?
    [exit 1]
    ");
}

#[test]
fn the_nearest_versions_are_told() {
    let far = sandbox(&["aws/vpc#1.7.0"]);
    insta::assert_snapshot!(far.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: no version of aws/vpc meets the requirements
      acme/web requires aws/vpc 1.7.0
      no version of aws/vpc is 1.7.0
        aws/vpc has 1.0.0 to 2.3.0 (5 versions); nearest: 1.4.0 and 1.9.3
        looked at hub+file://[DIR]/hub/

    hint: in acme/web, require aws/vpc 1.9.3 instead of 1.7.0: `mu add 'aws/vpc#1.9.3'`
    [exit 1]
    ");
    let details = &far.mu(&["get", "--json"]).fails_with("not-found")["details"];
    assert_eq!(details["clashes"][0]["nearest"], json!(["1.4.0", "1.9.3"]));
    insta::assert_snapshot!(sandbox(&["aws/vpc#^3"]).mu(&["get"]).fails().shown(), @"
    $ mu get
    error: no version of aws/vpc meets the requirements
      acme/web requires aws/vpc ^3
      no version of aws/vpc is ^3
        aws/vpc has 1.0.0 to 2.3.0 (5 versions); nearest: 2.3.0
        looked at hub+file://[DIR]/hub/

    hint: in acme/web, require aws/vpc ^2.3.0 instead of ^3: `mu add 'aws/vpc#^2.3.0'`
    [exit 1]
    ");
    let misspelt = sandbox(&["aws/vpc#latets"]);
    misspelt
        .mu(&["get"])
        .fails()
        .says(&["aws/vpc has no tag latets\n    did you mean `latest`?\n"]);
    // The number in a tag is not a version.
    let tagged = sandbox(&["aws/vpc#release-1.7"]);
    tagged.mu(&["get"]).fails().says(&["has no tag"]).does_not_say(&["nearest"]);
    insta::assert_snapshot!(sandbox(&["aws/vpc#nightly"]).mu(&["get"]).fails().shown(), @"
    $ mu get
    error: no version of aws/vpc meets the requirements
      acme/web requires aws/vpc nightly
      aws/vpc has no tag nightly
        aws/vpc has 1.0.0 to 2.3.0 (5 versions)
        looked at hub+file://[DIR]/hub/

    hint: in acme/web, require aws/vpc ^2.3.0 instead of nightly: `mu add 'aws/vpc#^2.3.0'`
    [exit 1]
    ");
}

#[test]
fn a_tag_of_what_was_withdrawn_is_there() {
    let sandbox = sandbox(&["aws/vpc#lts"]);
    let tagged = Package::new("aws/vpc", "1.0.1").key("tags", json!(["lts"]));
    sandbox.publish(&[tagged.key("yanked", json!("broken"))]);
    let run = sandbox.mu(&["get"]).fails();
    let said = "the tag lts of aws/vpc cannot be used\n    aws/vpc 1.0.1 is yanked: broken\n";
    run.says(&["no version of aws/vpc can be used", said]).does_not_say(&["has no tag"]);
}

#[test]
fn what_an_oci_registry_does_not_have_is_looked_for_nowhere_else() {
    let server = OciServer::start(Behaviour::default());
    let sandbox = sandbox(&[]);
    let reference = format!("oci://{}/acme/nope", server.host());
    let run = sandbox.mu(&["get", &reference]).fails();
    run.says(&["check the name", "`mu login "]).does_not_say(&["mu search"]);
    // A package of another host is another one, although its name is near.
    let reference = format!("oci://{}/acme/wen", server.host());
    sandbox.mu(&["get", &reference]).fails().does_not_say(&["did you mean"]);
}

#[test]
fn what_a_package_asks_for_and_is_not_there_is_told_with_its_way() {
    let sandbox = sandbox(&["aws/app#^1"]);
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/db#^2"),
        Package::new("aws/app", "0.9.0"),
    ]);
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: package not found: `aws/db`
      acme/web requires aws/app ^1
      aws/app 1.0.0 requires aws/db ^2
      there is no package aws/db
        looked at file://[DIR]/hub/hub.json
        looked at file://[DIR]/hub/index/aws/db.jsonl

    hint: in acme/web, require aws/app ^0.9.0 instead of ^1: `mu add 'aws/app#^0.9.0'`
    [exit 1]
    ");
}

#[test]
fn a_name_that_another_registry_has_is_not_suggested() {
    let sandbox = Sandbox::with_dependencies(&["aws/vpc"]);
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0")]);
    Hub::new(&sandbox.path("other"));
    sandbox.write(".mu/workspace.yaml", "registries: {other.example/: ../other}\n");
    let run = sandbox.mu(&["add", "other.example/aws/vcp"]).fails();
    run.says(&["package not found: `other.example/aws/vcp`"]).does_not_say(&["did you mean"]);
    sandbox.mu(&["add", "aws/vcp"]).fails().says(&["did you mean aws/vpc?"]);
}

#[test]
fn a_revision_without_a_version_is_named_as_who_requires_what_cannot_be_asked() {
    let origin = Origin::new("vpc");
    let needs = "dependencies: [gone.example/net/legacy#^1]\n";
    origin.commit(&[("Mu.yaml", &format!("name: vpc\nversion: 1.0.0\n{needs}"))]);
    let folder = origin.root().join("vpc");
    let sandbox = Sandbox::with_dependencies(&[&format!("git+file://{}", folder.display())]);
    let server = TestServer::start(|_, _| Reply::status(401));
    sandbox.mu(&["registry", "add", "gone.example/", &server.url("")]).ok();
    sandbox.mu(&["get"]).fails().says(&[
        "gone.example/net/legacy",
        "/vpc` requires it, which `acme/web` (Mu.yaml:4) requires",
    ]);
}

/// Whichever command asks, and however far a manifest is from the package: nobody has to search forty of them.
#[test]
fn a_place_that_cannot_be_asked_is_named_with_who_requires_it() {
    let sandbox = Sandbox::with_dependencies(&["aws/vpc#^1"]);
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0").needs("gone.example/net/legacy#^1")]);
    Hub::new(&sandbox.path("other")).publish(&Package::new("net/legacy", "1.0.0"));
    let other = sandbox.path("other").display().to_string();
    sandbox.mu(&["registry", "add", "gone.example/", &other]).ok();
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    // From here on, the place wants a password that nobody has.
    let server = TestServer::start(|_, _| Reply::status(401));
    sandbox.mu(&["registry", "add", "gone.example/", &server.url("")]).ok();
    std::fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
    let far = "`aws/vpc` 1.0.0 requires it, which `acme/web` (Mu.yaml:4) requires";
    for command in [&["update"][..], &["outdated"], &["upgrade", "--dry-run"]] {
        sandbox.mu(command).fails().says(&["gone.example/net/legacy", far]);
    }
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is ours");
    // What is locked is not asked about, so only the lock knows the way.
    let locked = "`aws/vpc` requires it, which `acme/web` (Mu.yaml:4) requires";
    for command in
        [&["get", "--frozen"][..], &["vendor"], &["mirror", "--lock", "--to", "../mirror"]]
    {
        let run = sandbox.mu(command).fails();
        assert!(run.shown().contains(far) || run.shown().contains(locked), "{}", run.shown());
    }
    // Several that require it are all named, and manifests of other ecosystems by their file.
    std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    sandbox.write(".mu/workspace.yaml", "formats: [helm]\n");
    sandbox.mu(&["registry", "add", "gone.example/", &server.url("")]).ok();
    sandbox.write("a/Mu.yaml", "name: a\ndevDependencies:\n  - gone.example/net/legacy\n");
    let chart = "apiVersion: v2\nname: b\nversion: 1.0.0\ndependencies:\n  - {name: legacy, version: 1.x, repository: 'https://gone.example/net'}\n";
    sandbox.write("b/Chart.yaml", chart);
    for command in ["get", "resolve"] {
        let run = sandbox.mu(&[command]).fails();
        run.says(&["`a` (a/Mu.yaml:3)", "(b/Chart.yaml)", "require it"]);
    }
}

#[test]
fn a_package_that_is_at_the_default_base_is_told_where_a_repository_means_its_own_host() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("aws/lib", "1.0.0"), Package::new("aws/lib", "2.0.0")]);
    let origin = Origin::new("acme/web");
    origin.commit(&[("Mu.yaml", "name: acme/web\nversion: 1.0.0\ndependencies: ['aws/lib#^1']\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let settings = format!(
        "registries:\n  hub.mu.com/: ../hub\n  git.example/: {{provider: git, url: \"{}\"}}\n",
        format_args!("file://{}/", origin.root().display())
    );
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.asks_for(&["git.example/acme/web#^1"]);
    let alias = "aliases: {git.example/aws/lib: hub.mu.com/aws/lib}";
    sandbox.mu(&["get"]).fails().says(&["there is no package git.example/aws/lib", alias]);
    sandbox.write(".mu/workspace.yaml", &format!("{settings}{alias}\n"));
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["git.example/acme/web 1.0.0", "hub.mu.com/aws/lib 1.0.0"]);
}
