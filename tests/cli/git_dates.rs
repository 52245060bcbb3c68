//! The age of versions in Git repositories, if the settings or the command line exclude new ones.

use crate::support::Sandbox;
use crate::support::git::{HttpServer, Origin};

/// Versions of 2020, 2022 and 2024; the last by its annotated tag, whose commit is old.
fn origin() -> Origin {
    let origin = Origin::new("r.git");
    let commit = |mark: &str, year: i64| {
        origin.commit(&[("Mu.yaml", "name: r\n"), ("mark.txt", mark)]);
        let tree = origin.git(&["rev-parse", "HEAD^{tree}"]);
        let seconds = (year - 1970) * 31_556_952 + 86_400;
        let who = format!("Ada <ada@example.com> {seconds} +0000");
        let text = format!("tree {tree}\nauthor {who}\ncommitter {who}\n\n{mark}\n");
        (origin.object("commit", text.as_bytes()), who)
    };
    origin.git(&["tag", "v1.0.0", &commit("old", 2020).0]);
    origin.git(&["tag", "v1.1.0", &commit("newer", 2022).0]);
    let ((old, _), (_, who)) = (commit("newest", 2021), commit("", 2024));
    let tag = format!("object {old}\ntype commit\ntag v1.2.0\ntagger {who}\n\na release\n");
    let tag = origin.object("tag", tag.as_bytes());
    origin.git(&["update-ref", "refs/tags/v1.2.0", &tag]);
    origin
}

fn version(sandbox: &Sandbox) -> String {
    sandbox.lock()["packages"][0]["version"].as_str().expect("is text").to_owned()
}

#[test]
fn young_versions_are_passed_over() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    for root in [server.root(), format!("git+file://{}/", origin.root().display())] {
        let sandbox = Sandbox::new();
        let reference = format!("{root}r.git#^1");
        for (limit, expected) in
            [("2021-06-01", "1.0.0"), ("2023-01-01", "1.1.0"), ("2025-01-01", "1.2.0")]
        {
            let run = sandbox.mu(&["get", "-u", &reference, "--exclude-newer", limit]).ok();
            assert!(!run.stderr.contains("the age of the versions"), "{}", run.shown());
            assert_eq!(version(&sandbox), expected, "{limit} {root}");
        }
        sandbox.mu(&["update"]).ok();
        assert_eq!(version(&sandbox), "1.2.0");
    }
}

#[test]
fn dates_are_asked_for_once_and_only_where_they_matter() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::with_dependencies(&[&format!("{}r.git#^1", server.root())]);
    let asked = |arguments: &[&str]| {
        let before = server.requests().len();
        sandbox.mu(arguments).ok();
        server.requests()[before..].iter().filter(|line| line.contains("POST")).count()
    };
    sandbox.mu(&["resolve"]).ok();
    let plain = asked(&["resolve", "--refresh"]);
    sandbox.write(".mu/workspace.yaml", "minimumReleaseAge: 2 days\n");
    assert_eq!(asked(&["resolve"]), plain + 1, "{:?}", server.requests());
    assert_eq!(asked(&["resolve", "--refresh"]), plain, "{:?}", server.requests());
}

#[test]
fn a_server_that_does_not_tell_dates_is_named() {
    let origin = origin();
    origin.git(&["config", "uploadpack.allowFilter", "false"]);
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::with_dependencies(&[&format!("{}r.git#^1", server.root())]);
    for _ in 0..2 {
        let run = sandbox.mu(&["update", "--exclude-newer", "2021-06-01"]).fails();
        run.says(&[
            "it is not known how old the versions of",
            "r.git",
            "too new",
            "does not say when they were published",
        ]);
    }
    sandbox.mu(&["update", "--exclude-newer", "0"]).ok();
    assert_eq!(version(&sandbox), "1.2.0");
    // Locked versions stay.
    sandbox.mu(&["get", "--exclude-newer", "2021-06-01"]).ok();
    assert_eq!(version(&sandbox), "1.2.0");
}

#[test]
fn a_question_about_versions_is_answered_without_dates() {
    let origin = origin();
    origin.git(&["config", "uploadpack.allowFilter", "false"]);
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::new();
    let reference = format!("{}r.git", server.root());
    let run = sandbox.mu(&["versions", &reference]).ok();
    assert_eq!(run.stderr, "", "{}", run.shown());
    run.says(&["published", "unknown"]);
    let json = sandbox.mu(&["versions", &reference, "--json"]).ok().json();
    assert_eq!(json["versions"][0]["published"], serde_json::Value::Null);
    assert_eq!(json.get("warnings"), None);
    sandbox.mu(&["info", &reference]).ok().says(&["published    unknown"]);
    // If a rule about age matters, the version is marked.
    let old = ["versions", &reference, "--exclude-newer", "2021-06-01"];
    let run = sandbox.mu(&old).ok();
    assert_eq!(run.stderr, "", "{}", run.shown());
    run.says(&["may be too new: its age is not known (--exclude-newer)"]);
}
