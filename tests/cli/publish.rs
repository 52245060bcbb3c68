//! `mu publish`, `mu yank`, `mu tag`: from one workspace, through a hub, into another.

use std::fs;

use mu_testing::http::{Reply, Seen, TestServer};
use serde_json::{Value, json};

use crate::support::git::Origin;
use crate::support::{Hub, Nginx, Package, Sandbox, Served, digest_of, write};

/// A workspace at `author/` from which packages are published; `hub.mu.com/` is the sandbox's hub.
fn author(sandbox: &Sandbox, manifest: &str) {
    write(&sandbox.path("author"), ".mu/workspace.yaml", "");
    write(&sandbox.path("author"), "Mu.yaml", manifest);
}

const WEB: &str =
    "name: acme/site\nversion: 1.0.0\ndescription: A site\nlicense: MIT\nreadme: README.md\n";

/// The index lines of a package.
fn lines(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(sandbox.hub().index(name)).expect("has an index");
    text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect()
}

#[test]
fn what_is_published_is_what_others_get() {
    let mut sandbox = Sandbox::with_dependencies(&["acme/site"]);
    sandbox.hub().release("aws/vpc", "1.3.0");
    author(&sandbox, &format!("{WEB}keywords: [web]\ndependencies:\n  - aws/vpc#^1\n"));
    write(&sandbox.path("author"), "README.md", "# A site\n");
    write(&sandbox.path("author"), "run.sh*", "#!/bin/sh\n");
    sandbox.mu_in("author", &["get"]).ok();
    let run = sandbox.mu_in("author", &["publish", "--dry-run"]).ok();
    run.says(&["README.md", "would be published"]).does_not_say(&["warning"]);
    assert!(!sandbox.hub().index("acme/site").exists());
    let published = sandbox.mu_in("author", &["publish", "--json"]).ok().json();
    let published = &published["packages"][0];
    assert_eq!(published["done"], "published");
    let line = &lines(&sandbox, "acme/site")[0];
    for key in ["digest", "archive", "size"] {
        assert_eq!(line[key], published[key], "{key}");
    }
    assert_eq!(line["dependencies"], serde_json::json!(["aws/vpc#^1"]));
    assert_eq!(line["license"], "MIT");
    assert_eq!(line["keywords"], serde_json::json!(["web"]));
    assert!(line.get("provides").is_none() && line.get("published").is_some(), "{line}");
    // From the folder, and behind a web server: the same lock digests.
    sandbox.mu(&["get"]).ok();
    let pack = sandbox.path("work/.mu/packs/hub.mu.com/acme/site");
    assert_eq!(digest_of(&pack), published["digest"]);
    let digests = |sandbox: &Sandbox| -> Vec<Value> {
        let lock = sandbox.lock();
        let packages = lock["packages"].as_array().expect("is a list").clone();
        packages.iter().map(|package| package["digest"].clone()).collect()
    };
    let before = digests(&sandbox);
    let nginx = Nginx::serve(sandbox.hub().folder(), "");
    sandbox.hub_is_at(&nginx.url(""));
    let cache = sandbox.path("another-cache").display().to_string();
    sandbox.set("MU_CACHE_DIR", &cache);
    for part in ["work/.mu/packs", "work/Mu.lock"] {
        let path = sandbox.path(part);
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
    sandbox.mu(&["get"]).ok();
    assert_eq!(digests(&sandbox), before);
}

#[test]
fn a_published_version_never_changes() {
    let sandbox = Sandbox::with_dependencies(&[]);
    author(&sandbox, "name: acme/site\nversion: 1.0.0\n");
    let run = sandbox.mu_in("author", &["publish", "--quiet"]).ok();
    run.says(&["published acme/site 1.0.0"]).does_not_say(&["files, "]);
    let before = lines(&sandbox, "acme/site");
    sandbox.mu_in("author", &["publish"]).ok().says(&["already"]);
    write(&sandbox.path("author"), "new.txt", "");
    sandbox
        .mu_in("author", &["publish"])
        .fails()
        .says(&["already published with different content"]);
    let dry = sandbox.mu_in("author", &["publish", "--dry-run"]).fails();
    dry.says(&["already published with different content"]);
    sandbox.mu_in("author", &["publish", "--json"]).fails_with("conflict");
    assert_eq!(lines(&sandbox, "acme/site"), before);
    author(&sandbox, "name: acme/site\nversion: 1.1.0\n");
    sandbox.mu_in("author", &["publish"]).ok();
    assert_eq!(lines(&sandbox, "acme/site").len(), 2);
    let hub = sandbox.hub().folder().display().to_string();
    sandbox.mu(&["hub", "check", &hub]).ok();
}

#[test]
fn a_package_that_only_its_neighbours_changed_is_not_published_again() {
    let sandbox = Sandbox::with_dependencies(&[]);
    write(&sandbox.path("author"), ".mu/workspace.yaml", "");
    let place = |name: &str, version: &str, needs: &str| {
        let text = format!("name: {name}\nversion: {version}\ndependencies: [{needs}]\n");
        write(&sandbox.path("author"), &format!("{name}/Mu.yaml"), &text);
    };
    place("acme/a", "1.0.0", "");
    place("acme/b", "1.0.0", "acme/a#^1");
    sandbox.mu_in("author", &["get"]).ok();
    sandbox.mu_in("author", &["publish", "--all"]).ok();
    let before = lines(&sandbox, "acme/b");
    // What is packed of the lock now names another version of `acme/a`; the files of `acme/b` are the same.
    place("acme/a", "1.1.0", "");
    sandbox.mu_in("author", &["get"]).ok();
    let said = "acme/b 1.0.0 is already in file:";
    let other_lock = "packed with other versions in its Mu.lock";
    for arguments in [&["publish", "--all"][..], &["publish", "acme/b"]] {
        let run = sandbox.mu_in("author", arguments).ok();
        run.says(&[said, other_lock]).does_not_say(&["different content"]);
    }
    sandbox.mu_in("author", &["publish", "acme/b", "--dry-run"]).ok().says(&[said, other_lock]);
    let answer = sandbox.mu_in("author", &["publish", "--all", "--json"]).ok().json();
    let found = &answer["packages"][1];
    assert_eq!((&found["done"], &found["otherLock"]), (&json!("present"), &json!(true)));
    assert_eq!(answer["packages"][0]["otherLock"], false);
    assert_eq!(lines(&sandbox, "acme/b"), before);
    // A change of its own is a change, whatever the lock says.
    write(&sandbox.path("author"), "acme/b/new.txt", "");
    let run = sandbox.mu_in("author", &["publish", "--all"]).ok();
    run.says(&["`acme/b` 1.0.0 is already published with different content"]);
    sandbox.mu_in("author", &["publish", "acme/b"]).fails().says(&["different content"]);
    assert_eq!(lines(&sandbox, "acme/b"), before);
}

#[test]
fn what_would_not_work_for_others_is_refused() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.hub().release("aws/vpc", "1.0.0");
    for (manifest, code, said) in [
        ("name: acme/site\n", "manifest", "no `version`"),
        ("name: acme/site\nversion: 1.0.0\ndependencies: [../x]\n", "manifest", "on this machine"),
        ("name: acme/site\nversion: 1.0.0\nreadme: NO.md\n", "manifest", "`NO.md`"),
        (
            "name: acme/site\nversion: 1.0.0\ndependencies: [\"no/such#^1\"]\n",
            "not-found",
            "no/such",
        ),
        (
            "name: acme/site\nversion: 1.0.0\ndependencies: [\"aws/vpc#^2\"]\n",
            "not-found",
            "aws/vpc",
        ),
    ] {
        author(&sandbox, manifest);
        sandbox.mu_in("author", &["publish"]).fails().says(&[said]);
        sandbox.mu_in("author", &["publish", "--dry-run", "--json"]).fails_with(code);
        assert!(!sandbox.hub().index("acme/site").exists());
    }
    insta::assert_snapshot!(sandbox.mu_in("author", &["publish"]).fails().shown(), @"
    $ mu publish
    error: others could not install `acme/site`: its dependencies cannot be resolved
      caused by: no version of aws/vpc meets the requirements
      acme/site requires aws/vpc ^2
      no version of aws/vpc is ^2
        aws/vpc has 1.0.0
        looked at hub+file://[DIR]/hub/

    hint: fix the dependencies in the manifest, or publish what is missing first
    [exit 1]
    ");
    author(&sandbox, "name: acme/site\nversion: 1.0.0\ndependencies: [\"aws/none#^1\"]\n");
    let away = "registries: {hub.mu.com/: \"http://127.0.0.1:1/\"}\n";
    write(&sandbox.path("author"), ".mu/workspace.yaml", away);
    sandbox
        .mu_in("author", &["publish", "--to", "../hub"])
        .fails()
        .says(&["cannot reach", "`mu registry add hub.mu.com/ ../hub`"]);
    author(&sandbox, "name: acme/site\nversion: 1.0.0\ndependencies: [\"aws/vpc#^1\"]\n");
    write(
        &sandbox.path("author"),
        ".mu/workspace.yaml",
        "overrides: {hub.mu.com/aws/vpc: ../elsewhere}\n",
    );
    sandbox.mu_in("author", &["publish"]).fails().says(&["override `aws/vpc`"]);
    author(&sandbox, "name: acme/site\nversion: 1.0.0\n");
    sandbox
        .mu_in("author", &["publish", "--to", "../nowhere"])
        .fails()
        .says(&["no hub", "mu hub init"]);
    sandbox
        .mu_in("author", &["publish", "--to", "http://127.0.0.1:1/"])
        .fails()
        .says(&["cannot reach", "`mu hub serve FOLDER` starts one"]);
    let nginx = Nginx::serve(sandbox.hub().folder(), "");
    let below = sandbox.mu_in("author", &["publish", "--to", &nginx.url("nothing")]).fails();
    below.says(&["nothing/hub.json` answered 404", "check the address"]);
    let url = nginx.url("");
    let run = sandbox.mu_in("author", &["publish", "--to", &url]);
    assert_eq!(run.status, 2, "{}", run.shown());
    run.says(&["does not accept changes", "--to PLACE"]);
}

#[test]
fn doubts_are_told() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.hub().release("utils", "1.0.0");
    author(&sandbox, "name: site\nversion: 1.0.0\ndependencies: [\"utils#^1\"]\n");
    write(&sandbox.path("author"), ".mu/workspace.yaml", "namespace: acme\n");
    let run = sandbox.mu_in("author", &["publish", "--dry-run"]).ok();
    run.says(&["has no `description`, `license`, `readme`"]).does_not_say(&["but another package"]);
    write(&sandbox.path("author"), "utils/Mu.yaml", "name: acme/utils\nversion: 1.0.0\n");
    let run = sandbox.mu_in("author", &["publish", "--dry-run"]).ok();
    run.says(&[
        "the dependency `utils` means `acme/utils` here, but another package for others",
        "write `acme/utils`",
    ]);
}

