//! When registries are asked again: `freshFor`, `--refresh`, and what no recent answer is enough for.

use std::fs;

use crate::support::git::{HttpServer, Origin};
use crate::support::{Hub, Nginx, Package, Sandbox};

/// A workspace that requires `aws/ec2`, and its hub on a server that does not say how long answers are valid.
fn world(headers: &str) -> (Sandbox, Hub, Nginx) {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    let hub = sandbox.hub();
    hub.publish(&Package::new("aws/ec2", "1.0.0").needs("aws/vpc#^1"));
    hub.release("aws/vpc", "1.0.0");
    let nginx = Nginx::serve(hub.folder(), headers);
    sandbox.hub_is_at(&nginx.url(""));
    sandbox.mu(&["get"]).ok();
    (sandbox, hub, nginx)
}

/// The requests that a command sends.
fn asked(sandbox: &Sandbox, nginx: &Nginx, arguments: &[&str]) -> Vec<String> {
    let before = nginx.log().len();
    sandbox.mu(arguments).ok();
    nginx.log().split_off(before)
}

/// The versions that `mu resolve` chooses.
fn chosen(sandbox: &Sandbox, flags: &[&str]) -> Vec<String> {
    let answer = sandbox.mu(&[&["resolve", "--json"], flags].concat()).ok().json();
    let packages = answer["packages"].as_array().expect("is a list").iter();
    packages.map(|one| one["version"].as_str().expect("is text").to_owned()).collect()
}

fn forget_lock(sandbox: &Sandbox) {
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
}

#[test]
fn a_recent_answer_is_used_unless_the_command_is_about_what_there_is_now() {
    let (sandbox, hub, nginx) = world("");
    forget_lock(&sandbox);
    assert_eq!(asked(&sandbox, &nginx, &["resolve"]), [""; 0]);
    hub.release("aws/vpc", "1.1.0");
    assert_eq!(chosen(&sandbox, &[]), ["1.0.0", "1.0.0"]);
    assert_eq!(chosen(&sandbox, &["--refresh"]), ["1.1.0", "1.0.0"]);
    sandbox.mu(&["get"]).ok();
    for question in [
        &["versions", "aws/vpc"][..],
        &["info", "aws/vpc"],
        &["outdated"],
        &["update", "--dry-run"],
        &["get", "--update", "--dry-run"],
        &["upgrade", "--dry-run"],
    ] {
        assert!(!asked(&sandbox, &nginx, question).is_empty(), "{question:?}");
    }
    // `--offline` asks nobody, and cannot be combined with it.
    assert_eq!(asked(&sandbox, &nginx, &["versions", "aws/vpc", "--offline"]), [""; 0]);
    assert_eq!(sandbox.mu(&["resolve", "--offline", "--refresh"]).status, 2);
}

#[test]
fn what_is_named_is_asked_about_and_nothing_else() {
    let (sandbox, hub, nginx) = world("");
    hub.publish(&Package::new("aws/log", "1.0.0").needs("aws/vpc#^1"));
    sandbox.mu(&["resolve", "aws/log"]).ok();
    for name in ["aws/log", "aws/vpc"] {
        hub.publish(&Package::new(name, "1.1.0"));
    }
    for command in ["resolve", "add"] {
        let requests = asked(&sandbox, &nginx, &[command, "aws/log"]);
        assert!(requests.iter().any(|line| line.contains("log.jsonl")), "{requests:?}");
        assert!(!requests.iter().any(|line| line.contains("vpc.jsonl")), "{requests:?}");
    }
    let now = ["hub.mu.com/aws/ec2 1.0.0", "hub.mu.com/aws/log 1.1.0", "hub.mu.com/aws/vpc 1.0.0"];
    assert_eq!(sandbox.locked(), now);
}

