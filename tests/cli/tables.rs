//! Tables and trees as a person sees them: in wide and narrow terminals, and only a part of what is in use.

use serde_json::json;

use crate::support::git::{HttpServer, Origin};
use crate::support::{Package, Sandbox, Terminal};

/// `acme/web` → app → vpc 1, and vpc 2 beside it.
fn two_majors() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/app", "aws/vpc#^2"]);
    sandbox.write(".mu/workspace.yaml", "majors: many\n");
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/vpc#^1"),
        Package::new("aws/vpc", "1.4.0"),
        Package::new("aws/vpc", "2.1.0"),
        Package::new("aws/vpc", "3.0.0"),
    ]);
    sandbox.mu(&["get"]).ok();
    sandbox
}

fn in_terminal(sandbox: &Sandbox, columns: usize, arguments: &str) -> String {
    let (screen, _, status) = Terminal::run(sandbox, columns, arguments).end();
    assert_eq!(status, 0, "{screen}");
    let lines = screen.lines().map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_table_fits_the_terminal() {
    let sandbox = two_majors();
    let described = "Networks in which machines of several zones find each other by name";
    let lines = [
        json!({"name": "aws/net", "latest": "1.0.0", "description": described}),
        json!({"name": "aws/vpc", "latest": "3.0.0", "description": "Private networks"}),
    ];
    let catalog: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(sandbox.path("hub/catalog.jsonl"), catalog).expect("is ours");
    insta::assert_snapshot!(in_terminal(&sandbox, 70, "search aws"), @"
    package  newest  note              description
    aws/net  1.0.0                     Networks in which machines of
                                       several zones find each other by
                                       name
    aws/vpc  3.0.0   2.1.0 in Mu.lock  Private networks
    ");
    insta::assert_snapshot!(in_terminal(&sandbox, 40, "search aws"), @"
    aws/net
      newest       1.0.0
      description  Networks in which
                   machines of several zones
                   find each other by name
    aws/vpc
      newest       3.0.0
      note         2.1.0 in Mu.lock
      description  Private networks
    ");
    insta::assert_snapshot!(in_terminal(&sandbox, 40, "outdated"), @"
    aws/vpc
      current  1.4.0
      allowed  1.4.0
      newest   3.0.0
      note     ^2 by acme/web, ^1 by aws/app
    aws/vpc
      current  2.1.0
      allowed  2.1.0
      newest   3.0.0
      note     ^2 by acme/web
    ");
    // Without a terminal, each row is one line.
    sandbox
        .mu(&["search", "aws"])
        .ok()
        .says(&[&format!("aws/net  1.0.0                     {described}\n")]);
}

#[test]
fn a_tree_begins_where_it_is_told_to() {
    let sandbox = two_majors();
    sandbox.write("api/Mu.yaml", "name: acme/api\nversion: 0.1.0\ndependencies: [aws/vpc#^2]\n");
    sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(sandbox.mu(&["tree"]).ok().shown(), @"
    $ mu tree
    acme/web 0.1.0
    ├── aws/app 1.0.0 [required: any version]
    │   └── aws/vpc 1.4.0 [required: ^1]
    └── aws/vpc 2.1.0 [required: ^2]
    acme/api 0.1.0
    └── aws/vpc 2.1.0 [required: ^2]
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["tree", "aws/app"]).ok().shown(), @"
    $ mu tree aws/app
    aws/app 1.0.0
    └── aws/vpc 1.4.0 [required: ^1]
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["tree", "-p", "acme/api"]).ok().shown(), @"
    $ mu tree -p acme/api
    acme/api 0.1.0
    └── aws/vpc 2.1.0 [required: ^2]
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["tree", "--duplicates"]).ok().shown(), @"
    $ mu tree --duplicates
    aws/vpc 1.4.0
    └── aws/app 1.0.0 [requires: ^1]
        └── acme/web 0.1.0 [requires: any version]
    aws/vpc 2.1.0
    ├── acme/web 0.1.0 [requires: ^2]
    └── acme/api 0.1.0 [requires: ^2]
    [exit 0]
    ");
    sandbox.mu(&["tree", "nope/x"]).fails().says(&["`nope/x` is not installed here"]);
    sandbox.mu(&["tree", "-p", "aws/app"]).fails().says(&["acme/api"]);
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.asks_for(&["aws/vpc#^2"]);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["tree", "-d"]).ok();
    assert_eq!(run.stdout, "", "{}", run.shown());
    run.says(&["no package is in use in several versions"]);
}

#[test]
fn the_workspace_is_a_table_with_a_head() {
    let sandbox = two_majors();
    sandbox.place("work/aws/app", &Package::new("aws/app", "1.5.0"));
    sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(sandbox.mu(&["status"]).ok().stdout, @"
    workspace [DIR]/work
    package   version  folder   note
    acme/web  0.1.0    .
    aws/app   1.5.0    aws/app  used by others here
    up to date: 1 package locked and installed
    ");
}

#[test]
fn versions_of_a_repository_have_commits_and_dates() {
    let origin = Origin::new("ops/logs.git");
    let mut commits = Vec::new();
    for (tag, day) in [("v1.0.0", 1_600_000_000), ("v1.1.0", 1_700_000_000)] {
        origin.commit(&[("Mu.yaml", "name: ops/logs\n"), ("mark.txt", tag)]);
        let tree = origin.git(&["rev-parse", "HEAD^{tree}"]);
        let who = format!("Ada <ada@example.com> {day} +0000");
        let text = format!("tree {tree}\nauthor {who}\ncommitter {who}\n\n{tag}\n");
        commits.push(origin.object("commit", text.as_bytes()));
        origin.git(&["tag", tag, &commits[commits.len() - 1]]);
    }
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::new();
    let reference = format!("git+{}ops/logs.git", server.root());
    let expected = format!(
        "version  published   commit\n1.0.0    2020-09-13  {}\n1.1.0    2023-11-14  {}\n",
        &commits[0][..7],
        &commits[1][..7]
    );
    assert_eq!(sandbox.mu(&["versions", &reference]).ok().stdout, expected);
    let json = sandbox.mu(&["versions", &reference, "--json"]).ok().json();
    assert_eq!(json["versions"][1]["published"], "2023-11-14T22:13:20Z");
    assert_eq!(json["versions"][1]["commit"], commits[1].as_str());
    sandbox.mu(&["info", &reference]).ok().says(&["published    2023-11-14", &commits[1]]);
}

#[test]
fn a_folder_of_this_machine_is_called_by_its_path_from_the_workspace() {
    let sandbox = Sandbox::with_dependencies(&["../shop", "./web", "acme/two"]);
    sandbox.place("shop", &Package::new("acme/shop", "1.6.2").needs("acme/one#^1"));
    sandbox.place("work/web", &Package::new("web", "0.1.0"));
    sandbox.publish(&[
        Package::new("acme/one", "1.0.0"),
        Package::new("acme/one", "2.0.0"),
        Package::new("acme/two", "1.0.0"),
    ]);
    let run = sandbox.mu(&["get", "--yes"]).ok();
    let mut shown = vec![run.stdout.clone(), run.stderr.clone()];
    for line in [
        "list",
        "tree",
        "tree --invert acme/one",
        "outdated",
        "why ../shop",
        "why acme/one",
        "graph",
        "status",
        "resolve",
        "resolve --explain",
        "add ../shop --dry-run",
        "remove ../shop --dry-run",
        "update --dry-run",
        "upgrade --dry-run",
    ] {
        let run = sandbox.mu(&line.split(' ').collect::<Vec<_>>()).ok();
        shown.extend([run.stdout.clone(), run.stderr.clone()]);
    }
    for text in &shown {
        assert!(!text.contains("localhost/"), "{text}");
    }
    insta::assert_snapshot!(sandbox.mu(&["list"]).ok().stdout, @"
    package   version  from
    acme/one  1.0.0    hub+file://[DIR]/hub/
    acme/two  1.0.0    hub+file://[DIR]/hub/
    web       0.1.0    workspace+web
    ../shop   1.6.2    path+../shop
    ");
    insta::assert_snapshot!(sandbox.mu(&["tree", "--depth", "2"]).ok().stdout, @"
    acme/web 0.1.0
    ├── acme/two 1.0.0 [required: any version]
    ├── ../shop 1.6.2 [required: any version]
    │   └── acme/one 1.0.0 [required: ^1]
    └── web 0.1.0 [required: any version]
    web 0.1.0
    ");
    // Programs get ids, and a name that is only shown is the same.
    let tree = sandbox.mu(&["tree", "--json", "../shop"]).ok().json();
    let root = &tree["roots"][0];
    assert_eq!(root["name"], "../shop");
    assert!(root["id"].as_str().is_some_and(|id| id.starts_with("localhost/")), "{root}");
    // As it is shown, it is also understood, wherever the command runs.
    for folder in ["work", "work/web"] {
        sandbox.mu_in(folder, &["why", "../shop"]).ok().says(&["../shop 1.6.2"]);
    }
    let run = sandbox.mu(&["edit", "../shop"]);
    assert_eq!(run.status, 2, "{}", run.shown());
    run.says(&["`../shop` is used from the folder `../shop`"]).does_not_say(&["localhost"]);
    // In errors and ways out, too.
    sandbox.publish(&[Package::new("acme/two", "1.1.0").needs("acme/one#^2")]);
    let run = sandbox.mu(&["add", "acme/two#^1.1"]).fails();
    run.says(&["../shop"]).does_not_say(&["localhost/"]);
}