#[test]
fn a_workspace_is_published_in_the_order_of_its_dependencies() {
    let sandbox = Sandbox::with_dependencies(&[]);
    write(&sandbox.path("author"), ".mu/workspace.yaml", "");
    let packages: [(&str, &[&str]); 3] =
        [("acme/a", &["acme/b#^1"]), ("acme/b", &["acme/c#^1"]), ("acme/c", &[])];
    for (name, dependencies) in packages {
        let text = format!("name: {name}\nversion: 1.0.0\ndependencies: {dependencies:?}\n");
        write(&sandbox.path("author"), &format!("{name}/Mu.yaml"), text);
    }
    sandbox.mu_in("author/acme/a", &["publish"]).fails().says(&["acme/b"]);
    sandbox.mu_in("author", &["publish", "-p", "acme/c", "--dry-run"]).ok().says(&["acme/c 1.0.0"]);
    sandbox.mu_in("author", &["publish", "--all", "--dry-run"]).ok();
    let order = |run: crate::support::Run| -> Vec<String> {
        let value = run.ok().json();
        let packages = value["packages"].as_array().expect("is a list").clone();
        let text = |value: &Value| value.as_str().expect("is text").to_owned();
        packages.iter().map(|one| format!("{} {}", text(&one["id"]), text(&one["done"]))).collect()
    };
    // What is wrong with the last one is said before the first one is published.
    let a = sandbox.path("author/acme/a");
    write(&a, "Mu.yaml", "name: acme/a\nversion: 1.0.0\ndependencies: [acme/b]\n");
    let refused = sandbox.mu_in("author", &["publish", "--all"]).fails();
    refused.says(&["must say which versions"]).does_not_say(&["this run has published"]);
    sandbox.mu(&["versions", "acme/c", "--json"]).fails_with("not-found");
    write(&a, "Mu.yaml", "name: acme/a\nversion: 1.0.0\ndependencies: [acme/b#^1]\n");
    let first = order(sandbox.mu_in("author", &["publish", "--all", "--json"]));
    let names = ["hub.mu.com/acme/c", "hub.mu.com/acme/b", "hub.mu.com/acme/a"];
    assert_eq!(first, names.map(|name| format!("{name} published")));
    let again = order(sandbox.mu_in("author", &["publish", "--all", "--json"]));
    assert_eq!(again, names.map(|name| format!("{name} present")));
    sandbox.asks_for(&["acme/a"]);
    sandbox.mu(&["get"]).ok().says(&["3 packages"]);
}

