//! What authors say has changed, with `mu update` and `mu outdated`: changelogs of packages, and commits of repositories.

use serde_json::json;

use crate::support::git::{HttpServer, Origin};
use crate::support::{Package, Sandbox};

const FIRST: &str = "# Changes\n\n## 1.0.0\n\n- it is there\n";

/// A package with its changelog in three versions, the first of which is locked.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1.0"]);
    let second = FIRST.replace("## 1.0.0", "## 1.1.0\n\n- more regions\n\n## 1.0.0");
    let third = second.replace("## 1.1.0", "## 2.0.0\n\n- \u{1b}[31mother names\n\n## 1.1.0");
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0").file("CHANGELOG.md", FIRST)]);
    sandbox.mu(&["get"]).ok();
    sandbox.publish(&[
        Package::new("aws/ec2", "1.1.0").file("CHANGELOG.md", &second),
        Package::new("aws/ec2", "2.0.0").file("CHANGELOG.md", &third),
    ]);
    sandbox
}

#[test]
fn an_update_says_what_the_changelog_has_more() {
    let sandbox = sandbox();
    let lock = sandbox.read("Mu.lock");
    let run = sandbox.mu(&["update", "--changelog", "--dry-run"]).ok();
    let run = run.says(&["aws/ec2 1.0.0 → 1.1.0: CHANGELOG.md\n  ## 1.1.0\n\n  - more regions\n"]);
    run.does_not_say(&["it is there", "other names"]);
    assert_eq!(sandbox.read("Mu.lock"), lock);
    let answer = sandbox.mu(&["update", "--changelog", "--json"]).ok().json();
    assert_eq!(
        answer["changelogs"],
        json!([{
            "id": "hub.mu.com/aws/ec2", "from": "1.0.0", "to": "1.1.0", "file": "CHANGELOG.md",
            "text": "## 1.1.0\n\n- more regions",
        }])
    );
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.1.0"]);
    // Nothing moves, and so nothing is said.
    let run = sandbox.mu(&["update", "--changelog"]).ok();
    run.does_not_say(&["CHANGELOG.md"]);
    assert!(sandbox.mu(&["update", "--json"]).ok().json().get("changelogs").is_none());
}

#[test]
fn what_is_outdated_says_what_has_changed_up_to_the_newest() {
    let sandbox = sandbox();
    let lock = sandbox.read("Mu.lock");
    let run = sandbox.mu(&["outdated", "--changelog"]).ok();
    let run = run.says(&["aws/ec2 1.0.0 → 2.0.0: CHANGELOG.md", "other names", "- more regions"]);
    run.does_not_say(&["it is there", "\u{1b}"]);
    let answer = sandbox.mu(&["outdated", "--changelog", "--json"]).ok().json();
    assert_eq!(answer["changelogs"][0]["to"], "2.0.0");
    assert!(sandbox.mu(&["outdated", "--json"]).ok().json().get("changelogs").is_none());
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

/// A repository with two tags and a merge between them.
fn origin() -> (Origin, [String; 2]) {
    let origin = Origin::new("logs.git");
    origin.commit(&[("file", "one")]);
    origin.git(&["tag", "v1.0.0"]);
    let first = origin.commit(&[("file", "two")]);
    let last = origin.commit(&[("file", "three")]);
    origin.git(&["tag", "v1.1.0"]);
    origin.commit(&[("file", "four")]);
    (origin, [first, last])
}

#[test]
fn without_a_changelog_the_commits_of_the_repository_count() {
    let (origin, commits) = origin();
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let server = HttpServer::start(origin.root());
    for root in [server.root(), format!("git+file://{}/", origin.root().display())] {
        let sandbox = Sandbox::with_dependencies(&[&format!("{root}logs.git#^1.0")]);
        sandbox.trusts_folder(&origin.root().display().to_string());
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["update", "logs#1.0.0"]).ok();
        let run = sandbox.mu(&["outdated", "--changelog"]).ok();
        run.says(&["1.0.0 → 1.1.0: 2 commits in its repository"]);
        let answer = sandbox.mu(&["update", "--changelog", "--json"]).ok().json();
        let found = answer["changelogs"][0]["commits"].as_array().expect("is a list").clone();
        let found: Vec<&str> = found.iter().filter_map(|one| one["commit"].as_str()).collect();
        assert_eq!(found, [&*commits[1], &*commits[0]], "{root}");
        // What was listed once is known.
        sandbox.mu(&["update", "logs#1.0.0"]).ok();
        let asked = server.requests().len();
        sandbox.mu(&["update", "--changelog", "--offline"]).ok().says(&["2 commits"]);
        assert_eq!(server.requests().len(), asked);
    }
}

#[test]
fn a_server_that_gives_no_commits_alone_is_not_asked_for_all_files() {
    let (origin, _) = origin();
    origin.git(&["config", "uploadpack.allowFilter", "false"]);
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::with_dependencies(&[&format!("{}logs.git#^1.0", server.root())]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["update", "logs#1.0.0"]).ok();
    sandbox
        .mu(&["update", "--changelog"])
        .ok()
        .says(&["1.0.0 → 1.1.0: its authors say nothing that mu can read"]);
}
