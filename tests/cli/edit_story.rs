//! The story of docs/edit.md, word for word: a fix in a package of a hub, from the edit to a released version, with a real
//! Git server.

use std::fs;

use serde_json::json;

use crate::support::git::{HttpServer, Origin, git};
use crate::support::{Package, Sandbox};

/// The commands of the page, each with what it prints.
fn steps(page: &str) -> Vec<(String, String)> {
    let blocks =
        page.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let mut steps: Vec<(String, String)> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => output.push_str(&format!("{line}\n")),
            (None, None) => panic!("{line} belongs to no command"),
        }
    }
    steps
}

/// The text without the time of day in names of the trash.
fn timeless(text: &str) -> String {
    let Some((before, rest)) = text.split_once("aws+ec2-2") else { return text.to_owned() };
    let (_, after) = rest.split_once('Z').expect("ends a time");
    format!("{before}aws+ec2-TIME{after}")
}

#[test]
fn the_page_tells_what_happens() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/edit.md");
    let steps = steps(&fs::read_to_string(page).expect("is there"));
    let origin = Origin::new("ec2.git");
    let manifest = "name: aws/ec2\nversion: 1.2.0\nrepository: https://git.acme.example/ec2.git\n";
    let commit = origin.commit(&[("Mu.yaml", manifest), ("main.tf", "t2.micro\n")]);
    for setting in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant", "http.receivepack"] {
        origin.git(&["config", setting, "true"]);
    }
    let server = HttpServer::start(origin.root());
    let mut sandbox = Sandbox::new();
    let settings =
        format!("[url \"{}\"]\n\tinsteadOf = https://git.acme.example/\n", server.root());
    fs::write(sandbox.path("gitconfig"), settings).expect("can be written");
    let settings = sandbox.path("gitconfig").display().to_string();
    sandbox.set("GIT_CONFIG_GLOBAL", &settings);
    for role in ["AUTHOR", "COMMITTER"] {
        sandbox.set(&format!("GIT_{role}_NAME"), "Ada");
        sandbox.set(&format!("GIT_{role}_EMAIL"), "ada@example.com");
    }
    let release = |version: &str, content: &str, commit: &str| {
        let package = Package::new("aws/ec2", version).file("main.tf", content);
        let package = package.key("repository", json!("https://git.acme.example/ec2.git"));
        sandbox.publish(&[package.lies("commit", json!(commit))]);
    };
    release("1.2.0", "t2.micro\n", &commit);
    sandbox.publish(&[Package::new("aws/log", "1.0.0")]);
    sandbox.asks_for(&["aws/ec2#^1.2.0", "aws/log#^1"]);
    sandbox.write(".gitignore", "/.mu/packs/\n");
    sandbox.mu(&["get"]).ok();
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message", "begin"]);
    let lock = sandbox.read("Mu.lock");
    assert!(steps.len() > 8, "{steps:?}");
    for (command, expected) in steps {
        if command.starts_with("mu update") {
            assert_eq!(sandbox.read("Mu.lock"), lock, "nothing committed has changed");
            // The maintainers release the fix.
            let head = origin.git(&["rev-parse", "edit/ec2-1.2.0"]);
            release("1.2.1", "t3.micro\n", &head);
        }
        let run = sandbox.shell("bash", &format!("{{ {command}\n}} 2>&1"));
        let lines = run.stdout.lines().filter(|line| !line.starts_with("waiting: "));
        let said: String = lines.map(|line| format!("{}\n", line.trim_end())).collect();
        assert_eq!(timeless(&said), timeless(&expected), "$ {command}");
    }
    assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/ec2/main.tf"), "t3.micro\n");
}