#[test]
fn which_package_is_meant_has_to_be_clear() {
    let sandbox = Sandbox::new();
    for arguments in [&["publish"][..], &["publish", "--all"], &["pack"]] {
        sandbox.mu(arguments).fails().says(&["there is no package in"]);
    }
    for name in ["one", "two"] {
        sandbox.write(&format!("{name}/Mu.yaml"), &format!("name: acme/{name}\nversion: 1.0.0\n"));
    }
    for (command, hint) in [
        ("publish", "as in `mu publish PACKAGE`: `acme/one`, `acme/two`"),
        ("pack", "`mu pack PACKAGE`"),
    ] {
        let run = sandbox.mu(&[command]);
        assert_eq!(run.status, 2, "{}", run.shown());
        run.says(&[hint]);
        sandbox.mu(&[command, "acme/two"]).ok();
    }
}

#[test]
fn pins_are_published_on_request() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.publish(&[Package::new("aws/vpc", "1.3.0")]);
    author(&sandbox, "name: acme/site\nversion: 1.0.0\ndependencies:\n  - aws/vpc#^1\n");
    sandbox.mu_in("author", &["publish", "--pinned"]).ok();
    let line = &lines(&sandbox, "acme/site")[0];
    assert_eq!(line["dependencies"], serde_json::json!(["aws/vpc#1.3.0"]));
}

