//! `mu info`: what it reads from a hub's index, a manifest in a repository, and one in a folder.

use serde_json::json;

use crate::support::git::{HttpServer, Origin};
use crate::support::{Nginx, Package, Sandbox, write};

#[test]
fn what_a_hub_knows() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0"),
        Package::new("aws/ec2", "1.2.0")
            .key("description", json!("Machines\n\u{1b}[31mmade of air"))
            .key("license", json!("Apache-2.0"))
            .key("website", json!("https://acme.example/ec2"))
            .key("maintainers", json!([{"name": "Ada", "email": "ada@acme.example"}, "Bob"]))
            .key("keywords", json!(["cloud", "machines"]))
            .key("provides", json!(["compute.mu.com/v1/VM"]))
            .key("requires", json!(["net.mu.com/v1/Network"]))
            .key("constraints", json!({"kubernetes": ">=1.25"}))
            .key("channels", json!(["stable"]))
            .key("appVersion", json!("12"))
            .key("published", json!("2025-06-11T12:00:00Z"))
            .key("dependencies", json!(["aws/vpc#^1"])),
        Package::new("aws/ec2", "1.3.0").key("yanked", json!("loses data")),
        Package::new("aws/ec2", "2.0.0-beta.1"),
    ]);
    sandbox.mu(&["get", "aws/ec2#1.0.0"]).ok();
    let text = sandbox.mu(&["info", "aws/ec2"]).ok().stdout;
    assert!(!text.contains('\u{1b}'), "{text}");
    let expected = r"aws/ec2 1.2.0
Machines \u{1b}[31mmade of air
license      Apache-2.0
website      https://acme.example/ec2
maintainers  Ada <ada@acme.example>
             Bob
keywords     cloud, machines
app version  12
published    2025-06-11
channels     stable
versions     4 versions, from 1.0.0 to 2.0.0-beta.1; 1 yanked
depends on   aws/vpc#^1
provides     compute.mu.com/v1/VM
requires     net.mu.com/v1/Network
constraints  kubernetes >=1.25
";
    assert!(text.starts_with(expected), "{text}");
    assert!(
        text.ends_with("here         1.0.0 in Mu.lock\ninstall      mu add aws/ec2\n"),
        "{text}"
    );
    let json = sandbox.mu(&["info", "aws/ec2", "--json"]).ok().json();
    assert_eq!(json["version"], "1.2.0");
    assert_eq!(json["locked"], json!(["1.0.0"]));
    assert_eq!(json["versions"]["total"], 4);
    let yanked = sandbox.mu(&["info", "aws/ec2#1.3.0"]).ok();
    assert!(yanked.stdout.contains("yanked: loses data"), "{}", yanked.shown());
    assert!(!yanked.stdout.contains("mu add"), "{}", yanked.shown());
    sandbox.mu(&["info", "aws/ec2#^7", "--json"]).fails_with("not-found");
    sandbox.mu(&["info", "aws/ec3"]).fails().says(&["did you mean `aws/ec2`?"]);
}

#[test]
fn what_a_moved_package_says() {
    let sandbox = Sandbox::new();
    let moved = Package::new("aws/old", "1.0.0").key("movedTo", json!("hub.mu.com/aws/new"));
    sandbox.publish(&[moved]);
    let run = sandbox.mu(&["info", "aws/old"]).ok();
    assert!(run.stdout.contains("moved to aws/new"), "{}", run.shown());
    assert!(run.stdout.ends_with("mu add aws/new\n"), "{}", run.shown());
}