#[test]
fn nothing_fails_or_moves_back_because_an_answer_is_old() {
    let (sandbox, hub, nginx) = world("");
    // A version that was published a moment ago, and is required.
    hub.release("aws/vpc", "1.1.0");
    sandbox.asks_for(&["aws/ec2#^1", "aws/vpc#^1.1"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.0.0", "hub.mu.com/aws/vpc 1.1.0"]);
    // A version that another machine has locked a moment ago; this one has not heard of it.
    let other = Sandbox::new();
    fs::copy(sandbox.path("home/.mu/config.yaml"), other.path("home/.mu/config.yaml"))
        .expect("can be copied");
    hub.release("aws/vpc", "1.2.0");
    other.asks_for(&["aws/ec2#^1", "aws/vpc#^1.1"]);
    other.mu(&["get"]).ok();
    assert_eq!(other.locked()[1], "hub.mu.com/aws/vpc 1.2.0");
    fs::copy(other.path("work/Mu.lock"), sandbox.path("work/Mu.lock")).expect("can be copied");
    hub.release("aws/log", "1.0.0");
    sandbox.asks_for(&["aws/ec2#^1", "aws/log", "aws/vpc#^1.1"]);
    sandbox.mu(&["get"]).ok();
    let now = ["hub.mu.com/aws/ec2 1.0.0", "hub.mu.com/aws/log 1.0.0", "hub.mu.com/aws/vpc 1.2.0"];
    assert_eq!(sandbox.locked(), now);
    // What does not exist is an error, after the hub was asked.
    sandbox.asks_for(&["aws/ec2#^1", "aws/vpc#^3"]);
    let before = nginx.log().len();
    sandbox.mu(&["resolve"]).fails().says(&["aws/vpc ^3"]);
    assert!(nginx.log()[before..].iter().any(|line| line.contains("vpc.jsonl")));
}

#[test]
fn the_registry_decides_and_else_the_setting() {
    // A registry that says that it has to be asked is.
    let (sandbox, _, nginx) = world("add_header Cache-Control no-cache;");
    forget_lock(&sandbox);
    assert!(!asked(&sandbox, &nginx, &["resolve"]).is_empty());
    // One that says for how long is believed, whatever the setting says.
    let (sandbox, _, nginx) = world("add_header Cache-Control max-age=600;");
    sandbox.write(".mu/workspace.yaml", "freshFor: 0\n");
    forget_lock(&sandbox);
    assert_eq!(asked(&sandbox, &nginx, &["resolve"]), [""; 0]);
    assert!(!asked(&sandbox, &nginx, &["resolve", "--refresh"]).is_empty());
    // One that does not say is asked as often as the setting wants.
    let (sandbox, _, nginx) = world("");
    sandbox.write(".mu/workspace.yaml", "freshFor: 0\n");
    forget_lock(&sandbox);
    assert!(!asked(&sandbox, &nginx, &["resolve"]).is_empty());
    sandbox.write(".mu/workspace.yaml", "freshFor: 1 hour\n");
    assert_eq!(asked(&sandbox, &nginx, &["resolve"]), [""; 0]);
    for (wrong, said) in [("2026-01-01", "is a date, not an age"), ("soon", "is not an age")] {
        sandbox.write(".mu/workspace.yaml", &format!("freshFor: {wrong}\n"));
        sandbox.mu(&["resolve"]).fails().says(&[said, "write an age such as `10 minutes`"]);
    }
}

#[test]
fn a_branch_that_is_named_is_at_its_tip_and_a_folder_is_read_every_time() {
    let origin = Origin::new("r.git");
    origin.commit(&[("Mu.yaml", "name: r\nversion: 1.0.0\n")]);
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::new();
    sandbox.asks_for(&[]);
    let reference = format!("git+{}r.git#main", server.root());
    sandbox.mu(&["resolve", &reference]).ok();
    let newer = origin.commit(&[("Mu.yaml", "name: r\nversion: 1.1.0\n")]);
    sandbox.mu(&["add", &reference]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["commit"], *newer);
    // The sandbox's own hub is a folder.
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.mu(&["resolve", "aws/ec2"]).ok().says(&["1.0.0"]);
    sandbox.hub().release("aws/ec2", "1.1.0");
    sandbox.mu(&["resolve", "aws/ec2"]).ok().says(&["1.1.0"]);
}

#[test]
fn what_does_not_exist_is_not_asked_again_either() {
    let names: Vec<String> = (0..30).map(|number| format!("n{number}")).collect();
    let sandbox = Sandbox::with_dependencies(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let hub = sandbox.hub();
    names.iter().for_each(|name| hub.release(name, "1.0.0"));
    let nginx = Nginx::serve(hub.folder(), "");
    sandbox.hub_is_at(&nginx.url(""));
    // Each name of one segment could be a package of the workspace's namespace first.
    let first = asked(&sandbox, &nginx, &["resolve"]);
    assert_eq!(first.iter().filter(|line| line.contains("/acme/")).count(), 30, "{first:#?}");
    assert_eq!(asked(&sandbox, &nginx, &["resolve"]), [""; 0]);
    let refreshed = asked(&sandbox, &nginx, &["resolve", "--refresh"]);
    let of_namespace = refreshed.iter().filter(|line| line.contains("/acme/")).count();
    // A hub whose generation is the same has nothing new.
    assert!(of_namespace == 0 || of_namespace == 30, "{refreshed:#?}");
    assert!(!refreshed.is_empty());
    hub.release("acme/n7", "2.0.0");
    let answer = sandbox.mu(&["resolve", "--refresh", "--json"]).ok().json().to_string();
    assert!(answer.contains("hub.mu.com/acme/n7"), "{answer}");
}

#[test]
fn names_of_one_segment_cost_no_request_each_in_a_hub_that_is_asked_every_time() {
    let names: Vec<String> = (0..300).map(|number| format!("n{number}")).collect();
    let sandbox = Sandbox::with_dependencies(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let hub = sandbox.hub();
    names.iter().for_each(|name| hub.release(name, "1.0.0"));
    let log: String = names.iter().map(|name| format!("{name}\n")).collect();
    crate::support::write(hub.folder(), "log/000000.txt", log);
    let root = r#"{"hub": 1, "generation": 300, "log": "log/"}"#;
    crate::support::write(hub.folder(), "hub.json", root);
    let nginx = Nginx::serve(hub.folder(), "add_header Cache-Control no-cache;");
    sandbox.hub_is_at(&nginx.url(""));
    let first = asked(&sandbox, &nginx, &["resolve"]);
    assert_eq!(first.iter().filter(|line| line.contains("/index/acme/n")).count(), 300);
    let again = asked(&sandbox, &nginx, &["resolve"]);
    assert_eq!(again.len(), 1, "{again:#?}");
    assert!(again[0].starts_with("GET /hub.json "), "{again:#?}");
}

#[test]
fn what_was_missing_a_moment_ago_is_found_once_it_is_published() {
    let sandbox = Sandbox::with_dependencies(&["tool"]);
    let hub = sandbox.hub();
    hub.release("aws/vpc", "1.0.0");
    let nginx = Nginx::serve(hub.folder(), "");
    sandbox.hub_is_at(&nginx.url(""));
    sandbox.mu(&["get"]).fails();
    hub.release("acme/tool", "1.0.0");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/acme/tool 1.0.0"]);
    // As for a name in full.
    sandbox.mu(&["add", "acme/other"]).fails();
    hub.release("acme/other", "1.0.0");
    sandbox.mu(&["add", "acme/other"]).ok();
}