#[test]
fn who_uses_a_deprecated_version_is_told_why() {
    let sandbox = Sandbox::with_dependencies(&["acme/site#^1"]);
    let manifests = [("1.0.0", ""), ("1.1.0", "deprecated: 'use acme/pages'\n"), ("1.2.0", "")];
    for (version, more) in manifests {
        author(&sandbox, &format!("name: acme/site\nversion: {version}\n{more}"));
        sandbox.mu_in("author", &["publish"]).ok();
    }
    // By its manifest.
    let before = lines(&sandbox, "acme/site");
    let said: Vec<&Value> = before.iter().map(|line| &line["deprecated"]).collect();
    assert_eq!(said, [&Value::Null, &json!("use acme/pages"), &Value::Null]);
    // And by a command, which changes nothing else.
    let run = sandbox.mu(&["deprecate", "acme/site#1.2.0", "--reason", "too slow"]).ok();
    run.says(&["deprecated acme/site 1.2.0 in file://"]);
    sandbox.mu(&["deprecate", "acme/site#1.2.0"]).ok().says(&["already deprecated"]);
    assert_eq!(lines(&sandbox, "acme/site")[2]["deprecated"], "too slow");
    // It is chosen last, and told where nothing else fits.
    sandbox.mu(&["get"]).ok().says(&["acme/site 1.0.0"]).does_not_say(&["deprecated"]);
    let run = sandbox.mu(&["add", "acme/site#1.2.0"]).ok();
    run.says(&["`acme/site` 1.2.0 is deprecated: too slow"]);
    sandbox.mu(&["info", "acme/site#1.1.0"]).ok().says(&["deprecated: use acme/pages"]);
    sandbox.mu(&["outdated"]).ok().says(&["1.2.0 is deprecated: too slow"]);
    // Its hub has the last word, also about what a manifest says.
    let run = sandbox.mu(&["deprecate", "acme/site#1.1.0", "--undo", "--json"]).ok().json();
    assert_eq!((&run["deprecated"], &run["yanked"]), (&json!(false), &Value::Null));
    let run = sandbox.mu(&["deprecate", "acme/site#1.2.0", "--undo"]).ok();
    run.says(&["no longer deprecated: acme/site 1.2.0"]);
    sandbox.mu(&["add", "acme/site#1.1.0"]).ok().does_not_say(&["is deprecated"]);
    let long = "x".repeat(600);
    let run = sandbox.mu(&["deprecate", "acme/site#1.2.0", "--reason", &long]).fails();
    run.says(&["512"]);
    author(&sandbox, &format!("name: acme/site\nversion: 1.3.0\ndeprecated: {long}\n"));
    sandbox.mu_in("author", &["publish"]).fails().says(&["512"]);
}