#[test]
fn what_manifests_of_repositories_and_folders_say() {
    let origin = Origin::new("ops/logs.git");
    let manifest = "name: ops/logs\ndescription: Logs\nlicense: MIT\nmaintainers: [Ada]\n";
    origin.commit(&[("Mu.yaml", manifest)]);
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::new();
    let reference = format!("git+{}ops/logs.git", server.root());
    let untagged = sandbox.mu(&["info", &reference, "--json"]).ok().json();
    assert_eq!(untagged["description"], "Logs");
    assert_eq!(untagged["commit"].as_str().map(str::len), Some(40));
    origin.git(&["tag", "v1.1.0"]);
    let run = sandbox.mu(&["info", &reference]).ok();
    assert!(run.stdout.contains(" 1.1.0\nLogs\nlicense      MIT\n"), "{}", run.shown());
    assert!(run.stdout.ends_with(&format!("mu add {reference}\n")), "{}", run.shown());
    sandbox.place("elsewhere/web", &Package::new("acme/web", "0.3.0").manifest("license: MIT\n"));
    let folder = sandbox.mu(&["info", "../elsewhere/web", "--json"]).ok().json();
    assert_eq!((&folder["version"], &folder["license"]), (&json!("0.3.0"), &json!("MIT")));
}

#[test]
fn what_a_snapshot_leaves_out_is_told_too() {
    let names = ["aws/ec2", "aws/s3", "aws/vpc", "aws/iam"];
    let sandbox = Sandbox::with_dependencies(&names);
    for name in names {
        let package = Package::new(name, "1.0.0").key("description", json!("Machines"));
        sandbox.publish(&[package.key("license", json!("MIT"))]);
    }
    sandbox.mu(&["hub", "check", "../hub", "--repair"]).ok();
    let nginx = Nginx::serve(&sandbox.path("hub"), "");
    let url = nginx.url("");
    let text = format!("registries: {{hub.mu.com/: {{provider: hub, url: \"{url}\"}}}}\n");
    write(&sandbox.path("home"), ".mu/config.yaml", text);
    sandbox.mu(&["get"]).ok();
    let seen = nginx.log();
    assert!(seen.iter().any(|request| request.contains("snapshot")), "{seen:?}");
    let run = sandbox.mu(&["info", "aws/ec2"]).ok();
    assert!(
        run.stdout.starts_with("aws/ec2 1.0.0\nMachines\nlicense      MIT\n"),
        "{}",
        run.shown()
    );
    // Without the network, what is known is told.
    sandbox.mu(&["info", "aws/ec2", "--offline"]).ok().says(&["aws/ec2 1.0.0"]);
}

#[test]
fn the_readme_is_read_out_of_the_package() {
    let sandbox = Sandbox::new();
    let package = Package::new("aws/ec2", "1.0.0").file("README.md", "# EC2\u{1b}[31m\n");
    let named = Package::new("aws/ec2", "1.1.0")
        .manifest("readme: docs/about.md\n")
        .file("README.md", "not this one")
        .file("docs/about.md", "# About\n");
    sandbox.publish(&[package, named, Package::new("aws/s3", "1.0.0")]);
    assert_eq!(sandbox.mu(&["info", "aws/ec2", "--readme"]).ok().stdout, "# About\n");
    let json = sandbox.mu(&["info", "aws/ec2#1.0.0", "--readme", "--json"]).ok().json();
    assert_eq!((&json["file"], &json["version"]), (&"README.md".into(), &"1.0.0".into()));
    let run = sandbox.mu(&["info", "aws/ec2#1.0.0", "--readme"]).ok();
    assert_eq!(run.stdout, "# EC2\\u{1b}[31m\n");
    sandbox.mu(&["info", "aws/s3", "--readme"]).fails().says(&["has no readme"]);
}

#[test]
fn a_package_of_the_workspace_that_no_registry_has_is_shown_from_its_folder() {
    let sandbox = Sandbox::new();
    let manifest = "name: acme/lib\nversion: 0.3.0\nlicense: MIT\ndescription: It helps.\n";
    sandbox.write("acme/lib/Mu.yaml", manifest);
    for arguments in [&["info", "acme/lib"][..], &["info", "acme/lib", "--offline"]] {
        let run = sandbox.mu(arguments).ok();
        run.says(&["acme/lib 0.3.0", "It helps.", "MIT", "the workspace's own, in `acme/lib`"]);
    }
    // Who asks for a version asks the registry.
    let run = sandbox.mu(&["info", "acme/lib#0.3.0"]).fails();
    run.says(&["there is no package", "the workspace has it in `acme/lib`; it is not published"]);
    sandbox.mu(&["versions", "acme/lib"]).fails();
}