#[test]
fn yanks_tags_and_moves_change_nothing_else() {
    let sandbox = Sandbox::with_dependencies(&["acme/site"]);
    for version in ["1.0.0", "1.1.0"] {
        author(&sandbox, &format!("name: acme/site\nversion: {version}\n"));
        sandbox.mu_in("author", &["publish"]).ok();
    }
    let before = lines(&sandbox, "acme/site");
    let run = sandbox.mu(&["yank", "acme/site#1.1.0", "--reason", "loses data"]).ok();
    run.says(&["yanked acme/site 1.1.0"]);
    assert_eq!(lines(&sandbox, "acme/site")[1]["yanked"], "loses data");
    sandbox.mu(&["yank", "acme/site#1.1.0", "--reason", "loses data"]).ok().says(&["already"]);
    // Without a reason, the known one stays; another reason takes its place.
    let run = sandbox.mu(&["yank", "acme/site#1.1.0"]).ok();
    run.says(&["already yanked, nothing to do: acme/site 1.1.0"]);
    assert_eq!(lines(&sandbox, "acme/site")[1]["yanked"], "loses data");
    sandbox.mu(&["yank", "acme/site#1.1.0", "--reason", "leaks"]).ok().says(&["yanked acme"]);
    assert_eq!(lines(&sandbox, "acme/site")[1]["yanked"], "leaks");
    sandbox.mu(&["get"]).ok().says(&["acme/site 1.0.0"]);
    sandbox.mu(&["yank", "acme/site#1.1.0", "--undo"]).ok();
    assert_eq!(lines(&sandbox, "acme/site"), before);
    // An index has a text for every withdrawn version.
    sandbox.mu(&["yank", "acme/site#1.1.0"]).ok().says(&["yanked acme"]);
    assert_eq!(lines(&sandbox, "acme/site")[1]["yanked"], "no reason was given");
    sandbox.mu(&["yank", "acme/site#1.1.0", "--undo"]).ok();
    sandbox.mu(&["update"]).ok().says(&["1.0.0 → 1.1.0"]);
    sandbox.mu(&["tag", "acme/site#1.0.0", "beta"]).ok();
    sandbox.mu(&["tag", "acme/site#1.1.0", "beta"]).ok().says(&["tagged acme/site 1.1.0"]);
    let tags: Vec<Value> = lines(&sandbox, "acme/site").iter().map(|l| l["tags"].clone()).collect();
    assert_eq!(tags, [Value::Null, serde_json::json!(["beta"])]);
    sandbox.mu(&["tag", "acme/site#1.1.0", "beta", "--undo"]).ok();
    assert_eq!(lines(&sandbox, "acme/site"), before);
    for arguments in [&["yank", "acme/site"][..], &["tag", "acme/site#^1", "beta"]] {
        let run = sandbox.mu(arguments);
        assert_eq!(run.status, 2, "{}", run.shown());
        run.says(&["does not name a single version"]);
    }
    sandbox.mu(&["yank", "acme/site#9.0.0"]).fails().says(&["acme/site 9.0.0"]);
    author(&sandbox, "name: acme/site\nversion: 1.2.0\n");
    sandbox.mu_in("author", &["publish", "--moved-to", "hub.mu.com/acme/pages"]).ok();
    let moved: Vec<Value> =
        lines(&sandbox, "acme/site").iter().map(|line| line["movedTo"].clone()).collect();
    assert!(moved.iter().all(|to| to == "hub.mu.com/acme/pages"), "{moved:?}");
}

#[test]
fn a_package_moves_to_what_its_author_names() {
    let sandbox = Sandbox::with_dependencies(&["acme/site"]);
    author(&sandbox, "name: acme/site\nversion: 1.0.0\n");
    let moved = |sandbox: &Sandbox| lines(sandbox, "acme/site")[0]["movedTo"].clone();
    sandbox.mu_in("author", &["publish"]).ok();
    // Named like a reference: missing parts are the workspace's.
    let run = sandbox.mu_in("author", &["publish", "--moved-to", "acme/pages", "--dry-run"]).ok();
    run.says(&["would record of acme/site that it has moved to acme/pages"]);
    assert_eq!(moved(&sandbox), Value::Null);
    let run = sandbox.mu_in("author", &["publish", "--moved-to", "acme/pages"]).ok();
    run.says(&["is already in", "has moved to acme/pages"]);
    assert_eq!(moved(&sandbox), "hub.mu.com/acme/pages");
    sandbox.mu(&["get"]).ok().says(&["has moved to `acme/pages`"]);
    for (wrong, expected) in [
        ("acme/site", "cannot have moved to itself"),
        ("acme/pages#1.0.0", "not a version"),
        ("../pages", "only on this machine"),
        ("a b", "expected"),
        ("", "expected"),
    ] {
        let run = sandbox.mu_in("author", &["publish", "--moved-to", wrong]);
        assert_ne!(run.status, 0, "{}", run.shown());
        run.says(&[expected]);
    }
    assert_eq!(moved(&sandbox), "hub.mu.com/acme/pages");
}

#[test]
fn what_another_hub_says_of_a_version_stays_one_line() {
    let sandbox = Sandbox::with_dependencies(&["acme/site"]);
    sandbox.hub().publish(&Package::new("acme/site", "1.0.0").key("movedTo", "./x".into()));
    let yanked = Package::new("acme/site", "1.1.0").key("yanked", "two\n\u{1b}[31mlines".into());
    sandbox.hub().publish(&yanked);
    let run = sandbox.mu(&["get"]).ok();
    assert!(!run.shown().contains("moved"), "{}", run.shown());
    sandbox.mu(&["versions", "acme/site"]).ok().says(&["yanked: two \\u{1b}[31mlines"]);
    sandbox.mu(&["info", "acme/site#1.1.0"]).ok().says(&["yanked: two \\u{1b}[31mlines"]);
}

/// A hub's server that records what it gets; `answer` is its answer to changes.
fn server(answer: fn(&Seen) -> Reply) -> TestServer {
    TestServer::start(move |request, _| match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/hub.json") => Reply::body(r#"{"hub": 1, "api": "api/v1/"}"#),
        ("GET", "/index/acme/site.jsonl") => {
            Reply::body("{\"name\":\"acme/site\",\"version\":\"0.9.0\",\"tags\":[\"old\"]}\n")
        }
        ("GET", _) => Reply::status(404),
        _ => answer(request),
    })
}

#[test]
fn a_server_is_sent_the_archive_and_its_own_token() {
    let mut sandbox = Sandbox::with_dependencies(&[]);
    let server = server(|request| match request.header("authorization") {
        Some("Bearer hunter2") if request.method == "PUT" => Reply::status(201),
        Some("Bearer hunter2") => Reply::body("{}"),
        _ => Reply::status(401),
    });
    let url = server.url("");
    author(&sandbox, "name: acme/site\nversion: 1.0.0\n");
    let publish = ["publish", "--to", &url];
    sandbox.mu_in("author", &publish).fails().says(&["mu login"]);
    sandbox.set_token(&server.host(), "hunter2");
    sandbox.mu_in("author", &publish).ok().says(&["published acme/site 1.0.0"]);
    sandbox.mu_in("author", &["pack"]).ok();
    let archive = fs::read(sandbox.path("author/site-1.0.0.tgz")).expect("was written");
    let put = server.seen().into_iter().rfind(|seen| seen.method == "PUT").expect("was sent");
    assert_eq!(put.path, "/api/v1/packages/acme/site/1.0.0");
    assert!(put.body == archive, "the body is the archive");
    let to = ["--to", &url];
    let changes: [(&[&str], &str); 6] = [
        (&["yank", "acme/site#0.9.0", "--reason", "old"], r#"{"yanked":"old"}"#),
        (&["yank", "acme/site#0.9.0", "--undo"], r#"{"yanked":false}"#),
        (&["deprecate", "acme/site#0.9.0", "--reason", "old"], r#"{"deprecated":"old"}"#),
        (&["deprecate", "acme/site#0.9.0", "--undo"], r#"{"deprecated":false}"#),
        (&["tag", "acme/site#0.9.0", "beta"], r#"{"tags":["old","beta"]}"#),
        (&["tag", "acme/site#0.9.0", "old", "--undo"], r#"{"tags":[]}"#),
    ];
    for (arguments, expected) in changes {
        sandbox.mu(&[arguments, &to].concat()).ok();
        let patch = server.seen().pop().expect("was sent");
        assert_eq!(
            (patch.method.as_str(), patch.path.as_str()),
            ("PATCH", "/api/v1/packages/acme/site/0.9.0")
        );
        assert_eq!(String::from_utf8_lossy(&patch.body), expected);
    }
    sandbox.mu(&["yank", "acme/site#8.0.0", "--to", &url]).fails();
}

#[test]
fn a_refusal_is_told_and_redirects_are_not_followed() {
    let mut sandbox = Sandbox::with_dependencies(&[]);
    let other = server(|_| Reply::status(201));
    let elsewhere = other.url("api");
    let refusing = server(|_| Reply::status(409));
    author(&sandbox, "name: acme/site\nversion: 1.0.0\n");
    let to = refusing.url("");
    let run = sandbox.mu_in("author", &["publish", "--to", &to]).fails();
    run.says(&["refused acme/site 1.0.0", "raise `version`"]);
    sandbox.mu_in("author", &["publish", "--to", &to, "--json"]).fails_with("conflict");
    let leading = TestServer::start(move |request, _| match request.path.as_str() {
        "/hub.json" => Reply::body(r#"{"hub": 1, "api": "api/v1/"}"#),
        "/index/acme/site.jsonl" => Reply::status(404),
        _ => Reply::redirect(elsewhere.clone()),
    });
    for server in [&other, &leading] {
        sandbox.set_token(&server.host(), "hunter2");
    }
    let to = leading.url("");
    let run = sandbox.mu_in("author", &["publish", "--to", &to]).fails();
    run.says(&["where it is not sent"]).does_not_say(&["hunter2"]);
    assert!(other.seen().is_empty(), "nothing is sent to where a redirect leads");
}

/// A hub says where changes to it go. The password of that place is not the hub's to use.
#[test]
fn a_hub_that_sends_changes_to_another_host_gets_no_password_of_that_host() {
    let mut sandbox = Sandbox::with_dependencies(&[]);
    let other = server(|_| Reply::status(201));
    let api = other.url("api/v1/");
    let hub = TestServer::start(move |request, _| match request.path.as_str() {
        "/hub.json" => Reply::body(format!("{{\"hub\": 1, \"api\": \"{api}\"}}")),
        _ => Reply::status(404),
    });
    sandbox.set_token(&other.host(), "others");
    sandbox.set_token(&hub.host(), "hunter2");
    author(&sandbox, "name: acme/site\nversion: 1.0.0\n");
    let publish = ["publish", "--to", &hub.url("")];
    sandbox.mu_in("author", &publish).ok();
    let sent = |server: &TestServer| server.seen().pop().expect("was sent");
    assert_eq!(sent(&other).header("authorization"), None);
    let pair = format!("registries: {{{}/: {{tokensAt: {}}}}}", hub.host(), other.host());
    write(sandbox.root(), "home/.mu/config.yaml", &pair);
    sandbox.mu_in("author", &publish).ok();
    assert_eq!(sent(&other).header("authorization"), Some("Bearer hunter2"));
    // Without the line, a server that wants a token leads to it.
    write(sandbox.root(), "home/.mu/config.yaml", "");
    let strict = server(|_| Reply::status(401));
    let api = strict.url("api/v1/");
    let hub = TestServer::start(move |request, _| match request.path.as_str() {
        "/hub.json" => Reply::body(format!("{{\"hub\": 1, \"api\": \"{api}\"}}")),
        _ => Reply::status(404),
    });
    sandbox.set_token(&hub.host(), "hunter2");
    let run = sandbox.mu_in("author", &["publish", "--to", &hub.url("")]).fails();
    let pair = format!("registries: {{{}/: {{tokensAt: {}}}}}", hub.host(), strict.host());
    run.says(&[&pair]).does_not_say(&["hunter2"]);
}

#[test]
fn a_package_that_names_its_base_is_not_published_as_one_of_another() {
    let sandbox = Sandbox::new();
    author(&sandbox, "name: evil.example/acme/site\nversion: 1.0.0\n");
    let hub = sandbox.path("hub").display().to_string();
    for to in ["../hub", &hub, &format!("file://{hub}")] {
        let run = sandbox.mu_in("author", &["publish", "--to", to]).fails();
        run.says(&["is a package of `evil.example/`", "serves `hub.mu.com/`"]);
    }
    assert!(!sandbox.hub().index("acme/site").exists());
    // If nothing says whose it is, it may be a mirror, or the hub of that base.
    sandbox.mu(&["hub", "init", "../other"]).ok();
    sandbox.mu_in("author", &["publish", "--to", "../other"]).ok();
    author(&sandbox, "name: hub.mu.com/acme/site\nversion: 1.0.0\n");
    sandbox.mu_in("author", &["publish", "--to", "../hub"]).ok();
}

#[test]
fn what_is_not_committed_is_not_published() {
    let mut sandbox = Sandbox::with_dependencies(&["acme/site"]);
    let origin = Origin::new("monorepo");
    let manifest =
        "name: acme/site\nversion: 1.0.0\nrepository: https://github.com/acme/site#deploy\n";
    let commit =
        origin.commit(&[("deploy/Mu.yaml", manifest), ("deploy/a.txt", "a"), ("b.txt", "")]);
    let checkout = sandbox.path("checkout");
    origin.git(&["clone", "--quiet", ".", &checkout.display().to_string()]);
    let folder = "checkout/deploy";
    write(&checkout, "deploy/.mu/workspace.yaml", "");
    write(&checkout, "deploy/a.txt", "changed");
    write(&checkout, "deploy/new.txt", "");
    write(&checkout, "b.txt", "of no concern");
    let error = sandbox.mu_in(folder, &["publish", "--json"]).fails_with("conflict");
    assert_eq!(error["details"]["files"], json!(["a.txt", "new.txt"]));
    sandbox.mu_in(folder, &["publish"]).fails().says(&["`a.txt`, `new.txt`", "--allow-dirty"]);
    sandbox.mu_in(folder, &["publish", "--allow-dirty", "--dry-run"]).ok();
    write(&checkout, "deploy/a.txt", "a");
    fs::remove_file(checkout.join("deploy/new.txt")).expect("was there");
    sandbox.mu_in(folder, &["publish"]).ok().says(&["published acme/site 1.0.0 to"]);
    let line = lines(&sandbox, "acme/site").remove(0);
    assert_eq!(line["commit"], *commit);
    assert_eq!(line["repository"], "https://github.com/acme/site#deploy");
    // The commit of an archive is not a Git commit to fetch it from.
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["commit"], Value::Null);
    sandbox.mu(&["info", "acme/site"]).ok().says(&["https://github.com/acme/site#deploy"]);
    let hub = sandbox.hub().folder().display().to_string();
    sandbox.mu(&["hub", "check", &hub]).ok();
    // A server is sent the commit beside the archive.
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let add = ["hub", "token", "add", "../srv", "ci", "--namespace", "acme"];
    let token = sandbox.mu(&add).ok().stdout.trim().to_owned();
    let served = Served::start(&sandbox, "../srv", &[]);
    sandbox.set_token(&served.address.to_string(), &token);
    sandbox.mu_in(folder, &["publish", "--to", &served.url()]).ok();
    let answer = served.ask("GET", "/index/acme/site.jsonl", &[], &[]).is(200);
    let line: Value = serde_json::from_str(&answer.text()).expect("is one line");
    assert_eq!(line["commit"], *commit);
    // Publishing an older version than the newest is allowed, with a warning.
    write(&checkout, "deploy/Mu.yaml", "name: acme/site\nversion: 0.9.0\n");
    let told = "`acme/site` 0.9.0 is older than 1.0.0, which is already published";
    sandbox.mu_in(folder, &["publish", "--allow-dirty"]).ok().says(&[told]);
}

#[test]
fn packages_that_depend_on_each_other_are_told_so() {
    let sandbox = Sandbox::with_dependencies(&[]);
    write(&sandbox.path("author"), ".mu/workspace.yaml", "");
    for (name, needs) in [("acme/a", "acme/b#^1"), ("acme/b", "acme/a#^1")] {
        let text = format!("name: {name}\nversion: 1.0.0\ndependencies: [\"{needs}\"]\n");
        write(&sandbox.path("author"), &format!("{name}/Mu.yaml"), text);
    }
    let run = sandbox.mu_in("author", &["publish", "--all"]).fails();
    run.says(&["`acme/b` and `acme/a` depend on each other"])
        .does_not_say(&["publish what is missing"]);
}

#[test]
fn an_archive_is_named_by_its_app_version_too() {
    let sandbox = Sandbox::with_dependencies(&["acme/elk"]);
    author(&sandbox, "name: acme/elk\nversion: 1.4.0\nappVersion: \"8.11.1\"\n");
    sandbox.mu_in("author", &["pack"]).ok().says(&["wrote elk-8.11.1-1.4.0.tgz"]);
    sandbox.mu_in("author", &["publish"]).ok();
    assert!(sandbox.has("hub/packs/acme/elk/elk-8.11.1-1.4.0.tgz"));
    sandbox.mu(&["get"]).ok();
    let hub = sandbox.hub().folder().display().to_string();
    sandbox.mu(&["hub", "check", &hub]).ok();
    // Hubs with the version alone in the name are supported.
    let archive = |name: &str| sandbox.path("hub/packs/acme/elk").join(name);
    fs::rename(archive("elk-8.11.1-1.4.0.tgz"), archive("elk-1.4.0.tgz")).expect("is there");
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("was there");
    }
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["hub", "check", &hub]).ok();
}

#[test]
fn what_others_need_must_be_where_they_look() {
    let sandbox = Sandbox::new();
    author(&sandbox, &format!("{WEB}dependencies:\n  - acme/kit#^1\n"));
    write(&sandbox.path("author"), "README.md", "# A site\n");
    // Only its author has it.
    sandbox.place("home/.mu/packs/acme/kit", &Package::new("acme/kit", "1.0.0"));
    sandbox.mu_in("author", &["get"]).ok();
    let run = sandbox.mu_in("author", &["publish"]).fails();
    run.says(&["others could not install `acme/site`", "acme/kit"]);
    // At the place that is published to, or in a registry.
    let other = Hub::new(&sandbox.path("other"));
    sandbox.mu_in("author", &["publish", "--to", "../other"]).fails();
    other.publish(&Package::new("acme/kit", "2.0.0"));
    sandbox.mu_in("author", &["publish", "--to", "../other"]).fails();
    other.publish(&Package::new("acme/kit", "1.2.0"));
    sandbox.mu_in("author", &["publish", "--to", "../other"]).ok();
    sandbox.publish(&[Package::new("acme/kit", "1.1.0")]);
    sandbox.mu_in("author", &["publish"]).ok();
}
